package huygens

import (
	"math/rand/v2"
	"testing"

	"weft/clocksync"
	"weft/units"
)

// Probes with a late stamp of departure look faster than possible. The filter drops their pairs,
// and they must not make the pairs that pass look queued: every window's edge is fitted.
func TestLateStampsAreNoShorterPath(t *testing.T) {
	cfg := defaultConfig(clocksync.Setup{})
	for _, share := range []float64{0.001, 0.01} {
		n, f, r := &neighbour{node: 1, owned: true, spacing: cfg.Spacing}, &fitter{}, rand.New(rand.NewPCG(1, 2))
		var c clocksync.Counters
		late := func() (d units.Time) {
			if r.Float64() < share {
				d = units.Time(r.ExpFloat64() * float64(200*ns))
			}
			return d
		}
		const windows = 40
		aside, doubted := 0, 0
		for k := range windows {
			for range 250 {
				for _, forward := range []bool{true, false} {
					left := units.Time(k)*20*ms + units.Time(r.Int64N(int64(20*ms)))
					sent := [2]units.Time{left + late(), left + cfg.Spacing + late()}
					arrived := [2]units.Time{left + units.Microsecond, left + cfg.Spacing + units.Microsecond}
					if forward {
						n.keep(true, sent, arrived, &cfg, 0, &c)
					} else {
						n.keep(false, arrived, sent, &cfg, 0, &c)
					}
				}
			}
			e, ok := n.fit(f, middleOf(k), units.Never, &cfg, 0)
			switch {
			case !ok:
				aside++
			case e.sigma > 10*ns:
				doubted++
			}
		}
		t.Logf("%v stamped late: %d of %d windows left aside, %d doubted", share, aside, windows, doubted)
		if aside+doubted > windows/10 {
			t.Errorf("%v stamped late: %d of %d windows left aside, %d taken for queues", share, aside, windows, doubted)
		}
	}
}
