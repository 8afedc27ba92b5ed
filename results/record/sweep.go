package record

// Sweep is sweep.json: the points of a sweep, and what was expected across them.
type Sweep struct {
	Lab     string       `json:"lab"`
	Points  []SweepPoint `json:"points"`
	Expect  []Expect     `json:"expect"`
	Version string       `json:"version"`
}

// SweepPoint is a run of a sweep.
type SweepPoint struct {
	Point    map[string]any `json:"point"`
	Run      string         `json:"run"`
	Status   string         `json:"status"`
	Error    string         `json:"error,omitempty"`
	Flows    int64          `json:"flows"`
	Done     int64          `json:"flows_done"`
	Warnings []string       `json:"warnings,omitempty"`
}
