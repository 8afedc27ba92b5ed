package sweep

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"weft/orchestrator/lab"
)

// Format is the version of submission.json that this program writes and reads.
const Format = 1

// Limits of a submission. Our own choice.
const (
	MaxPoints = 1_000_000
	MaxShards = 10_000
	MaxInputs = 64 << 20 // bytes of the files that a lab names
	MaxText   = 128 << 20
)

// MaxTries is the number of tasks that may end during a point until the point is given up.
const MaxTries = 3

// Submission is a submitted sweep: the lab, and the names of everything that it leaves. It never
// changes.
type Submission struct {
	Format  int               `json:"format"`
	ID      string            `json:"id"`  // name of the sweep's directory
	Lab     string            `json:"lab"` // name of the lab, and of the folder of its runs
	File    string            `json:"file"`
	Text    string            `json:"text"`             // of the lab file
	Inputs  map[string][]byte `json:"inputs,omitempty"` // files that the lab names
	Set     []string          `json:"set,omitempty"`
	Engine  lab.EngineOptions `json:"engine"`
	Kind    string            `json:"kind"` // sim or emu
	Points  []string          `json:"points"`
	Shards  int               `json:"shards"`
	Began   time.Time         `json:"began"`  // names the runs
	Series  string            `json:"series"` // unique for each submission
	Results string            `json:"results"`
	Version string            `json:"version"`
	Program string            `json:"program"` // identity of the binary, which every shard has
}

// Round is one start of the shards of a submission: the first, or one of weft sweep resume. Its
// tries are counted anew.
type Round struct {
	Number  int    `json:"round"`
	On      string `json:"on"` // local, swarm or slurm
	Image   string `json:"image,omitempty"`
	Handle  string `json:"handle"` // names the tasks at the engine
	Workers int    `json:"workers"`
	Memory  int64  `json:"memory,omitempty"` // limit of a shard in bytes; 0: none
	// Collect is the address of a collector, or auto, for tasks that do not see the sweep's
	// directory. Empty: they do.
	Collect string    `json:"collect,omitempty"`
	Began   time.Time `json:"began"`
	Done    int       `json:"done"` // points that were finished before
}

// HeapLimit returns the GOMEMLIMIT of a shard with a limit of memory in bytes, so that it collects
// garbage before the kernel ends it. A quarter is left for what the Go runtime does not count.
func HeapLimit(memory int64) int64 { return memory / 4 * 3 }

// Check returns an error unless the submission can be run. Submissions are read from directories
// that other machines write to.
func (s *Submission) Check() error {
	switch {
	case s.Format != Format:
		return fmt.Errorf("the submission has format %d, and this weft reads %d: use the weft that submitted it",
			s.Format, Format)
	case !plain(s.ID) || !plain(s.Lab):
		return fmt.Errorf("the submission's id %q or lab %q cannot name a directory", s.ID, s.Lab)
	case len(s.Points) == 0 || len(s.Points) > MaxPoints:
		return fmt.Errorf("the submission has %d points; expected 1 to %d", len(s.Points), MaxPoints)
	case s.Shards < 1 || s.Shards > min(len(s.Points), MaxShards):
		return fmt.Errorf("the submission has %d shards; expected 1 to %d", s.Shards, min(len(s.Points), MaxShards))
	case s.Began.IsZero() || s.Series == "":
		return errors.New("the submission has no start or series: it is damaged")
	case s.Kind != "sim" && s.Kind != "emu":
		return fmt.Errorf("the submission has engine %q; expected sim or emu", s.Kind)
	}
	return nil
}

// plain reports whether a name is a single element of a path that is not hidden.
func plain(name string) bool {
	return name != "" && len(name) < 200 && name == path.Base(name) && !strings.HasPrefix(name, ".") &&
		!strings.ContainsAny(name, "\x00\n\\ ")
}

// Parse reads submission.json.
func Parse(text []byte) (*Submission, error) {
	s := new(Submission)
	if len(text) > MaxText {
		return nil, fmt.Errorf("the submission has %d bytes; the limit is %d", len(text), MaxText)
	}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("the submission is damaged: %w", err)
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	return s, nil
}

// Encode returns submission.json.
func (s *Submission) Encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	err := e.Encode(s)
	return b.Bytes(), err
}

// stampForm is the form of the start of a submission in names: that of package store.
const stampForm = "20060102T150405"

// Stamp returns the start of the names of all runs.
func (s *Submission) Stamp() string { return s.Began.UTC().Format(stampForm) }

// RunName returns the name of the directory of a point's run.
func (s *Submission) RunName(point int) string { return fmt.Sprintf("%s-%d", s.Stamp(), point+1) }

// RunPath returns the path of a point's run that its files have.
func (s *Submission) RunPath(point int) string {
	return path.Join(s.Results, s.Lab, s.RunName(point))
}

// ShardOf returns the shard of a point. Neighbours, which often take as long as each other, go to
// different shards.
func (s *Submission) ShardOf(point int) int { return point % s.Shards }

// PointsOf returns the points of a shard, in the order in which it runs them.
func (s *Submission) PointsOf(shard int) []int {
	var out []int
	for i := shard; i < len(s.Points); i += s.Shards {
		out = append(out, i)
	}
	return out
}

// PointName returns a point for messages: its values, or its run if the lab has no sweep.
func (s *Submission) PointName(point int) string {
	if name := s.Points[point]; name != "" {
		return name
	}
	return s.RunName(point)
}

// shardsPerSlot is how many shards each slot gets, so that slots that are done early take others.
// Our own choice.
const shardsPerSlot = 4

// DefaultShards returns the number of shards for points on an engine with slots, each of which runs
// one shard at a time.
func DefaultShards(points, slots int) int {
	return max(1, min(points, MaxShards, shardsPerSlot*max(1, slots)))
}

// stampOf returns the start in the name of a run or of a sweep's directory.
func stampOf(name string) string {
	stamp, _, _ := strings.Cut(strings.TrimPrefix(name, "sweep-"), "-")
	return stamp
}

// Alone reports whether of all names in the lab's folder only the sweep's own has its start. Two
// submitters that chose the same one at once are not: at least one of them sees the other.
func (s *Submission) Alone(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return name != s.ID && stampOf(name) == s.Stamp() })
}

// Began returns a start for a submission at now, of which no name in the lab's folder has the
// stamp. It lies in the past, so that no other command line takes it later.
func Began(now time.Time, names []string) (time.Time, error) {
	taken := map[string]bool{}
	for _, name := range names {
		taken[stampOf(name)] = true
	}
	const tries = 3600
	for back := 1; back <= tries; back++ {
		began := now.UTC().Truncate(time.Second).Add(-time.Duration(back) * time.Second)
		if !taken[began.Format(stampForm)] {
			return began, nil
		}
	}
	return time.Time{}, errors.New("every second of the last hour names a run of this lab; wait a moment and " +
		"submit again")
}
