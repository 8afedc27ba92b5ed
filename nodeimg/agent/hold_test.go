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

// Packets are held back until they are due by the kernel's stamps, whatever the node does
// meanwhile, and are taken in that order. What has no stamp is taken at once.
func TestHold(t *testing.T) {
	s := &seen{}
	l := &loop{machine: s, scale: labtime.NewClock(labtime.Scale{T0: 1, Dilation: 1}),
		hosts: map[uint32]transport.HostID{1: 1, 2: 2}, hold: &holding{}}
	l.results.Reaction, l.results.Stalls = stats.NewDist(), &stalls.Log{}
	us := func(t float64) units.Time { return units.Time(t * float64(units.Microsecond)) }
	arrive := func(from uint32, due units.Time, size int) {
		l.now = us(2)
		data := binary.BigEndian.AppendUint32(make([]byte, size-4), from)
		l.accept(datagram{data: data, from: from, at: 1 + int64(due/units.Nanosecond)})
		data[0] = 0xff // the memory is used again
	}
	l.now = us(1)
	l.accept(datagram{data: []byte{1}, from: 2})
	if len(s.at) != 1 || s.at[0] != us(1) {
		t.Fatalf("%+v", s)
	}
	arrive(1, us(10), 100)
	arrive(2, us(3.2), 154)
	arrive(2, us(3.1), 54)
	arrive(1, us(3.2), 53) // behind the other
	arrive(7, us(3), 10)
	if l.heldUntil() != us(3) || len(s.at) != 1 {
		t.Fatalf("%+v, %v", s, l.heldUntil())
	}
	for _, now := range []float64{2, 6, 20} {
		l.release(us(now))
	}
	if want := []units.Time{us(1), us(3.1), us(3.2), us(3.2), us(10)}; !slices.Equal(s.at, want) ||
		!slices.Equal(s.len, []int{1, 54, 154, 53, 100}) || !slices.Equal(s.from, []transport.HostID{2, 2, 2, 1, 1}) {
		t.Errorf("%+v, want %v", s, want)
	}
	if l.results.Refused[transport.Stranger] != 1 || l.heldUntil() != units.Never || len(l.hold.spare) != 5 {
		t.Errorf("%+v, %+v", l.results.Refused, l.hold)
	}
	if got := l.results.Reaction.Count(); got != 5 {
		t.Errorf("%d reactions", got)
	}
}
