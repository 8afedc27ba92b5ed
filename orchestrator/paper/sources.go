package paper

import "strings"

// Source returns the origin of a parameter's value: the figure's entry, otherwise the paper's,
// otherwise "". A key applies to its path and everything below; * matches one part of a path. The
// most specific key wins.
func (p *Paper) Source(f *Figure, path string) string {
	for _, sources := range []map[string]string{f.Sources, p.Sources} {
		best, text := 0, ""
		for key, source := range sources {
			if n := covers(key, path); n > best {
				best, text = n, source
			}
		}
		if best > 0 {
			return text
		}
	}
	return ""
}

// covers returns how closely a key matches path: two for each equal part, one for each *; 0 if it
// does not match.
func covers(key, path string) int {
	keys, parts := strings.Split(key, "."), strings.Split(path, ".")
	if len(keys) > len(parts) {
		return 0
	}
	n := 0
	for i, k := range keys {
		switch k {
		case parts[i]:
			n += 2
		case "*":
			n++
		default:
			return 0
		}
	}
	return n
}
