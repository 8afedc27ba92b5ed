package fabric

import (
	"fmt"
	"slices"
	"testing"

	"weft/units"
)

// Path returns the ports that a packet passes, as Trace sees them, with all links up and with some
// down.
func TestWayIsWhatPacketsTake(t *testing.T) {
	w := wire(4, 5) // two leaves of two hosts, three spines
	for h := range 4 {
		w.link(h, 4+h/2)
	}
	var up []int
	for spine := 6; spine < 9; spine++ {
		up = append(up, w.link(4, spine), w.link(5, spine))
	}
	cfg := w.route()
	for _, broken := range [][]int{nil, {up[0], up[0] + 1}, {up[1] + 1}} {
		n := newWorld(t, cfg)
		n.net.Links().SetUp(0, false, broken...)
		down := func(port int) bool { return slices.Contains(broken, port) }
		passed := map[int][]int{}
		n.net.Observers.Trace(func(_ units.Time, port int, p *Packet, ecn ECN) {
			passed[int(p.Context)] = append(passed[int(p.Context)], port)
			if ecn != ECT0 {
				t.Errorf("packet %d is marked %d", p.Context, ecn)
			}
		})
		paths := map[string]bool{}
		for number := 1; number <= 64; number++ {
			n.send(units.Time(number)*units.Millisecond, 0, 3, 1000, number)
			n.run(units.Time(number+1) * units.Millisecond)
			got, ok := cfg.Path(0, 3, FlowHash(0, 3, uint16(number), 4793), down)
			arrived := n.numbers()
			if ok != slices.Contains(arrived, number) || ok && !slices.Equal(got, passed[number]) {
				t.Errorf("with %v down packet %d passes %v; Path says %v, %v", broken, number, passed[number], got, ok)
			}
			paths[fmt.Sprint(got)] = true
			reach := cfg.Reach(0, 3, FlowHash(0, 3, uint16(number), 4793), false, down)
			if reach.Arrives != ok || ok && !slices.Equal(reach.Ports, got) || !ok && len(reach.Dead) == 0 {
				t.Errorf("with %v down packet %d: Reach says %+v, Path %v, %v", broken, number, reach, got, ok)
			}
		}
		if len(paths) < 2 {
			t.Errorf("with %v down all flows take one path", broken)
		}
	}
	if _, ok := cfg.Path(0, 3, 1, func(port int) bool { return port == 0 }); ok {
		t.Error("there is a way although the NIC is down")
	}
}

// If switches choose a port for each packet, Reach follows every choice, and returns what cuts some
// of the packets off.
func TestReachOfChoicesByPacket(t *testing.T) {
	w := wire(4, 4) // two leaves of two hosts, two spines
	for h := range 4 {
		w.link(h, 4+h/2)
	}
	var up []int
	for spine := 6; spine < 8; spine++ {
		up = append(up, w.link(4, spine), w.link(5, spine))
	}
	cfg := w.route()
	for _, one := range []struct {
		balance Balance
		any     bool
	}{{Spray, false}, {ECMP, true}} {
		for s := range cfg.Switches {
			cfg.Switches[s].Balance = one.balance
		}
		reach := func(broken ...int) Reach {
			return cfg.Reach(0, 3, 1, one.any, func(port int) bool { return slices.Contains(broken, port) })
		}
		if r := reach(); len(r.Ports) != 6 || !r.Arrives || r.Dead != nil {
			t.Errorf("%q: all up: %+v", one.balance, r)
		}
		if r := reach(up[1] + 1); !r.Arrives || !slices.Equal(r.Dead, []int{up[1] + 1}) {
			t.Errorf("%q: one spine does not reach leaf 1: %+v", one.balance, r)
		}
		if r := reach(up[1]+1, up[3]+1); r.Arrives || !slices.Equal(r.Dead, []int{up[1] + 1, up[3] + 1}) {
			t.Errorf("%q: neither spine reaches leaf 1: %+v", one.balance, r)
		}
		if r := reach(0); r.Arrives || !slices.Equal(r.Dead, []int{0}) {
			t.Errorf("%q: the NIC is down: %+v", one.balance, r)
		}
	}
}

// A link is as it was set.
func TestLineIsWhatWasSet(t *testing.T) {
	n := newWorld(t, chain(1).route())
	want := Link{Rate: 7 * units.Mbps, Delay: 3 * us, Loss: 0.125, BitErrors: 1e-9}
	if err := (&Change{Ports: []int{2}, Link: &want}).Make(0, n.net); err != nil {
		t.Fatal(err)
	}
	if got := n.net.Links().State(2); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
