package boot

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// TCP has settings of routes for the kernel's TCP, as in ip-route(8). What is zero stays as the
// kernel has it.
type TCP struct {
	RTOMin   time.Duration `json:"rto_min_ns,omitempty"` // real time, of whole milliseconds
	InitCwnd int           `json:"initcwnd,omitempty"`   // packets
	InitRwnd int           `json:"initrwnd,omitempty"`   // packets
	QuickAck bool          `json:"quickack,omitempty"`
	ECN      bool          `json:"ecn,omitempty"`
	CongCtl  string        `json:"congctl,omitempty"`
}

// String returns the settings as ip-route(8) writes them, with rto_min in real time.
func (t TCP) String() string {
	var all []string
	say := func(is bool, format string, args ...any) {
		if is {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	say(t.RTOMin > 0, "rto_min %v", t.RTOMin)
	say(t.InitCwnd > 0, "initcwnd %d", t.InitCwnd)
	say(t.InitRwnd > 0, "initrwnd %d", t.InitRwnd)
	say(t.QuickAck, "quickack 1")
	say(t.ECN, "features ecn")
	say(t.CongCtl != "", "congctl %s", t.CongCtl)
	return strings.Join(all, " ")
}

// apply adds the settings to a route.
func (t TCP) apply(r *netlink.Route) {
	r.RtoMin, r.RtoMinLock = int(t.RTOMin.Milliseconds()), t.RTOMin > 0 // without the lock, TCP ignores it
	r.InitCwnd, r.InitRwnd, r.Congctl = t.InitCwnd, t.InitRwnd, t.CongCtl
	if t.QuickAck {
		r.QuickACK = 1
	}
	if t.ECN {
		const featureECN = 1 // RTAX_FEATURE_ECN, linux/rtnetlink.h
		r.Features = featureECN
	}
}

// explain names the congestion controls that there are, if a route could not get one.
func (t TCP) explain(err error) error {
	if t.CongCtl == "" || !errors.Is(err, unix.EINVAL) {
		return err
	}
	there, unread := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	if unread != nil {
		return err
	}
	return fmt.Errorf("the kernel has no congestion control %s (it has %s); modprobe tcp_%[1]s may load it: %[3]w",
		t.CongCtl, strings.Join(strings.Fields(string(there)), ", "), err)
}
