package record

// Sweep is sweep.json: the points of a sweep, and the expectations across them. It is written when
// the sweep begins, and again with its results. A point may have a run of an earlier command line.
type Sweep struct {
	Lab     string       `json:"lab"`
	Engine  string       `json:"engine,omitempty"`
	Series  string       `json:"series,omitempty"`  // ID of the command line: see Series
	Started string       `json:"started,omitempty"` // start of the command line, RFC 3339, UTC
	Points  []SweepPoint `json:"points"`
	Expect  []Expect     `json:"expect"`
	Version string       `json:"version"`
	// Submitted is set until weft sweep collect, if weft sweep submit made the sweep.
	Submitted bool `json:"submitted,omitempty"`
}

// SweepPoint is the run of a point.
type SweepPoint struct {
	Point    map[string]any `json:"point"`
	Seed     uint64         `json:"seed"`
	Run      string         `json:"run"`
	Status   string         `json:"status"`            // Running until the sweep ends
	Outcome  string         `json:"outcome,omitempty"` // see Outcome.String
	Error    string         `json:"error,omitempty"`
	Flows    int64          `json:"flows"`
	Done     int64          `json:"flows_done"`
	Warnings []string       `json:"warnings,omitempty"`
}

// Across returns the expectations across the points of the sweep, as they were judged, as the
// summary of no run: see AcrossPoints. It is nil if there are none.
func (s *Sweep) Across() *Summary {
	if len(s.Expect) == 0 {
		return nil
	}
	return AcrossPoints(s.Lab, s.Engine, s.Expect)
}

// acrossSuffix follows the name of the lab in a summary of AcrossPoints.
const acrossSuffix = ": across points"

// AcrossPoints returns judged expectations across the points of a sweep as a summary that has no
// run: lists, reports and gates treat them as those of one.
func AcrossPoints(lab, engine string, judged []Expect) *Summary {
	return &Summary{Lab: lab + acrossSuffix, Engine: engine, Status: OK, Verified: true, Expect: judged}
}
