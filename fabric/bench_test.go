package fabric

import (
	"runtime"
	"testing"

	"weft/eventqueue"
	"weft/units"
)

// One packet over five switches, again and again: a hop of an idle network.
func BenchmarkHop(b *testing.B) {
	const links = 6
	n := newWorld(b, chain(links-1).route())
	sink := &silent{net: n.net}
	n.net.sink = sink
	b.ReportAllocs()
	for b.Loop() {
		p := n.net.Get()
		p.Dst, p.Size = 1, 4206
		n.net.Inject(n.queue.Last(), p)
		for {
			id, at, ok := n.queue.Pop()
			if !ok {
				break
			}
			n.net.Fire(at, id)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/links, "ns/hop")
}

// A port that is idle takes less than 1 KB, its part of the event queue and of the routes included.
func TestIdlePortsAreSmall(t *testing.T) {
	const hosts = 500
	cfg := funnel(hosts-1, PortConfig{Link: Link{Rate: units.Gbps}, Buffer: units.MB}).route()
	q := eventqueue.New(0)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n, err := New(cfg, q, &silent{})
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / uint64(n.Ports()); each > 1024 {
		t.Errorf("%d bytes for each of %d ports", each, n.Ports())
	} else {
		t.Logf("%d bytes per port", each)
	}
}
