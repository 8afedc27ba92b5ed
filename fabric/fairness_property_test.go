package fabric

import (
	"math/rand/v2"
	"testing"

	"weft/units"

	"pgregory.net/rapid"
)

// even makes all links of a network alike, so that its hosts stay in step and their packets meet at
// one instant.
func even(w *wiring, buffer units.Bytes) {
	for i := range w.Ports {
		w.Ports[i].Rate, w.Ports[i].Delay, w.Ports[i].Buffer = 10*units.Gbps, us, buffer
	}
}

// shout has every host but the first send packets of one size to it, all the time, n each. It
// returns what arrived of each.
func (w *world) shout(hosts, n int) []int {
	left := make([]int, hosts)
	w.onIdle = func(now units.Time, h HostID) {
		if h > 0 && left[h] > 0 && w.net.NICs.Free(h) {
			left[h]--
			w.send(now, h, 0, 1000, int(h)*n+left[h])
		}
	}
	for h := 1; h < hosts; h++ {
		left[h] = n
	}
	for h := range HostID(hosts) {
		w.onIdle(0, h)
	}
	w.run(units.Never)
	got := make([]int, hosts)
	for _, a := range w.arrivals {
		got[a.packet.Src]++
	}
	return got
}

// Hosts in step at one switch send more than a link and its buffer take. Whose packet comes first
// at an instant is decided anew each time, so what gets through is everyone's alike: neither the
// first port nor the last is favoured or starved. Were ties in the order of ports, whoever comes
// last would find the buffer full each time.
func TestTiesStarveNobody(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		hosts := rapid.IntRange(3, 9).Draw(rt, "hosts")
		w := wire(hosts, 1)
		order := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "order"), 0)).Perm(hosts) // of ports
		for _, h := range order {
			w.link(h, hosts)
		}
		even(w, units.Bytes(rapid.IntRange(1, 8).Draw(rt, "buffer"))*1000)
		w.Seed = rapid.Uint64().Draw(rt, "seed")
		const n = 1500
		got := newWorld(t, w.route()).shout(hosts, n)
		total := 0
		for _, k := range got {
			total += k
		}
		if total == (hosts-1)*n {
			rt.Fatal("nothing was dropped: too easy")
		}
		share := float64(total) / float64(hosts-1)
		for h := 1; h < hosts; h++ {
			if k := float64(got[h]); k < 0.75*share || k > 1.25*share {
				rt.Errorf("of host %d %v packets arrived, %v is its share: %v", h, k, share, got)
			}
		}
	})
}

// sends is how many hosts other than host 0 are in the part of a tree behind node b, seen from a.
func (g tree) sends(a, b int) int {
	if b < g.hosts {
		return min(b, 1)
	}
	n := 0
	for _, c := range g.near[b] {
		if c != a {
			n += g.sends(b, c)
		}
	}
	return n
}

// due is the share of host 0's link that a host has when every switch divides a link equally
// between the ports that have something for it.
func (g tree) due(h int) float64 {
	share := 1.0
	var toward func(from, at int) bool // host 0 is that way
	toward = func(from, at int) bool {
		if at == 0 {
			return true
		}
		for _, next := range g.near[at] {
			if next == from || next > 0 && next < g.hosts || !toward(at, next) {
				continue
			}
			ports := 0
			for _, c := range g.near[at] {
				if at >= g.hosts && c != next && g.sends(at, c) > 0 {
					ports++
				}
			}
			share /= float64(max(ports, 1))
			return true
		}
		return false
	}
	toward(-1, h)
	return share
}

// tree is the shape of a network without circles.
type tree struct {
	hosts int
	near  [][]int
}

// drawTree returns a random tree of switches with hosts anywhere.
func drawTree(t *rapid.T) (*wiring, tree) {
	hosts, switches := rapid.IntRange(3, 8).Draw(t, "hosts"), rapid.IntRange(1, 5).Draw(t, "switches")
	w, g := wire(hosts, switches), tree{hosts, make([][]int, hosts+switches)}
	join := func(a, b int) {
		w.link(a, b)
		g.near[a], g.near[b] = append(g.near[a], b), append(g.near[b], a)
	}
	for s := 1; s < switches; s++ {
		join(hosts+s, hosts+rapid.IntRange(0, s-1).Draw(t, "parent"))
	}
	for h := range hosts {
		join(h, hosts+rapid.IntRange(0, switches-1).Draw(t, "at"))
	}
	w.Seed = rapid.Uint64().Draw(t, "seed")
	return w, g
}

// The same on random trees, where all links together are so long that packets meet at one instant
// at every switch: a switch divides a link equally between ports, whatever is behind them. Where
// memory is lossless everything arrives.
func TestNoPortStarves(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, g := drawTree(rt)
		even(w, units.Bytes(rapid.IntRange(2, 8).Draw(rt, "buffer"))*1000)
		for i := range w.Ports {
			w.Ports[i].Delay = w.Ports[i].Rate.TransmitTime(1000) // a packet's time: all are in step
		}
		const n = 1500
		for h, k := range newWorld(t, w.route()).shout(w.Hosts, n) {
			if want := g.due(h) * n; h > 0 && float64(k) < want/2 {
				rt.Errorf("of host %d %d packets arrived, %.0f are its due", h, k, want)
			}
		}
		drawPFC(rt, w)
		for h, k := range newWorld(t, w.route()).shout(w.Hosts, 100)[1:] {
			if k != 100 {
				rt.Errorf("under PFC %d of 100 packets of host %d arrived", k, h+1)
			}
		}
	})
}
