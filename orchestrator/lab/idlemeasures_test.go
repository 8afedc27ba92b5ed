package lab

import (
	"slices"
	"strings"
	"testing"
)

// Every key of the measure section that records nothing in a lab has a note there, and no other has
// one.
func TestIdleMeasuresHaveANote(t *testing.T) {
	const (
		messages   = "workload: [{collective: permute, size: 64KB}]\n"
		programs   = "workload: [{program: [/bin/true]}]\n"
		timed      = programs + "clocks: {sync: ptp, offset: ±1us}\n"
		clocks     = "clocks: {sync: ptp, offset: ±1us, for: 1ms}\n"
		background = "background: {load: 0.1}\nclocks: {for: 1ms}\n"
	)
	type idle []string
	noMessages := idle{programs, timed, clocks, background}
	table := map[string]struct {
		value string
		idle  idle
	}{
		"queues": {"5us", nil}, "rates": {"100us", noMessages},
		"queue_events": {"switch0->h0", nil}, // refused where it is emulated
		"cwnd":         {"true", noMessages}, "acks": {"true", noMessages},
		"view": {"10us", nil}, "from": {"10us", idle{programs}},
	}
	for _, key := range new(Measure).Keys() {
		c, known := table[key.Name]
		if !known {
			t.Errorf("measure.%s: no row says in which labs it records nothing", key.Name)
		}
		for _, rest := range []string{messages, programs, timed, clocks, background} {
			text := "weft: 1\nname: a\ntopology: {kind: star, hosts: 4}\nmeasure: {" + key.Name + ": \"" + c.value + "\"}\n" + rest
			labs, err := Parse("a.yaml", []byte(text), Options{})
			if err != nil {
				t.Fatalf("%s%v", text, err)
			}
			warned := slices.ContainsFunc(labs[0].Notes(), func(p Problem) bool {
				return p.Path == "measure."+key.Name && strings.Contains(p.Message, "records nothing here")
			})
			if want := slices.Contains(c.idle, rest); warned != want {
				t.Errorf("warned %t, want %t:\n%s", warned, want, text)
			}
		}
	}
}

// So has the lateness of late stamps where no packet is stamped late, unless a sweep has some for
// other points.
func TestIdleStallHasANote(t *testing.T) {
	for rest, want := range map[string]bool{
		"clocks: {stall: 1us}\n": true, "clocks: {sync: ptp, stall: 1us}\n": true, "clocks: {stall: 1us, stalls: 0}\n": true,
		"clocks: {stall: 1us, stalls: 1%}\n": false, "clocks: {stalls: 1%}\n": false, "clocks: {sync: ptp}\n": false,
		"clocks: {stall: 1us}\nsweep: {clocks.stalls: [off, 1%]}\n": false,
	} {
		text := "weft: 1\nname: a\ntopology: {kind: star, hosts: 4}\nworkload: [{collective: permute, size: 64KB}]\n" + rest
		labs, err := Parse("a.yaml", []byte(text), Options{})
		if err != nil {
			t.Fatalf("%s%v", text, err)
		}
		if got := slices.ContainsFunc(labs[0].Notes(), func(p Problem) bool { return p.Path == "clocks.stall" }); got != want {
			t.Errorf("noted %t, want %t:\n%s", got, want, text)
		}
	}
}
