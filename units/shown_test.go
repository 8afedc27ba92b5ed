package units_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"weft/units"
)

// Quantities are shown as the cases say that a browser reads too: see TestQuantitiesInChromium.
func TestShown(t *testing.T) {
	text, err := os.ReadFile("testdata/shown.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Value       float64
		Unit, Shown string
	}
	if err := json.Unmarshal(text, &cases); err != nil || len(cases) < 20 {
		t.Fatalf("%d cases: %v", len(cases), err)
	}
	for _, c := range cases {
		if got := units.Shown(c.Value, c.Unit); got != c.Shown {
			t.Errorf("%v %s is shown as %q; want %q", c.Value, c.Unit, got, c.Shown)
		}
	}
	for want, n := range map[string]int64{"1234": 1234, "73,296": 73296, "-1,234,567": -1234567, "-9,223,372,036,854,775,808": math.MinInt64} {
		if got := units.Count(n); got != want {
			t.Errorf("%d is shown as %q; want %q", n, got, want)
		}
	}
	if got := units.Spaced("from 300us, 4KiB of 1.5MB at 100Gbps (5us), h3s, 2rtt, --set x=5us"); got != "from 300 us, 4 KiB of 1.5 MB at 100 Gb/s (5 us), h3s, 2rtt, --set x=5us" {
		t.Errorf("a message is written as %q", got)
	}
	if s := units.ScaleOf("us", math.NaN(), 3, 15000); s != (units.Scale{"ms", 1e3}) {
		t.Errorf("3 and 15000 us are shown in %v", s)
	}
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e300} {
		if text := units.Shown(v, "us"); len(text) > 12 {
			t.Errorf("%v is shown as %q", v, text)
		}
	}
}
