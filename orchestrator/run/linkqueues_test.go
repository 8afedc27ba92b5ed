package run

import (
	"os"
	"strings"
	"testing"

	"weft/results/store"
)

// portMarks returns the number of packets that each port of a run marked, and the longest queue of
// each in bytes.
func portMarks(t *testing.T, run string) (marks map[string]int64, longest map[string]int64) {
	t.Helper()
	type row struct {
		Port  string `parquet:"port"`
		Marks int64  `parquet:"ce_marks"`
		Queue int64  `parquet:"max_queue_bytes"`
	}
	marks, longest = map[string]int64{}, map[string]int64{}
	err := store.Scan(run, store.PortsFile, func(rows []row) error {
		for _, r := range rows {
			if r.Marks > 0 {
				marks[r.Port] = r.Marks
			}
			longest[r.Port] = r.Queue
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return marks, longest
}

// In labs/smoke/queues.yaml only the shallow edge marks. The deep core, whose marking is off, holds
// more than the section queues allows, without a drop. Without queues of its own the core marks.
func TestQueuesOfTiersDecideWhoMarks(t *testing.T) {
	text, err := os.ReadFile("../../labs/smoke/queues.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := mustSimulate(t, string(text))
	marks, longest := portMarks(t, s.Run)
	if len(marks) != 1 || marks["switch0->h0"] != s.Network.CEMarks || s.Network.CEMarks == 0 {
		t.Errorf("with queues of tiers %v mark, %d packets in all", marks, s.Network.CEMarks)
	}
	if core := longest["switch0->switch1"]; core <= 1_000_000 || s.Network.Drops > 0 {
		t.Errorf("the core held %d bytes, %d drops", core, s.Network.Drops)
	}
	plain := strings.Split(string(text), "  tiers:")[0] + "\nqueues:" + strings.Split(string(text), "\nqueues:")[1]
	if marks, _ := portMarks(t, mustSimulate(t, plain).Run); marks["switch0->switch1"] == 0 {
		t.Errorf("without queues of tiers %v mark", marks)
	}
}
