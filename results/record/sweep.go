package record

// Sweep is sweep.json: the points of a sweep, and the expectations across them.
type Sweep struct {
	Lab     string       `json:"lab"`
	Points  []SweepPoint `json:"points"`
	Expect  []Expect     `json:"expect"`
	Version string       `json:"version"`
}

// SweepPoint is the run of a point.
type SweepPoint struct {
	Point    map[string]any `json:"point"`
	Run      string         `json:"run"`
	Status   string         `json:"status"`
	Error    string         `json:"error,omitempty"`
	Flows    int64          `json:"flows"`
	Done     int64          `json:"flows_done"`
	Warnings []string       `json:"warnings,omitempty"`
}
