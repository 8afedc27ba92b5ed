package report

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// luminance returns the relative luminance of a colour (WCAG 2.2).
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	if len(hex) == 4 {
		hex = "#" + strings.Repeat(hex[1:2], 2) + strings.Repeat(hex[2:3], 2) + strings.Repeat(hex[3:4], 2)
	}
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(hex[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatalf("%s: %v", hex, err)
		}
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

// contrast returns the contrast of two colours (WCAG 2.2).
func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// Text has a contrast of 4.5 with what is behind it, lines of charts one of 3, light and dark.
func TestContrast(t *testing.T) {
	rules := regexp.MustCompile(`:root\{([^}]*)\}`).FindAllStringSubmatch(style, -1)
	if len(rules) != 2 {
		t.Fatalf("%d lists of colours; expected one for light and one for dark", len(rules))
	}
	for i, name := range []string{"light", "dark"} {
		colour := map[string]string{}
		for _, m := range regexp.MustCompile(`--([a-z]+):(#[0-9a-f]+)`).FindAllStringSubmatch(rules[i][1], -1) {
			colour[m[1]] = m[2]
		}
		for _, pair := range [][2]string{
			{"text", "back"}, {"dim", "back"}, {"link", "back"}, {"good", "back"}, {"bad", "back"}, {"doubt", "back"},
			{"text", "panel"}, {"dim", "panel"}, {"link", "panel"}, {"good", "panel"}, {"bad", "panel"}, {"doubt", "panel"},
			{"on", "good"}, {"on", "bad"}, {"on", "doubt"},
		} {
			if got := contrast(t, colour[pair[0]], colour[pair[1]]); got < 4.5 {
				t.Errorf("%s: %s on %s has a contrast of %.2f", name, pair[0], pair[1], got)
			}
		}
		if name == "light" {
			continue
		}
		for _, m := range regexp.MustCompile(`svg \[(?:fill|stroke)="#[0-9a-f]{6}"\]\{(?:fill|stroke):(#[0-9a-f]{6})\}`).FindAllStringSubmatch(style, -1) {
			if got := contrast(t, m[1], colour["back"]); got < 3 {
				t.Errorf("dark: a line of %s has a contrast of %.2f", m[1], got)
			}
		}
	}
	if !strings.Contains(style, "prefers-reduced-motion:reduce") {
		t.Error("nothing is said about reduced motion")
	}
}

// Numbers have one style on all pages.
func TestNumbersOfPages(t *testing.T) {
	for want, got := range map[string]string{
		"8.283 ms": quantity(8283, "us"), "0 us": quantity(0, "us"), "12.5 ns": quantity(0.0125, "us"), "1.2 s": quantity(1.2e6, "us"),
		"122.9 KB": quantity(122900, "B"), "80.14 Gb/s": quantity(80.14, "Gb/s"), "1 ms": quantity(999.96, "us"),
		"73,296": whole(73296), "-1,234,567": whole(-1234567), "1234": whole(1234), "1.5": shown(1.5), "123,457": shown(123456.7),
		"12": quantity(12, ""),
	} {
		if got != want {
			t.Errorf("%q; want %q", got, want)
		}
	}
}

// What the expectations name is drawn first.
func TestChartsOfTheQuestionComeFirst(t *testing.T) {
	charts := []string{"fct", "slowdown", "fct-cdf", "queueing", "queues", "busbw"}
	lead(charts, []string{"drops == 0", "collective.0.busbw[transport=pc4] > 2 * fct.p99"}, func(s string) string { return s })
	if got := strings.Join(charts, " "); got != "busbw fct fct-cdf slowdown queueing queues" {
		t.Errorf("the order is %s", got)
	}
}
