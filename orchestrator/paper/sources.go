package paper

import "strings"

// Source is where the value of a parameter comes from: what the figure says of it, or else the paper; "" when neither says anything. A key
// says it of its path and of all below; * is any one part of a path. Of several keys the closest counts.
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

// covers is how closely a key names path: two for each part that is the same, one for each *; 0 when it is about others.
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
