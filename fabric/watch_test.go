package fabric

import (
	"slices"
	"testing"

	"weft/units"
)

// Ten packets that arrive 80 ns apart at a link that takes 800 ns for each: the first passes,
// nine join one by one, and leave one by one. A switch that accounts for its memory says the same.
func TestWatchSeesEveryEventOfAQueue(t *testing.T) {
	for _, total := range []units.Bytes{0, units.MB} {
		cfg := funnel(1, PortConfig{Link: Link{Rate: 10 * units.Gbps}, Buffer: units.MB}).route()
		cfg.Switches[0].Buffer.Total = total
		w := newWorld(t, cfg)
		var got []units.Bytes
		var at []units.Time
		w.net.Observers.Watch(0, func(now units.Time, queued units.Bytes) { at, got = append(at, now), append(got, queued) })
		for i := range 10 {
			w.send(0, 1, 0, 1000, i)
		}
		w.run(units.Never)
		want := []units.Bytes{0, 0}
		for q := units.Bytes(1000); q <= 9000; q += 1000 {
			want = append(want, q)
		}
		for q := units.Bytes(8000); q >= 0; q -= 1000 {
			want = append(want, q)
		}
		if !slices.Equal(got, want) {
			t.Errorf("memory %d: saw %v, want %v", total, got, want)
		}
		if !slices.IsSorted(at) {
			t.Errorf("memory %d: instants %v", total, at)
		}
		if last := at[len(at)-1] - at[0]; last != 9*800*ns {
			t.Errorf("memory %d: the last left %d ps after the first", total, last)
		}
	}
}
