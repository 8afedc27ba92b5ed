package agent

import (
	"encoding/binary"
	"slices"
	"testing"

	"weft/clocksync/labtime"
	"weft/internal/stalls"
	"weft/results/stats"
	"weft/transport"
	"weft/units"
)

// seen is a machine that notes what arrives, and when.
type seen struct {
	machine
	at   []units.Time
	from []transport.HostID
	len  []int
}

func (s *seen) Receive(_ units.Time, in *transport.Incoming) (transport.Placement, error) {
	s.at, s.from, s.len = append(s.at, in.At), append(s.from, in.Src), append(s.len, len(in.Header))
	return transport.Placement{}, nil
}

// Packets are held back for their transit from when they came, whatever the node does meanwhile,
// and are taken in that order. Those of strangers are not.
func TestHold(t *testing.T) {
	s := &seen{}
	l := &loop{machine: s, scale: labtime.NewClock(labtime.Scale{T0: 1, Dilation: 1}),
		hosts: map[uint32]transport.HostID{1: 1, 2: 2}, hold: &holding{last: map[path]units.Time{}, from: []transport.Path{{}, {Propagation: 9 * units.Microsecond},
			{Propagation: units.Microsecond, Rates: []units.Bandwidth{8 * units.Gbps}}}}}
	l.nic.line = units.NewLine(800 * units.Gbps)
	l.results.Reaction, l.results.Stalls = stats.NewDist(), &stalls.Log{}
	arrive := func(from uint32, source uint16, at units.Time, size int) {
		l.now = at + 3*units.Microsecond // the node looks late
		data := binary.BigEndian.AppendUint32(make([]byte, size-4), from)
		l.accept(datagram{data: data, from: from, source: source, at: 1 + int64(at/units.Nanosecond)})
		data[0] = 0xff // the memory is used again
	}
	us := func(t float64) units.Time { return units.Time(t * float64(units.Microsecond)) }
	arrive(1, 1, us(1), 100) // until 10 us
	arrive(2, 1, us(2), 154) // until 3.2 us
	arrive(2, 2, us(2), 54)  // until 3.1 us, on another path
	arrive(2, 1, us(2), 53)  // on the path of the longer one: behind it, by 990 ps at 800 Gb/s
	arrive(7, 1, us(2), 10)
	if l.results.Refused[transport.Stranger] != 1 || len(s.at) != 0 || l.heldUntil() != us(3.1) {
		t.Fatalf("%+v, %v", s, l.heldUntil())
	}
	for _, now := range []float64{3, 6, 20} {
		l.release(us(now))
	}
	if want := []units.Time{us(3.1), us(3.2), us(3.2) + 990*units.Picosecond, us(10)}; !slices.Equal(s.at, want) ||
		!slices.Equal(s.len, []int{54, 154, 53, 100}) || !slices.Equal(s.from, []transport.HostID{2, 2, 2, 1}) {
		t.Errorf("%+v, want %v", s, want)
	}
	if l.heldUntil() != units.Never || len(l.hold.spare) != 4 {
		t.Errorf("%+v", l.hold)
	}
}
