package lab

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"weft/units"
)

// Bounds of the measure, expect and engine sections.
const (
	minInterval = units.Nanosecond
	maxInterval = 10 * units.Second
	maxExpect   = 1000
	maxDilation = 1e9
)

var (
	engineKinds = choice{built: []string{"auto", "sim", "emu", "both"}}
	runtimes    = choice{built: []string{"auto", "namespace", "docker"}}
	datapaths   = choice{built: []string{"auto", "fabric", kernel}}
)

func (d *decoder) measure(s *section) Measure {
	var m Measure
	m.Queues = s.field("queues").interval()
	m.Rates = s.field("rates").interval()
	m.Events = unless(s.field("queue_events"), "off", field.port)
	m.CWND = s.field("cwnd").flag()
	m.Acks = s.field("acks").flag()
	m.From, _ = quantity(s.field("from"), units.ParseTime, 0, maxFor)
	s.field("packets").later("recording packets is", "off", "false", "no")
	s.close()
	return m
}

// portText is the form of a port's name: the switch whose queue it is, and the node it leads to.
var portText = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*->[a-z0-9][a-z0-9-]*$`)

func (f field) port() (string, bool) {
	return read(f, "the name of a port such as switch0->h0", func(text string) (string, error) {
		if !portText.MatchString(text) {
			return "", fmt.Errorf("%q is not the name of a port; expected one such as switch0->h0, or off", clip(text))
		}
		return text, nil
	}, func(v string) string { return v })
}

// interval reads the time between two samples, or off.
func (f field) interval() units.Time {
	return unless(f, "off", func(f field) (units.Time, bool) {
		return quantity(f, units.ParseTime, minInterval, maxInterval)
	})
}

// expect keeps the expectations as text: package results/expect knows their language. One with a condition, such as
// "drops == 0 when transport.kind == roce", is kept without it if it holds for this lab, and left out otherwise.
func (d *decoder) expect(f field) []Expectation {
	var expect []Expectation
	for _, item := range f.items(maxExpect) {
		text, ok := read(item, "an expectation such as verified == true", func(text string) (string, error) {
			if strings.TrimSpace(text) == "" || strings.Contains(text, "\n") {
				return "", fmt.Errorf("%q is not one line of text; expected an expectation such as verified == true", clip(text))
			}
			return text, nil
		}, func(v string) string { return v })
		if !ok {
			continue
		}
		text, condition, conditional := strings.Cut(text, " when ")
		if !conditional || item.holds(condition) {
			expect = append(expect, Expectation{Text: strings.TrimSpace(text), Line: item.at.line, Column: item.at.column})
		}
	}
	return expect
}

// holds reports whether settings of the lab that were read before are, or with != are not, what a condition says. Its
// parts are joined by "and"; what follows one that does not hold is not looked at, so that it may be about a setting
// that only some runs have.
func (f field) holds(condition string) bool {
	for part := range strings.SplitSeq(condition, " and ") {
		if !f.holdsPart(part) {
			return false
		}
	}
	return true
}

func (f field) holdsPart(condition string) bool {
	op := "=="
	path, want, ok := strings.Cut(condition, op)
	if !ok {
		op = "!="
		path, want, ok = strings.Cut(condition, op)
	}
	path, want = strings.TrimSpace(path), strings.TrimSpace(want)
	if !ok || path == "" || want == "" {
		f.problem("%q is not a condition; expected a setting and a value such as transport.kind == roce", clip(condition))
		return false
	}
	for _, s := range f.d.sources {
		if s.Path == path {
			return sameValue(s.Value, want) == (op == "==")
		}
	}
	f.problem("the condition is about %q, which is no setting of this lab; `weft explain` lists them", clip(path))
	return false
}

// sameValue reports whether two texts are one value, also where they write a quantity differently: 0s and 0ns, 50% and 0.5.
func sameValue(a, b string) bool {
	return a == b || sameAs(units.ParseTime, a, b) || sameAs(units.ParseBytes, a, b) || sameAs(units.ParseBandwidth, a, b) || sameAs(orPercent(parseNumber), a, b)
}

func sameAs[T comparable](parse func(string) (T, error), a, b string) bool {
	x, err := parse(a)
	if err != nil {
		return false
	}
	y, err := parse(b)
	return err == nil && x == y
}

func parseNumber(text string) (float64, error) { return strconv.ParseFloat(text, 64) }

func (d *decoder) engine(s *section) Engine {
	var e Engine
	e.Kind, _ = s.field("kind").enum(engineKinds)
	e.Runtime, _ = s.field("runtime").enum(runtimes)
	e.Datapath, _ = s.field("datapath").enum(datapaths)
	if f := s.field("dilation"); f.n != nil && f.n.kind == scalar && f.n.text == "auto" {
		f.record("auto")
	} else {
		e.Dilation, _ = f.decimal(1, maxDilation)
	}
	s.close()
	return e
}
