package fabric

import (
	"fmt"
	"slices"
	"testing"

	"weft/internal/splitmix"
	"weft/units"
)

// coordinated returns a network with CCM and with routes to switches, and a log of its steps as
// lines.
func coordinated(t *testing.T, w *wiring, change func(*Config)) (*world, *[]string) {
	t.Helper()
	hosts := w.Hosts
	w.Hosts = hosts + len(w.Switches) // for the routes: as if each switch were a host that forwards
	steps := make([][]int, w.Hosts)
	for d := range steps {
		steps[d] = w.stepsToNode(d, hosts)
	}
	w.Hosts = hosts
	for s := range w.Switches {
		sw := &w.Switches[s]
		sw.Balance, sw.Groups = CCM, nil
		sw.Route = make([]int32, len(steps))
		for d := range steps {
			var ports []int32
			for i, p := range w.Ports {
				if int(p.From) == hosts+s && steps[d][p.From] > 0 && steps[d][p.To] == steps[d][p.From]-1 {
					ports = append(ports, int32(i))
				}
			}
			if sw.Route[d] = -1; len(ports) > 0 {
				sw.Route[d] = int32(len(sw.Groups))
				sw.Groups = append(sw.Groups, ports)
			}
		}
	}
	for i := range w.Ports {
		p := &w.Ports[i]
		p.Light, p.Congested = 5000, 10_000
		p.ECN = ECNConfig{On: true, Kmin: 10_000, Kmax: 10_000, Pmax: 1}
	}
	w.Port = 4793
	w.CCM = &CCMConfig{RTT: 10 * us, Every: 50 * us, Refresh: 200 * us}
	if change != nil {
		change(&w.Config)
	}
	n := newWorld(t, w.Config)
	var lines []string
	n.net.Observers.Follow(func(s Step) {
		what := []string{"tells CC", "tells release", "asks for another path", "follows", "moves", "tells CC", "", ""}[s.What]
		if what == "" {
			return
		}
		lines = append(lines, fmt.Sprintf("switch %d %s: %d to %d", int(s.Switch)-hosts, what, s.Src, s.Dst))
	})
	return n, &lines
}

// stepsToNode is stepsTo for any node; only those from hosts on forward.
func (w *wiring) stepsToNode(d, hosts int) []int {
	steps := slices.Repeat([]int{-1}, w.Hosts)
	steps[d] = 0
	for next := []int{d}; len(next) > 0; next = next[1:] {
		if at := next[0]; at == d || at >= hosts {
			for _, p := range w.Ports {
				if int(p.To) == at && steps[p.From] < 0 {
					steps[p.From] = steps[at] + 1
					next = append(next, int(p.From))
				}
			}
		}
	}
	return steps
}

// withTag sets the CCM tag and the source port of a packet.
func withTag(tag Tag, srcPort uint16) func(*Packet) {
	return func(p *Packet) {
		p.Tag, p.SrcPort = tag, srcPort
		p.FlowHash = FlowHash(p.Src, p.Dst, srcPort, 4793)
	}
}

// count returns the number of lines that are line.
func count(lines []string, line string) (n int) {
	for _, l := range lines {
		if l == line {
			n++
		}
	}
	return n
}

// If several ports are light, the AR indicator names the switch; if one is, the indicator stays
// (section 6.3.5).
func TestARIndicatorNamesTheLastSwitchWithAChoice(t *testing.T) {
	n, lines := coordinated(t, diamond(), nil)
	n.send(0, 0, 1, 1000, 7, withTag(Tag{On: true, AR: ARSource}, 7))
	n.send(0, 0, 1, 1000, 8, withTag(Tag{On: true, CC: true, AR: ARNone}, 7))
	n.run(units.Never)
	if got := n.arrivals[0].packet.Tag; got.AR != 1 || got.CC {
		t.Errorf("tag %+v, want that of switch 0", got)
	}
	if got := n.arrivals[1].packet.Tag; got.AR != ARNone || !got.CC {
		t.Errorf("tag %+v of incast, want it as it was", got)
	}
	if len(*lines) != 0 {
		t.Errorf("%q", *lines)
	}
}

// jam fills the queue of a port with packets of its own that nobody drains.
func jam(n *world, port int32) { n.net.ports[port].held = 1 << 1 }

// Switch 1, whose only output port is full, asks switch 0, which the tag names, for another path:
// the flow moves to switch 2.
func TestUpstreamIsAskedForAnotherPath(t *testing.T) {
	n, lines := coordinated(t, diamond(), nil)
	flow := uint16(1)
	for ; n.net.routing.members[n.net.routing.group(0, 1).first+choose(uint32(splitmix.Mix(FlowHash(0, 1, flow, 4793))), n.net.routing.seeds[0], 2)] != 2; flow++ {
	}
	jam(n, 4) // from switch 1 on
	for i := range 40 {
		n.send(units.Time(i)*us, 0, 1, 1000, i, withTag(Tag{On: true}, flow))
		n.run(units.Time(i) * us)
	}
	n.run(units.Second)
	want := []string{"switch 1 asks for another path: 0 to 1", "switch 0 follows: 0 to 1", "switch 0 moves: 0 to 1"}
	if got := (*lines)[:3]; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", *lines, want)
	}
	c := n.net.Counters()
	if c.CCM.Notes[NeedsCC] != 0 || c.CCM.LastResort != 0 || c.Marks != 0 || len(n.arrivals) < 30 {
		t.Errorf("%d arrived, %+v", len(n.arrivals), c)
	}
}

// If no switch upstream has a choice, the packet is marked and the source is told to obey the mark;
// with Strict it is not told.
func TestLastResort(t *testing.T) {
	for _, strict := range []bool{false, true} {
		w := chain(2)
		n, lines := coordinated(t, w, func(c *Config) { c.CCM.Strict = strict; c.Ports[2].Rate = units.Gbps })
		for i := range 40 {
			n.run(units.Time(i) * us) // for longer than the round trip of grace
			n.send(units.Time(i)*us, 0, 1, 1000, i, withTag(Tag{On: true}, 1))
		}
		n.run(units.Never)
		c := n.net.Counters()
		told := count(*lines, "switch 0 tells CC: 0 to 1")
		if c.CCM.LastResort == 0 || c.Marks == 0 || told != int(c.CCM.Notes[NeedsCC]) || (told > 0) == strict {
			t.Errorf("strict %t: %q, %+v", strict, *lines, c)
		}
		notes := 0
		for i := range n.arrivals {
			if note, ok := n.net.NoteOf(&n.arrivals[i].packet); ok {
				notes++
				if note.Src != 0 || note.Dst != 1 || note.SrcPort != 1 || !note.Last || note.Switch != 2 || n.arrivals[i].packet.Dst != 0 {
					t.Errorf("%+v", note)
				}
			}
		}
		if notes != told {
			t.Errorf("strict %t: %d notes arrived, %d told", strict, notes, told)
		}
	}
}

// Two flows meet at switch 1. One of them is asked to take another path. The one that stays is not,
// although the queue that the other left stands.
func TestOneOfTwoFlowsIsAsked(t *testing.T) {
	w := diamond()
	n, lines := coordinated(t, w, func(c *Config) {
		for i := range c.Ports { // what host 0 sends fits two paths only
			c.Ports[i].Rate = 100 * units.Gbps
			c.Ports[i].ECN.Kmax = 40_000 // up to which asking upstream may let the queue grow
		}
	})
	var flows []uint16
	for f := uint16(1); len(flows) < 2; f++ {
		if n.net.routing.members[n.net.routing.group(0, 1).first+choose(uint32(splitmix.Mix(FlowHash(0, 1, f, 4793))), n.net.routing.seeds[0], 2)] == 2 {
			flows = append(flows, f)
		}
	}
	n.net.ports[4].setLine(units.NewLine(50 * units.Gbps))
	n.net.ports[5].setLine(units.NewLine(50 * units.Gbps))
	for i := range 1000 {
		at := units.Time(i) * 80 * ns // 1000 bytes in 80 ns are 100 Gb/s, half of it each flow's
		n.run(at)
		n.send(at, 0, 1, 1000, i, withTag(Tag{On: true}, flows[i%2]))
	}
	n.run(units.Second)
	if got := count(*lines, "switch 1 asks for another path: 0 to 1"); got != 1 {
		t.Errorf("asked %d times: %q", got, *lines)
	}
	if c := n.net.Counters(); c.CCM.LastResort != 0 || c.Marks != 0 || c.PathSwitches != 1 {
		t.Errorf("%+v", c)
	}
}

// At the last hop congestion is incast. Sources are told, at most once per CCMConfig.Every. Packets
// that leave a congested queue behind are marked, with and without the CC indicator (section 6.3.4,
// line 372). When the queue has been light for a round trip, the flows are released, once.
func TestIncastIsToldAndReleased(t *testing.T) {
	n, lines := coordinated(t, funnel(4, PortConfig{Link: Link{Rate: 100 * units.Gbps, Delay: us}, Buffer: mB}), nil)
	for i := range 40 {
		for h := HostID(1); h <= 4; h++ {
			n.send(0, h, 0, 1000, i, withTag(Tag{On: true, CC: h == 1}, 5))
		}
	}
	n.run(units.Second)
	for h := 1; h <= 4; h++ {
		told := count(*lines, fmt.Sprintf("switch 0 tells CC: %d to 0", h))
		released := count(*lines, fmt.Sprintf("switch 0 tells release: %d to 0", h))
		if told != 1 || released != 1 {
			t.Errorf("host %d: told %d times, released %d times", h, told, released)
		}
	}
	var marks [5]int // by host
	for i := range n.arrivals {
		if p := &n.arrivals[i].packet; p.ECN == CE {
			marks[p.Src]++
		}
	}
	for h := 1; h <= 4; h++ {
		if marks[h] < 30 || marks[h] > 40 { // a queue of up to 120 packets, marked above 10
			t.Errorf("%d of 40 packets of host %d are marked", marks[h], h)
		}
	}
	c := n.net.Counters()
	if c.PathSwitches != 0 || c.CCM.MostFlows != 4 {
		t.Errorf("%+v", c)
	}
	if n.queue.Len() != 0 {
		t.Errorf("%d things are pending when all is over", n.queue.Len())
	}
}

// The source of a lasting incast is told again, and one whose flows have gone silent is forgotten.
func TestIncastIsRefreshedAndForgotten(t *testing.T) {
	slow := PortConfig{Link: Link{Rate: units.Gbps, Delay: us}, Buffer: mB}
	n, lines := coordinated(t, funnel(1, slow), nil)
	for i := range 200 {
		n.send(0, 1, 0, 1000, i, withTag(Tag{On: true}, 5))
	}
	n.run(1500 * us) // 200 packets take 1,600 µs
	if got := count(*lines, "switch 0 tells CC: 1 to 0"); got < 5 || got > 10 {
		t.Errorf("told %d times in 1.5 ms", got)
	}
	jam(n, 0)
	n.run(units.Second)
	if got := count(*lines, "switch 0 tells release: 1 to 0"); got != 0 || n.queue.Len() > 1 {
		t.Errorf("released %d times from a jam, %d pending", got, n.queue.Len())
	}
}

// Notifications that are lost are counted and never arrive.
func TestLostNotifications(t *testing.T) {
	n, _ := coordinated(t, funnel(4, PortConfig{Link: Link{Rate: 100 * units.Gbps, Delay: us}, Buffer: mB}), func(c *Config) { c.CCM.Loss = 1 })
	for i := range 40 {
		for h := HostID(1); h <= 4; h++ {
			n.send(0, h, 0, 1000, i, withTag(Tag{On: true}, 5))
		}
	}
	n.run(units.Second)
	c := n.net.Counters()
	if len(n.arrivals) != 160 || c.CCM.Notes[0] != 8 || c.CCM.Notes[NeedsCC] != 4 || c.CCM.Notes[Released] != 4 {
		t.Errorf("%d arrived, %+v", len(n.arrivals), c)
	}
}

// Either all switches have CCM or none.
func TestCCMIsChecked(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"a switch without":   func(c *Config) { c.Switches[0].Balance = Adaptive },
		"no settings":        func(c *Config) { c.CCM = nil },
		"no RTT":             func(c *Config) { c.CCM.RTT = 0 },
		"loss":               func(c *Config) { c.CCM.Loss = 2 },
		"routes to hosts":    func(c *Config) { c.Switches[0].Route = c.Switches[0].Route[:2] },
		"an unknown balance": func(c *Config) { c.Switches[0].Balance = "x" },
	} {
		w := diamond()
		coordinated(t, w, nil)
		change(&w.Config)
		if w.check() == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// A flow stays on its port while that is light, and moves when it is not and another one is: no
// path switching without need.
func TestAFlowStaysWhileItsPortIsLight(t *testing.T) {
	n, lines := coordinated(t, diamond(), nil)
	for i := range 20 {
		at := units.Time(i) * us
		n.run(at)
		n.send(at, 0, 1, 1000, i, withTag(Tag{On: true}, 1))
	}
	n.run(50 * us)
	if c := n.net.Counters(); c.PathSwitches != 0 || len(*lines) != 0 {
		t.Fatalf("%q, %+v", *lines, c)
	}
	on := n.net.balancing.switches[0].flows.know(50*us, uint64(uint32(splitmix.Mix(FlowHash(0, 1, 1, 4793))))<<32|1).port
	jam(n, on)
	for i := range 20 {
		at := 60*us + units.Time(i)*us
		n.run(at)
		n.send(at, 0, 1, 1000, 20+i, withTag(Tag{On: true}, 1))
	}
	n.run(100 * us)
	if got := count(*lines, "switch 0 moves: 0 to 1"); got != 1 || n.net.Counters().PathSwitches != 1 {
		t.Errorf("%d moves: %q", got, *lines)
	}
}

// A host may write any tag. An AR indicator that names no switch, or names one before the first
// switch, counts as none.
func TestAnIndicatorThatNamesNobodyIsNone(t *testing.T) {
	n, lines := coordinated(t, diamond(), nil)
	for port := range n.net.ports {
		if !n.net.ports[port].is(nic) {
			jam(n, int32(port))
		}
	}
	for i := range 40 {
		at := units.Time(i) * us
		n.run(at)
		n.send(at, 0, 1, 1000, i, withTag(Tag{On: true, AR: []uint16{60_000, 5, 4, 1}[i%4]}, 1))
	}
	n.run(100 * us)
	c := n.net.Counters()
	if c.CCM.BadTags != 40 || c.CCM.Notes[NeedsPath] != 0 || c.CCM.LastResort == 0 {
		t.Errorf("%+v: %q", c.CCM, *lines)
	}
	for port := range n.net.ports {
		tag := Tag{On: true, AR: 60_000}
		if n.net.ccm.checkTag(n.net, int32(port), &tag); tag.AR != ARNone {
			t.Errorf("from port %d: %+v", port, tag)
		}
	}
}

// If asking upstream does not help, because all paths there are as full, packets are marked before
// they are dropped.
func TestFullPathsEverywhereAreTheLastResort(t *testing.T) {
	n, lines := coordinated(t, diamond(), func(c *Config) {
		for i := range c.Ports {
			c.Ports[i].ECN = ECNConfig{On: true, Kmin: 10_000, Kmax: 40_000, Pmax: 0.1}
		}
	})
	n.net.ports[4].line = units.NewLine(10 * units.Gbps) // each way on from switch 0 leads to one of these
	n.net.ports[8].setLine(units.NewLine(10 * units.Gbps))
	for i := range 2000 {
		at := units.Time(i) * 80 * ns
		n.run(at)
		n.send(at, 0, 1, 1000, i, withTag(Tag{On: true}, uint16(1+i%8)))
	}
	n.run(units.Second)
	if asked := n.net.Counters().CCM.Notes[NeedsPath]; asked < 2 {
		t.Errorf("asked upstream %d times: %q", asked, *lines)
	}
	if c := n.net.Counters(); c.CCM.LastResort == 0 || c.Marks == 0 || c.CCM.Notes[NeedsCC] == 0 {
		t.Errorf("%+v", c)
	}
}
