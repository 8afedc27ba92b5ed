package experiment

import (
	"strings"
	"testing"

	"weft/orchestrator/lab"
)

// A pattern that no step of the network can match is an error that lists the forms with its words.
func TestPatternsOfSteps(t *testing.T) {
	labs, err := lab.Parse("lab.yaml", []byte("weft: 1\nname: x\ntopology: {kind: leaf-spine, leaves: 2, spines: 2, "+
		"hosts_per_leaf: 2}\nworkload: [{collective: permute, size: 1MB}]\n"), lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := NetworkOf(labs[0])
	if err != nil {
		t.Fatal(err)
	}
	for pattern, want := range map[string]string{
		"*": "", "* moves *": "", "leaf0 moves h0 to h2 to spine1": "", "leaf* moves *": "", "leaf0 m*": "", "*alone": "",
		"h1 sets CC of h1 to h2": "", "h1 sets CC of *": "", "* tells h* that no path of h0 to h3 is light": "",
		"spine0 asks leaf1 *": "", "**": "", "*0*1*": "", "leaf0 tells leaf1 *released": "",

		"leaf0 moves h0 to h2 to leaf0":               "expected SWITCH moves HOST to HOST to NEXT, with names",
		"leaf0 moves h0 to h2 to leaf1":               "expected SWITCH moves",
		"leaf0 moves h0 to h2 to h2":                  "expected SWITCH moves",
		"leaf0 moves h2 to h2 to *":                   "expected SWITCH moves",
		"leaf* moves h2 to h2 *":                      "expected SWITCH moves",
		"spine0 keeps h0 to h2 off spine1":            "expected SWITCH keeps",
		"leaf0 sends h0 to h2 by leaf*":               "expected SWITCH sends",
		"leaf0 tells leaf0 that h0 to h2 is released": "expected SWITCH tells",
		"* tells * that h1 to h1 causes incast":       "expected SWITCH tells",
		"leaf0 asks leaf0 *":                          "expected SWITCH asks",
		"h1 takes another source port for h1 to h1":   "expected SENDER takes",
		"leaf9 moves h0 *":                            "expected SWITCH moves HOST to HOST to NEXT, with names",
		"leaf0 moves h99 *":                           "expected SWITCH moves HOST to HOST to NEXT, with names",
		"h0 moves *":                                  "expected SWITCH moves HOST to HOST to NEXT, with names",
		"leaf0 moves spine0 *":                        "expected SWITCH moves HOST to HOST to NEXT, with names",
		"leaf0 moves":                                 "has the words of \"leaf0 moves\"; expected SWITCH tells",
		"nonsense blah":                               "has the words of \"nonsense blah\"; expected SWITCH tells",
		"* sings *":                                   "has the words",
		"h1 sets CC of h0 to h2":                      "expected SENDER sets CC of SENDER to HOST, with names",
		"leaf0 takes another source *":                "expected SENDER takes another source port",
		"leaf0 moves h0 to h2 to spine*x":             "has the words",
	} {
		why := NoStep(g, pattern)
		if want == "" && why != "" || !strings.Contains(why, want) {
			t.Errorf("%s: %q, want %q", pattern, why, want)
		}
	}
}
