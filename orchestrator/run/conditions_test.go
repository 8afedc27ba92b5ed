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

// gridCell is a star of five hosts, and one flow or four to one host.
type gridCell struct {
	kind, rate, delay, queues, mtu string
	flows                          int
}

func (c gridCell) String() string {
	return fmt.Sprintf("%s, %d to 1, %s, %s, %s, mtu %s", c.kind, c.flows, c.rate, c.delay, c.queues, c.mtu)
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
						for _, flows := range []int{1, 4} {
							all = append(all, gridCell{kind, rate, delay, queues, mtu, flows})
						}
					}
				}
			}
		}
	}
	return all
}

// Bounds of a cell: its length in base RTTs, so that what happens once (a first window, the last
// packets) is a small part, its packets at least, and at most, so that it takes no minutes.
const (
	gridRTTs    = 100
	gridPackets = 1000
	gridMost    = 20_000
)

// lab returns the text of a cell whose flows have size bytes each.
func (c gridCell) lab(size units.Bytes) string {
	return fmt.Sprintf("weft: 1\nname: grid\ntopology: {kind: star, hosts: 5, mtu: %s, link: {rate: %s, delay: %s}}\n"+
		"queues: %s\ntransport: {kind: %s}\nworkload: [{collective: incast, ranks: %d, root: h4, size: %dB}]\n"+
		"measure: {queues: off}\n", c.mtu, c.rate, c.delay, c.queues, c.kind, c.flows, size)
}

// build returns the experiment of a cell; nil if Weft refuses its lab, as it does PFC without
// memory for what is on its way.
func (c gridCell) build(size units.Bytes) *experiment.Experiment {
	labs, err := lab.Parse("grid.yaml", []byte(c.lab(size)), lab.Options{})
	if err != nil || len(experiment.Check(labs)) > 0 {
		return nil
	}
	x, err := experiment.Build(labs[0])
	if err != nil {
		return nil
	}
	return x
}

// run returns the goodput of a cell as a share of its closed form, and the paths of its warnings.
// ok is false if Weft refuses the lab, or if the cell has too many packets.
//
// The closed form is that of all bytes in one message alone on the network, headers, telemetry and
// the round trip included (Experiment.Ideal). A transport that starts slowly has to make up for it
// within the length of the cell.
func (c gridCell) run(t *testing.T) (share float64, warnings []string, ok bool) {
	x := c.build(units.MB)
	if x == nil {
		return 0, nil, false
	}
	n, mtu := units.Bytes(c.flows), x.Lab.Topology.MTU
	bdp := x.NICRate(0).BytesIn(x.BaseRTT)
	all := min(max(gridRTTs*bdp, gridPackets*mtu), gridMost*mtu)
	if all < 8*bdp {
		return 0, nil, false
	}
	size := all / n / mtu * mtu
	x = c.build(size)
	s, err := Run(t.Context(), x, Options{Engine: "sim", Root: t.TempDir()})
	if err != nil {
		t.Errorf("%v: %v", c, err)
		return 0, nil, false
	}
	ideal := x.Ideal(0, size*n)
	return float64(ideal) / (s.Flows.FCT.Max * float64(units.Microsecond)), s.Warnings, true
}

// With its defaults every transport has at least nine tenths of the closed form on any network, or
// a warning names what it lacks. make transport-grid prints the whole grid, and fails: four to one,
// some cells of STrack, UEC, HPCC and Swift fall short without a warning
// (docs/notes/2026-11-transport-grid.md). Until they are mended, make test takes one flow alone.
func TestDefaultsFitOrWarn(t *testing.T) {
	cells := gridCells()
	if os.Getenv("WEFT_GRID") == "" {
		cells = slices.DeleteFunc(cells, func(c gridCell) bool { return c.flows > 1 })
	}
	cells = sample.Of(t, 60, cells...)
	for _, c := range cells {
		share, warnings, ok := c.run(t)
		if !ok {
			continue
		}
		if math.IsNaN(share) || share > 1.01 {
			t.Errorf("%v: %.3f of the closed form", c, share)
		}
		if os.Getenv("WEFT_GRID") != "" {
			var paths []string
			for _, w := range warnings {
				path, _, _ := strings.Cut(w, ": ")
				paths = append(paths, path)
			}
			fmt.Printf("%s\t%.3f\t%s\n", strings.ReplaceAll(c.String(), ", ", "\t"), share, strings.Join(paths, ", "))
		}
		if share < 0.9 && len(warnings) == 0 {
			t.Errorf("%v: %.3f of the closed form, without a warning", c, share)
		}
	}
}
