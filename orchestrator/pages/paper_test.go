package pages

import (
	"strings"
	"testing"

	"weft/orchestrator/paper"
	"weft/results/report"
)

// A reader of a paper's page sees first what does not hold.
func TestFailuresComeFirst(t *testing.T) {
	rows := []paper.Row{
		{ID: "P1", Claim: "one", Verdict: paper.Pass}, {ID: "P2", Claim: "two", Verdict: paper.Fail},
		{ID: "P2", Claim: "three", Verdict: paper.Pass}, {ID: "P10", Claim: "four", Verdict: paper.Skipped},
	}
	parts := FailuresFirst(rows, []report.Part{{Heading: "P1, Fig. 1: a"}, {Heading: "P2, Fig. 2: b"}, {Heading: "P10, Fig. 3: c"}})
	var headings []string
	for _, p := range parts {
		headings = append(headings, p.Heading)
	}
	if got := strings.Join(headings, "; "); got != "Claims that fail; P2, Fig. 2: b; P1, Fig. 1: a; P10, Fig. 3: c" {
		t.Errorf("the parts are %s", got)
	}
	head := parts[0]
	if len(head.Tables) != 1 || len(head.Tables[0].Rows) != 1 || head.Tables[0].Rows[0][1] != "two" || len(head.Folded) != 2 ||
		len(head.Folded[0].Tables[0].Rows) != 2 {
		t.Errorf("the first part is %+v", head)
	}
	if parts := FailuresFirst(rows[:1], nil); parts[0].Heading != "Claims" || len(parts[0].Tables) != 0 {
		t.Errorf("without a failure the first part is %+v", parts[0])
	}
}
