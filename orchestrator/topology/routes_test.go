package topology_test

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weft/internal/quiettest"
	"weft/orchestrator/topology"
	"weft/transport"
	"weft/units"
)

// hopsTo returns the number of links from every node to host h, by breadth-first search. Hosts do
// not forward.
func hopsTo(g *topology.Graph, h topology.NodeID) []int {
	dist := make([]int, len(g.Nodes))
	for i := range dist {
		dist[i] = -1
	}
	dist[h] = 0
	queue := []topology.NodeID{h}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		if n != h && g.Nodes[n].Kind == topology.Host {
			continue
		}
		for _, l := range g.Links {
			if l.Down || (l.A != n && l.B != n) {
				continue
			}
			if m := l.Other(n); dist[m] < 0 {
				dist[m] = dist[n] + 1
				queue = append(queue, m)
			}
		}
	}
	return dist
}

// TestRoutesAreAllShortest checks every switch and host: the group holds exactly the links whose
// other end is one hop nearer, and holds each once.
func TestRoutesAreAllShortest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, err := topology.Build(anyTopology().Draw(t, "topology"))
		if err != nil {
			t.Fatal(err)
		}
		r := g.Routes()
		// A few hosts are enough: those behind one switch are alike.
		for range 8 {
			h := topology.NodeID(rapid.IntRange(0, g.Hosts-1).Draw(t, "host"))
			dist := hopsTo(g, h)
			for s := topology.NodeID(g.Hosts); int(s) < len(g.Nodes); s++ {
				var want []topology.LinkID
				for _, l := range g.Links {
					if l.A == s || l.B == s {
						if m := l.Other(s); dist[m] == dist[s]-1 && (m == h || g.Nodes[m].Kind == topology.Switch) {
							want = append(want, l.ID)
						}
					}
				}
				if got := r.NextHops(s, h); !slices.Equal(got, want) {
					t.Fatalf("%s towards %s: %s, want %s", g.Nodes[s].Name, g.Nodes[h].Name, linkNames(g, got), linkNames(g, want))
				}
				if r.Row(s)[h] != r.Group(s, h) {
					t.Fatalf("row and group of %s differ", g.Nodes[s].Name)
				}
			}
		}
		for s := topology.NodeID(g.Hosts); int(s) < len(g.Nodes); s++ {
			groups := r.Groups(s)
			for i, a := range groups {
				for _, b := range groups[:i] {
					if slices.Equal(a, b) {
						t.Fatalf("%s has the group %s twice", g.Nodes[s].Name, linkNames(g, a))
					}
				}
			}
		}
	})
}

// TestPathsFollowRoutes walks representative paths: each step is one of the routes, the way back is
// the way there reversed, and no shortest path has less delay for a packet of the MTU.
func TestPathsFollowRoutes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		top := anyTopology().Draw(t, "topology")
		g, err := topology.Build(top)
		if err != nil {
			t.Fatal(err)
		}
		for range 8 {
			a := topology.NodeID(rapid.IntRange(0, g.Hosts-1).Draw(t, "a"))
			b := topology.NodeID(rapid.IntRange(0, g.Hosts-1).Draw(t, "b"))
			if a == b {
				continue
			}
			hops := g.Path(a, b)
			at := g.Links[hops[0]].Other(a)
			for _, l := range hops[1:] {
				if !slices.Contains(g.Routes().NextHops(at, b), l) {
					t.Fatalf("path %s: %s is no route to %s", linkNames(g, hops), g.Links[l].Name, g.Nodes[b].Name)
				}
				at = g.Links[l].Other(at)
			}
			if at != b {
				t.Fatalf("path %s ends at %s", linkNames(g, hops), g.Nodes[at].Name)
			}
			back := g.Path(b, a)
			slices.Reverse(back)
			if !slices.Equal(hops, back) {
				t.Fatalf("there %s, back reversed %s", linkNames(g, hops), linkNames(g, back))
			}
			if got, want := g.Delay(hops, top.MTU), fastestPath(g, g.Home(a), b, top.MTU)+
				g.Links[hops[0]].Delay+g.Links[hops[0]].Rate.TransmitTime(top.MTU); got != want {
				t.Fatalf("path %s takes %v; %v is possible", linkNames(g, hops), got, want)
			}
			p := transport.Path{Propagation: g.Propagation(hops), Rates: g.Rates(hops)}
			if p.Delay(1500) != g.Delay(hops, 1500) {
				t.Fatalf("transport reckons %v, topology %v", p.Delay(1500), g.Delay(hops, 1500))
			}
		}
	})
}

// fastestPath returns the shortest transfer time from switch s to host h over all paths.
func fastestPath(g *topology.Graph, s, h topology.NodeID, size units.Bytes) units.Time {
	least := units.Never
	for _, l := range g.Routes().NextHops(s, h) {
		d := g.Links[l].Delay + g.Links[l].Rate.TransmitTime(size)
		if m := g.Links[l].Other(s); m != h {
			d += fastestPath(g, m, h, size)
		}
		least = min(least, d)
	}
	return least
}

// TestBaseRTTIsTheLongest compares with every pair, one by one.
func TestBaseRTTIsTheLongest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, err := topology.Build(anyTopology().Draw(t, "topology"))
		if err != nil {
			t.Fatal(err)
		}
		if g.Hosts > 150 {
			t.Skip("too many pairs")
		}
		data := units.Bytes(rapid.IntRange(1, 9000).Draw(t, "data"))
		ack := units.Bytes(rapid.IntRange(1, 200).Draw(t, "ack"))
		var want units.Time
		extent := topology.Extent{}
		for a := range topology.NodeID(g.Hosts) {
			for b := range topology.NodeID(g.Hosts) {
				if a == b {
					continue
				}
				hops := g.Path(a, b)
				want = max(want, g.PairRTT(a, b, data, ack))
				extent.Hops = max(extent.Hops, len(hops))
				extent.Paths = max(extent.Paths, g.Paths(a, b))
				extent.Propagation = max(extent.Propagation, g.Propagation(hops))
			}
		}
		if got := g.BaseRTT(data, ack); got != want {
			t.Fatalf("base RTT %v, the longest pair has %v", got, want)
		}
		if got := g.Extent(); got != extent {
			t.Fatalf("extent %+v, by pairs %+v", got, extent)
		}
	})
}

func TestNearestAndFarthestRTT(t *testing.T) {
	// PC4, section IV-A: 1 us per link gives a base RTT of 4 us within a rack, 8 us across two
	// tiers, before the time packets occupy the links.
	g := build(t, leafSpine(4, 4, 4))
	if got := g.PairRTT(0, 1, 0, 0); got != 4*units.Microsecond {
		t.Errorf("within a rack %v, want 4us", got)
	}
	if got := g.BaseRTT(0, 0); got != 8*units.Microsecond {
		t.Errorf("across racks %v, want 8us", got)
	}
}

// TestLargeNetworks holds the bar: 8,192 hosts with all their routes in under 2 s, in tens of
// megabytes.
func TestLargeNetworks(t *testing.T) {
	if testing.Short() {
		t.Skip("large networks")
	}
	for _, c := range largeSpecs() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		start := quiettest.Start()
		g := build(t, c.t)
		start.AtMost(t, 2*time.Second, c.name)
		runtime.GC()
		runtime.ReadMemStats(&after)
		kept := int64(after.HeapAlloc) - int64(before.HeapAlloc)
		t.Logf("%s: %d hosts, %d switches, %d links, %.1f MB kept", c.name, g.Hosts, g.Switches(), len(g.Links), float64(kept)/1e6)
		if kept > 64<<20 {
			t.Errorf("%s keeps %d bytes", c.name, kept)
		}
		for s := g.Hosts; s < len(g.Nodes); s++ {
			if id := topology.NodeID(s); g.Routes().Group(id, 0) < 0 {
				t.Fatalf("%s: %s has no route to h0", c.name, g.Nodes[s].Name)
			}
		}
		runtime.KeepAlive(g)
	}
}
