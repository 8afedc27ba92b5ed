package lab

import "fmt"

// nearest suggests the candidate most like word, or nothing when none is close: at most a third of the
// letters may differ, and one always may.
func (d *decoder) nearest(word string, candidates []string) string {
	const enough = 1024 // candidates looked at
	if d.report.full() || len(word) > 64 {
		return ""
	}
	best, at := max(1, len(word)/3)+1, -1
	for i, c := range candidates[:min(len(candidates), enough)] {
		if e := edits(word, c); e < best {
			best, at = e, i
		}
	}
	if at < 0 {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", candidates[at])
}

// edits is the Damerau-Levenshtein distance (optimal string alignment): letters inserted, left out, changed,
// or swapped with the next one.
func edits(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			change := row[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			next[j] = min(row[j]+1, next[j-1]+1, change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
