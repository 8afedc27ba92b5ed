package deploy

import (
	"strings"
	"testing"

	"weft/internal/stalls"
	"weft/realtime"
	"weft/units"
)

// What a program measured is doubted if the network stood for more of its time than an emulation
// may that is ok, by the spans within that time, of all parts of the network.
func TestProgramsOfANetworkThatStood(t *testing.T) {
	const us = units.Microsecond
	look := func(at units.Time, rest units.Time, spans ...stalls.Span) *realtime.State {
		return &realtime.State{At: at, Stalls: []realtime.Stalls{{Log: stalls.Log{Spans: spans, Rest: rest}}}}
	}
	early, inside := stalls.Span{From: 10 * us, To: 90 * us}, stalls.Span{From: 120 * us, To: 130 * us}
	for _, c := range []struct {
		name          string
		before, after *realtime.State
		want          string
	}{
		{"nothing", look(100*us, 0), look(200*us, 0), ""},
		{"before it", look(100*us, 0, early), look(200*us, 0, early), ""},
		{"a tenth", look(100*us, 0, early), look(200*us, 0, early, inside), "during 10 % of the time (10us of 100us of lab time)"},
		{"a fortieth", look(100*us, 0), look(500*us, 0, inside), ""},
		{"in part", look(125*us, 0), look(135*us, 0, inside), "during 50 %"},
		{"unknown instants", look(100*us, 7*us), look(200*us, 27*us), "during 20 %"},
		{"the kernel's datapath keeps none", &realtime.State{At: 100 * us}, &realtime.State{At: 200 * us}, ""},
		{"no time", look(100*us, 0), look(100*us, 0, inside), ""},
	} {
		if got := stood(c.before, c.after); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	two := look(200*us, 0, inside)
	two.Stalls = append(two.Stalls, realtime.Stalls{Log: stalls.Log{Spans: []stalls.Span{{From: 125 * us, To: 150 * us}}}})
	if got := stood(look(100*us, 0), two); !strings.Contains(got, "during 30 %") {
		t.Errorf("two parts: %q", got)
	}
}
