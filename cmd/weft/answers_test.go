package main

import (
	"fmt"
	"testing"

	"weft/results/record"
)

// The numbers of docs/questions.md are those of its labs.
func TestAnswersToQuestions(t *testing.T) {
	time := func(s *record.Summary) float64 { return s.Collectives[0].TimeUS }
	ms := func(s *record.Summary) float64 { return time(s) / 1000 }
	rtt := func(s *record.Summary) float64 { return s.RTT.P99 }
	again := func(s *record.Summary) float64 { return float64(s.Network.Retransmits) }
	for _, c := range []struct {
		lab, say string
		numbers  func(runs []record.Summary) []any
	}{
		{"determinism", "take %s us with seed 1, to the picosecond, and both of seed 2 take %s us", func(runs []record.Summary) []any {
			all := of(runs, "", "%.1f", time)
			if len(all) != 4 || time(&runs[0]) != time(&runs[1]) || time(&runs[2]) != time(&runs[3]) {
				t.Fatalf("two runs with one seed take %v us", all)
			}
			return []any{all[0], all[2]}
		}},
		{"congestion-control", "takes %s us with PC4 and %s us with DCQCN", func(runs []record.Summary) []any { return of(runs, "", "%.0f", time) }},
		{"congestion-control", "the p99 round trip is %s us with one and %.0f us with the other", func(runs []record.Summary) []any {
			return []any{of(runs, "pc4", "%.1f", rtt)[0], mean(runs, "roce", rtt)}
		}},
		{"background", "takes %s us instead of %s us", func(runs []record.Summary) []any {
			all := of(runs, "", "%.0f", time)
			return []any{all[1], all[0]}
		}},
		{"node-failure", "An all-reduce of %s ms takes %s ms if a host stands still for 2 ms, and %s ms if for 4 ms",
			func(runs []record.Summary) []any { return of(runs, "", "%.2f", ms) }},
		{"bit-errors", "%s with go-back-N, %s with selective repeat", func(runs []record.Summary) []any { return of(runs, "", "%.0f", again) }},
		{"two-jobs", "%s us at the same time, %s us one after the other", func(runs []record.Summary) []any { return of(runs, "", "%.0f", time) }},
		{"stragglers", "add %.0f us to each all-reduce", func(runs []record.Summary) []any {
			return []any{time(&runs[1]) - time(&runs[0])}
		}},
	} {
		says(t, "docs/questions.md", fmt.Sprintf(c.say, c.numbers(simulated(t, "labs/questions/"+c.lab+".yaml"))...))
	}
}
