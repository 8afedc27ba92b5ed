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
	"weft/transport/cc"
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

// gridResult is what became of a cell.
type gridResult struct {
	share    float64 // goodput by the closed form
	warned   []string
	remedies []string // settings that its warnings state as ways out: path=value
	lost     int64    // packets dropped or trimmed
	refuse   bool     // Weft refuses the lab, or the run fails with a warning before it
	long     bool     // too many packets
}

// run runs a cell with some settings in place of its own.
//
// The closed form is that of all bytes in one message alone on the network, headers, telemetry and
// the round trip included (Experiment.Ideal). A transport that starts slowly has to make up for it
// within the length of the cell.
func (c gridCell) run(t *testing.T, set ...string) gridResult {
	x := c.build(units.MB, set...)
	if x == nil {
		return gridResult{refuse: true}
	}
	n, mtu := units.Bytes(c.flows), x.Lab.Topology.MTU
	bdp := x.NICRate(0).BytesIn(x.BaseRTT)
	all := min(max(gridRTTs*bdp, gridPackets*mtu), gridMost*mtu)
	if all < 8*bdp {
		return gridResult{long: true}
	}
	size := all / n / mtu * mtu
	x = c.build(size, set...)
	var remedies []string
	told := func(run *cc.Run) { remedies = x.WaysOut(run) }
	s, err := Run(t.Context(), x, Options{Engine: "sim", Root: t.TempDir(), ended: told})
	if err != nil { // no silent yes, if the lab was warned of
		if len(experiment.Outside(x.Lab)) == 0 {
			t.Errorf("%v %v: %v", c, set, err)
		}
		return gridResult{refuse: true}
	}
	r := gridResult{lost: s.Network.Drops + s.Network.Trims, warned: s.Warnings, remedies: remedies}
	r.share = float64(x.Ideal(0, size*n)) / (s.Flows.FCT.Max * float64(units.Microsecond))
	return r
}

// lacking reports whether a path is that of something that a network lacks, and not of a number.
func lacking(path string) bool { return path == "queues.pfc" || path == "queues.trim" }

// causes returns the settings that the warnings of a run name as a cause. What a network lacks is
// one only where it showed: a queue that never overflows needs neither PFC nor trimming.
func (r *gridResult) causes() (all []string) {
	for _, w := range r.warned {
		path, rest, ok := strings.Cut(w, ": ")
		if ok && strings.Contains(rest, "is outside its conditions") && (!lacking(path) || r.lost > 0) {
			all = append(all, path)
		}
	}
	return all
}

// With its defaults every transport has at least nine tenths of the closed form on any network, or
// a warning names what it lacks, and the way out leads there. No number is warned of where nothing
// is lacking. make transport-grid prints the whole grid.
func TestDefaultsFitOrWarn(t *testing.T) {
	cells := sample.Of(t, 60, gridCells()...)
	var refused, long, ran, short, unset int
	for _, c := range cells {
		r := c.run(t)
		switch {
		case r.refuse:
			refused++
			continue
		case r.long:
			long++
			continue
		}
		ran++
		out := c.wayOut(t, r)
		c.judge(t, &r)
		if os.Getenv("WEFT_GRID") != "" {
			fmt.Printf("%s\t%.3f\t%s\t%s\n", strings.ReplaceAll(c.String(), ", ", "\t"), r.share,
				strings.Join(r.causes(), ", "), out)
		}
		if r.share < 0.9 {
			short++
			if out == "" {
				unset++
				t.Logf("%v: %.3f; the way out of %v is no value of a setting", c, r.share, r.causes())
			}
		}
	}
	t.Logf("%d cells: %d ran, %d refused, %d of more than %d packets; %d short, %d of them without a value as way out",
		len(cells), ran, refused, long, gridMost, short, unset)
}

// judge compares a cell with its closed form and with its warnings.
func (c gridCell) judge(t *testing.T, r *gridResult) {
	if math.IsNaN(r.share) || r.share > 1.01 {
		t.Errorf("%v: %.3f of the closed form", c, r.share)
	}
	numbers := slices.DeleteFunc(r.causes(), lacking)
	if r.share >= 0.95 && len(numbers) > 0 {
		t.Errorf("%v: %.3f of the closed form, and warnings of %v", c, r.share, numbers)
	}
	if r.share < 0.9 && len(r.causes()) == 0 {
		t.Errorf("%v: %.3f of the closed form, and no warning names the cause: %q", c, r.share, r.warned)
	}
}

// wayOut follows the ways out that the warnings of a cell state, one after the other, as a user
// would, and returns them with the goodput that they lead to; "" if there is none. It is an error
// if they lead nowhere.
func (c gridCell) wayOut(t *testing.T, now gridResult) string {
	const tries = 4
	first, cell := now.share, c
	var told, set []string
	for len(told) < tries && now.share < 0.9 {
		next := ""
		for _, path := range now.causes() {
			if lacking(path) && cell.queues == c.queues {
				next, cell.queues = path+"=on", fmt.Sprintf("{%s: on}", strings.TrimPrefix(path, "queues."))
			}
		}
		switch {
		case next != "":
		default:
			now.remedies = slices.DeleteFunc(now.remedies, func(s string) bool { return slices.Contains(set, s) })
			if len(now.remedies) == 0 {
				return ""
			}
			next = now.remedies[0]
			set = append(set, next)
		}
		told = append(told, next)
		if now = cell.run(t, set...); now.refuse || now.long {
			return ""
		}
	}
	if len(told) == 0 {
		return "" // nothing is short
	}
	if now.share < 0.9 {
		t.Errorf("%v: %.3f of the closed form, and %.3f with %v, its way out", c, first, now.share, told)
	}
	return fmt.Sprintf("%s: %.3f", strings.Join(told, " "), now.share)
}
