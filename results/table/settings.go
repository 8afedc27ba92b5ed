package table

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"weft/results/record"
)

// Settings returns settings as text in columns: path, value and origin. A value of more than 40
// characters, such as a sentence, widens its own row only.
func Settings(settings []record.Setting) string {
	const long = 40
	paths, values := 0, 0
	for _, s := range settings {
		paths = max(paths, len(s.Path))
		if n := utf8.RuneCountInString(s.Value); n <= long {
			values = max(values, n)
		}
	}
	var b strings.Builder
	for _, s := range settings {
		value := strings.Join(strings.Fields(s.Value), " ")
		fmt.Fprintf(&b, "%-*s  %-*s  %s\n", paths, s.Path, values, value, s.From)
	}
	return b.String()
}
