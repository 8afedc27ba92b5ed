package record

import "weft/units"

// Program is a program of the workload, which some hosts ran together.
type Program struct {
	Item    int           `json:"item"` // position in the lab file's workload
	Command string        `json:"command"`
	Launch  string        `json:"launch"`
	Clock   string        `json:"clock"` // lab or real
	Hosts   []ProgramHost `json:"hosts"` // in the order of ranks
}

// ProgramHost is how the program of a host ended.
type ProgramHost struct {
	Host   string  `json:"host"`
	Exit   int     `json:"exit"`             // exit code; 128 plus the number of a signal that ended it
	Signal string  `json:"signal,omitempty"` // that ended it
	Ended  string  `json:"ended,omitempty"`  // why it was ended, or could not be run
	WallS  float64 `json:"wall_s"`
	TimeUS float64 `json:"time_us"` // from its start to its end, in lab time
	CPUS   float64 `json:"cpu_s"`   // processor time of its tasks
	BusyS  float64 `json:"busy_s"`  // real time in which the host's network was in use
	WaitS  float64 `json:"wait_s"`  // of these, in which a task waited for a processor, at most
	Lines  int64   `json:"lines"`   // of output
}

// Failed reports whether the program did not end by itself with exit code 0.
func (h *ProgramHost) Failed() bool { return h.Exit != 0 || h.Signal != "" || h.Ended != "" }

// MinBusyS is the shortest use of the network, in seconds, after which the waiting of tasks says
// anything. Our own choice: tasks are looked at every 50 ms.
const MinBusyS = 0.2

// Waited returns the share of the time in which the host's network was in use that a task waited
// for a processor, at most. ok is false if it was not in use for long enough.
func (h *ProgramHost) Waited() (share float64, ok bool) {
	return h.WaitS / max(h.BusyS, MinBusyS), h.BusyS >= MinBusyS
}

// Metric is a named number in the output of programs, over all lines in which it was found.
type Metric struct {
	Name  string  `json:"name"`
	Count int     `json:"count"`
	Min   float64 `json:"min"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	Max   float64 `json:"max"`

	Values []float64 `json:"values"` // the first MaxMetricValues, in the order of output
}

// MaxMetricValues bounds the values in a summary. MetricsFile has all.
const MaxMetricValues = 100

// MetricRow is a row of metrics.parquet: what a named group matched in a line of output.
type MetricRow struct {
	Item   int // position in the lab file's workload
	Host   string
	Line   int // of the host's output, from 0
	At     units.Time
	Name   string
	Text   string
	Value  float64 // of the text
	Number bool    // the text is a number
}
