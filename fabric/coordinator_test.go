package fabric

import (
	"testing"

	"weft/units"
)

// A Coordinator notifies sources of incast and of its end, from the queue lengths in the reports.
// It advises a flow to avoid a port after a notification from a downstream switch.
func TestCoordinator(t *testing.T) {
	cfg := Config{Hosts: 2, Port: 4793, CCM: &CCMConfig{RTT: 10 * us, Every: 5 * us, Refresh: 50 * us}}
	link := func(from, to NodeID) {
		cfg.Ports = append(cfg.Ports, PortConfig{From: from, To: to, Link: Link{Rate: 100 * units.Gbps, Delay: us}, Buffer: mB,
			Light: 5_000, Congested: 20_000, ECN: ECNConfig{On: true, Kmin: 20_000, Kmax: 40_000, Pmax: 1}})
	}
	for _, k := range [][2]NodeID{{0, 2}, {2, 0}, {2, 3}, {3, 2}, {2, 3}, {3, 2}, {3, 1}, {1, 3}} {
		link(k[0], k[1])
	}
	cfg.Switches = []SwitchConfig{
		{Balance: CCM, Groups: [][]int32{{1}, {2, 4}}, Route: []int32{0, 1, -1, 1}},
		{Balance: CCM, Groups: [][]int32{{3, 5}, {6}}, Route: []int32{0, 1, 0, -1}},
	}
	type sent struct {
		to   NodeID
		what NoteType
	}
	var notes []sent
	queued := units.Bytes(30_000)
	c, err := NewCoordinator(cfg, func(int) units.Bytes { return queued }, func(to NodeID, n Note) {
		notes = append(notes, sent{to, n.Type})
	})
	if err != nil {
		t.Fatal(err)
	}
	arrive := func(at units.Time) {
		c.Arrived(at, &Arrival{Switch: 1, From: 2, Src: 0, Dst: 1, Flow: 7, SrcPort: 9, Tag: Tag{On: true}, Before: -1,
			Port: 6, Queues: []PortQueue{{6, queued}}})
	}
	arrive(us)
	arrive(2 * us) // too early for another one
	if len(notes) != 1 || notes[0] != (sent{0, NeedsCC}) {
		t.Fatalf("%+v", notes)
	}
	if next := c.Next(); next != 6*us {
		t.Errorf("the next look is at %v", next)
	}
	queued = 1_000
	c.Advance(6 * us)  // light from here on
	c.Advance(11 * us) // for half a round trip
	if c.Advance(16 * us); len(notes) != 2 || notes[1] != (sent{0, Released}) || c.Next() != units.Never {
		t.Errorf("%+v, then %v", notes, c.Next())
	}
	// at the first switch, the flow leaves by port 2
	flow := uint32(key(0, 1, 9) >> 32)
	leave := &Arrival{Switch: 0, From: 0, Src: 0, Dst: 1, Flow: flow, SrcPort: 9, Tag: Tag{On: true}, Before: -1, Port: 2,
		Queues: []PortQueue{{2, 0}, {4, 0}}}
	if d, a := c.Arrived(20*us, leave); d.Tag.AR != 1 || a.Away != noPort || a.Resort != units.Never {
		t.Errorf("%+v, %+v", d, a)
	}
	note := Note{Type: NeedsPath, Src: 0, Dst: 1, SrcPort: 9, Switch: 3}
	got, a, ok := c.Heard(21*us, 0, note)
	if !ok || got != flow || a.Away != 2 || a.Until != 31*us {
		t.Errorf("%d, %+v, %v", got, a, ok)
	}
	// a packet that left before it was advised changes nothing
	leave.Before = 2
	if _, a := c.Arrived(22*us, leave); a.Away != 2 || a.Until != 31*us {
		t.Errorf("%+v", a)
	}
	leave.Port, leave.Avoided = 4, true
	if d, _ := c.Arrived(23*us, leave); d.Port != 4 {
		t.Errorf("%+v", d)
	}
	note.SrcPort = 10
	if _, _, ok := c.Heard(24*us, 0, note); ok {
		t.Error("it knows a flow that has never come")
	}
	if k, moved := c.Counters(); k.Notes[NeedsCC] != 1 || k.Notes[Released] != 1 || k.Ignored != 1 || moved != 1 {
		t.Errorf("%+v, %d", k, moved)
	}
}
