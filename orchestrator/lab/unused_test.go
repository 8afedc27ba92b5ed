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
	const routed = "queues: {routing: adaptive}"
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

// A key of the command line for a transport that no run of the command uses is refused, with the
// key that has its place, whatever other runs of the file use. So is a key of the file that no run
// of the file uses; one that runs of the file use is not.
func TestUnusedTransportsOfTheCommandLine(t *testing.T) {
	const swept = "sweep: {transport.kind: [pc4, strack, ccm]}"
	const pc4 = "transport: {kind: pc4, pc4: {base_rate: off}}"
	const both = "sweep: {'transport.kind, transport.pc4.base_rate': [[pc4, off], [ccm, null]]}"
	no := func(flag, kind, inside string) string {
		return fmt.Sprintf("--set %s: transport.%s: no run of this command uses the transport %[2]s; leave it out, or select "+
			"it with transport.kind%s", flag, kind, inside)
	}
	const inCCM = ". Inside ccm it is transport.ccm.pc4"
	for _, c := range []struct {
		text     string
		set      []string
		problems []string
	}{
		{swept, []string{"transport.pc4.base_rate=off", "transport.pc4.initial=line"}, nil},
		{swept, []string{"transport.kind=pc4", "transport.pc4.base_rate=off"}, nil},
		{swept, []string{"transport.pc4.base_rate=off", "transport.kind=pc4"}, nil},
		{swept, []string{"transport.kind=ccm", "transport.ccm.inner=pc4", "transport.pc4.base_rate=off", "transport.pc4.initial=line"},
			[]string{no("transport.pc4.base_rate=off", "pc4", inCCM), no("transport.pc4.initial=line", "pc4", inCCM)}},
		{swept, []string{"transport.kind=strack", "transport.pc4={base_rate: off}"}, []string{no("transport.pc4={base_rate: off}", "pc4", "")}},
		{swept, []string{"sweep.transport.kind=[strack, ccm]", "transport.pc4.base_rate=off"}, []string{no("transport.pc4.base_rate=off", "pc4", inCCM)}},
		{pc4, []string{"transport.kind=ccm"}, nil}, // the file's own runs use it
		{pc4, []string{"transport.kind=ccm", "transport.pc4.initial=line"}, []string{no("transport.pc4.initial=line", "pc4", inCCM)}},
		{pc4, []string{"transport={kind: strack}", "transport.pc4.initial=line"}, []string{no("transport.pc4.initial=line", "pc4", "")}},
		{pc4, []string{"transport.kind=strack", "sweep.transport.pc4.initial=[line]"},
			[]string{no("sweep.transport.pc4.initial=[line]", "pc4", "")}},
		{both, nil, nil},
		{both, []string{"transport.pc4.initial=line"}, nil},
		{"transport: {kind: ccm}", []string{"transport.kind=strack", "transport.ccm.congested=100KB"}, []string{no("transport.ccm.congested=100KB", "ccm", "")}},
	} {
		_, err := Parse("lab.yaml", fmt.Appendf(nil, "weft: 1\nname: x\ntopology: {kind: star, hosts: 4}\n%s\n", c.text), Options{Set: c.set})
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != strings.Join(c.problems, "\n") {
			t.Errorf("%s, %q:\n%s\nwant\n%s", c.text, c.set, got, strings.Join(c.problems, "\n"))
		}
	}
}
