package e2e

import (
	"math"
	"net"
	"testing"
	"time"

	"weft/internal/testenv"
	"weft/results/record"
)

// fourLab is a lab of four racks; each rack is a part of the network.
const fourLab = `
weft: 1
name: four
topology: {kind: leaf-spine, leaves: 4, spines: 2, hosts_per_leaf: 2, link: {rate: 100Gbps, delay: 3us}, mtu: 4096}
transport: {kind: pc4}
workload:
  - {collective: all-to-all, size: 400KB}
engine: {kind: emu, machines: 4, dilation: 10000}
`

// fidelities are of several runs of a lab.
type fidelities struct {
	verdicts map[string]int
	late     int64   // packets that came too late
	exact    int     // runs that are ok, without one
	first    float64 // median of the first of these
	differ   float64 // the largest difference of another from it, as a share
}

func (f *fidelities) add(s *record.Summary) {
	if f.verdicts == nil {
		f.verdicts = map[string]int{}
	}
	f.verdicts[s.Fidelity.Verdict]++
	f.late += s.Fidelity.LateCrossings
	if s.Fidelity.LateCrossings == 0 && s.Fidelity.Verdict == "ok" {
		if f.exact++; f.exact == 1 {
			f.first = s.Flows.FCT.P50
		}
		f.differ = max(f.differ, math.Abs(s.Flows.FCT.P50/f.first-1))
	}
}

// A lab in four parts, replayed 30 times at dilation 10,000: data are right each time, no packet is
// late between parts and each run is ok, unless other programs keep the machine busy. Hosts are
// real processes that are late by some nanoseconds of lab time, so runs are not the same bytes; the
// fabric in parts is (TestPartsAreTheWhole of package fabric).
func TestClusterReplays(t *testing.T) {
	needCluster(t)
	d := newWorkspace(t)
	d.writeLab("lab.yaml", fourLab)
	var f fidelities
	for range 30 {
		s := d.startCommand(d.command("run", "lab.yaml", "--json", "-q")).waitLong().wantCode(0).summaries()[0]
		if !s.Verified {
			t.Error(s.Error)
		}
		f.add(s)
	}
	t.Logf("30 runs: verdicts %v, %d packets late, %d runs ok without one, medians of those within %.2f %% of the first",
		f.verdicts, f.late, f.exact, 100*f.differ)
	if f.differ > 0.02 {
		t.Errorf("medians of runs without a late packet differ by %.1f %%", 100*f.differ)
	}
	if f.exact < 30 {
		t.Error("the bar is 30 runs that are ok, without a late packet; is the machine busy?")
	}
}

// manyLab has 128 hosts in eight racks, with a flow from each to another.
const manyLab = `
weft: 1
name: many
topology: {kind: leaf-spine, leaves: 8, spines: 4, hosts_per_leaf: 16, link: {rate: 100Gbps, delay: 1us}, mtu: 4096}
transport: {kind: pc4}
workload:
  - {collective: permute, size: 1MB}
engine: {dilation: 300000}
`

// 128 hosts on the engines of a swarm complete their flows as soon as on one machine and in the
// simulator.
func TestClusterHosts(t *testing.T) {
	c := needCluster(t)
	c.d.writeLab("lab.yaml", manyLab)
	median := func(args ...string) float64 {
		t.Helper()
		s := c.d.startCommand(c.on(1, append([]string{"run", "lab.yaml", "--json", "-q"}, args...)...)).waitLong().wantCode(0).summaries()[0]
		if !s.Verified || s.Fidelity != nil && s.Fidelity.Verdict != "ok" {
			t.Errorf("%v: verified %v, %+v", args, s.Verified, s.Fidelity)
		}
		if s.Fidelity != nil {
			t.Logf("%v: p50 %.1f us, %d of %d packets late between parts", args, s.Flows.FCT.P50, s.Fidelity.LateCrossings,
				s.Fidelity.Crossings)
		}
		return s.Flows.FCT.P50
	}
	far := median("--on", "swarm:3")
	one, sim := median("--engine", "emu"), median("--engine", "sim")
	t.Logf("p50 on three engines %.1f us, on one machine %.1f, simulated %.1f", far, one, sim)
	if math.Abs(far/one-1) > 0.02 || math.Abs(far/sim-1) > 0.05 {
		t.Error("it differs by more than 2 % from one machine or 5 % from the simulator")
	}
	c.wantNothing()
}

// slowly carries connections to addr and keeps back what passes for a while. It returns where it
// listens.
func slowly(t *testing.T, addr string, back time.Duration) string {
	l, err := net.Listen("tcp", "192.0.2.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	type piece struct {
		at   time.Time
		text []byte
	}
	one := func(to, from net.Conn) {
		held := make(chan piece, 1<<14)
		go func() {
			defer to.Close()
			for p := range held {
				<-time.After(time.Until(p.at))
				if _, err := to.Write(p.text); err != nil {
					return
				}
			}
		}()
		defer close(held)
		for {
			b := make([]byte, 64<<10)
			n, err := from.Read(b)
			if err != nil {
				return
			}
			held <- piece{time.Now().Add(back), b[:n]}
		}
	}
	go func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			b, err := net.Dial("tcp", addr)
			if err != nil {
				a.Close()
				continue
			}
			go one(a, b)
			go one(b, a)
		}
	}()
	return l.Addr().String()
}

// A network between machines that takes 2 ms is never ok at dilation 1000, where a link has less.
func TestPrivSlowMachines(t *testing.T) {
	testenv.NeedEmulation(t)
	d, a, b := newFarPair(t)
	d.writeLab("lab.yaml", acrossLab)
	s := d.run("run", "lab.yaml", "--on", slowly(t, a.addr, 2*time.Millisecond)+","+slowly(t, b.addr, 2*time.Millisecond),
		"--secret", "secret", "--dilation", "1000", "--set", "topology.link.delay=1us", "--json", "-q").wantCode(0).summaries()[0]
	if f := s.Fidelity; !s.Verified || f.Verdict == "ok" || f.LateCrossings < f.Crossings/2 {
		t.Errorf("verified %v, %s, %d of %d packets late", s.Verified, f.Verdict, f.LateCrossings, f.Crossings)
	}
}
