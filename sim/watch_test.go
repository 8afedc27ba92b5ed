package sim

import (
	"testing"

	"weft/units"
)

// Ticks come at their instants, also beside samples, and changes of the watched queue are reported.
func TestTicksAndWatch(t *testing.T) {
	var ticks []units.Time
	events := 0
	s := newSim(t, star(9, fast), incast(8, 100, 8), Options{
		TickEvery: 10 * us, Tick: func(now units.Time) { ticks = append(ticks, now) },
		SampleEvery: 7 * us, Sample: func(units.Time, int, units.Bytes) {},
		WatchPort: 1, Watch: func(units.Time, units.Bytes) { events++ },
	})
	mustRun(t, s)
	for i, at := range ticks {
		if at != units.Time(i+1)*10*us {
			t.Fatalf("tick %d at %v", i, at)
		}
	}
	if len(ticks) != int(s.End()/(10*us)) || int64(events) != 2*s.PortCounters(1).Packets {
		t.Errorf("%d ticks until %v, %d events of %d packets", len(ticks), s.End(), events, s.PortCounters(1).Packets)
	}
	if _, err := New(star(2, fast), incast(1, 1, 1), Options{WatchPort: 99, Watch: func(units.Time, units.Bytes) {}}); err == nil {
		t.Error("a port is watched that is not there")
	}
}

// What was delivered before From is not in the distribution.
func TestDelaysCountFrom(t *testing.T) {
	all, late := newSim(t, star(9, fast), incast(8, 100, 8), Options{}), newSim(t, star(9, fast), incast(8, 100, 8), Options{From: 100 * us})
	mustRun(t, all)
	mustRun(t, late)
	if all.QueueDelay().Count() != 800 || late.QueueDelay().Count() >= 800 || late.QueueDelay().Count() == 0 {
		t.Errorf("%d delays, %d of them late", all.QueueDelay().Count(), late.QueueDelay().Count())
	}
}
