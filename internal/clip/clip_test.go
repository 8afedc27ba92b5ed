package clip

import (
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "",
		"leaf0":                          "leaf0",
		strings.Repeat("x", 40):          strings.Repeat("x", 40),
		strings.Repeat("x", 41):          strings.Repeat("x", 40) + "…",
		strings.Repeat("µ", 1000):        strings.Repeat("µ", 40) + "…",
		strings.Repeat("\U0001F9F6", 99): strings.Repeat("\U0001F9F6", 40) + "…",
		"a\x1b[31mred":                   "a\uFFFD[31mred", // would change the colour of a terminal
		"two\nlines":                     "two\uFFFDlines",
		"right\u202Eleft":                "right\uFFFDleft",
		"cut\xff":                        "cut\uFFFD",
	} {
		if got := Text(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestLines(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "",
		"two\nlines,\ta tab":                 "two\nlines,\ta tab",
		"a\x1b[2Jcleared\rover":              "a\uFFFD[2Jcleared\uFFFDover",
		strings.Repeat("x", 9<<10) + "end\n": strings.Repeat("x", 8<<10-4) + "end\n",
	} {
		if got := Lines(text); got != want {
			t.Errorf("%.20q: got %.20q, want %.20q", text, got, want)
		}
	}
}

func TestOneLine(t *testing.T) {
	if got := OneLine("a\nok\tb\r\nc\r"); got != "a↵ok b↵c↵" {
		t.Errorf("got %q", got)
	}
}
