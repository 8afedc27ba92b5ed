package fabric

import (
	"math"
	"testing"

	"weft/units"
)

// A packet of n bytes survives with (1-loss)(1-bits)^(8n).
func TestErrorProbability(t *testing.T) {
	for _, c := range []struct {
		loss, bits float64
		size       units.Bytes
		want       float64
	}{
		{0.01, 0, 64, 0.01},
		{0.01, 0, 9000, 0.01},
		{0, 1e-9, 1250, 1e-5 * (1 - 5e-6)},
		{0, 1e-12, 4206, 8 * 4206e-12},
		{0, 1e-4, 1250, 1 - math.Pow(1-1e-4, 10_000)},
		{0.5, 1e-4, 1250, 1 - 0.5*math.Pow(1-1e-4, 10_000)},
		{1, 0, 64, 1},
		{0, 1, 64, 1},
	} {
		got := newLinkErrors(Link{Loss: c.loss, BitErrors: c.bits}, 1).probability(c.size)
		if math.Abs(got-c.want) > 1e-6*c.want {
			t.Errorf("%+v: %g", c, got)
		}
	}
	if newLinkErrors(Link{}, 1) != nil {
		t.Error("a line without errors makes some")
	}
}

// corruptedChain sends packets over a chain of one switch whose last link makes errors.
func corruptedChain(t *testing.T, seed uint64, loss, bits float64, size units.Bytes, packets int) *world {
	w := chain(1)
	w.Seed = seed
	w.Ports[2].Loss, w.Ports[2].BitErrors = loss, bits
	n := newWorld(t, w.route())
	for i := range packets {
		n.send(0, 0, 1, size, i)
	}
	for {
		id, at, ok := n.queue.Pop()
		if !ok {
			break
		}
		n.net.Fire(at, id)
	}
	n.check()
	return n
}

// As many are lost as should be, counted where they are, and not as dropped.
func TestLinesLosePackets(t *testing.T) {
	const packets = 20_000
	for _, c := range []struct {
		loss, bits float64
		size       units.Bytes
	}{{0.01, 0, 100}, {0.3, 0, 100}, {0, 1e-5, 1250}, {0.05, 1e-5, 1250}, {1, 0, 64}} {
		n := corruptedChain(t, 7, c.loss, c.bits, c.size, packets)
		k := n.net.Counters()
		p := newLinkErrors(Link{Loss: c.loss, BitErrors: c.bits}, 1).probability(c.size)
		deviation := 4 * math.Sqrt(packets*p*(1-p))
		if got := float64(k.Lost); math.Abs(got-packets*p) > deviation {
			t.Errorf("%+v: lost %d, want %.0f ± %.0f", c, k.Lost, packets*p, deviation)
		}
		if k.Dropped != 0 || k.Delivered+k.Lost != packets || k.LostBytes != units.Bytes(k.Lost)*c.size || n.net.PortCounters(2).Lost != k.Lost {
			t.Errorf("%+v: %+v", c, k)
		}
	}
}

// Losses are a function of the seed, and leave what else is drawn alone.
func TestLossIsSeeded(t *testing.T) {
	same := func(a, b []int) bool {
		if len(a) != len(b) {
			return false
		}
		for i := range a {
			if a[i] != b[i] {
				return false
			}
		}
		return true
	}
	a := corruptedChain(t, 1, 0.1, 0, 100, 1000).numbers()
	if b := corruptedChain(t, 1, 0.1, 0, 100, 1000).numbers(); !same(a, b) {
		t.Error("the same seed lost other packets")
	}
	if b := corruptedChain(t, 2, 0.1, 0, 100, 1000).numbers(); same(a, b) {
		t.Error("another seed lost the same packets")
	}
	marks := func(loss float64) int64 {
		w := funnel(1, PortConfig{Link: Link{Rate: 10 * units.Gbps, Loss: loss}, Buffer: mB, ECN: ECNConfig{On: true, Kmax: 100_000, Pmax: 0.5}})
		n := newWorld(t, w.route())
		for i := range 100 {
			n.send(0, 1, 0, 1000, i)
		}
		n.run(units.Never)
		return n.net.Counters().Marks
	}
	if a, b := marks(0), marks(0.5); a != b || a == 0 {
		t.Errorf("%d marks, with losses %d", a, b)
	}
}

// A link can get better and worse.
func TestSetErrors(t *testing.T) {
	n := newWorld(t, chain(1).route())
	send := func(from int) {
		for i := range 10 {
			n.send(n.queue.Last(), 0, 1, 1000, from+i)
		}
		n.run(units.Never)
	}
	send(0)
	for _, port := range []int{0, 2} {
		if err := n.change(n.queue.Last(), port, func(l *Link) { l.Loss, l.BitErrors = 1, 0 }); err != nil {
			t.Fatal(err)
		}
		send(10)
		if err := n.change(n.queue.Last(), port, func(l *Link) { l.Loss, l.BitErrors = 0.5, 0 }); err != nil {
			t.Fatal(err)
		}
		if err := n.change(n.queue.Last(), port, func(l *Link) { l.Loss, l.BitErrors = 0, 0 }); err != nil {
			t.Fatal(err)
		}
	}
	send(20)
	if k := n.net.Counters(); k.Lost != 20 || k.Delivered != 20 {
		t.Errorf("%+v", k)
	}
	if err := n.change(n.queue.Last(), 0, func(l *Link) { l.Loss, l.BitErrors = 2, 0 }); err == nil {
		t.Error("a probability of 2")
	}
}
