// Package plural writes counts of things, and lists of words, for people.
package plural

import (
	"fmt"
	"strings"
)

// Count returns a number with its noun: "1 host", "2 hosts", "3 switches". one is the singular of a
// regular noun.
func Count[N int | int64](n N, one string) string {
	switch {
	case n == 1:
		return "1 " + one
	case strings.HasSuffix(one, "ch"):
		return fmt.Sprintf("%d %ses", n, one)
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// Or returns words as a list in a sentence: "a, b or c".
func Or(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
