package shell

import "testing"

func TestQuote(t *testing.T) {
	for text, want := range map[string]string{"": "''", "a/b-1.yaml": "a/b-1.yaml", "it's 100% odd": `'it'\''s 100% odd'`,
		"a\nb": "'a\nb'", "$x": "'$x'", "a;b": "'a;b'", "é": "'é'"} {
		if got := Quote(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
