package report

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"weft/results/record"
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

// schemes returns the colours of a stylesheet by name, light and dark.
func schemes(t *testing.T, sheet string) map[string]map[string]string {
	t.Helper()
	rules := regexp.MustCompile(`:root\{([^}]*)\}`).FindAllStringSubmatch(sheet, -1)
	if len(rules) != 2 {
		t.Fatalf("%d lists of colours; expected one for light and one for dark", len(rules))
	}
	out := map[string]map[string]string{}
	for i, name := range []string{"light", "dark"} {
		out[name] = map[string]string{}
		for _, m := range regexp.MustCompile(`--([a-z]+):(#[0-9a-f]+)`).FindAllStringSubmatch(rules[i][1], -1) {
			out[name][m[1]] = m[2]
		}
	}
	return out
}

// Text has a contrast of 4.5 with what is behind it, light and dark, in reports and in the view;
// lines of charts have one of 3.
func TestContrast(t *testing.T) {
	sheet, err := os.ReadFile("../view/page/page.css")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, sheet string
		pairs       [][2]string
	}{
		{"report", style, [][2]string{
			{"text", "back"}, {"dim", "back"}, {"link", "back"}, {"good", "back"}, {"bad", "back"}, {"doubt", "back"},
			{"text", "panel"}, {"dim", "panel"}, {"link", "panel"}, {"good", "panel"}, {"bad", "panel"}, {"doubt", "panel"},
			{"on", "good"}, {"on", "bad"}, {"on", "doubt"},
		}},
		{"view", string(sheet), [][2]string{
			{"text", "back"}, {"dim", "back"}, {"alert", "back"}, {"accent", "back"}, {"text", "panel"}, {"dim", "panel"},
			{"back", "accent"}, {"back", "text"}, {"text", "host"}, {"text", "switch"},
		}},
	} {
		for name, colour := range schemes(t, c.sheet) {
			for _, pair := range c.pairs {
				if got := contrast(t, colour[pair[0]], colour[pair[1]]); got < 4.5 {
					t.Errorf("%s, %s: %s on %s has a contrast of %.2f", c.name, name, pair[0], pair[1], got)
				}
			}
		}
		if !strings.Contains(c.sheet, "prefers-reduced-motion:reduce") {
			t.Errorf("%s: nothing is said about reduced motion", c.name)
		}
	}
	back := schemes(t, style)["dark"]["back"]
	lines := regexp.MustCompile(`svg \[(?:fill|stroke)="#[0-9a-f]{6}"\]\{(?:fill|stroke):(#[0-9a-f]{6})\}`).FindAllStringSubmatch(style, -1)
	if len(lines) < 8 {
		t.Errorf("%d colours of lines in the dark", len(lines))
	}
	for _, m := range lines {
		if got := contrast(t, m[1], back); got < 3 {
			t.Errorf("dark: a line of %s has a contrast of %.2f", m[1], got)
		}
	}
}

// What the expectations name is drawn first.
func TestChartsOfTheQuestionComeFirst(t *testing.T) {
	charts := []string{"fct", "slowdown", "queueing", "queues", "busbw"}
	self := func(s string) string { return s }
	lead(charts, named([]string{"drops == 0", "collective.0.busbw[transport=pc4] > 2 * fct.p99"}), self)
	if got := strings.Join(charts, " "); got != "busbw fct slowdown queueing queues" {
		t.Errorf("the order is %s", got)
	}
	r := &Run{Manifest: &record.Manifest{Settings: []record.Setting{{Path: "report", Value: "[queues, slowdown]"}}}}
	lead(charts, r.about(), self)
	if got := strings.Join(charts, " "); got != "queues slowdown busbw fct queueing" {
		t.Errorf("with a report key the order is %s", got)
	}
	s := &record.Summary{Status: record.OK, LabTimeUS: 5,
		Flows: record.Flows{Count: 1, FCT: record.Quantiles{P99: 5}}, RTT: record.Quantiles{Max: 1, Mean: 1}}
	if got := tiles(s, []string{"rtt", "fct"}); got[0].Name != "round trip, mean" || got[1].Name != "flow completion, p99" || got[2].Name != "flows done" {
		t.Errorf("the numbers begin with %v", got[:3])
	}
}
