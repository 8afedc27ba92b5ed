package lab

import (
	"fmt"
	"strings"
	"testing"
)

// A setting without effect in a run has one note, unless the sweep varies the setting that disables
// it.
func TestUnusedSettingsAreNoted(t *testing.T) {
	const errors = "clocks: {preset: bad, offset: ±1ms, skew: ±9ppm, wander: 1ppm/√s}"
	const routed = "queues: {routing: spray}"
	for _, c := range []struct {
		text  string
		set   []string
		notes string // of each point
	}{
		{"clocks: {offset: 0s, skew: ±0ppm, noise: ±10ns, jitter: 5ns}", nil, ""}, // noise is of measurements
		{errors, nil, "clocks.preset clocks.offset clocks.skew clocks.wander"},
		{errors, []string{"clocks.sync=none"}, ""},
		{errors, []string{"sweep.clocks.sync=[perfect, ptp]"}, ""},
		{errors, []string{"sweep.clocks.offset=[1us, 2us]"}, "clocks.preset clocks.offset clocks.skew clocks.wander"},
		{"clocks: {sync: ptp, ptp: {step: 1s}, huygens: {degree: 2}}", nil, "clocks.huygens"},
		{"clocks: {sync: none, ptp: {step: 1s}}", nil, "clocks.ptp"},
		{routed, nil, ""},
		{routed, []string{"transport.kind=ccm"}, "queues.routing"},
		{routed, []string{"sweep.transport.kind=[ccm]"}, "queues.routing"},
	} {
		labs, err := Parse("lab.yaml", fmt.Appendf(nil, "weft: 1\nname: x\ntopology: {kind: star, hosts: 4}\n%s\n", c.text),
			Options{Set: c.set})
		if err != nil {
			t.Errorf("%s, %v: %v", c.text, c.set, err)
		}
		for _, l := range labs {
			var paths []string
			for _, p := range l.Notes() {
				paths = append(paths, p.Path)
			}
			if got := strings.Join(paths, " "); got != c.notes {
				t.Errorf("%s, %v: notes about %q, want %q", c.text, c.set, got, c.notes)
			}
		}
	}
}
