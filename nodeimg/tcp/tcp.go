// Package tcp has the settings of the kernel's TCP in emulated hosts: engine.tcp of a lab, which
// boot gives to the routes of a node.
package tcp

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"weft/internal/clip"
	"weft/params"
	"weft/units"
)

// Settings are options of a host's routes for the kernel's TCP, as in ip-route(8). What is zero
// stays as the kernel has it.
type Settings struct {
	RTOMin   units.Time `json:"rto_min,omitempty"`  // lab time; real time in what Real returns
	InitCwnd int        `json:"initcwnd,omitempty"` // packets
	InitRwnd int        `json:"initrwnd,omitempty"` // packets
	QuickAck bool       `json:"quickack,omitempty"`
	ECN      bool       `json:"ecn,omitempty"`
	CongCtl  string     `json:"congctl,omitempty"`
}

// Bounds of engine.tcp. maxRTO is the kernel's TCP_RTO_MAX; the other is ours.
const (
	maxRTO    = 120 * units.Second
	maxWindow = 10_000
)

// Keys implements params.Section.
func (s *Settings) Keys() []params.Key {
	return []params.Key{
		params.New("rto_min", params.Time(&s.RTOMin, units.Nanosecond, maxRTO),
			"Minimum retransmission timeout, in lab time; the kernel's is 200 ms of real time.").OrNone(),
		params.New("initcwnd", params.Integer(&s.InitCwnd, 1, maxWindow), "First congestion window, in packets.").
			OrNone(),
		params.New("initrwnd", params.Integer(&s.InitRwnd, 1, maxWindow), "First receive window, in packets.").OrNone(),
		params.New("quickack", params.Flag(&s.QuickAck), "Acknowledge every segment at once.").OrNone(),
		params.New("ecn", params.Flag(&s.ECN), "Ask for ECN on every connection.").OrNone(),
		params.New("congctl", params.Custom(&s.CongCtl, checkCongCtl, func(v string) string { return v },
			"the name of a congestion control of the kernel, such as cubic", func() params.Form {
				return params.Form{Patterns: []string{congCtl}, Example: "cubic"}
			}), "Congestion control of the kernel's TCP.").OrNone(),
	}
}

// congCtl matches a name of at most TCP_CA_NAME_MAX - 1 characters.
const congCtl = `[a-z][a-z0-9_-]{0,14}`

var congCtlText = regexp.MustCompile("^" + congCtl + "$")

func checkCongCtl(text string) (string, error) {
	if !congCtlText.MatchString(text) {
		return "", fmt.Errorf("%q is not the name of a congestion control; expected one of the kernel, such as cubic",
			clip.Text(text))
	}
	return text, nil
}

// Real returns the settings in real time. The kernel counts timeouts in milliseconds; one that is
// out of its range is an error.
func (s Settings) Real(dilation float64) (Settings, error) {
	exact := time.Duration(float64(s.RTOMin.Duration()) * dilation)
	rounded := exact.Round(time.Millisecond)
	if s.RTOMin > 0 && (rounded < time.Millisecond || rounded > maxRTO.Duration()) {
		return s, fmt.Errorf("engine.tcp.rto_min: %v is %v of real time at dilation %.15g; the kernel's timeouts are "+
			"1 ms to %v", s.RTOMin, exact, dilation, maxRTO.Duration())
	}
	s.RTOMin = units.FromDuration(rounded)
	return s, nil
}

// String returns the settings as ip-route(8) writes them.
func (s Settings) String() string {
	var all []string
	say := func(is bool, format string, args ...any) {
		if is {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	say(s.RTOMin > 0, "rto_min %v", s.RTOMin.Duration())
	say(s.InitCwnd > 0, "initcwnd %d", s.InitCwnd)
	say(s.InitRwnd > 0, "initrwnd %d", s.InitRwnd)
	say(s.QuickAck, "quickack 1")
	say(s.ECN, "features ecn")
	say(s.CongCtl != "", "congctl %s", s.CongCtl)
	return strings.Join(all, " ")
}
