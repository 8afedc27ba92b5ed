package run

import (
	"fmt"
	"testing"

	"weft/collectives/schedule"
)

const eight = `
weft: 1
name: eight
topology: {kind: star, hosts: 8, link: {rate: 100Gbps, delay: 1us}}
`

// Every collective runs with every algorithm, and with all types and reductions in turn, and the
// data is right.
func TestEveryCollectiveRuns(t *testing.T) {
	n := 0
	for _, c := range schedule.Collectives() {
		for _, a := range schedule.Algorithms(c) {
			f, err := schedule.About(c, a)
			if err != nil {
				t.Fatal(err)
			}
			item := fmt.Sprintf("collective: %s, algorithm: %s, size: 100KB", c, a)
			if f.Windowed {
				item += ", parallel: 3"
			}
			if f.Group {
				item += ", group: 2"
			}
			if f.Order {
				item += ", far_first: true"
			}
			item += fmt.Sprintf(", type: %s", schedule.Types()[n%len(schedule.Types())])
			if f.Reduces {
				item += fmt.Sprintf(", op: %s", schedule.Reductions()[n%len(schedule.Reductions())])
			}
			n++
			s, err := simulateLab(t, eight+"workload: [{"+item+"}]")
			if err != nil {
				t.Errorf("%s: %v", item, err)
				continue
			}
			if got := s.Collectives[0]; !s.Verified || s.Flows.Unfinished != 0 || got.Checked == 0 || !(got.BusBWGbps > 0) || got.BusBWGbps > 100 {
				t.Errorf("%s: verified %t, %+v", item, s.Verified, got)
			}
		}
	}
}
