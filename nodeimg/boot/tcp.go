package boot

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/nodeimg/tcp"
)

// setTCP adds settings for the kernel's TCP to a route.
func setTCP(r *netlink.Route, s tcp.Settings) {
	r.RtoMin, r.RtoMinLock = int(s.RTOMin.Duration().Milliseconds()), s.RTOMin > 0 // without the lock, TCP ignores it
	r.InitCwnd, r.InitRwnd, r.Congctl = s.InitCwnd, s.InitRwnd, s.CongCtl
	if s.QuickAck {
		r.QuickACK = 1
	}
	if s.ECN {
		const featureECN = 1 // RTAX_FEATURE_ECN, linux/rtnetlink.h
		r.Features = featureECN
	}
}

// explainTCP names the congestion controls that there are, if a route could not get one.
func explainTCP(s tcp.Settings, err error) error {
	if s.CongCtl == "" || !errors.Is(err, unix.EINVAL) {
		return err
	}
	there, unread := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	if unread != nil {
		return err
	}
	return fmt.Errorf("the kernel has no congestion control %s (it has %s); modprobe tcp_%[1]s may load it: %[3]w",
		s.CongCtl, strings.Join(strings.Fields(string(there)), ", "), err)
}
