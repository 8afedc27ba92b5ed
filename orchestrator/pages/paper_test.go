package pages

import (
	"fmt"
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
	parts := FailuresFirst(rows, []report.Part{{ID: "P1", Heading: "a"}, {ID: "P2", Heading: "b"}, {ID: "P10", Heading: "c"}})
	var headings []string
	for _, p := range parts {
		headings = append(headings, p.Heading)
	}
	if got := strings.Join(headings, "; "); got != "Claims by figure; b; a; c" {
		t.Errorf("the parts are %s", got)
	}
	head := parts[0].Tables[0]
	if fmt.Sprint(head.Rows) != "[[b 1 1 ] [a  1 ] [c   1]]" || head.Rows[0][0].Link != "#P2" {
		t.Errorf("the first part has %v with a link to %v", head.Rows, head.Rows[0][0].Link)
	}
	claims := FigureClaims([]paper.Row{
		{ID: "P2", Claim: "holds", Paper: "4us", Class: "T4", Group: paper.OfOurs, Verdict: paper.Pass, OneSided: "it is a limit"},
		{ID: "P2", Claim: "fails", Paper: "12 %", Class: "T1", Group: paper.OfPaper, Verdict: paper.Fail, Note: "got 5us", Why: "it is noisy"},
	}).Rows
	want := "[[fail fails 12\u00a0%   exact or analytic (T1) paper got 5 us; tolerance: it is noisy] " +
		"[pass holds 4 us   trend (T4) ours one side is enough: it is a limit]]"
	if got := fmt.Sprint(claims); got != want {
		t.Errorf("the claims are\n%s; want\n%s", got, want)
	}
}
