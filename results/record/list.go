package record

import "strings"

// List is the file of weft run --list: the runs of one command line, with those that it reused, and
// the points that did not run. It tells what a command line ran apart from everything else in the
// same directory of runs.
type List struct {
	Format  int         `json:"format"` // version of the file
	Version string      `json:"version"`
	Runs    []ListedRun `json:"runs"`
	// Across are the expectations across points of each sweep that has some.
	Across []ListedSweep `json:"across,omitempty"`
}

// ListedSweep has the judged expectations across the points of a sweep of a List.
type ListedSweep struct {
	Lab    string   `json:"lab"`
	Engine string   `json:"engine"`
	Expect []Expect `json:"expect"`
}

// ListedRun is one run of a List.
type ListedRun struct {
	Lab    string         `json:"lab"`
	Engine string         `json:"engine"`
	Point  map[string]any `json:"point,omitempty"`
	Seed   uint64         `json:"seed"`
	Run    string         `json:"run,omitempty"` // directory, relative to the list's; "": it did not run
	Status string         `json:"status"`
	Error  string         `json:"error,omitempty"`
}

// ListAcross returns what a List has of a summary of AcrossPoints.
func ListAcross(judged *Summary) ListedSweep {
	return ListedSweep{Lab: strings.TrimSuffix(judged.Lab, acrossSuffix), Engine: judged.Engine, Expect: judged.Expect}
}
