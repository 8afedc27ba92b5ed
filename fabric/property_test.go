package fabric

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weft/internal/splitmix"
	"weft/units"
)

// drawNetwork returns a small connected network: a random tree of switches with some extra links,
// and hosts on random switches; slow and fast links, small buffers, both markings.
func drawNetwork(t *rapid.T) Config {
	hosts := rapid.IntRange(2, 6).Draw(t, "hosts")
	switches := rapid.IntRange(1, 5).Draw(t, "switches")
	w := wire(hosts, switches)
	w.Seed = rapid.Uint64().Draw(t, "seed")
	settings := func() {
		w.port = PortConfig{
			Link:   Link{Rate: rapid.SampledFrom([]units.Bandwidth{units.Gbps, 3 * units.Gbps, 10 * units.Gbps, 100 * units.Gbps}).Draw(t, "rate"), Delay: units.Time(rapid.SampledFrom([]int{0, 1, 80_000, 1_000_000}).Draw(t, "delay"))},
			Buffer: units.Bytes(rapid.SampledFrom([]int{1, 1500, 5000, 20_000}).Draw(t, "buffer")),
			ECN: ECNConfig{On: rapid.Bool().Draw(t, "on"), Kmin: 1000, Kmax: 8000, Pmax: 0.7,
				Ingress: rapid.Bool().Draw(t, "ingress")},
		}
	}
	for s := 1; s < switches; s++ {
		settings()
		w.link(hosts+s, hosts+rapid.IntRange(0, s-1).Draw(t, "parent"))
	}
	for range rapid.IntRange(0, 3).Draw(t, "extra") {
		a, b := rapid.IntRange(0, switches-1).Draw(t, "a"), rapid.IntRange(0, switches-1).Draw(t, "b")
		if a != b {
			settings()
			w.link(hosts+a, hosts+b)
		}
	}
	for h := range hosts {
		settings()
		w.link(h, hosts+rapid.IntRange(0, switches-1).Draw(t, "at"))
	}
	return w.route()
}

// drawTrims returns cfg with some ports that trim.
func drawTrims(t *rapid.T, cfg Config) Config {
	for i := range cfg.Ports {
		if rapid.Bool().Draw(t, "trim") {
			cfg.Ports[i].Trim = TrimConfig{
				On: true, Fair: rapid.Bool().Draw(t, "fair"), Size: units.Bytes(rapid.IntRange(0, 1).Draw(t, "size")),
			}
		}
	}
	return cfg
}

// load runs random traffic over cfg, checking conservation after every event, and returns what
// arrived.
func load(t testing.TB, cfg Config, seed uint64) *world {
	n := newWorld(t, cfg)
	rng := rand.New(rand.NewPCG(seed, 0))
	now := units.Time(0)
	for i := range 150 {
		src, dst := HostID(rng.IntN(cfg.Hosts)), HostID(rng.IntN(cfg.Hosts))
		if src == dst {
			continue
		}
		n.run(now)
		n.send(now, src, dst, units.Bytes(64+rng.IntN(1437)), i, func(p *Packet) {
			p.Class = uint8(rng.IntN(2))
			p.Keep = uint8(p.Class) * uint8(rng.IntN(200)) // longer than some packets
		})
		now += units.Time(rng.IntN(3)) * units.Time(rng.IntN(300_000))
	}
	n.run(units.Never)
	return n
}

// What is injected is delivered, dropped, queued or on a link, after every event; the end is empty.
// A packet's time is the sum of its parts, so no event came late.
func TestConservation(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := drawTrims(rt, drawNetwork(rt))
		n := load(t, cfg, rapid.Uint64().Draw(rt, "traffic"))
		k := n.net.Counters()
		if k.Injected != k.Delivered+k.Dropped || int(k.Delivered) != len(n.arrivals) {
			t.Fatalf("%+v, %d arrivals", k, len(n.arrivals))
		}
		var perPort, drops, marks, trims int64
		for i := range n.net.Ports() {
			c := n.net.PortCounters(i)
			perPort += c.Packets
			drops += c.Drops
			marks += c.Marks
			trims += c.Trims
			b := cfg.Ports[i].Buffer
			if cfg.Ports[i].Trim.On {
				b += controlRoom(b)
			}
			if c.MaxQueue > b && !cfg.isHost(cfg.Ports[i].From) {
				t.Fatalf("port %d: %d bytes waited in a buffer of %d", i, c.MaxQueue, b)
			}
		}
		if drops != k.Dropped || marks != k.Marks || trims != k.Trimmed {
			t.Fatalf("ports dropped %d, marked %d and trimmed %d, total %+v", drops, marks, trims, k)
		}
		var hops int64
		for _, a := range n.arrivals {
			if cut, last := a.packet.Trimmed(); cut && a.packet.Class != 0 || last && !cut {
				t.Fatalf("trimmed %t, at the last switch %t, in class %d", cut, last, a.packet.Class)
			}
			hops += int64(a.packet.Hops) + 1
		}
		if perPort < hops {
			t.Fatalf("%d transmissions for %d hops", perPort, hops)
		}
	})
}

func TestSameSeedSameRun(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := drawTrims(rt, drawNetwork(rt))
		seed := rapid.Uint64().Draw(rt, "traffic")
		a, b := load(t, cfg, seed), load(t, cfg, seed)
		for i := range a.arrivals {
			x, y := a.arrivals[i], b.arrivals[i]
			x.packet.Header, y.packet.Header = nil, nil
			x.packet.number, y.packet.number = 0, 0
			if !reflect.DeepEqual(x, y) {
				t.Fatalf("arrival %d differs: %+v, %+v", i, x, y)
			}
		}
		if a.net.Counters() != b.net.Counters() {
			t.Fatalf("%+v, %+v", a.net.Counters(), b.net.Counters())
		}
	})
}

// joining is a packet that joins a port.
type joining struct {
	at    units.Time
	size  units.Bytes
	class uint8
}

// outcome is its fate.
type outcome struct {
	start   units.Time
	marked  bool
	dropped bool
}

// stepped is a naive second version of a port, which looks at every picosecond. A byte takes one.
func stepped(joins []joining, buffer, k units.Bytes, ingress bool) []outcome {
	out := make([]outcome, len(joins))
	var queues [Classes][]int
	var queued [Classes]units.Bytes
	var freeAt units.Time
	waiting, next := 0, 0
	for t := units.Time(0); next < len(joins) || waiting > 0; t++ {
		if t >= freeAt && waiting > 0 {
			c := 0
			if len(queues[0]) == 0 {
				c = 1
			}
			i := queues[c][0]
			queues[c] = queues[c][1:]
			queued[c] -= joins[i].size
			waiting--
			out[i].start = t
			freeAt = t + units.Time(joins[i].size)
			if !ingress {
				out[i].marked = queued[c] > k
			}
		}
		for ; next < len(joins) && joins[next].at == t; next++ {
			switch j := joins[next]; {
			case t >= freeAt:
				out[next].start = t
				freeAt = t + units.Time(j.size)
			case queued[0]+queued[1]+j.size > buffer:
				out[next].dropped = true
			default:
				if ingress {
					out[next].marked = queued[j.class] > k
				}
				queues[j.class] = append(queues[j.class], next)
				queued[j.class] += j.size
				waiting++
			}
		}
	}
	return out
}

// The transmitter that is brought up to date when looked at does what one that is looked at always
// does.
func TestPortAgainstSteppedOracle(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const delay = 30
		buffer := units.Bytes(rapid.IntRange(1, 60).Draw(rt, "buffer"))
		k := units.Bytes(rapid.IntRange(0, 40).Draw(rt, "k"))
		ingress := rapid.Bool().Draw(rt, "ingress")
		w := funnel(1, PortConfig{Link: Link{Rate: 8 * units.Tbps, Delay: delay}, Buffer: buffer,
			ECN: ECNConfig{On: true, Kmin: k, Kmax: k, Pmax: 1, Ingress: ingress}})
		n := newWorld(t, w.route())
		var joins []joining
		at := units.Time(0)
		for range rapid.IntRange(1, 60).Draw(rt, "packets") {
			at += units.Time(rapid.SampledFrom([]int{0, 0, 1, 3, 9, 50}).Draw(rt, "gap"))
			joins = append(joins, joining{at, units.Bytes(rapid.IntRange(1, 20).Draw(rt, "size")), uint8(rapid.IntRange(0, 1).Draw(rt, "class"))})
		}
		for i, j := range joins {
			for {
				id, at, ok := n.queue.Next()
				if !ok || at > j.at || at == j.at && rapid.Bool().Draw(rt, "order") {
					break // whether the far end or the near end is looked at first at one instant must not matter
				}
				n.queue.Pop()
				n.net.Fire(at, id)
			}
			if rapid.Bool().Draw(rt, "sample") {
				n.net.Sample(j.at, func(int, units.Bytes) {})
			}
			p := n.net.Get()
			p.Dst, p.Size, p.Class, p.ECN, p.Context = 0, j.size, j.class, ECT0, int64(i)
			n.net.total.Injected++
			n.net.total.InjectedBytes += p.Size
			n.net.enter(p)
			p.next = undecided
			n.net.join(j.at, 1, p)
			n.check()
		}
		n.run(units.Never)
		got := make([]outcome, len(joins))
		for i := range got {
			got[i].dropped = true
		}
		for _, a := range n.arrivals {
			i := a.packet.Context
			got[i] = outcome{a.at - delay - units.Time(a.packet.Size), a.packet.ECN == CE, false}
			if want := got[i].start - joins[i].at; a.packet.Queued != want {
				t.Fatalf("packet %d waited %d, want %d", i, a.packet.Queued, want)
			}
		}
		if want := stepped(joins, buffer, k, ingress); !slices.Equal(got, want) {
			t.Fatalf("joins %v, buffer %d, k %d, ingress %t:\n got %v\nwant %v", joins, buffer, k, ingress, got, want)
		}
	})
}

// chiSquare returns the statistic of counts against equal shares.
func chiSquare(counts []int) (x float64) {
	sum := 0
	for _, c := range counts {
		sum += c
	}
	want := float64(sum) / float64(len(counts))
	for _, c := range counts {
		x += (float64(c) - want) * (float64(c) - want) / want
	}
	return x
}

// The flows of a lab (few hosts, ports that follow each other) spread evenly over 8 ports, and so
// do those that one switch sends the same way at the next: no polarisation. 0.1 % of all draws
// exceed 24.3 with 7 degrees of freedom; the seeds are fixed, so the test does not waver.
func TestECMPSpreads(t *testing.T) {
	const limit = 24.3
	for seed := range uint64(20) {
		var first [8]int
		second, third := make([][8]int, 8), make([][8]int, 8)
		for src := range HostID(16) {
			for dst := range HostID(16) {
				for port := range uint16(40) {
					h := uint32(FlowHash(src, dst, 49152+port, 4793))
					a, b, c := choose(h, splitmix.Mix(seed), 8), choose(h, splitmix.Mix(seed+1), 8), choose(h, splitmix.Mix(seed+2), 8)
					first[a]++
					second[a][b]++
					third[b][c]++
				}
			}
		}
		over := 0
		if chiSquare(first[:]) > limit {
			over++
		}
		for i := range 8 {
			if chiSquare(second[i][:]) > limit {
				over++
			}
			if chiSquare(third[i][:]) > limit {
				over++
			}
		}
		if over > 1 { // of 17 draws
			t.Errorf("seed %d: %d of 17 spreads are uneven: %v %v", seed, over, first, second)
		}
	}
}

// Equal seeds make equal choices (so do equal switches in a real network): the lab gives each its
// own.
func TestECMPFollowsFlowAndSeed(t *testing.T) {
	h := FlowHash(1, 2, 3, 4)
	if again := FlowHash(1, 2, 3, 4); choose(uint32(h), 5, 8) != choose(uint32(again), 5, 8) {
		t.Error("a flow does not keep its port")
	}
	for _, other := range []uint64{FlowHash(2, 1, 3, 4), FlowHash(1, 2, 4, 3), FlowHash(1, 2, 3, 5), FlowHash(1, 3, 3, 4)} {
		if other == h {
			t.Error("two flows of one hash")
		}
	}
}

func TestConfigIsPlainData(t *testing.T) {
	cfg := funnel(2, PortConfig{Link: Link{Rate: 10 * units.Gbps}, Buffer: units.MB, ECN: ECNConfig{On: true, Kmin: 1, Kmax: 2, Pmax: 0.5, Ingress: true}}).route()
	text, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var back Config
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(cfg, back) {
		t.Fatalf("%v\n%+v\n%+v", err, cfg, back)
	}
}

func TestConfigErrors(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"-1 hosts": func(c *Config) { c.Hosts = -1 },
		"port 0 (node 0 to node 9): does not join": func(c *Config) { c.Ports[0].To = 9 },
		"does not join two of 3 nodes":             func(c *Config) { c.Ports[0].To = 0 },
		"rate of 0 b/s":                            func(c *Config) { c.Ports[1].Rate = 0 },
		"delay of -1 ps":                           func(c *Config) { c.Ports[1].Delay = -1 },
		"buffer of 0 bytes":                        func(c *Config) { c.Ports[1].Buffer = 0 },
		"ECN with Kmin 5, Kmax 4, Pmax 0":          func(c *Config) { c.Ports[1].ECN = ECNConfig{On: true, Kmin: 5, Kmax: 4} },
		"Pmax 1.5":                                 func(c *Config) { c.Ports[1].ECN = ECNConfig{On: true, Pmax: 1.5} },
		"host 1 has 0 NICs, not 1":                 func(c *Config) { c.Ports = c.Ports[:3] },
		"host 0 has 2 NICs, not 1":                 func(c *Config) { c.Ports = append(c.Ports, c.Ports[0]) },
		"switch 0 : routes to 1 hosts of 2":        func(c *Config) { c.Switches[0].Route = []int32{0} },
		"group 0 is empty":                         func(c *Config) { c.Switches[0].Groups[0] = nil },
		"group 0: port 0 is not one of its own":    func(c *Config) { c.Switches[0].Groups[0] = []int32{0} },
		"group 1: port 7 is not one of its own":    func(c *Config) { c.Switches[0].Groups[1] = []int32{7} },
		"route to host 1 is group 2 of 2":          func(c *Config) { c.Switches[0].Route[1] = 2 },
	} {
		cfg := chain(1).route()
		change(&cfg)
		if _, err := New(cfg, nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestNetworkDoesNotAllocate(t *testing.T) {
	n := newWorld(t, funnel(4, PortConfig{Link: Link{Rate: 10 * units.Gbps}, Buffer: units.MB, ECN: ECNConfig{On: true, Kmax: 1}}).route())
	n.wantNoAllocations(t, 100, func(k int) Packet { return Packet{Src: HostID(1 + k%4), Size: 1000, ECN: ECT0} }, 40)
}

// wantNoAllocations fails the test if the network allocates for a round of packets, whose
// addresses, sizes and flags are those of packet, after some rounds to warm up.
func (n *world) wantNoAllocations(t *testing.T, warm int, packet func(k int) Packet, packets int) {
	t.Helper()
	n.net.sink = &silent{net: n.net}
	round := func() {
		for k := range packets {
			p, like := n.net.Get(), packet(k)
			p.Src, p.Dst, p.Size, p.ECN, p.Class, p.INT = like.Src, like.Dst, like.Size, like.ECN, like.Class, like.INT
			n.net.Inject(n.queue.Last(), p)
		}
		for {
			id, at, ok := n.queue.Pop()
			if !ok {
				return
			}
			n.net.Fire(at, id)
		}
	}
	for range warm {
		round()
	}
	if a := testing.AllocsPerRun(100, round); a != 0 {
		t.Errorf("%v allocations for %d packets", a, packets)
	}
}

type silent struct{ net *Network }

func (s *silent) Deliver(_ units.Time, p *Packet) { s.net.Put(p) }
func (s *silent) Idle(units.Time, HostID)         {}
