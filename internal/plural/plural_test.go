package plural

import "testing"

func TestCount(t *testing.T) {
	for _, c := range []struct {
		n         int64
		one, want string
	}{
		{0, "host", "0 hosts"}, {1, "host", "1 host"}, {2, "host", "2 hosts"}, {1, "switch", "1 switch"},
		{3, "switch", "3 switches"}, {5, "equal-cost path", "5 equal-cost paths"},
	} {
		if got := Count(c.n, c.one); got != c.want {
			t.Errorf("%d of %s: %q, want %q", c.n, c.one, got, c.want)
		}
	}
}

func TestOr(t *testing.T) {
	for want, words := range map[string][]string{"": nil, "a": {"a"}, "a or b": {"a", "b"}, "a, b or c": {"a", "b", "c"}} {
		if got := Or(words); got != want {
			t.Errorf("%q: got %q, want %q", words, got, want)
		}
	}
}
