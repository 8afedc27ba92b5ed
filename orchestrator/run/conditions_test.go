package run

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"weft/internal/sample"
	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	"weft/transport"
	"weft/units"
)

// gridCell is a star of five hosts, and one flow or four to one host; or a dumbbell, and one flow
// over a shorter path than others of the network.
type gridCell struct {
	kind, rate, delay, queues, mtu string
	flows                          int
	short                          bool
	core                           string // rate of the middle link of a dumbbell that the flows cross
}

func (c gridCell) String() string {
	flows := fmt.Sprintf("%d to 1", c.flows)
	if c.short {
		flows += " on a short path"
	}
	if c.core != "" {
		flows += " over a core of " + c.core
	}
	return fmt.Sprintf("%s, %s, %s, %s, %s, mtu %s", c.kind, flows, c.rate, c.delay, c.queues, c.mtu)
}

// gridCells has every transport over rates, delays, queues and sizes of packets.
func gridCells() (all []gridCell) {
	for _, kind := range transport.Kinds() {
		if transport.FactsOf(kind).Module {
			continue // it has no defaults of its own
		}
		for _, rate := range []string{"1Gbps", "10Gbps", "100Gbps", "800Gbps"} {
			for _, delay := range []string{"10ns", "1us", "10us", "100us", "1ms", "10ms"} {
				for _, queues := range []string{"{}", "{buffer: 1bdp}", "{buffer: 20bdp}", "{pfc: on}", "{trim: on}"} {
					for _, mtu := range []string{"1024", "4096", "9000"} {
						c := gridCell{kind: kind, rate: rate, delay: delay, queues: queues, mtu: mtu, flows: 1}
						short, four := c, c
						short.short, four.flows = true, 4
						all = append(all, c, short, four)
					}
				}
			}
		}
	}
	return all
}

// Bounds of a cell, so that what happens once (a first window, the last packets) is a small part.
const (
	gridRTTs    = 100  // base RTTs of a cell
	gridLeast   = 40   // base RTTs of a cell with the most packets
	gridPackets = 4000 // the fewest packets
)

// gridMost returns the most packets of a cell, so that it takes no minutes.
func gridMost() units.Bytes {
	if sample.All() {
		return 400_000
	}
	return 20_000
}

// lab returns the text of a cell whose flows have size bytes each.
func (c gridCell) lab(size units.Bytes) string {
	shape, ranks := "star, hosts: 5", fmt.Sprintf("%d, root: h4", c.flows)
	if c.short {
		shape, ranks = "dumbbell, hosts: 4", "[h1], root: h0"
	}
	if c.core != "" {
		shape = fmt.Sprintf("dumbbell, hosts: 4, tiers: {core: {rate: %s}}", c.core)
		ranks = map[int]string{1: "[h4], root: h0", 4: "[h4, h5, h6, h7], root: h0"}[c.flows]
	}
	return fmt.Sprintf("weft: 1\nname: grid\ntopology: {kind: %s, mtu: %s, link: {rate: %s, delay: %s}}\n"+
		"queues: %s\ntransport: {kind: %s}\nworkload: [{collective: incast, ranks: %s, size: %dB}]\n"+
		"measure: {queues: off}\n", shape, c.mtu, c.rate, c.delay, c.queues, c.kind, ranks, size)
}

// build returns the experiment of a cell, with other settings; nil if Weft refuses its lab, as it
// does PFC without memory for what is on its way.
func (c gridCell) build(size units.Bytes, set ...string) *experiment.Experiment {
	labs, err := lab.Parse("grid.yaml", []byte(c.lab(size)), lab.Options{Set: set})
	if err != nil || len(experiment.Check(labs)) > 0 {
		return nil
	}
	x, err := experiment.Build(labs[0])
	if err != nil {
		return nil
	}
	return x
}

// run returns the goodput of a cell as a share of its closed form, and its warnings. set replaces
// settings of the cell. ok is false if Weft refuses the lab, or if the cell has too many packets.
//
// The closed form is that of all bytes in one message alone on the network, headers, telemetry and
// the round trip included (Experiment.Ideal). A transport that starts slowly has to make up for it
// within the length of the cell.
func (c gridCell) run(t *testing.T, set ...string) (share float64, warnings []string, ok bool) {
	x := c.build(units.MB, set...)
	if x == nil {
		return 0, nil, false
	}
	n, mtu := units.Bytes(c.flows), x.Lab.Topology.MTU
	bdp := x.NICRate(0).BytesIn(x.BaseRTT)
	all := min(max(gridRTTs*bdp, gridPackets*mtu), gridMost()*mtu)
	if all < gridLeast*bdp {
		return 0, nil, false
	}
	size := all / n / mtu * mtu
	x = c.build(size, set...)
	s, err := Run(t.Context(), x, Options{Engine: "sim", Root: t.TempDir()})
	switch {
	case err != nil && s != nil && len(causes(s.Warnings)) > 0:
		return 0, s.Warnings, true // a connection has failed, and a warning says what the network lacks
	case err != nil:
		t.Errorf("%v %v: %v", c, set, err)
		return 0, nil, false
	}
	ideal := x.Ideal(0, size*n)
	return float64(ideal) / (s.Flows.FCT.Max * float64(units.Microsecond)), s.Warnings, true
}

// causes returns what the warnings of a run name as causes: settings, and timeouts.
func causes(warnings []string) (all []string) {
	for _, w := range warnings {
		cause, _, ok := strings.Cut(w, ": ")
		if !ok || strings.Contains(cause, " ") {
			if !strings.Contains(w, "decide") {
				continue
			}
			cause = "timeouts"
		}
		all = append(all, cause)
	}
	return all
}

// remedies are ways out that the warnings of a network state, in the order in which a user would
// follow them.
var remedies = []struct{ cause, set string }{
	{"queues.pfc", "queues={pfc: on}"}, {"queues.trim", "queues={trim: on}"}, {"queues.buffer", "queues={pfc: on}"},
}

// With its defaults every transport has at least nine tenths of the closed form on any network, or
// a warning names what it lacks; and with what the network lacked, it has them, or a warning names
// something else. make transport-grid prints the whole grid.
func TestDefaultsFitOrWarn(t *testing.T) {
	for _, c := range sample.Of(t, 200, gridCells()...) {
		share, warnings, ok := c.run(t)
		if !ok {
			continue
		}
		if math.IsNaN(share) || share > 1.01 {
			t.Errorf("%v: %.3f of the closed form", c, share)
		}
		named := causes(warnings)
		if os.Getenv("WEFT_GRID") != "" {
			fmt.Printf("%s\t%.3f\t%s\n", strings.ReplaceAll(c.String(), ", ", "\t"), share, strings.Join(named, ", "))
		}
		if share >= 0.9 {
			continue
		}
		if len(named) == 0 {
			t.Errorf("%v: %.3f of the closed form, and no warning names a cause: %q", c, share, warnings)
		}
		for _, r := range remedies {
			if !slices.Contains(named, r.cause) {
				continue
			}
			mended, warnings, ok := c.run(t, r.set)
			if left := causes(warnings); ok && (slices.Contains(left, r.cause) || mended < 0.9 && len(left) == 0) {
				t.Errorf("%v: %.3f of the closed form for want of %s; with %s it has %.3f, and is warned of %v", c, share,
					r.cause, r.set, mended, left)
			}
			break
		}
	}
}

// A fault that makes a link a hundred times as long or as slow is warned of, for every transport
// that does not bear it: none has less than half of what the link then carries without a word.
func TestFaultsFitOrWarn(t *testing.T) {
	kinds := slices.DeleteFunc(transport.Kinds(), func(kind string) bool { return transport.FactsOf(kind).Module })
	for _, kind := range append(kinds, "ccm, ccm: {inner: swift}", "ccm, ccm: {inner: pc4}") {
		for _, fault := range []string{"delay: 100us", "delay: 100us, toward: h1", "rate: 1Gbps"} {
			c := gridCell{kind: kind, rate: "100Gbps", delay: "1us", queues: "{pfc: on}", mtu: "4096", flows: 1}
			size := 20 * units.MB
			if strings.HasPrefix(fault, "rate") {
				size = units.MB
			}
			text := c.lab(size) + "faults: [{at: 1us, link: h1-switch0, " + fault + "}]\n"
			text = strings.Replace(text, "ranks: 1, root: h4", "ranks: [h1], root: h0", 1)
			labs, err := lab.Parse("fault.yaml", []byte(text), lab.Options{})
			if err != nil {
				t.Fatal(err)
			}
			x, err := experiment.Build(labs[0])
			if err != nil {
				t.Fatal(err)
			}
			s, err := Run(t.Context(), x, Options{Engine: "sim", Root: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			rate, rtt := 100*units.Gbps, x.BaseRTT+200*units.Microsecond
			if strings.HasPrefix(fault, "rate") {
				rate, rtt = units.Gbps, x.BaseRTT
			}
			took := units.Time(s.Flows.FCT.Max * float64(units.Microsecond))
			share := float64(rate.TransmitTime(size)+rtt) / float64(took)
			warned := slices.ContainsFunc(s.Warnings, func(w string) bool { return strings.HasPrefix(w, "faults.0.") })
			if share < 0.5 && !warned {
				t.Errorf("%s, %s: %.3f of the closed form, without a warning: %q", kind, fault, share, s.Warnings)
			}
			if share > 0.95 && warned {
				t.Errorf("%s, %s: %.3f of the closed form, and warned of", kind, fault, share)
			}
		}
	}
}

// slowLinks has every transport, in each of its modes, over a dumbbell whose middle link is slower
// than the NICs.
func slowLinks() (all []gridCell) {
	for _, kind := range transport.Kinds() {
		if transport.FactsOf(kind).Module {
			continue
		}
		_, in, _ := transport.SectionOf(kind)
		kinds := []string{kind}
		for _, mode := range modes[kind] {
			kinds = append(kinds, fmt.Sprintf("%s, %s: {%s}", kind, in, mode))
		}
		for _, kind := range kinds {
			for _, delay := range []string{"100ns", "1us", "30us"} {
				for _, queues := range []string{"{}", "{pfc: on}", "{trim: on}"} {
					for _, core := range []string{"40Gbps", "10Gbps", "1Gbps"} {
						c := gridCell{
							kind: kind, rate: "100Gbps", delay: delay, queues: queues, mtu: "4096", core: core,
						}
						for _, c.flows = range []int{1, 4} {
							all = append(all, c)
						}
					}
				}
			}
		}
	}
	return all
}

// A link inside the path that is slower than the NICs is filled like one of theirs, or a warning
// names what does not fit it.
func TestSlowLinksFitOrWarn(t *testing.T) {
	for _, c := range sample.Of(t, 150, slowLinks()...) {
		share, warnings, ok := c.run(t)
		if ok && os.Getenv("WEFT_GRID") != "" {
			fmt.Printf("%s\t%.3f\t%s\n", strings.ReplaceAll(c.String(), ", ", "\t"), share, strings.Join(causes(warnings), ", "))
		}
		if ok && share < 0.9 && len(causes(warnings)) == 0 {
			t.Errorf("%v: %.3f of the closed form, and no warning names a cause: %q", c, share, warnings)
		}
	}
}
