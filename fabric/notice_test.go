package fabric

import (
	"testing"

	"weft/eventqueue"
	"weft/units"
)

// ends is a sink that gives packets back.
type ends struct{ n *Network }

func (e ends) Deliver(_ units.Time, p *Packet) { e.n.Put(p) }
func (e ends) Idle(units.Time, HostID)         {}

// A NIC reports a pause at the instant it obeys it, and its end. In between it is known how long
// the NIC would take to send what waits. A link that goes down ends the pause.
func TestTellsOfPausesOfNICs(t *testing.T) {
	line := func(from, to NodeID, rate units.Bandwidth) PortConfig {
		return PortConfig{From: from, To: to, Link: Link{Rate: rate, Delay: units.Microsecond}}
	}
	cfg := Config{
		Hosts: 2, Ports: []PortConfig{line(0, 2, 8*units.Gbps), line(1, 2, 8*units.Gbps), line(2, 0, units.Gbps), line(2, 1, units.Gbps)},
		Switches: []SwitchConfig{{Name: "s", Groups: [][]int32{{2}, {3}}, Route: []int32{0, 1}, Buffer: BufferConfig{Total: units.MB}}},
	}
	cfg.Ports[0].PFC[1] = PFCConfig{On: true, Xoff: 4000, Headroom: 100_000}
	q := eventqueue.New(0)
	n, err := New(cfg, q, nil)
	if err != nil {
		t.Fatal(err)
	}
	n.sink = ends{n}
	type told struct {
		at     units.Time
		paused bool
	}
	var all []told
	n.Observers.Pauses(func(now units.Time, h HostID, class uint8, paused bool) {
		if h != 0 || class != 1 || n.NICs.Paused(h) != paused {
			t.Errorf("host %d, class %d", h, class)
		}
		all = append(all, told{now, paused})
	})
	for range 40 {
		p := n.Get()
		p.Src, p.Dst, p.Size, p.Class = 0, 1, 1000, 1
		n.Inject(0, p) // 1 us each
	}
	fire := func(until func() bool) {
		for !until() {
			id, at, ok := q.Pop()
			if !ok {
				return
			}
			n.Fire(at, id)
		}
	}
	fire(func() bool { return len(all) == 1 })
	at := all[0].at
	if !all[0].paused || !n.NICs.Paused(0) {
		t.Fatalf("told %+v, want a pause", all)
	}
	// The packet on the link is finished, then what waits would follow.
	if clears, least := n.NICs.Clears(at, 0), at+units.Time(n.NICs.Queued(0))*units.Nanosecond; clears < least || clears > least+units.Microsecond {
		t.Errorf("clears at %d, want %d and at most a packet more", clears, least)
	}
	for i := range cfg.Ports {
		if _, ok := n.PauseEntity(i); !ok {
			t.Errorf("nobody pauses port %d", i)
		}
	}
	fire(func() bool { return len(all) == 3 })
	if len(all) != 3 || all[1].paused || !all[2].paused || all[1].at <= at {
		t.Fatalf("told %+v, want a pause, its end and a pause", all)
	}
	n.Links().SetUp(all[2].at, false, 0, 2)
	if len(all) != 4 || all[3] != (told{all[2].at, false}) {
		t.Errorf("told %+v, want the end of the pause with the link's", all)
	}
}
