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
