package e2e

import (
	"errors"
	"fmt"
	"testing"

	"weft/internal/quiettest"
	"weft/results/store"
)

// Queues of tiers are those of the modelled switches whichever engine drives them: in both the edge
// marks, and the core never.
func TestQueuesOfTiersInBothEngines(t *testing.T) {
	quiettest.Check(t, 3, func() error {
		d := newWorkspace(t)
		r := d.run("run", libraryLab(t, "smoke/queues.yaml"), "--engine", "both", "--json", "--set",
			"measure.queues=2us")
		if r.code == 3 { // marks and queues are expected, which take time
			return errors.New(r.stdout + r.stderr)
		}
		all := r.wantCode(0).summaries()
		if len(all) != 2 || len(d.runs()) != 2 {
			t.Fatalf("%d summaries, %d runs", len(all), len(d.runs()))
		}
		type row struct {
			Port   string `parquet:"port"`
			Queued int64  `parquet:"queued_bytes"`
			Marks  int64  `parquet:"ce_marks"`
		}
		for i, dir := range d.runs() {
			marks, longest := map[string]int64{}, map[string]int64{}
			err := store.Scan(dir, store.QueuesFile, func(rows []row) error {
				for _, r := range rows {
					marks[r.Port], longest[r.Port] = max(marks[r.Port], r.Marks), max(longest[r.Port], r.Queued)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			edge, core := "switch0->h0", "switch0->switch1"
			if marks[edge] == 0 || marks[core] > 0 || longest[core] < 300_000 || longest[edge] > 300_000 {
				return fmt.Errorf("%s: marks %v, longest %v", all[i].Engine, marks, longest)
			}
		}
		return nil
	})
}
