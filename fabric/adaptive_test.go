package fabric

import (
	"testing"

	"weft/internal/splitmix"
	"weft/units"
)

// fan returns a network of hosts on one switch, the given number of paths (switches) above it, and
// as many hosts on a switch beyond; and the ports from the first switch up.
func fan(hosts, paths int, balance Balance, light units.Bytes) (*wiring, []int32) {
	w := wire(2*hosts, 2+paths)
	a, b := 2*hosts, 2*hosts+1
	for h := range hosts {
		w.link(h, a)
		w.link(hosts+h, b)
	}
	w.port.Light = light
	var up []int32
	for k := range paths {
		up = append(up, int32(w.link(a, b+1+k)))
		w.link(b, b+1+k)
	}
	w.Switches[0].Balance = balance
	return w, up
}

// sentBy returns the number of packets that each port sent.
func sentBy(n *Network, ports []int32) (packets []int64) {
	for _, p := range ports {
		packets = append(packets, n.PortCounters(int(p)).Packets)
	}
	return packets
}

// A flow that has the network for itself stays where its hash put it, and a flow of many packets is
// moved only when its port is not light any more.
func TestAdaptiveKeepsFlowsOnLightPorts(t *testing.T) {
	cfg, up := fan(4, 4, Adaptive, 3000)
	n := newWorld(t, cfg.route())
	for i := range 50 { // one packet each 100 ns, which a port sends in 80
		at := units.Time(i) * 100 * ns
		n.run(at)
		n.send(at, 0, 4, 1000, 1)
	}
	n.run(units.Never)
	paths := 0
	for _, k := range sentBy(n.net, up) {
		if k != 0 {
			paths++
		}
	}
	if c := n.net.Counters(); paths != 1 || c.PathSwitches != 0 || c.Delivered != 50 {
		t.Errorf("%v packets, %+v", sentBy(n.net, up), c)
	}
}

// Four flows whose hash is the same leave it for ports that are light, and with as many ports as
// flows nothing waits for long.
func TestAdaptiveSpreadsFlowsThatCollide(t *testing.T) {
	deepest := func(balance Balance) (units.Bytes, Counters) {
		cfg, up := fan(4, 4, balance, 3000)
		n := newWorld(t, cfg.route())
		for range 200 {
			at := n.queue.Last()
			for h := range HostID(4) {
				n.send(at, h, 4+h, 1000, 9, func(p *Packet) { p.FlowHash = 77 })
			}
			n.run(at + 80*ns)
		}
		n.run(units.Never)
		var most units.Bytes
		for _, p := range up {
			most = max(most, n.net.PortCounters(int(p)).MaxQueue)
		}
		return most, n.net.Counters()
	}
	if q, _ := deepest(ECMP); q < 100_000 {
		t.Errorf("flows that share one port of four queue %d bytes", q)
	}
	if q, c := deepest(Adaptive); q > 8000 || c.PathSwitches == 0 || c.PathSwitches > 100 {
		t.Errorf("adaptive: %d bytes, %+v", q, c)
	}
}

// Where nothing is light the shortest queue is taken, and never a port that is paused or down.
func TestAdaptiveTakesTheShortest(t *testing.T) {
	cfg, up := fan(2, 3, Adaptive, 0)
	n := newWorld(t, cfg.route())
	n.net.ports[up[0]].held = 1 << 1
	n.net.Links().SetUp(0, false, int(up[1]))
	for i := range 60 {
		n.send(units.Time(i)*80*ns, 0, 2, 1000, i)
		n.send(units.Time(i)*80*ns, 1, 3, 1000, i)
		n.run(units.Time(i) * 80 * ns)
	}
	n.run(units.Second)
	if k := sentBy(n.net, up); k[0] != 0 || k[1] != 0 || k[2] != 120 {
		t.Errorf("%v packets", k)
	}
	n.net.Links().SetUp(n.queue.Last(), false, int(up[0]), int(up[2]))
	n.send(n.queue.Last(), 0, 2, 1000, 1)
	n.run(units.Never)
	if c := n.net.Counters(); c.Cut != 1 {
		t.Errorf("no path: %+v", c)
	}
}

// Spraying uses all ports alike, packet by packet; acknowledgements keep to their hash.
func TestSpray(t *testing.T) {
	const packets = 3000
	cfg, up := fan(2, 3, Spray, 0)
	n := newWorld(t, cfg.route())
	for range packets {
		n.send(n.queue.Last(), 0, 2, 1000, 1)
		n.run(n.queue.Last() + 80*ns)
	}
	n.run(units.Never)
	counts := make([]int, len(up))
	for i, k := range sentBy(n.net, up) {
		counts[i] = int(k)
	}
	if x := chiSquare(counts); x > 20 {
		t.Errorf("%v packets, chi square %.1f", counts, x)
	}
	before := sentBy(n.net, up)
	for range 30 {
		n.send(n.queue.Last(), 0, 2, 64, 1, func(p *Packet) { p.Class = 0 })
	}
	n.run(units.Never)
	moved := 0
	for i, k := range sentBy(n.net, up) {
		if k != before[i] {
			moved++
		}
	}
	if moved != 1 {
		t.Errorf("acknowledgements of one flow took %d paths", moved)
	}
}

// A switch remembers a bounded number of flows, forgets those it has not seen for a while, and
// keeps those it sees.
func TestFlowTableIsBounded(t *testing.T) {
	var table flowTable
	for round := range 3 {
		for k := range uint64(10_000) {
			f := table.find(units.Time(round)*units.Millisecond, splitmix.Mix(k))
			f.port = int32(k % 7)
		}
	}
	kept := 0
	for k := range uint64(10_000) {
		if table.find(3*units.Millisecond, splitmix.Mix(k)).port == int32(k%7) {
			kept++
		}
	}
	t.Logf("10,000 flows: %d remembered in %d bytes, %d evicted", kept, len(table.entries)*48, table.evicted)
	if len(table.entries) > maxFlows || kept < 9000 {
		t.Errorf("%d entries, %d flows remembered", len(table.entries), kept)
	}
	size := len(table.entries)
	later := 3*units.Millisecond + FlowExpiry + 1
	for k := range uint64(10_000) {
		if table.find(later, splitmix.Mix(k)).port != noPort {
			t.Fatalf("flow %d is remembered after its time", k)
		}
	}
	for k := range uint64(100_000) {
		table.find(later, splitmix.Mix(k+1<<40))
	}
	if len(table.entries) > maxFlows || len(table.entries) < size || table.evicted == 0 {
		t.Errorf("%d entries after 100,000 flows, %d evicted", len(table.entries), table.evicted)
	}
}
