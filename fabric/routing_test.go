package fabric

import (
	"math"
	"slices"
	"testing"

	"weft/internal/splitmix"

	"pgregory.net/rapid"
)

// The tables answer for every switch and destination what its routes say, however much of them the
// switches share.
func TestTablesAreTheRoutes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hosts := rapid.IntRange(1, 400).Draw(t, "hosts")
		switches := make([]SwitchConfig, rapid.IntRange(1, 6).Draw(t, "switches"))
		port := int32(0)
		for s := range switches {
			sw := &switches[s]
			for range rapid.IntRange(1, 5).Draw(t, "groups") {
				sw.Groups = append(sw.Groups, []int32{port})
				port++
			}
			most, run := int32(len(sw.Groups)-1), rapid.SampledFrom([]int{1, 5, 8, 100, 400}).Draw(t, "run")
			for len(sw.Route) < hosts {
				sw.Route = append(sw.Route, slices.Repeat([]int32{rapid.Int32Range(-1, most).Draw(t, "group")}, run)...)
			}
			if sw.Route = sw.Route[:hosts]; s > 0 && rapid.Bool().Draw(t, "alike") && most >= slices.Max(switches[0].Route) {
				sw.Route = switches[0].Route
			}
		}
		r := newRouting(hosts, switches)
		for s := range switches {
			for dst, g := range switches[s].Route {
				want := unroutable
				if g >= 0 {
					want = join(switches[s].Groups[g][0])
				}
				if got := r.next(NodeID(hosts+s), &Packet{Dst: HostID(dst)}); got != want {
					t.Fatalf("switch %d to host %d of %d: step %d, want %d", s, dst, hosts, got, want)
				}
			}
		}
	})
}

// Switches in like places share their tables.
func TestTablesAreShared(t *testing.T) {
	cfg := leafSpine(16, 64, 32)
	for s := range cfg.Switches {
		sw := &cfg.Switches[s]
		for h := range cfg.Hosts {
			sw.Route[h] = int32(h / 16) // of a spine
			if leaf := s; leaf < 64 {
				if sw.Route[h] = 16; h/16 == leaf {
					sw.Route[h] = int32(h % 16)
				}
			}
		}
		for port := range int32(64) {
			sw.Groups = append(sw.Groups, []int32{port})
		}
	}
	r := newRouting(cfg.Hosts, cfg.Switches)
	if got, whole := len(r.table)+len(r.single), 96*cfg.Hosts/blockSize; got > whole/20 {
		t.Errorf("%d entries, want at most a twentieth of %d", got, whole)
	}
}

// tiers counts, for flows that cross two switches of n ports each, how many take each of the n²
// pairs of ports.
func tiers(n int32, first, second uint64, flows int) []int {
	ports := make([]int32, n)
	for i := range ports {
		ports[i] = int32(i)
	}
	sw := func(seed uint64) SwitchConfig {
		return SwitchConfig{Seed: seed, Groups: [][]int32{ports}, Route: []int32{0, 0}}
	}
	r := newRouting(2, []SwitchConfig{sw(first), sw(second)})
	joint := make([]int, n*n)
	for f := range flows {
		e := Packet{flow: uint32(splitmix.Mix(FlowHash(0, 1, uint16(f), uint16(f>>16)))), Dst: 1}
		joint[r.next(2, &e).port()*n+r.next(3, &e).port()]++
	}
	return joint
}

// Two tiers of ECMP whose switches have seeds of their own choose independently: of n² pairs of
// ports every one takes its share of the flows. Were the hash the same, the flows that one switch
// has sent one way would all go one way at the next, and most of the links behind it would carry
// nothing (polarisation).
func TestTiersChooseIndependently(t *testing.T) {
	const flows = 1 << 16
	for _, n := range []int32{2, 3, 4, 8, 16, 32} {
		freedom := float64(n*n - 1)
		limit := freedom + 6*math.Sqrt(2*freedom) // of its distribution: mean, and six standard deviations
		for _, seeds := range [][2]uint64{{1, 2}, {0, 1}, {7, 1 << 40}, {0xd1342543de82ef95, 0xd1342543de82ef96}} {
			if got := chiSquare(tiers(n, seeds[0], seeds[1], flows)); got > limit {
				t.Errorf("%d ports, seeds %x: chi² %.0f, want at most %.0f", n, seeds, got, limit)
			}
		}
		// The measure sees polarisation: with one seed, only n of the n² pairs are ever taken.
		if got := chiSquare(tiers(n, 5, 5, flows)); got < flows/2 {
			t.Errorf("%d ports, one seed: chi² %.0f, and it should be about %d", n, got, flows*int(n-1))
		}
	}
}
