package expect

import (
	"strings"
	"testing"

	"weft/results/record"
)

func TestPlateaus(t *testing.T) {
	after := func(us float64) *float64 { return &us }
	sum := &record.Summary{Plateaus: []record.Plateau{
		{Conns: 1, Jain: 1, TotalGbps: 50, SettledUS: after(100)},
		{Conns: 2, Jain: 0.99, TotalGbps: 98, SettledUS: after(5)},
		{Conns: 3, Jain: 0.97, TotalGbps: 97, SettledUS: after(8)},
	}}
	for line, want := range map[string]string{
		`plateau.0.goodput == 50Gbps`:     "",
		`plateau.1.connections == 2`:      "",
		`plateau.2.settled == 8us`:        "",
		`plateau.2.jain < plateau.1.jain`: "",
		`plateau.worst.settled == 8us`:    "", // a single connection shares with nobody
		`plateau.worst.jain == 0.97`:      "",
		`plateau.worst.goodput == 97Gbps`: "",
		`plateau.3.jain == 1`:             "fewer plateaus",
		`plateau.worst.jain > 0.98`:       "expected > 0.98",
	} {
		e, err := Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		got := e.Eval(sum, Scope{})
		if got.OK != (want == "") || !strings.Contains(got.Note, want) {
			t.Errorf("%s: %+v", line, got)
		}
	}
	e, err := Parse(`plateau.worst.jain == 1`)
	if err != nil {
		t.Fatal(err)
	}
	sum.Plateaus = sum.Plateaus[:1]
	if got := e.Eval(sum, Scope{}); got.OK || !strings.Contains(got.Note, "no plateau") {
		t.Errorf("%+v", got)
	}
	for _, line := range []string{`plateau.0.goodput < plateau.0.jain`, `plateau.worst.connections == 1`, `plateau.x.jain == 1`} {
		if e, err := Parse(line); err == nil && e.Check(Scope{Setting: func(string) (string, bool) { return "", false }}) == nil {
			t.Errorf("no error for %s", line)
		}
	}
}

// The left side is recorded with its unit.
func TestUnits(t *testing.T) {
	for line, want := range map[string]record.Expect{
		"fct.p99 >= 0us":               {Unit: "us"},
		"max_queue >= 0B":              {Unit: "B"},
		"goodput == 96Gbps":            {Unit: "Gb/s", Got: 96},
		"verified == true":             {Unit: "bool", Got: 1},
		"flow_rate.min > jain * 1Gbps": {Unit: "Gb/s", Got: 11},
		"plateau.0.connections == 2":   {Got: 2},
	} {
		e, err := Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		got := e.Eval(incastSummary(), Scope{})
		if !got.OK || got.Unit != want.Unit || want.Got != 0 && got.Got != want.Got {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

// A plateau of several connections whose shares are not known, or that does not settle, takes the
// value of the worst; the others keep theirs.
func TestPlateausWithoutAValue(t *testing.T) {
	settled := 5.0
	for _, c := range []struct {
		conns  int
		lacks  []string
		valued string
	}{
		{2, nil, "plateau.1.jain plateau.1.goodput plateau.1.settled plateau.worst.jain plateau.worst.goodput plateau.worst.settled"},
		{2, []string{"settled_us"}, "plateau.1.jain plateau.1.goodput plateau.worst.jain plateau.worst.goodput"},
		{2, []string{"jain", "total_gbps", "settled_us"}, ""},
		{1, []string{"settled_us"}, "plateau.1.jain plateau.1.goodput plateau.worst.jain plateau.worst.goodput plateau.worst.settled"},
		{1, []string{"jain", "total_gbps", "settled_us"}, "plateau.worst.jain plateau.worst.goodput plateau.worst.settled"},
	} {
		sum := &record.Summary{Plateaus: []record.Plateau{{Conns: 2, Jain: 0.9, TotalGbps: 9, SettledUS: &settled},
			{Conns: c.conns, Jain: 0.5, TotalGbps: 8, SettledUS: &settled}}}
		for _, field := range c.lacks {
			sum.Lack("nobody knows", "plateaus.1."+field)
		}
		if c.lacks != nil {
			sum.Plateaus[1].SettledUS = nil
		}
		for _, field := range []string{"jain", "goodput", "settled"} {
			for _, name := range []string{"plateau.0." + field, "plateau.1." + field, "plateau.worst." + field} {
				e, err := Parse(name + " == " + name)
				if err != nil {
					t.Fatal(err)
				}
				got := e.Eval(sum, Scope{})
				want := strings.HasPrefix(name, "plateau.0.") || strings.Contains(c.valued, name)
				if got.OK != want || !want && (!got.Unmeasured || !strings.Contains(got.Note, "nobody knows")) {
					t.Errorf("%+v: %s: %+v", c, name, got)
				}
			}
		}
	}
}
