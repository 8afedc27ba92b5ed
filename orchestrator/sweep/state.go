package sweep

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// States of a sweep, and of its shards.
const (
	Waiting   = "waiting"   // no task has started
	Running   = "running"   // tasks run or will
	Stopped   = "stopped"   // points are missing, and no task is left to run them
	Cancelled = "cancelled" // points are missing, since weft sweep cancel
	Done      = "done"      // every point has a result
	Failed    = "failed"    // no point is left to run, and some were given up, disagree or are damaged
)

// A Try is a task that began a point and has not placed its result.
type Try struct {
	Point int       `json:"point"`
	Shard int       `json:"shard"`
	Round int       `json:"round"`
	Host  string    `json:"host"`
	Began time.Time `json:"began"`
	Error string    `json:"error,omitempty"` // what the machine lacked; empty: killed, or it still runs
}

// A Note is the result of a point that has no run directory, or about copies that disagree.
type Note struct {
	Point int      `json:"point"`
	What  string   `json:"what"`
	Error string   `json:"error"`
	Hosts []string `json:"hosts,omitempty"` // of its tries
}

// What a Note is about.
const (
	NeverStarted = "never started" // the point could not be built, on any machine
	GivenUp      = "given up"      // MaxTries tasks ended during it
	Disagrees    = "disagrees"     // two machines got different bytes
	Damaged      = "damaged"       // the run is in its place, and its summary or manifest cannot be read
)

// Found is the state of a sweep by its files.
type Found struct {
	Name      string       // of the sweep, for commands in messages
	Placed    map[int]bool // points whose run directory is in its place
	Notes     map[int]Note
	Tries     []Try
	Cancelled bool
	Collected bool
	Waits     string // why tasks wait for the collector; "": they do not
	Away      bool   // the collector does not run
}

// settled reports whether a point needs no further try.
func (f *Found) settled(point int) bool {
	n, ok := f.Notes[point]
	return f.Placed[point] || ok && n.What != Disagrees
}

// A Task is an engine's report about a shard.
type Task struct {
	Shard int    `json:"shard"`
	State string `json:"state"` // waiting, running, done or failed
	Host  string `json:"host,omitempty"`
	Error string `json:"error,omitempty"`
	Tries int    `json:"tries"` // started tasks of the shard
}

// Next is a shard's next action on a point.
type Next int

// Steps of a point.
const (
	Run    Next = iota // try it
	Skip               // it has a result
	GiveUp             // too many tries ended during it
)

// Decide returns the next step of a point in a round.
func Decide(f *Found, round, point int) Next {
	if f.settled(point) {
		return Skip
	}
	if len(triesOf(f, round, point)) >= MaxTries {
		return GiveUp
	}
	return Run
}

// triesOf returns the tries of a point in a round that ended without a word, or that still run. A
// try whose machine lacked something, such as space, says nothing about the point.
func triesOf(f *Found, round, point int) []Try {
	return slices.DeleteFunc(slices.Clone(f.Tries), func(t Try) bool {
		return t.Round != round || t.Point != point || t.Error != ""
	})
}

// Exhausted returns the note for a point that Decide gives up.
func Exhausted(f *Found, round, point int) Note {
	n := Note{Point: point, What: GivenUp}
	for _, t := range triesOf(f, round, point) {
		n.Hosts = append(n.Hosts, t.Host)
	}
	n.Error = fmt.Sprintf("given up after %d tries, on %s: its process ended each time without a word, killed or "+
		"out of memory", len(n.Hosts), strings.Join(n.Hosts, ", "))
	return n
}

// Keep decides, each time that the process of a shard ended with an error, whether the task starts
// it again. The zero value is that of a new task.
type Keep struct{ settled, idle int }

// Again reports whether to start the process again when settled points of the shard need no further
// try. A task gives up after more than MaxTries processes that settled nothing.
func (k *Keep) Again(settled int) bool {
	if k.idle++; settled > k.settled {
		k.idle = 0
	}
	k.settled = settled
	return k.idle <= MaxTries
}

// ShardStatus is the progress of a shard.
type ShardStatus struct {
	Shard  int    `json:"shard"`
	State  string `json:"state"`
	Host   string `json:"host,omitempty"`
	Points int    `json:"points"`
	Done   int    `json:"done"`
	Tries  int    `json:"tries,omitempty"`
	Error  string `json:"error,omitempty"`
}

// Status is the state of a sweep.
type Status struct {
	ID        string        `json:"id"`
	Lab       string        `json:"lab"`
	On        string        `json:"on"`
	Round     int           `json:"round"`
	State     string        `json:"state"`
	Collected bool          `json:"collected"`
	Points    int           `json:"points"`
	Done      int           `json:"done"` // points with a result
	Problems  []Problem     `json:"problems,omitempty"`
	Shards    []ShardStatus `json:"shards"`
	EtaS      float64       `json:"eta_s,omitempty"` // absent: unknown, or nothing is left
	Say       string        `json:"say,omitempty"`   // what to do about it
	Away      bool          `json:"away,omitempty"`  // the collector does not run, so tasks wait
}

// Problem is a point that was given up, that never started, whose result is damaged, or about which
// machines disagree.
type Problem struct {
	Name string `json:"name"`
	Run  string `json:"run"`
	Note
}

// Over reports whether nothing more will happen by itself.
func (s *Status) Over() bool { return s.State != Running && s.State != Waiting }

// Judge returns the state of a submission at now, from its files and an engine's tasks. answer is
// the error with which the engine was asked, if it did not answer.
func (s *Submission) Judge(r Round, f *Found, tasks []Task, answer error, now time.Time) Status {
	out := Status{ID: s.ID, Lab: s.Lab, On: r.On, Round: r.Number, Points: len(s.Points), Collected: f.Collected,
		Away:   f.Away,
		Shards: make([]ShardStatus, s.Shards)}
	byShard := make([]Task, s.Shards)
	for _, t := range tasks {
		if t.Shard >= 0 && t.Shard < s.Shards {
			byShard[t.Shard] = t
		}
	}
	for k := range out.Shards {
		t := byShard[k]
		out.Shards[k] = ShardStatus{Shard: k, State: t.State, Host: t.Host, Tries: t.Tries, Error: t.Error}
	}
	bad := false
	for i := range s.Points {
		sh := &out.Shards[s.ShardOf(i)]
		sh.Points++
		if f.settled(i) {
			sh.Done++
			out.Done++
		}
		if n, ok := f.Notes[i]; ok && (!f.Placed[i] || n.What == Disagrees || n.What == Damaged) { // else it came late
			bad = bad || n.What != NeverStarted
			out.Problems = append(out.Problems, Problem{s.PointName(i), s.RunPath(i), n})
		}
	}
	for _, t := range f.Tries {
		if t.Round == r.Number && t.Error != "" && t.Shard >= 0 && t.Shard < s.Shards {
			out.Shards[t.Shard].Error = t.Host + ": " + t.Error // says more than the engine's exit code
		}
	}
	active, started := false, false
	for k := range out.Shards {
		sh := &out.Shards[k]
		if sh.Done == sh.Points {
			sh.State, sh.Error = Done, ""
		} else if sh.State == Done || sh.State == "" {
			sh.State = Stopped // the task ended, or is gone, before its points were done
		}
		active = active || sh.State == Running || sh.State == Waiting
		started = started || sh.State != Waiting
	}
	switch {
	case out.Done == out.Points && bad:
		out.State = Failed
	case out.Done == out.Points:
		out.State = Done
	case f.Cancelled:
		out.State = Cancelled
	case answer != nil || active && started:
		out.State = Running
	case active:
		out.State = Waiting
	default:
		out.State = Stopped
	}
	out.Say = s.advice(&out, f, answer)
	if done, left := out.Done-r.Done, out.Points-out.Done; out.State == Running && done > 0 && left > 0 {
		out.EtaS = now.Sub(r.Began).Seconds() / float64(done) * float64(left)
	}
	return out
}

// idle returns why no shard runs; "": one does or will at once, or nothing is known.
func (s *Status) idle() (why string) {
	for _, sh := range s.Shards {
		switch {
		case sh.State == Running, sh.State == Waiting && sh.Error == "":
			return ""
		case sh.State == Waiting:
			why = cmp.Or(why, sh.Error)
		}
	}
	return why
}

// advice returns what a user can do about the state of a sweep.
func (s *Submission) advice(st *Status, f *Found, answer error) string {
	missing, idle := st.Points-st.Done, st.idle()
	switch {
	case answer != nil:
		return fmt.Sprintf("%s does not answer, so the shards are not known: %v", st.On, answer)
	case f.Away && !st.Over():
		return fmt.Sprintf("%s, so shards wait: weft sweep wait %s starts it", f.Waits, f.Name)
	case f.Waits != "" && !st.Over():
		return "shards wait: " + f.Waits
	case !st.Over() && idle != "":
		return "no shard runs: " + idle
	case st.State == Done && !st.Collected:
		return "weft sweep collect " + f.Name + " prints the results"
	case st.State == Failed && slices.ContainsFunc(st.Problems, func(p Problem) bool { return p.What != Damaged }):
		return fmt.Sprintf("weft sweep resume %s retries what was given up", f.Name)
	case st.State == Stopped || st.State == Cancelled:
		return fmt.Sprintf("%d of %d points have no result: weft sweep resume %s runs them", missing, st.Points, f.Name)
	}
	return ""
}
