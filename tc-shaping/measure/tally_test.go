package measure_test

import (
	"math"
	"slices"

	"weft/tc-shaping/measure"
	"weft/units"
)

// countCopies returns the number of packets that arrived beyond the first copy.
func countCopies(packets []measure.Packet) int {
	n := 0
	for _, p := range packets {
		n += p.Copies
	}
	return n
}

// countMarks returns the number of packets that arrived marked.
func countMarks(packets []measure.Packet) int {
	n := 0
	for _, p := range packets {
		if p.Marked {
			n++
		}
	}
	return n
}

// markedShare returns the share of the samples that are marked, and the share that expected(queue)
// predicts.
func markedShare(samples []measure.Sample, expected func(units.Bytes) float64) (marked, want float64) {
	for _, s := range samples {
		if s.Marked {
			marked++
		}
		want += expected(s.Queue)
	}
	n := max(1, float64(len(samples)))
	return marked / n, want / n
}

// never is the onset of a queue that marks nothing.
const never units.Bytes = math.MaxInt64

// onset returns the queue length that best separates unmarked from marked packets, for marking with
// a step. A few badly estimated queues do not move it. It is one of the sampled lengths, or never.
func onset(samples []measure.Sample) units.Bytes {
	sorted := slices.SortedFunc(slices.Values(samples), func(a, b measure.Sample) int { return int(a.Queue - b.Queue) })
	mistaken := 0 // with the onset at the first sample: all unmarked packets
	for _, s := range sorted {
		if !s.Marked {
			mistaken++
		}
	}
	best, onset := mistaken, never
	if len(sorted) > 0 {
		onset = sorted[0].Queue
	}
	for i, s := range sorted {
		if s.Marked {
			mistaken++
		} else {
			mistaken--
		}
		if mistaken < best {
			best, onset = mistaken, never
			if i+1 < len(sorted) {
				onset = sorted[i+1].Queue
			}
		}
	}
	return onset
}
