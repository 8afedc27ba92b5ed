package transport_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"weft/transport"
	"weft/transport/cc/pc4"
	"weft/transport/wire"
	"weft/units"
)

var scan = flag.Bool("scan", false, "print the parameter scans behind docs/adr/0010 and 0011 (minutes)")

// star is PC4's testbed within a rack (section IV): 100 Gb/s, 1 us per link, so a base RTT of 4 us
// and what the packets take.
func star(hosts int) netConfig {
	return netConfig{
		Hosts: hosts, Line: 100 * units.Gbps, Delay: units.Microsecond, MTU: 4096, Buffer: 300 * units.KB,
	}
}

// meanRTT is an observer that averages round trips.
type meanRTT struct {
	n   int64
	sum units.Time
}

func (m *meanRTT) Acked(_ units.Time, _ transport.ConnID, a transport.Acked) {
	m.n++
	m.sum += a.RTT
}

func (m *meanRTT) Limited(units.Time, transport.ConnID, transport.Limits) {}

// incastResult are the measurements of an incast. Slowdowns are divided by the degree: 1 is a fair
// share of the line.
type incastResult struct {
	excess         float64 // mean RTT over base RTT + target, minus 1
	min, mean, max float64 // FCT slowdown / degree
	dropped        int
}

// incast lets n hosts of a star send size bytes each to one, starting at instants drawn from [0,
// jitter].
func incast(t testing.TB, cfg netConfig, n int, size units.Bytes, p pc4.Params, jitter units.Time, seed uint64) incastResult {
	t.Helper()
	if p.TargetQtime == pc4.Auto {
		p.TargetQtime = 2 * units.Microsecond // what it is on these links
	}
	m := &meanRTT{}
	cfg.Hosts = n + 1
	cfg.Observer = func(int) transport.Observer { return m }
	net, err := newNet(cfg)
	if err != nil {
		t.Fatal(err)
	}
	full := cfg.MTU + wire.DataSize + wire.Overhead
	base := net.Paths.Delay(full) + net.Paths.Delay(wire.AckSize+wire.Overhead)
	alone := base + cfg.Line.TransmitTime(full)*units.Time((size-1)/cfg.MTU)
	r := incastResult{min: math.Inf(1)}
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := 1; i <= n; i++ {
		c := transport.ConnID(i)
		if err := net.Connect(transport.Spec{
			ID: c, Src: transport.HostID(i), Dst: 0, Kind: "pc4", CC: p, Initial: cfg.Line / units.Bandwidth(n), Collective: "incast",
		}); err != nil {
			t.Fatal(err)
		}
		net.Hosts[0].Expect(c, 1)
		net.Events[i] = func(e transport.Event) {
			slowdown := float64(e.At-e.Queued) / float64(alone) / float64(n)
			r.min, r.max, r.mean = min(r.min, slowdown), max(r.max, slowdown), r.mean+slowdown/float64(n)
		}
		net.At(units.Time(rng.Int64N(int64(jitter)+1)), func() {
			if err := net.Send(i, c, transport.Message{ID: 1, Size: size}); err != nil {
				t.Error(err)
			}
		})
	}
	net.Events[0] = func(e transport.Event) { net.Hosts[0].Expect(e.Conn, -1) }
	if net.Run(units.Second) {
		t.Errorf("%d to 1: still running after a second", n)
	}
	if err := net.CheckConservation(); err != nil {
		t.Error(err)
	}
	r.dropped = net.Dropped
	r.excess = float64(m.sum)/float64(m.n)/float64(base+p.TargetQtime) - 1
	return r
}

// PC4, section IV-A: "PC4's RTT and system throughput does not vary with the degree of congestion",
// "average RTT close to the base RTT" (base and target, as section III-C defines the target), "FCT
// slowdown approximating the number of incast flows" (Fig. 6(a), degrees 2 to 16).
func TestIncastOfEveryDegreeKeepsRTTAndShare(t *testing.T) {
	for _, n := range []int{2, 3, 4, 6, 8, 10, 12, 16} {
		for seed, jitter := range []units.Time{0, 5 * units.Microsecond} {
			r := incast(t, star(0), n, 10*units.MB, pc4.Defaults(), jitter, uint64(seed))
			if math.Abs(r.excess) > 0.10 || math.Abs(r.mean-1) > 0.05 || math.Abs(r.max-1) > 0.05 || r.dropped > 0 {
				t.Errorf("%d to 1: mean RTT %+.1f%% of base and target, slowdown %.3f to %.3f of the degree, mean %.3f, %d dropped",
					n, 100*r.excess, r.min, r.max, r.mean, r.dropped)
			}
		}
	}
}

// The tables of docs/adr/0010 and 0011: mean over four seeds, worst flow in brackets.
func TestScan(t *testing.T) {
	if !*scan {
		t.Skip("run with -scan")
	}
	row := func(name string, p pc4.Params) {
		text := fmt.Sprintf("| %s ", name)
		for _, n := range []int{2, 4, 8, 12, 16, 32} {
			var sum incastResult
			low := math.Inf(1)
			for seed := range uint64(4) {
				r := incast(t, star(0), n, 5*units.MB, p, units.Time(seed)*3*units.Microsecond, seed)
				sum.excess, sum.mean, low = sum.excess+r.excess/4, sum.mean+r.mean/4, min(low, r.min)
				sum.dropped += r.dropped
			}
			text += fmt.Sprintf("| %+.1f %.3f (%.2f) ", 100*sum.excess, sum.mean, low)
			if sum.dropped > 0 {
				text += fmt.Sprintf("%d dropped ", sum.dropped)
			}
		}
		fmt.Println(text + "|")
	}
	for _, target := range []units.Time{2, 50, 200} {
		p := pc4.Defaults()
		p.TargetQtime = target * units.Microsecond
		fmt.Printf("| 5000 to 1, target %d us | %.1f ms |\n", target, 1e3*manyToOne(t, p).Seconds())
	}
	for _, below := range []float64{1, 2, 4, 8, 1000} {
		p := pc4.Defaults()
		p.PacedBelow = below
		row(fmt.Sprintf("paced below %v", below), p)
	}
	p := pc4.Defaults()
	p.RTT = pc4.MeasuredRTT
	row("rtt measured", p)
	for _, target := range []units.Time{1, 2, 4} {
		for _, ai := range []float64{0.005, 0.01, 0.02, 0.04} {
			for _, interval := range []float64{1.25, 2} {
				for _, beta := range []float64{0.2, 0.4, 0.8} {
					p := pc4.Defaults()
					p.TargetQtime, p.AI, p.HAI, p.AdjustInterval, p.Beta = target*units.Microsecond, ai, 2*ai, interval, beta
					row(fmt.Sprintf("%d us | %.1f %% | %.2f | %.1f ", target, 100*ai, interval, beta), p)
				}
			}
		}
	}
	for _, hai := range []float64{0.02, 0.04, 0.08, 0.16} {
		p := pc4.Defaults()
		p.HAI = hai
		row(fmt.Sprintf("hai %.0f %%", 100*hai), p)
	}
}

// manyToOne is the incast of PC4's Table II: 50 hosts with 100 flows of 500 KB each. It returns the
// 99th percentile of flow completion times; 205 ms is what the line allows.
func manyToOne(t testing.TB, p pc4.Params) units.Time {
	cfg := star(51)
	cfg.Buffer = 320 * units.MB
	net, err := newNet(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var fct []units.Time
	for i := range 5000 {
		h, c := 1+i%50, transport.ConnID(i)
		if err := net.Connect(transport.Spec{
			ID: c, Src: transport.HostID(h), Dst: 0, Kind: "pc4", CC: p, Initial: cfg.Line / 5000, RTOMin: 50 * units.Millisecond,
		}); err != nil {
			t.Fatal(err)
		}
		net.Hosts[0].Expect(c, 1)
		net.Events[h] = func(e transport.Event) { fct = append(fct, e.At) }
		net.At(0, func() {
			if err := net.Send(h, c, transport.Message{Size: 500 * units.KB}); err != nil {
				t.Error(err)
			}
		})
	}
	net.Events[0] = func(e transport.Event) { net.Hosts[0].Expect(e.Conn, -1) }
	net.Run(10 * units.Second)
	slices.Sort(fct)
	return fct[len(fct)*99/100]
}
