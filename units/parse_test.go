package units

import (
	"math"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weft/internal/fuzztest"
)

func TestParseTimeIsExact(t *testing.T) {
	for text, want := range map[string]Time{
		"0s":                    0,
		"1ps":                   1,
		"0.1us":                 100_000, // no float64 is 0.1
		"1.5ns":                 1500,
		"1us":                   Microsecond,
		"1µs":                   Microsecond, // U+00B5
		"1μs":                   Microsecond, // U+03BC
		"250ms":                 250 * Millisecond,
		"3s":                    3 * Second,
		"-2us":                  -2 * Microsecond,
		"0.000000000001s":       1,
		"1.50000000000000s":     1500 * Millisecond,
		"9223372.036854775807s": math.MaxInt64,
	} {
		if got, err := ParseTime(text); err != nil || got != want {
			t.Errorf("ParseTime(%q) = %d, %v; want %d", text, int64(got), err, int64(want))
		}
	}
}

func TestParseOthers(t *testing.T) {
	for text, want := range map[string]Bytes{"0B": 0, "64B": 64, "4KiB": 4096, "4KB": 4000, "4kB": 4000, "1.5KiB": 1536,
		"50MB": 50_000_000, "1MiB": 1 << 20, "2GB": 2_000_000_000, "1GiB": 1 << 30, "0.5MB": 500_000} {
		if got, err := ParseBytes(text); err != nil || got != want {
			t.Errorf("ParseBytes(%q) = %d, %v; want %d", text, int64(got), err, int64(want))
		}
	}
	for text, want := range map[string]Bandwidth{"1bps": 1, "9.6kbps": 9600, "10Mbit": 10_000_000, "100Gbps": 100 * Gbps,
		"25Gbit": 25 * Gbps, "0.4Tbps": 400 * Gbps, "1Tbit": Tbps, "8bit": 8, "64kbit": 64 * Kbps} {
		if got, err := ParseBandwidth(text); err != nil || got != want {
			t.Errorf("ParseBandwidth(%q) = %d, %v; want %d", text, int64(got), err, int64(want))
		}
	}
	for text, want := range map[string]float64{"0.5%": 0.005, "25%": 0.25, "0%": 0, "100%": 1, "0.1%": 0.001, "7%": 0.07} {
		if got, err := ParsePercent(text); err != nil || got != want {
			t.Errorf("ParsePercent(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
}

// Each error names the text, what is wrong, and what would be right.
func TestParseErrors(t *testing.T) {
	parse := map[string]func(string) error{
		"time":    func(s string) error { _, err := ParseTime(s); return err },
		"bytes":   func(s string) error { _, err := ParseBytes(s); return err },
		"rate":    func(s string) error { _, err := ParseBandwidth(s); return err },
		"percent": func(s string) error { _, err := ParsePercent(s); return err },
	}
	for _, c := range []struct{ kind, text, want string }{
		{"time", "", `"" is empty; expected a time such as 10us`},
		{"time", "10", `"10" has no unit; expected a time such as 10us`},
		{"time", "us", `"us" does not begin with a decimal number; expected a time such as 10us`},
		{"time", "1 us", `"1 us" has the unknown unit " us" (did you mean 1us?); expected a time such as 10us`},
		{"time", "1US", `"1US" has the unknown unit "US" (known: ps, ns, us, ms, s); expected a time such as 10us`},
		{"time", "1.us", `"1.us" has the unknown unit ".us" (known: ps, ns, us, ms, s); expected a time such as 10us`},
		{"time", ".5us", `".5us" does not begin with a decimal number; expected a time such as 10us`},
		{"time", "1e3us", `"1e3us" has the unknown unit "e3us" (known: ps, ns, us, ms, s); expected a time such as 10us`},
		{"time", "0.5ps", `"0.5ps" is not a whole multiple of 1 ps; expected a time such as 10us`},
		{"time", "107000000s", `"107000000s" is out of range; expected a time such as 10us`},
		{"time", "9223372.036854775808s", `"9223372.036854775808s" is out of range; expected a time such as 10us`},
		{"time", strings.Repeat("9", 65), `"9999999999999999999999999999999999999999…" is longer than 64 characters; expected a time such as 10us`},
		{"time", "1" + strings.Repeat("µ", 25), `"1µµµµµµµµµµµµµµµµµµµ…" has the unknown unit "µµµµµµµµµµµµµµµµµµµµ…" (known: ps, ns, us, ms, s); expected a time such as 10us`},
		{"bytes", "100M", `"100M" has the unknown unit "M" (did you mean 100MB or 100MiB?); expected a size such as 4KiB or 50MB`},
		{"bytes", "0.1KiB", `"0.1KiB" is not a whole multiple of 1 byte; expected a size such as 4KiB or 50MB`},
		{"bytes", "9999999999GB", `"9999999999GB" is out of range; expected a size such as 4KiB or 50MB`},
		{"rate", "100G", `"100G" has the unknown unit "G" (did you mean 100Gbps?); expected a rate such as 100Gbps`},
		{"rate", "2.5gbps", `"2.5gbps" has the unknown unit "gbps" (did you mean 2.5Gbps?); expected a rate such as 100Gbps`},
		{"time", "1 usec", `"1 usec" has the unknown unit " usec" (did you mean 1us?); expected a time such as 10us`},
		{"rate", "100GBps", `"100GBps" has the unknown unit "GBps" (known: bps, kbps, Mbps, Gbps, Tbps); expected a rate such as 100Gbps`},
		{"percent", "0.5", `"0.5" has no unit; expected a percentage such as 25%`},
		{"percent", "25%bdp", `"25%bdp" has the unknown unit "%bdp"; expected a percentage such as 25%`},
		{"percent", "%", `"%" does not begin with a decimal number; expected a percentage such as 25%`},
	} {
		err := parse[c.kind](c.text)
		if err == nil {
			t.Errorf("%s %q: no error; want %s", c.kind, c.text, c.want)
		} else if err.Error() != c.want {
			t.Errorf("%s %q:\n got %s\nwant %s", c.kind, c.text, err, c.want)
		}
	}
}

func TestFormat(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Time(0).String(), "0s"}, {Time(1).String(), "1ps"}, {(1500 * Nanosecond).String(), "1.5us"},
		{(100 * Nanosecond).String(), "100ns"}, {(-Second).String(), "-1s"}, {Never.String(), "9223372.036854775807s"},
		{(1254*Microsecond + 1).Rounded().String(), "1.25ms"}, {(-999500 * Nanosecond).Rounded().String(), "-1ms"},
		{(255 * Picosecond).Rounded().String(), "255ps"}, {Never.Rounded().String(), "9220000s"},
		{Time(math.MinInt64).String(), "-9223372.036854775808s"},
		{Bytes(0).String(), "0B"}, {Bytes(4096).String(), "4KiB"}, {Bytes(9000).String(), "9KB"}, {Bytes(1500).String(), "1.5KB"},
		{(128 * KB).String(), "128KB"}, {(3 * MiB).String(), "3MiB"}, {(2 * GiB).String(), "2GiB"}, {Bytes(4097).String(), "4.097KB"},
		{Bandwidth(0).String(), "0bps"}, {(100 * Gbps).String(), "100Gbps"}, {(2500 * Mbps).String(), "2.5Gbps"}, {Bandwidth(999).String(), "999bps"},
		{FormatPercent(0.005), "0.5%"}, {FormatPercent(0.25), "25%"}, {FormatPercent(0), "0%"}, {FormatPercent(1), "100%"},
		{FormatPercent(12), "1200%"}, {FormatPercent(-0.07), "-7%"}, {FormatPercent(1e-9), "0.0000001%"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
}

// What is printed is read back as the same value, for every value.
func TestParseOfFormatIsIdentity(t *testing.T) {
	// Values near round numbers are where a printer goes wrong: scale a small number by a power of
	// ten or two.
	value := rapid.OneOf(rapid.Int64(), rapid.Custom(func(t *rapid.T) int64 {
		v := rapid.Int64Range(-5000, 5000).Draw(t, "small")
		for range rapid.IntRange(0, 12).Draw(t, "tens") {
			v *= 10
		}
		return v << rapid.IntRange(0, 10).Draw(t, "twos")
	}))
	patterns := []*regexp.Regexp{anchored(TimePattern()), anchored(BytesPattern()), anchored(BandwidthPattern())}
	rapid.Check(t, func(t *rapid.T) {
		v := value.Draw(t, "v")
		if got, err := ParseTime(Time(v).String()); err != nil || got != Time(v) {
			t.Fatalf("time %d: %q reads as %d, %v", v, Time(v), int64(got), err)
		}
		if got, err := ParseBytes(Bytes(v).String()); err != nil || got != Bytes(v) {
			t.Fatalf("bytes %d: %q reads as %d, %v", v, Bytes(v), int64(got), err)
		}
		if got, err := ParseBandwidth(Bandwidth(v).String()); err != nil || got != Bandwidth(v) {
			t.Fatalf("bandwidth %d: %q reads as %d, %v", v, Bandwidth(v), int64(got), err)
		}
		if v < 0 {
			return
		}
		for i, text := range []string{Time(v).String(), Bytes(v).String(), Bandwidth(v).String()} {
			if !patterns[i].MatchString(text) {
				t.Fatalf("%q does not match %v", text, patterns[i])
			}
		}
	})
}

func anchored(pattern string) *regexp.Regexp { return regexp.MustCompile("^(" + pattern + ")$") }

func TestPercentOfFormatIsIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.OneOf(rapid.Float64Range(-1e6, 1e6), rapid.Float64Range(1e-12, 1)).Draw(t, "v")
		if math.Abs(v) < 1e-30 && v != 0 {
			return // its text is longer than maxText
		}
		if got, err := ParsePercent(FormatPercent(v)); err != nil || got != v {
			t.Fatalf("%v: %q reads as %v, %v", v, FormatPercent(v), got, err)
		}
	})
}

func FuzzParse(f *testing.F) {
	corpus := fuzztest.New(f)
	for _, s := range []string{"1us", "0.1us", "-5GiB", "100M", "9.99Tbit", "20ppm", "0.5%", "1..2s", "1µs"} {
		corpus.Add(s)
	}
	corpus.Fuzz(func(t *testing.T, s string) {
		if v, err := ParseTime(s); err == nil {
			if again, err := ParseTime(v.String()); err != nil || again != v {
				t.Errorf("%q: %v reads back as %v, %v", s, v, again, err)
			}
		}
		if v, err := ParseBytes(s); err == nil {
			if again, err := ParseBytes(v.String()); err != nil || again != v {
				t.Errorf("%q: %v reads back as %v, %v", s, v, again, err)
			}
		}
		if v, err := ParseBandwidth(s); err == nil {
			if again, err := ParseBandwidth(v.String()); err != nil || again != v {
				t.Errorf("%q: %v reads back as %v, %v", s, v, again, err)
			}
		}
		_, _ = ParsePercent(s)
	})
}

func TestFormatChange(t *testing.T) {
	for share, want := range map[float64]string{
		0: "+0.0 %", -1e-5: "+0.0 %", 0.616: "+61.6 %", -0.5: "-50.0 %", 1e-300: "+0.0 %", 9000: "+900000.0 %",
		1e4: "+1e+06 %", 1.26e300: "+1.3e+302 %", -1e9: "-1e+11 %",
	} {
		if got := FormatChange(share); got != want {
			t.Errorf("%g: %q, want %q", share, got, want)
		}
	}
}
