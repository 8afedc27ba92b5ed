package run

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/host"
	"weft/orchestrator/lab"
	"weft/results/record"
	"weft/transport"
	"weft/units"
)

const star = `
weft: 1
name: lone
topology: {kind: star, hosts: 5, link: {rate: 100Gbps, delay: 1us}, mtu: 4096}
`

// parse returns the only point of a lab.
func parse(t *testing.T, text string) *lab.Lab {
	t.Helper()
	labs, err := lab.Parse("lab.yaml", []byte(text), lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return labs[0]
}

func build(t *testing.T, text string) *Experiment {
	t.Helper()
	x, err := Build(parse(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// simulateIn runs a lab in the simulator and returns its summary; runs are kept below root.
func simulateIn(t *testing.T, root, text string) (*record.Summary, error) {
	t.Helper()
	return Run(context.Background(), parse(t, text), Options{Engine: "sim", Root: root})
}

// A flow alone on the network takes what ideal says, and its slowdown is 1: PC4 does not stand in its own way.
func TestLoneFlowIsIdeal(t *testing.T) {
	for _, size := range []string{"4B", "4096B", "8KB", "100KB", "10MB"} {
		s, err := simulateIn(t, t.TempDir(), star+"workload: [{collective: incast, ranks: [h1], root: h0, size: "+size+"}]")
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Flows.Slowdown.Mean; math.Abs(got-1) > 0.005 {
			t.Errorf("%s alone: slowdown %.4f, want 1", size, got)
		}
		if !s.Verified || s.Network.Drops != 0 {
			t.Errorf("%s alone: verified %t, %d drops", size, s.Verified, s.Network.Drops)
		}
	}
}

// One packet of 4 bytes over two links of 1 us at 100 Gb/s, and its acknowledgement back.
func TestIdealOfOnePacket(t *testing.T) {
	x := build(t, star+"workload: [{collective: incast, ranks: [h1], root: h0, size: 4B}]")
	data, ack := dataWire(4), ackWire
	want := 4*units.Microsecond + units.Time(2*80*(data+ack))
	if got := x.ideal(0, 4); got != want {
		t.Errorf("ideal of a packet: %d ps, want %d", got, want)
	}
}

func TestBaseRTTOfHostsThatTalk(t *testing.T) {
	x := build(t, strings.Replace(star, "star, hosts: 5", "fat-tree, k: 4", 1)+
		"workload: [{collective: all-to-all, ranks: [h0, h1], size: 64KB}]")
	want := 4*units.Microsecond + units.Time(2*80*(dataWire(4096)+ackWire)) // two links each way, behind one switch
	if x.BaseRTT != want {
		t.Errorf("base RTT %d ps, want %d", x.BaseRTT, want)
	}
}

func TestRanks(t *testing.T) {
	for _, c := range []struct {
		item string
		want string // hosts of the ranks, and the rank of the root
	}{
		{"{collective: all-to-all, size: 1MB}", "[0 1 2 3 4] -1"},
		{"{collective: all-to-all, ranks: 3, size: 1MB}", "[0 1 2] -1"},
		{"{collective: all-reduce, ranks: [h4, h0, h2], size: 1MB}", "[4 0 2] -1"},
		{"{collective: incast, ranks: 2, size: 1MB}", "[0 1 2] 2"},
		{"{collective: incast, ranks: 2, root: h4, size: 1MB}", "[0 1 4] 2"},
		{"{collective: incast, ranks: all, size: 1MB}", "[1 2 3 4 0] 4"},
		{"{collective: incast, ranks: [h0, h1, h3], size: 1MB}", "[0 1 3 2] 3"},
	} {
		x := build(t, star+"workload: ["+c.item+"]")
		it := x.item(0)
		if got := fmt.Sprint(it.Ranks, " ", it.Root); got != c.want {
			t.Errorf("%s: ranks %s, want %s", c.item, got, c.want)
		}
	}
}

func TestRandomRanksLeaveTheRootOut(t *testing.T) {
	for seed := range 20 {
		x := build(t, star+fmt.Sprintf("seed: %d\nworkload: [{collective: incast, ranks: {random: 4}, root: h3, size: 1MB}]", seed))
		seen := map[transport.HostID]bool{}
		for _, h := range x.item(0).Ranks {
			seen[h] = true
		}
		if len(seen) != 5 || x.item(0).Ranks[4] != 3 {
			t.Errorf("seed %d: ranks %v", seed, x.item(0).Ranks)
		}
	}
}

// PC4, Table I, read to the letter: line/(n-1) for an all-to-all of n, however many peers a rank serves at once; also inside CCM.
func TestBaseRatesOfTheTable(t *testing.T) {
	const item = "workload: [{collective: all-to-all, parallel: 2, size: 1MB}]\n"
	for transport, flows := range map[string]units.Bandwidth{
		"{kind: pc4}":                          2,
		"{kind: pc4, pc4: {base_rate: table}}": 4,
		"{kind: ccm, ccm: {inner: pc4, pc4: {base_rate: table}}}": 4,
	} {
		for _, s := range build(t, star+item+"transport: "+transport).Conns {
			if want := 100 * units.Gbps / flows; s.Initial != want {
				t.Errorf("%s: connection %d starts at %d, want %d", transport, s.ID, s.Initial, want)
			}
		}
	}
}

// PC4, Table I: the base rates of the flows that arrive at a host add up to its line rate.
func TestPlannedBaseRatesFillTheLine(t *testing.T) {
	for item, flows := range map[string]int{
		"{collective: incast, ranks: 4, size: 1MB}":        4,
		"{collective: all-to-all, size: 1MB}":              4,
		"{collective: all-reduce, size: 1MB}":              1,
		"{collective: all-to-all, parallel: 2, size: 1MB}": 2,
		"{collective: permute, size: 1MB}":                 1,

		"{collective: all-reduce, algorithm: direct, size: 1MB}":                4,
		"{collective: all-to-all, algorithm: windowed, parallel: 3, size: 1MB}": 3,
		"{collective: broadcast, size: 1MB}":                                    1,
	} {
		x := build(t, star+"workload: ["+item+"]")
		for _, s := range x.Conns {
			if want := 100 * units.Gbps / units.Bandwidth(flows); s.Initial != want {
				t.Errorf("%s: connection %d starts at %d, want %d", item, s.ID, s.Initial, want)
			}
		}
	}
}

// The same lab, seed and version leave the same bytes.
func TestSimulationIsReproducible(t *testing.T) {
	text := star + `
measure: {queues: 1us, cwnd: true}
workload:
  - {collective: all-to-all, size: 1MB, repeat: 2}
  - {collective: all-reduce, size: 1MB, start: previous}
`
	var dirs [2]string
	for i := range dirs {
		s, err := simulateIn(t, t.TempDir(), text)
		if err != nil {
			t.Fatal(err)
		}
		dirs[i] = s.Run
	}
	sameData(t, dirs)
}

// A network in parts gives the same whether one processor works through them or several at the same time.
func TestProcessorsMakeNoDifference(t *testing.T) {
	for _, kind := range []string{"pc4", "strack", "roce"} {
		l := parse(t, `
weft: 1
name: parts
topology: {kind: leaf-spine, leaves: 8, spines: 4, hosts_per_leaf: 16, oversubscription: 1, link: {rate: 100Gbps, delay: 1us}}
queues: {ecn: {kmin: 25%bdp, kmax: 75%bdp, pmax: 1}}
transport: {kind: `+kind+`}
measure: {queues: 10us, rates: 10us, cwnd: true}
workload:
  - {collective: permute, size: 100KB}
  - {collective: all-reduce, size: 1MB, start: previous}
`)
		var dirs [2]string
		var events [2]int64
		for i, workers := range []int{1, 3} {
			s, err := Run(context.Background(), l, Options{Engine: "sim", Root: t.TempDir(), Workers: workers})
			if err != nil {
				t.Fatal(err)
			}
			dirs[i], events[i] = s.Run, s.Events
		}
		if _, parts := must(Build(l)).Fabric.Partition(); parts < 2 || events[0] != events[1] {
			t.Errorf("%s: %d parts, %d events", kind, parts, events)
		}
		sameData(t, dirs)
	}
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// sameData fails unless two run directories hold the same data.
func sameData(t *testing.T, dirs [2]string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dirs[0], "*.parquet"))
	if err != nil || len(names) < 5 {
		t.Fatalf("data files %v: %v", names, err)
	}
	for _, name := range names {
		a, err1 := os.ReadFile(name)
		b, err2 := os.ReadFile(filepath.Join(dirs[1], filepath.Base(name)))
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		if len(a) == 0 || string(a) != string(b) {
			t.Errorf("%s: %d and %d bytes that differ", filepath.Base(name), len(a), len(b))
		}
	}
}

func TestInterruptedRunKeepsWhatItHas(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("enough")
	cancel(why)
	s, err := Run(ctx, parse(t, star+"workload: [{collective: all-to-all, size: 10MB}]"), Options{Engine: "sim", Root: t.TempDir()})
	if err == nil || s == nil || s.Status != "interrupted" || s.Error != "enough" || s.Verified {
		t.Fatalf("summary %+v, error %v", s, err)
	}
	if _, err := os.Stat(filepath.Join(s.Run, "summary.json")); err != nil {
		t.Error(err)
	}
}

func TestCheckFindsWhatOnlyBuildingShows(t *testing.T) {
	for text, want := range map[string]string{
		"topology: {kind: fat-tree, k: 4, down: [edge0-agg7]}":              `no link is named "edge0-agg7"`,
		"topology: {kind: fat-tree, k: 4, down: [edge0-agg0, edge0-agg1]}":  "cannot reach each other",
		"topology: {kind: star, hosts: 2, link: {rate: 1kbps, delay: 1us}}": "make links faster",
		"topology: {kind: star, hosts: 2}\nqueues: {buffer: 0.01bdp}":       "less than one packet",
	} {
		labs, err := lab.Parse("lab.yaml", []byte("weft: 1\nname: bad\n"+text), lab.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ps := Check(append(labs, labs...))
		if len(ps) != 1 || !strings.Contains(ps[0].Error(), want) || ps[0].Line < 3 {
			t.Errorf("%s: problems %v, want one that says %q", text, ps, want)
		}
	}
}

// A run is verified when every rank finished every repetition, every result was compared, and nothing differs.
func TestVerified(t *testing.T) {
	x := build(t, star+"workload: [{collective: incast, ranks: 2, size: 1MB, repeat: 2}]") // two senders, h2 receives
	good := func() []host.Done {
		var d []host.Done
		for repeat := range 2 {
			for rank := range 3 {
				p := host.Done{Repeat: repeat, Rank: rank}
				if rank == 2 {
					p.Checked = 500_000
				}
				d = append(d, p)
			}
		}
		return d
	}
	for name, c := range map[string]struct {
		change func([]host.Done) []host.Done
		want   bool
	}{
		"all right":             {func(d []host.Done) []host.Done { return d }, true},
		"one element is wrong":  {func(d []host.Done) []host.Done { d[2].Wrong = 1; return d }, false},
		"a sender's is wrong":   {func(d []host.Done) []host.Done { d[0].Wrong = 1; return d }, false},
		"a result not compared": {func(d []host.Done) []host.Done { d[5].Checked = 0; return d }, false},
		"a rank is missing":     {func(d []host.Done) []host.Done { return d[:5] }, false},
		"nothing came back":     {func([]host.Done) []host.Done { return nil }, false},
	} {
		if got := x.verified(c.change(good())); got != c.want {
			t.Errorf("%s: verified %t", name, got)
		}
	}
}

// Queue limits and marking are those of switches: a NIC neither drops nor marks.
func TestOnlySwitchesHaveQueueSettings(t *testing.T) {
	x := build(t, star+"workload: [{collective: permute, size: 1MB}]")
	for i, p := range x.Fabric.Ports {
		nic := int(p.From) < x.Fabric.Hosts
		if limited := p.Buffer > 0; limited == nic || p.ECN.On == nic {
			t.Errorf("port %d from node %d: buffer %d, ECN %t", i, p.From, p.Buffer, p.ECN.On)
		}
	}
}

// Switches hash with seeds of their own, and a lab's seed changes them all.
func TestSwitchSeedsDiffer(t *testing.T) {
	seen := map[uint64]bool{}
	for _, seed := range []int{1, 2} {
		x := build(t, fmt.Sprintf("weft: 1\nname: seeds\nseed: %d\ntopology: {kind: fat-tree, k: 4}\nworkload: [{collective: permute, size: 1MB}]", seed))
		for _, sw := range x.Fabric.Switches {
			if seen[sw.Seed] {
				t.Errorf("seed %d: switch %s hashes as another does", seed, sw.Name)
			}
			seen[sw.Seed] = true
		}
	}
}
