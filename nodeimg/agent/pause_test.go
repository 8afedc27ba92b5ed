package agent

import (
	"testing"

	"weft/internal/clock"
	"weft/internal/stalls"
	"weft/results/stats"
	"weft/transport/wire"
	"weft/units"
)

// encodePause encodes a pause notice.
func encodePause(p wire.Pause) []byte {
	b := make([]byte, wire.PauseSize)
	p.Encode(b)
	return b
}

// A NIC holds data back from a pause to its end, or until no notice has confirmed the pause for
// long, and ignores an older notice.
func TestNICHandlesPauses(t *testing.T) {
	n := nic{line: units.NewLine(units.Gbps), free: 10}
	step := func(what string, p wire.Pause, mono int64, news, held bool) {
		t.Helper()
		if got := n.update(&p, mono); got != news {
			t.Errorf("%s: news %v", what, got)
		}
		if got := n.held(mono); got != held {
			t.Errorf("%s: held %v", what, got)
		}
	}
	step("pause", wire.Pause{Seq: 5, Class: 1, Held: true}, 100, true, true)
	step("older end", wire.Pause{Seq: 4, Class: 1}, 101, false, true)
	step("same again", wire.Pause{Seq: 5, Class: 1}, 102, false, true)
	step("another class", wire.Pause{Seq: 6}, 103, false, true)
	if n.held(100 + pauseLife) {
		t.Error("a pause is believed in for ever")
	}
	step("reminder", wire.Pause{Seq: 6, Class: 1, Held: true}, 50+pauseLife, true, true)
	if !n.held(101 + pauseLife) {
		t.Error("a reminder does not prolong the pause")
	}
	step("end", wire.Pause{Seq: 7, Class: 1, At: 20, Clears: 70}, 60+pauseLife, true, false)
	if n.free != 70 {
		t.Errorf("free at %d, want the time at which the NIC has sent its queue", n.free)
	}
	step("late pause", wire.Pause{Seq: 3, Class: 1, Held: true}, 61+pauseLife, false, false)
	n.seq = 1<<32 - 1
	step("the count starts again", wire.Pause{Seq: 0, Class: 1, Held: true}, 62+pauseLife, true, true)
}

// Only the network may pause a node, with a sound notice for that node; everything else is counted
// and does nothing.
func TestLoopRefusesForgedPauses(t *testing.T) {
	l := loop{clock: clock.NewClock(), network: 0x0afffffe, self: 3}
	l.results.Reaction = stats.NewDist()
	l.results.Stalls = new(stalls.Log)
	good := wire.Pause{Host: 3, Seq: 1, Class: 1, Held: true}
	other, damaged := good, encodePause(good)
	other.Host = 4
	damaged[20] ^= 1
	for i, d := range []datagram{
		{data: encodePause(good), from: 0x0a000001},
		{data: encodePause(good), from: 0},
		{data: encodePause(other), from: l.network},
		{data: damaged, from: l.network},
		{data: encodePause(good)[:20], from: l.network},
		{data: nil, from: l.network},
	} {
		if l.take(d); l.nic.held(l.clock.Now()) || l.results.Refused.Total() != int64(i+1) {
			t.Errorf("datagram %d: held %v, %d bad", i, l.nic.held(l.clock.Now()), l.results.Refused.Total())
		}
	}
	if l.take(datagram{data: encodePause(good), from: l.network}); !l.nic.held(l.clock.Now()) ||
		l.results.Refused.Total() != 6 {
		t.Error("a valid pause does not hold the NIC")
	}
}

// While the NIC is paused, the loop asks the machine for control packets only. Data that is ready
// leaves afterwards, behind the data in the NIC.
func TestLoopHoldsDataDuringAPause(t *testing.T) {
	m := &script{t: t, at: []units.Time{0}}
	l := loop{machine: m, clock: clock.NewClock(), network: 1, nic: nic{line: units.NewLine(units.Gbps)}}
	l.results.Timer, l.results.Reaction = stats.NewDist(), stats.NewDist()
	l.results.Stalls = new(stalls.Log)
	l.take(datagram{data: encodePause(wire.Pause{Seq: 1, Class: 1, Held: true}), from: 1})
	l.pump(1000)
	if m.controls != 1 || len(m.departed) != 0 {
		t.Errorf("asked %d times for control packets, %d of data left", m.controls, len(m.departed))
	}
	l.take(datagram{data: encodePause(wire.Pause{Seq: 2, Class: 1, At: 1500, Clears: 9000}), from: 1})
	if l.pump(2000); len(m.departed) != 0 || l.due != 9000 {
		t.Errorf("%d left, the next is due at %d, want none before the data in the NIC has left", len(m.departed),
			l.due)
	}
}
