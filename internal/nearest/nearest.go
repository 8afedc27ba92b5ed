// Package nearest measures how similar two words are, for errors that suggest a correction. It is
// pure. Lengths and distances are in bytes, because the names it compares are ASCII.
package nearest

// Edits returns the Damerau-Levenshtein distance (optimal string alignment): the number of letters
// inserted, deleted, changed, or swapped with the next one.
func Edits(a, b string) int {
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
