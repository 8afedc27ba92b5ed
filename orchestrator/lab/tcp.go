package lab

import (
	"fmt"
	"regexp"

	"weft/internal/clip"
	"weft/params"
	"weft/units"
)

// TCP is engine.tcp: settings of the routes of emulated hosts for the kernel's TCP, as in
// ip-route(8). What is zero stays as the kernel has it.
type TCP struct {
	RTOMin   units.Time // lab time
	InitCwnd int        // packets
	InitRwnd int        // packets
	QuickAck bool
	ECN      bool
	CongCtl  string
}

// Bounds of engine.tcp. maxRTO is the kernel's TCP_RTO_MAX; the others are ours.
const (
	maxRTO    = 120 * units.Second
	maxWindow = 10_000
)

// Keys implements params.Section.
func (t *TCP) Keys() []params.Key {
	return []params.Key{
		params.New("rto_min", params.Time(&t.RTOMin, units.Nanosecond, maxRTO),
			"Minimum retransmission timeout, in lab time; the kernel's is 200 ms of real time.").OrNone(),
		params.New("initcwnd", params.Integer(&t.InitCwnd, 1, maxWindow), "First congestion window, in packets.").
			OrNone(),
		params.New("initrwnd", params.Integer(&t.InitRwnd, 1, maxWindow), "First receive window, in packets.").OrNone(),
		params.New("quickack", params.Flag(&t.QuickAck), "Acknowledge every segment at once.").OrNone(),
		params.New("ecn", params.Flag(&t.ECN), "Ask for ECN on every connection.").OrNone(),
		params.New("congctl", params.Custom(&t.CongCtl, checkCongCtl, func(v string) string { return v },
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
