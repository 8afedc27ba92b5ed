package expect

import (
	"strings"
	"testing"

	"weft/results/record"
)

func TestPlateaus(t *testing.T) {
	sum := &record.Summary{Plateaus: []record.Plateau{
		{Conns: 1, Jain: 1, TotalGbps: 50, SettledUS: 100},
		{Conns: 2, Jain: 0.99, TotalGbps: 98, SettledUS: 5},
		{Conns: 3, Jain: 0.97, TotalGbps: 97, SettledUS: 8},
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
