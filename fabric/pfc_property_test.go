package fabric

import (
	"math/rand/v2"
	"slices"
	"testing"

	"weft/units"

	"pgregory.net/rapid"
)

// drawUpDown returns a network in which every shortest path goes up, then down: a random tree,
// leaves and spines, or three tiers. Links differ in rate and delay.
func drawUpDown(t *rapid.T) *wiring {
	settings := func(w *wiring) {
		w.port = PortConfig{
			Link:   Link{Rate: rapid.SampledFrom([]units.Bandwidth{units.Gbps, 3 * units.Gbps, 10 * units.Gbps, 100 * units.Gbps}).Draw(t, "rate"), Delay: units.Time(rapid.SampledFrom([]int{0, 1, 80_000, 1_000_000}).Draw(t, "delay"))},
			Buffer: mB,
		}
	}
	pick := func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(t, name) }
	hosts := pick("hosts", 2, 8)
	var w *wiring
	join := func(a, b int) {
		settings(w)
		w.link(a, b)
	}
	switch pick("shape", 0, 2) {
	case 0:
		switches := pick("switches", 1, 5)
		w = wire(hosts, switches)
		for s := 1; s < switches; s++ {
			join(hosts+s, hosts+pick("parent", 0, s-1))
		}
		for h := range hosts {
			join(h, hosts+pick("at", 0, switches-1))
		}
	case 1:
		leaves, spines := pick("leaves", 1, 4), pick("spines", 1, 3)
		w = wire(hosts, leaves+spines)
		for l := range leaves {
			for s := range spines {
				join(hosts+l, hosts+leaves+s)
			}
		}
		for h := range hosts {
			join(h, hosts+h%leaves)
		}
	default:
		const pods, leaves, middles = 2, 2, 2
		cores := pick("cores", 1, 2) // of each middle
		w = wire(hosts, pods*(leaves+middles)+middles*cores)
		at := func(pod, i int) int { return hosts + pod*(leaves+middles) + i }
		for pod := range pods {
			for m := range middles {
				for l := range leaves {
					join(at(pod, l), at(pod, leaves+m))
				}
				for c := range cores {
					join(at(pod, leaves+m), at(pods, m*cores+c))
				}
			}
		}
		for h := range hosts {
			join(h, at(h%pods, h/pods%leaves))
		}
	}
	w.Seed = rapid.Uint64().Draw(t, "seed")
	return w
}

// largest is the size of the largest packet in these tests.
const largest = 1500

// drawPFC protects every port of w with just the headroom that the rule asks for.
func drawPFC(t *rapid.T, w *wiring) {
	dynamic := rapid.Bool().Draw(t, "dynamic")
	reserved := make([]units.Bytes, len(w.Switches))
	for i := range w.Ports {
		p := &w.Ports[i]
		if int(p.To) < w.Hosts {
			continue
		}
		response := units.Time(rapid.SampledFrom([]int{0, 0, 333}).Draw(t, "response")) * ns
		f := PFCConfig{On: true, Headroom: Headroom(p.Rate, p.Delay, response, largest), Response: response}
		if dynamic {
			f.Alpha = rapid.SampledFrom([]float64{0.0625, 0.125, 1, 8}).Draw(t, "alpha")
			f.Offset = units.Bytes(rapid.SampledFrom([]int{0, 3000}).Draw(t, "offset"))
			f.Reserve = units.Bytes(rapid.SampledFrom([]int{0, 4000}).Draw(t, "reserve"))
		} else {
			f.Xoff = units.Bytes(rapid.IntRange(1, 20_000).Draw(t, "xoff"))
			f.Xon = units.Bytes(rapid.IntRange(0, int(f.Xoff)).Draw(t, "xon"))
		}
		p.PFC[1] = f
		reserved[int(p.To)-w.Hosts] += f.Headroom + f.Reserve
	}
	if dynamic || rapid.Bool().Draw(t, "total") {
		for s := range w.Switches {
			w.Switches[s].Buffer.Total = reserved[s] + units.Bytes(rapid.SampledFrom([]int{1, 5000, 100_000}).Draw(t, "shared"))
		}
	}
}

// pull has every host send packets of random sizes to random hosts, each when its NIC is free, some
// of them control.
func (w *world) pull(seed uint64, hosts, packets int) {
	rng := rand.New(rand.NewPCG(seed, 0))
	left := packets
	favourite := HostID(rng.IntN(hosts)) // an incast among the rest
	w.onIdle = func(now units.Time, h HostID) {
		if left == 0 || !w.net.NICs.Free(h) {
			return
		}
		dst := HostID(rng.IntN(hosts))
		if rng.IntN(2) == 0 {
			dst = favourite
		}
		if dst == h {
			dst = (h + 1) % HostID(hosts)
		}
		left--
		w.send(now, h, dst, units.Bytes(64+rng.IntN(largest-63)), left, func(p *Packet) {
			if rng.IntN(8) == 0 {
				p.Class, p.Size = 0, 64
			}
		})
	}
	for h := range HostID(hosts) {
		w.onIdle(0, h)
	}
}

// Under PFC with the headroom of the rule nothing is ever dropped, nothing waits for ever if paths
// go up and down, and at the end nothing is left: no memory is used and no port is paused.
// Conservation holds after every event.
func TestLosslessUpDown(t *testing.T) {
	paused := int64(0)
	rapid.Check(t, func(rt *rapid.T) {
		w := drawUpDown(rt)
		drawPFC(rt, w)
		cfg := w.route()
		if faults := CheckLossless(&cfg, largest); len(faults) > 0 {
			rt.Fatalf("not lossless: %v", faults)
		}
		n := newWorld(t, cfg)
		n.pull(rapid.Uint64().Draw(rt, "traffic"), cfg.Hosts, 300)
		n.run(units.Never)
		k := n.net.Counters()
		if k.Injected != 300 || k.Delivered != 300 || k.Dropped != 0 {
			rt.Fatalf("%+v\n%q", k, n.net.Waiting(nil))
		}
		if _, stuck := n.net.Stuck(); stuck || len(n.net.Waiting(nil)) > 0 {
			rt.Fatalf("at the end: %q", n.net.Waiting(nil))
		}
		for s, m := range n.net.pfc.memories {
			if m.used != 0 {
				rt.Fatalf("switch %d: %d bytes are used at the end", s, m.used)
			}
		}
		for i := range n.net.Ports() {
			if c := n.net.PortCounters(i); c.Pauses[0] != 0 {
				rt.Fatalf("port %d: control was paused: %+v", i, c)
			}
		}
		paused += k.Pauses
	})
	t.Logf("%d pauses", paused)
	if paused == 0 {
		t.Error("nobody was ever paused: too easy")
	}
}

// The same run twice is the same, event for event.
func TestLosslessIsDeterministic(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := drawUpDown(rt)
		drawPFC(rt, w)
		seed := rapid.Uint64().Draw(rt, "traffic")
		once := func() (at []units.Time) {
			n := newWorld(t, w.route())
			n.pull(seed, w.Hosts, 100)
			n.onEvent = func(now units.Time) { at = append(at, now) }
			n.run(units.Never)
			return at
		}
		if a, b := once(), once(); !slices.Equal(a, b) {
			rt.Fatalf("two runs of %d and %d events differ", len(a), len(b))
		}
	})
}

// Links that fail, come back, and change; links that corrupt; tables that are replaced; PFC here
// and there, on any topology: after every event and every change all is accounted for. Without
// changes of links nothing overflows.
func TestConservationUnderChanges(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := drawNetwork(rt)
		w := &wiring{Config: cfg}
		lossless := rapid.Bool().Draw(rt, "lossless")
		if lossless {
			drawPFC(rt, w)
			if rapid.Bool().Draw(rt, "partly") {
				for i := range w.Ports {
					if rapid.Bool().Draw(rt, "bare") {
						w.Ports[i].PFC = [Classes]PFCConfig{}
					}
				}
			}
		} else if rapid.Bool().Draw(rt, "shared") {
			for s := range w.Switches {
				w.Switches[s].Buffer = BufferConfig{Total: 20_000, Alpha: rapid.SampledFrom([]float64{0, 0.5, 2}).Draw(rt, "alpha")}
			}
		}
		if rapid.Bool().Draw(rt, "corrupt") {
			for i := range w.Ports {
				w.Ports[i].Loss, w.Ports[i].BitErrors = 0.01, 1e-6
			}
		}
		w.route()
		n := newWorld(t, w.Config)
		n.pull(rapid.Uint64().Draw(rt, "traffic"), w.Hosts, 300)
		changed := false
		now := units.Time(0)
		for range rapid.IntRange(0, 20).Draw(rt, "changes") {
			now += units.Time(rapid.IntRange(0, 5_000_000).Draw(rt, "gap"))
			n.run(now)
			port := rapid.IntRange(0, len(w.Ports)-1).Draw(rt, "port")
			link := []int{port &^ 1, port | 1}
			switch rapid.IntRange(0, 6).Draw(rt, "change") {
			case 0, 1:
				n.net.Links().SetUp(now, false, link...)
			case 2:
				n.net.Links().SetUp(now, true, link...)
			case 3:
				n.net.Links().SetUp(now, rapid.Bool().Draw(rt, "up"), port) // one direction
			case 4:
				changed = true
				rate := rapid.SampledFrom([]units.Bandwidth{units.Gbps, 7 * units.Gbps, 100 * units.Gbps}).Draw(rt, "rate")
				if err := n.change(now, port, func(l *Link) { l.Rate, l.Delay = rate, units.Time(rapid.IntRange(0, 2_000_000).Draw(rt, "delay")) }); err != nil {
					rt.Fatal(err)
				}
			case 5:
				if err := n.change(now, port, func(l *Link) { l.Loss, l.BitErrors = 0.1, 0 }); err != nil {
					rt.Fatal(err)
				}
			case 6:
				if err := n.net.Links().Reroute(w.Switches); err != nil {
					rt.Fatal(err)
				}
			}
			n.check()
			for i := range w.Ports {
				if n.net.Links().Up(i) {
					continue
				}
				for s := range w.Switches {
					for _, g := range n.net.routing.groups[n.net.routing.begin[s]:n.net.routing.begin[s+1]] {
						if slices.Contains(n.net.routing.members[g.first:g.first+g.n], int32(i)) {
							rt.Fatalf("port %d is down, and in a group of switch %d", i, s)
						}
					}
				}
			}
		}
		n.net.Links().SetUp(max(now, n.queue.Last()), true, upTo(len(w.Ports))...)
		n.check()
		n.run(units.Never)
		k := n.net.Counters()
		if !changed && k.Overflows > 0 {
			rt.Fatalf("%+v", k)
		}
		if _, stuck := n.net.Stuck(); !stuck && k.Injected != k.Delivered+k.Dropped+k.Lost+k.Cut {
			rt.Fatalf("%+v\n%q", k, n.net.Waiting(nil))
		}
		var lost, cut int64
		for i := range w.Ports {
			c := n.net.PortCounters(i)
			lost += c.Lost
			cut += c.Cut
		}
		if lost != k.Lost || cut != k.Cut {
			rt.Fatalf("ports lost %d and cut off %d, total %+v", lost, cut, k)
		}
	})
}

// upTo returns 0 to n-1.
func upTo(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

// steppedPFC is the dumb second version of NICs with full queues before a switch with one output:
// it looks at every picosecond. NICs take 1 ps for a byte, the output takes slow. ok is false when
// two packets arrive at one instant: their order is the event queue's business. Frames take at
// least 1 ps.
type steppedPFC struct {
	delay, response              units.Time
	slow                         units.Time
	dynamic                      bool
	shift                        uint
	xoff, xon, reserve, headroom units.Bytes
	offset, shared               units.Bytes
}

type steppedNIC struct {
	queue        []units.Bytes
	freeAt       units.Time
	flight       []units.Time // arrivals at the switch
	sizes        []units.Bytes
	frames       []frame
	paused, told bool
	held, over   units.Bytes
	pauses       int64
	pausedFor    units.Time
}

type steppedPacket struct {
	nic, number int
	size        units.Bytes
}

func (c steppedPFC) run(nics []steppedNIC) (starts map[[2]int]units.Time, dropped int, ok bool) {
	starts = make(map[[2]int]units.Time)
	var used units.Bytes
	var queue []steppedPacket
	var freeAt units.Time
	arrived := make([]int, len(nics))
	pool := func(n *steppedNIC) units.Bytes { return max(0, n.held-c.reserve) }
	thr := func(n *steppedNIC) units.Bytes {
		if c.dynamic {
			return (c.shared - used) >> c.shift
		}
		return min(c.xoff, pool(n)+c.shared-used)
	}
	tell := func(n *steppedNIC, t units.Time, pause bool) {
		n.told = pause
		n.frames = append(n.frames, frame{at: t + c.delay + c.response, pause: pause})
	}
	for t := units.Time(0); t < units.Microsecond; t++ {
		busy := len(queue) > 0
		for i := range nics {
			n := &nics[i]
			for { // whatever may start starts before a frame takes effect, and between two of them
				if t >= n.freeAt && len(n.queue) > 0 && !n.paused {
					n.freeAt = t + units.Time(n.queue[0])
					n.flight = append(n.flight, n.freeAt+c.delay)
					n.sizes = append(n.sizes, n.queue[0])
					n.queue = n.queue[1:]
				}
				if len(n.frames) == 0 || n.frames[0].at != t {
					break
				}
				if n.paused = n.frames[0].pause; n.paused {
					n.pauses++
				}
				n.frames = n.frames[1:]
			}
			if n.paused {
				n.pausedFor++
			}
			busy = busy || len(n.queue)+len(n.flight)+len(n.frames) > 0
		}
		if t >= freeAt && len(queue) > 0 {
			p := queue[0]
			queue = queue[1:]
			starts[[2]int{p.nic, p.number}] = t
			freeAt = t + c.slow*units.Time(p.size)
			n := &nics[p.nic]
			over := min(n.over, p.size)
			used -= min(p.size-over, pool(n))
			n.over -= over
			n.held -= p.size - over
			if n.told && n.over == 0 && (c.dynamic && (pool(n) == 0 || pool(n)+c.offset <= thr(n)) || !c.dynamic && pool(n) <= c.xon) {
				tell(n, t, false)
			}
		}
		arrivals := 0
		for i := range nics {
			n := &nics[i]
			if len(n.flight) == 0 || n.flight[0] != t {
				continue
			}
			if arrivals++; arrivals > 1 {
				return nil, 0, false
			}
			p := steppedPacket{i, arrived[i], n.sizes[0]}
			arrived[i]++
			n.flight, n.sizes = n.flight[1:], n.sizes[1:]
			if t >= freeAt {
				starts[[2]int{p.nic, p.number}] = t
				freeAt = t + c.slow*units.Time(p.size)
				continue
			}
			sum := n.held + p.size
			if n.over+p.size > c.headroom && pool(n)+p.size > thr(n) && sum > c.reserve {
				dropped++
				continue
			}
			switch {
			case sum <= c.reserve:
				n.held = sum
			case sum-c.reserve > thr(n):
				n.over += p.size
			default:
				n.held = sum
				used += min(p.size, sum-c.reserve)
			}
			queue = append(queue, p)
			if !n.told && (n.over > 0 || pool(n) >= thr(n)) {
				tell(n, t, true)
			}
		}
		if !busy && arrivals == 0 {
			return starts, dropped, true
		}
	}
	panic("the oracle does not come to an end")
}

// The switch does what one that is looked at every picosecond does: starts, drops, pauses and their
// lengths.
func TestPFCAgainstSteppedOracle(t *testing.T) {
	compared := 0
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(rt, name) }
		c := steppedPFC{
			delay: units.Time(draw("delay", 1, 1000)), slow: units.Time(draw("slow", 1, 4)), response: units.Time(draw("response", 0, 50)),
			dynamic: rapid.Bool().Draw(rt, "dynamic"), shift: uint(draw("shift", 0, 3)),
			headroom: units.Bytes(draw("headroom", 0, 3000)), reserve: units.Bytes(draw("reserve", 0, 1000)),
			offset: units.Bytes(draw("offset", 0, 300)), shared: units.Bytes(draw("shared", 1, 5000)), xoff: units.Bytes(draw("xoff", 1, 3000)),
		}
		c.xon = units.Bytes(draw("xon", 0, int(c.xoff)))
		w := funnel(draw("senders", 1, 3), PortConfig{Link: Link{Rate: 8 * units.Tbps / units.Bandwidth(c.slow)}, Buffer: mB})
		f := PFCConfig{Reserve: c.reserve, Headroom: c.headroom, Response: c.response}
		if c.dynamic {
			f.Alpha, f.Offset = 1/float64(int(1)<<c.shift), c.offset
		} else {
			f.Xoff, f.Xon = c.xoff, c.xon
		}
		w.protect(f)
		for i := 1; i < len(w.Ports); i++ {
			w.Ports[i].Rate, w.Ports[i].Delay = 8*units.Tbps, c.delay
		}
		w.Ports[1].PFC = [Classes]PFCConfig{} // the receiver sends nothing
		w.Switches[0].Buffer.Total = c.shared + units.Bytes(w.Hosts-1)*(c.headroom+c.reserve)
		n := newWorld(t, w.route())
		nics := make([]steppedNIC, w.Hosts-1)
		sizes := make(map[[2]int]units.Bytes)
		for i := range nics {
			for k := range draw("packets", 1, 25) {
				size := units.Bytes(draw("size", 1, 500))
				nics[i].queue = append(nics[i].queue, size)
				sizes[[2]int{i, k}] = size
				n.send(0, HostID(i+1), 0, size, k)
			}
		}
		n.run(units.Never)
		starts, dropped, ok := c.run(nics)
		if !ok {
			return
		}
		compared++
		k := n.net.Counters()
		if int(k.Dropped) != dropped || k.Overflows != k.Dropped || len(n.arrivals) != len(starts) {
			rt.Fatalf("dropped %d, want %d; %d arrived, want %d", k.Dropped, dropped, len(n.arrivals), len(starts))
		}
		for _, a := range n.arrivals {
			id := [2]int{int(a.packet.Src) - 1, int(a.packet.Context)}
			if got, want := a.at-c.slow*units.Time(a.packet.Size), starts[id]; got != want {
				rt.Fatalf("packet %v starts at %d, want %d", id, got, want)
			}
		}
		for i := range nics {
			p := n.net.PortCounters(2 + 2*i)
			if p.Pauses[1] != nics[i].pauses || p.Paused[1] != nics[i].pausedFor {
				rt.Fatalf("NIC %d: paused %d times for %d, want %d for %d", i, p.Pauses[1], p.Paused[1], nics[i].pauses, nics[i].pausedFor)
			}
		}
	})
	t.Logf("%d compared", compared)
	if compared < 10 {
		t.Errorf("only %d runs were without ties", compared)
	}
}
