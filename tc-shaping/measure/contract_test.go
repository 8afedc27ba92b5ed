package measure_test

import (
	"fmt"
	"testing"
	"time"

	"weft/internal/quiettest"
	"weft/orchestrator/uml/umltest"
	"weft/tc-shaping/measure"
	"weft/tc-shaping/qdisc"
	"weft/units"
)

// A property within its bound stays from the earlier examination, any other is replaced. Findings
// are matched by name.
func TestKeep(t *testing.T) {
	one := measure.Found{Late: 7, Findings: []measure.Finding{{What: "rate"}}}
	if one.Keep(&measure.Found{Late: 5, Findings: []measure.Finding{{What: "delay", OK: true},
		{What: "rate", OK: true}}}); !one.OK() || len(one.Findings) != 2 || one.Late != 5 {
		t.Errorf("%+v", one)
	}
	before := measure.Found{Rate: 9, Lost: 3, Findings: []measure.Finding{{What: "delay"}, {What: "rate", OK: true},
		{What: "loss"}}}
	now := measure.Found{Rate: 5, Lost: 1, Findings: []measure.Finding{{What: "delay", OK: true}, {What: "rate"},
		{What: "loss"}}}
	if now.Keep(&before); now.Rate != 9 || now.Lost != 1 || now.OK() {
		t.Errorf("%+v", now)
	}
	before.Delay, before.Findings[0] = 4, measure.Finding{What: "delay and one packet", OK: true}
	late := measure.Found{Delay: 6, Findings: []measure.Finding{{What: "delay and one packet"}}}
	if late.Keep(&before); late.Delay != 4 {
		t.Errorf("the delay is %v, and its finding that of %v", late.Delay, before.Delay)
	}
	now.Findings = now.Findings[:2]
	if !now.OK() {
		t.Errorf("%+v is as asked", now)
	}
}

// A link that matches its settings passes; one that does not fails, with a row for what is wrong.
func TestUMLContract(t *testing.T) {
	if umltest.Outside(t) {
		return
	}
	d := qdisc.Direction{Rate: 4 * units.Mbps, Delay: 20 * time.Millisecond, Limit: 400_000, Lateness: quiettest.Gap,
		RED: &qdisc.RED{Min: 60_000, Max: 150_000, Pmax: 0.2, ECN: true}}
	l := newLink(t, d)
	examine := func(d qdisc.Direction) *measure.Found {
		found, err := measure.Examine(t.Context(), l.sender, l.receiver, d)
		l.noError(err)
		t.Logf("%+v", found)
		return found
	}
	l.measureUntil(func() error {
		if found := examine(d); !found.OK() {
			return fmt.Errorf("broken: %+v", found)
		}
		return nil
	})
	// Missing marks are detected: all of them, and only those above Kmax (as after tc qdisc
	// replace).
	for _, red := range []qdisc.RED{{Min: 380_000, Max: 390_000, Pmax: 0.2, ECN: true}, {Min: 60_000, Max: 390_000,
		Pmax: 0.7, ECN: true}} {
		wrong := d
		wrong.RED = &red
		tree, err := qdisc.Plan(wrong, qdisc.Full())
		l.noError(err)
		l.noError(l.Apply(tree))
		l.measureUntil(func() error {
			found := examine(d)
			for range attempts {
				if again := examine(d); !found.OK() {
					again.Keep(found)
					found = again
				}
			}
			for _, f := range found.Findings {
				if f.What == "marks" && f.OK {
					return fmt.Errorf("with %+v marks are as asked: %+v", red, f)
				}
			}
			return nil
		})
	}
	l.noError(l.Apply(l.tree))

	other := d
	other.Rate, other.Delay, other.Loss = 5*units.Mbps, 10*time.Millisecond, 0.5
	l.measureUntil(func() error {
		broken := map[string]bool{}
		for _, f := range examine(other).Findings {
			broken[f.What] = !f.OK
		}
		for _, what := range []string{"delay and one packet", "rate", "loss"} {
			if !broken[what] {
				return fmt.Errorf("%s is not as asked, and the contract does not say so", what)
			}
		}
		return nil
	})
}

// A kernel without netem still passes the examination of rates.
func TestPrivContract(t *testing.T) {
	d := qdisc.Direction{Rate: 50 * units.Mbps, Limit: units.MB, Lateness: quiettest.Gap}
	l := newLink(t, d)
	l.measureUntil(func() error {
		found, err := measure.Examine(t.Context(), l.sender, l.receiver, d)
		l.noError(err)
		if t.Logf("%+v", found); !found.OK() {
			return fmt.Errorf("broken: %+v", found)
		}
		return nil
	})
}
