package record

import (
	"strings"

	"weft/units"
)

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

	NonFinite int `json:"non_finite,omitempty"` // lines with nan or inf, which are in no other number

	Unkept int64 `json:"unkept,omitempty"` // further matches, which are in no other number

	Values []float64 `json:"values"` // the first MaxMetricValues, in the order of output

	// Groups are the same numbers of the lines that name the same sizes, by first appearance.
	// Absent if no line with the metric names a size, or if there are more than MaxMetricGroups.
	Groups []MetricGroup `json:"groups,omitempty"`
}

// MetricGroup has the numbers of a metric in lines with the same sizes: metrics in bytes.
type MetricGroup struct {
	At    string  `json:"at"` // size_bytes=1048576
	Count int     `json:"count"`
	Min   float64 `json:"min"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	Max   float64 `json:"max"`
}

// MaxMetricGroups bounds the groups of a metric. Our own choice: a benchmark that doubles its size
// from 1 B to 1 GiB has 31.
const MaxMetricGroups = 64

// metricUnit is what the end of a metric's name says of it.
type metricUnit struct {
	suffix, unit string
	scale        float64
	sign         float64
}

// metricUnits are the ends of names of metrics that are quantities, the longer one first where one
// ends another.
var metricUnits = []metricUnit{
	{"_per_s", "", 1, -1}, {"_ns", "us", 1e-3, 1}, {"_us", "us", 1, 1}, {"_ms", "us", 1e3, 1}, {"_s", "us", 1e6, 1},
	{"_bytes", "B", 1, 0}, {"_mbps", "Gb/s", 1e-3, -1}, {"_gbps", "Gb/s", 1, -1},
}

// unitOf returns the unit of a metric; that of a plain number if the end of its name is not known.
func unitOf(name string) metricUnit {
	for _, u := range metricUnits {
		if strings.HasSuffix(name, u.suffix) {
			return u
		}
	}
	return metricUnit{scale: 1}
}

// MetricUnit returns the unit of a metric by the end of its name, us, B or Gb/s, and how many of
// these a value of 1 is. unit is empty for a plain number.
func MetricUnit(name string) (unit string, scale float64) {
	u := unitOf(name)
	return u.unit, u.scale
}

// MetricSign returns the sign of a change of a metric for the worse, by the end of its name: 1 for
// times, -1 for rates, 0 where the name does not tell.
func MetricSign(name string) float64 { return unitOf(name).sign }

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
	// Infinite reports whether the text is nan, inf or beyond the range of numbers.
	Infinite bool
}
