package expect

import (
	"strings"
	"testing"

	"weft/results/record"
)

// Steps are counted and found by their text.
func TestSteps(t *testing.T) {
	sum := &record.Summary{}
	sum.Network.CCM = &record.CCM{Steps: []record.Step{
		{Step: "l4-1-1 asks l2-1-1 for another path of h0 to h3", Count: 2, FirstUS: 10, LastUS: 30},
		{Step: "l2-1-1 moves h0 to h3 to l3-2-1", Count: 1, FirstUS: 12, LastUS: 12},
		{Step: "l2-1-1 moves h1 to h3 to l3-2-1", Count: 1, FirstUS: 40, LastUS: 40},
	}}
	for _, line := range []string{
		`steps("l4-1-1 asks l2-1-1 *") == 2`,
		`steps("*") == 4`,
		`steps("* moves h0 *") == 1`,
		`steps("l2-1-1 moves h0 to h3 to l3-2-1") == 1`,
		`steps("l2-1-1 moves") == 0`,
		`steps("*asks*l3*") == 0`,
		`first("* asks *") < first("* moves *")`,
		`first("* moves *") == 12us`,
		`last("* moves *") - last("* asks *") == 10us`,
	} {
		e, err := Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Eval(sum, Scope{}); !got.OK {
			t.Errorf("%s: %+v", line, got)
		}
	}
	sum.Network.CCM.Unkept = 1
	for line, note := range map[string]string{
		`steps("x") == 0`:        "more kinds",
		`first("* sings") < 1us`: "more kinds",
	} {
		e, err := Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Eval(sum, Scope{}); got.OK || !strings.Contains(got.Note, note) {
			t.Errorf("%s: %+v", line, got)
		}
	}
	sum.Network.CCM.Unkept = 0
	e, _ := Parse(`first("* sings") < 1us`)
	if got := e.Eval(sum, Scope{}); got.OK || !strings.Contains(got.Note, "no such step") {
		t.Errorf("%+v", got)
	}
	sum.Network.CCM = nil
	if got := e.Eval(sum, Scope{}); got.OK || !strings.Contains(got.Note, "congestion management") {
		t.Errorf("%+v", got)
	}
	for line, want := range map[string]string{
		`steps(1) == 1`:     "in double quotes",
		`steps("") == 1`:    "in double quotes",
		`steps("a == 1`:     "missing closing",
		`steps("a" == 1`:    "expected )",
		`steps("a") == 1us`: "between",
		`first("a") == 1`:   "between",
		`"a" == 1`:          "expected a number or a name",
	} {
		if _, err := Parse(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}
