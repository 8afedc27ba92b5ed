package summary

import (
	"testing"

	"weft/collectives/schedule"
	"weft/collectives/schedule/scheduletest"
	"weft/host"
	"weft/orchestrator/experiment"
	"weft/transport"
	"weft/units"
)

// What is due and what is compared are the same, but are not asked of the same.
func TestDueIsWhatIsCompared(t *testing.T) {
	for _, n := range []int{2, 3, 7, 8, 33} {
		for _, elements := range []int{1, n - 1, 2*n + n/2} {
			scheduletest.Every(n, units.Bytes(elements)*schedule.Element, 0, func(s schedule.Spec) {
				for rank := range n {
					l, err := schedule.Shape(s, rank)
					var compared units.Bytes
					for _, w := range l.Result {
						compared += w.Len
					}
					if got := schedule.Due(s, rank); err != nil || got != int64(compared/schedule.Element) {
						t.Fatalf("%+v, rank %d: %d elements are due, %d compared, %v", s, rank, got, compared/schedule.Element, err)
					}
				}
			})
		}
	}
}

// A result that was compared in part is not verified, even if that part is right.
func TestVerifiedWantsTheWholeResult(t *testing.T) {
	item := host.Item{Collective: schedule.AllToAll, Algorithm: schedule.Direct, Ranks: []transport.HostID{0, 1}, Size: 80, Repeat: 1}
	x := &experiment.Experiment{Workload: experiment.Workload{Items: []host.Item{item}}, Plans: []host.Plan{{Items: []host.Item{item}}}}
	for checked, want := range map[int64]bool{20: true, 19: false, 10: false, 0: false, 21: false} {
		if got := verified(x, []host.Done{{Checked: checked}}); got != want {
			t.Errorf("%d of 20 elements compared: verified %t", checked, got)
		}
	}
}
