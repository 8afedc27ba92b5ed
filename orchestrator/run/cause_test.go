package run

import (
	"fmt"
	"strings"
	"testing"

	"weft/results/record"
)

// simulateFault simulates a lab whose text has FAULT in place of its fault, with settings of the
// command line.
func simulateFault(t *testing.T, text, fault string, set ...string) *record.Summary {
	t.Helper()
	s, err := simulateLab(t, strings.Replace(text, "FAULT", fault, 1), set...)
	if s == nil {
		t.Fatal(err)
	}
	return s
}

// The error of a run that faults end names the fault, the blocked flows, and changes of the lab
// that help. Those changes do help.
func TestFaultsThatEndARunAreNamed(t *testing.T) {
	for _, c := range []struct {
		name, fault string
		set         []string
		first       string   // beginning of the error
		holds       []string // other parts of the error
		lacks       string
		helps       [][]string // settings with which the run succeeds
	}{
		{
			"a link between switches", "{at: 20us, link: leaf0-spine1, down: 1s}", nil,
			"link leaf0-spine1 is down from 20us to 1.00002s; 8 of 8 unfinished flows cannot get through: ",
			[]string{
				"to survive it: faults.0.reroute (off) shorter than 127ms: after it all switches route around the link",
			}, "",
			[][]string{{"faults.0.reroute=100ms"}},
		},
		{
			"a reroute that comes too late", "{at: 20us, link: leaf0-spine1, down: 1s, reroute: 500ms}", nil,
			"link leaf0-spine1 is down from 20us to 1.00002s; 8 of 8 unfinished flows cannot get through: ",
			[]string{"to survive it: faults.0.reroute (500ms) shorter than 127ms"}, "", nil,
		},
		{
			"all paths of sprayed data", "{at: 20us, link: leaf0-spine0, down}, {at: 20us, link: leaf0-spine1, down}", []string{"transport.kind=strack"},
			"link leaf0-spine0 is down from 20us to the end of the run, and link leaf0-spine1 is down from 20us to the end of the run; ",
			[]string{"cannot get through", "to survive it: faults.0.down (true) shorter than 127ms"}, "",
			[][]string{{"transport.kind=strack", "faults.0.down=1ms"}},
		},
		{
			"the one link of a host", "{at: 20us, link: h3-leaf1, down: 1s}", nil,
			"link h3-leaf1 is down from 20us to 1.00002s; 10 of 10 unfinished flows cannot get through: ",
			[]string{"to survive it: faults.0.down (1s)"}, "reroute", nil,
		},
		{
			"a host that is killed", "{at: 20us, host: h3, kill: true}", nil,
			"h3 was killed at 20us; 10 of 10 unfinished flows begin or end there: ",
			[]string{"leave h3 out of the ranks, or have it pause: faults.0.pause instead of kill, for less than 127ms"}, "", nil,
		},
		{
			"a host that stands still", "{at: 20us, host: h3, pause: 1s}", nil,
			"h3 was paused from 20us to 1.00002s; ",
			[]string{"faults.0.pause (1s) shorter than 127ms"}, "", [][]string{{"faults.0.pause=100ms"}},
		},
		{
			"a link that loses all", "{at: 20us, link: h3-leaf1, loss: 99.9%}", nil,
			"link h3-leaf1 has loss 99.9% from 20us to the end of the run; 10 of 10 unfinished flows use that link: ",
			[]string{"to survive it: faults.0.for (true) shorter than 127ms, or a milder change of the link"}, "", [][]string{{"faults.0.loss=10%"}, {"faults.0.for=100ms"}},
		},
		{
			"two faults", "{at: 20us, link: h3-leaf1, down: 1s}, {at: 30us, host: h5, kill: true}", nil, "h5 was killed at 30us; ",
			[]string{"link h3-leaf1 is down from 20us to 1.00002s; "}, "", nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := simulateFault(t, faultyLab, c.fault, c.set...)
			first, rest, _ := strings.Cut(s.Error, "\n")
			if s.Status != "failed" || !strings.HasPrefix(first, c.first) {
				t.Errorf("%s: %s", s.Status, first)
			}
			for _, want := range append(c.holds, "\n  first failure: h", " gave up the send of ", " in item 0 (all-to-all), repetition 0, rank ", ": nothing new was acknowledged (retries in a row: ") {
				if !strings.Contains(first+"\n"+rest, want) {
					t.Errorf("no %q in\n%s", want, s.Error)
				}
			}
			if c.lacks != "" && strings.Contains(s.Error, c.lacks) {
				t.Errorf("%q in\n%s", c.lacks, s.Error)
			}
			if len(s.Warnings) > 0 {
				t.Errorf("what the error says is said again: %q", s.Warnings)
			}
			for _, set := range c.helps {
				if s := simulateFault(t, faultyLab, c.fault, set...); s.Status != "ok" {
					t.Errorf("with %q: %s: %s", set, s.Status, s.Error)
				}
			}
		})
	}
}

// The error of a run does not name faults that were over or affect other links.
func TestOtherFaultsAreNotNamed(t *testing.T) {
	lost := "topology.tiers={host: {loss: 99.9%}}"
	for _, fault := range []string{"{at: 20us, link: leaf0-spine1, down: 10us}", "{at: 9s, link: leaf0-spine1, down: 1s}", "{at: 20us, corrupt: h3}"} {
		if s := simulateFault(t, faultyLab, fault, lost); s.Status != "failed" || !strings.HasPrefix(s.Error, "host ") {
			t.Errorf("%s: %s: %s", fault, s.Status, s.Error)
		}
	}
}

// Where senders choose among many paths, there is no link between switches that all
// acknowledgements, rejections or credits of a connection need: one that stays down stops none.
func TestNoLinkBetweenSwitchesStopsManyPaths(t *testing.T) {
	const text = `
weft: 1
name: many-paths
topology: {kind: leaf-spine, leaves: 4, spines: 4, hosts_per_leaf: 4, link: {rate: 100Gbps, delay: 1us}}
workload: [{flows: [{from: h4, to: h0, size: 1MB}, {from: h0, to: h4, size: 20KB}]}]
transport: {kind: strack}
faults: [FAULT]
`
	for _, transport := range [][]string{
		{"transport.kind=strack"},
		{"transport.kind=spray"},
		{"transport.kind=uec", "transport.uec.cc=nscc"},
		{"transport.kind=uec", "transport.uec.cc=rccc"},
	} {
		for leaf := range 2 {
			for spine := range 4 {
				fault := fmt.Sprintf("{at: 1us, link: leaf%d-spine%d, down}", leaf, spine)
				t.Run(strings.Join(transport, " ")+" "+fault, func(t *testing.T) {
					t.Parallel()
					if s := simulateFault(t, text, fault, transport...); s.Status != record.OK {
						t.Error(s.Error)
					}
				})
			}
		}
	}
}
