package lab

import (
	"fmt"

	"weft/internal/nearest"
)

// nearest returns a hint at the candidate most like word, or "" if none is close: at most a third
// of the letters may differ, and one always may.
func (d *decoder) nearest(word string, candidates []string) string {
	const enough = 1024 // candidates compared
	if d.report.full() || len(word) > 64 {
		return ""
	}
	best, at := max(1, len(word)/3)+1, -1
	for i, c := range candidates[:min(len(candidates), enough)] {
		if e := nearest.Edits(word, c); e < best {
			best, at = e, i
		}
	}
	if at < 0 {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", candidates[at])
}
