package expect

import (
	"slices"
	"strings"
	"testing"

	"weft/results/record"
)

func TestStability(t *testing.T) {
	sum := &record.Summary{Clocks: record.Clocks{Stability: &record.Stability{Hosts: 7, MaxTE: 31, Constant: 1.5, At: []record.Averaged{
		{TauUS: 100, ADEV: 4e-6, MDEV: 3e-6, TDEV: 0.5, MTIE: 12},
		{TauUS: 1000, ADEV: 4e-7, MDEV: 2e-7, TDEV: 0.25, MTIE: 30},
	}}}}
	for line, want := range map[string]string{
		`clock_stability.max == 31ns`:                         "",
		`clock_stability.mean == 1.5ns`:                       "",
		`clock_stability.0.adev == 0.000004`:                  "",
		`clock_stability.1.mdev < clock_stability.1.adev`:     "",
		`clock_stability.0.tdev == 500ps`:                     "",
		`clock_stability.1.mtie == 30ns`:                      "",
		`clock_stability.1.tau == 10 * clock_stability.0.tau`: "",
		`clock_stability.1.tau == 1ms`:                        "",
		`clock_stability.1.mtie <= 10ns`:                      "expected <= 10ns",
		`clock_stability.2.mtie <= 10ns`:                      "too short",
	} {
		e, err := Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Eval(sum, Scope{}); got.OK != (want == "") || !strings.Contains(got.Note, want) {
			t.Errorf("%s: %+v", line, got)
		}
	}
	for _, line := range []string{`clock_stability.max == 31ns`, `clock_stability.0.tdev == 500ps`} {
		e, err := Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Eval(&record.Summary{}, Scope{}); got.OK || !strings.Contains(got.Note, "was not measured") {
			t.Errorf("%s of a lab with perfect clocks: %+v", line, got)
		}
	}
	for _, line := range []string{`clock_stability.0.adev < 1ns`, `clock_stability.mtie < 1ns`, `clock_stability.x.tau < 1ns`, `clock_stability.0.hosts == 1`} {
		if e, err := Parse(line); err == nil && e.Check(Scope{Setting: func(string) (string, bool) { return "", false }}) == nil {
			t.Errorf("no error for %s", line)
		}
	}
}

// Kind returns a known type for every name.
func TestKinds(t *testing.T) {
	for _, name := range Names() {
		if k := Kind(name); !slices.Contains([]string{"a plain number", "a time", "a size", "a rate", "true or false", "a word"}, k) {
			t.Errorf("%s is %q", name, k)
		}
	}
	if k := Kind("clock_stability.N.mtie"); k != "a time" {
		t.Errorf("an MTIE is %s", k)
	}
	if k := Kind("nothing"); k != "" {
		t.Errorf("nothing is %s", k)
	}
}
