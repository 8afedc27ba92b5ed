// Package natural orders names as people do.
package natural

import (
	"cmp"
	"strings"
)

// Compare compares names. Numbers in them count by value, so that s2 comes before s10. It returns 0
// for equal names only.
func Compare(x, y string) int {
	digits := func(s string) (number, rest string) {
		rest = strings.TrimLeft(s, "0123456789")
		return strings.TrimLeft(s[:len(s)-len(rest)], "0"), rest
	}
	for a, b := x, y; ; {
		m, restA := digits(a)
		n, restB := digits(b)
		if len(restA) < len(a) && len(restB) < len(b) {
			if c := cmp.Or(len(m)-len(n), strings.Compare(m, n)); c != 0 {
				return c
			}
			a, b = restA, restB
		}
		switch {
		case a == "" || b == "":
			return cmp.Or(len(a)-len(b), strings.Compare(x, y))
		case a[0] != b[0]:
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
}
