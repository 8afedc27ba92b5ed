package lab

import (
	"slices"

	"weft/collectives/schedule"
	"weft/fabric/queues"
	"weft/orchestrator/topology"
	"weft/units"
)

// Lab is a checked lab: every default is filled in and every value is in range. A later stage never
// rejects a Lab that Parse returned for a reason that its text alone could show.
type Lab struct {
	File  string // the name Parse was given; problems are reported under it
	Name  string // 1 to 63 of a-z, 0-9 and -, not - first: safe as the name of a folder, a host or an interface
	About string
	Seed  uint64

	Topology   topology.Spec
	Queues     queues.Queues
	Clocks     Clocks
	Background Background
	Transport  Transport
	Traces     []Trace   // files that the workload names
	Programs   []Program // of the workload
	Workload   []Item    // in the file's order; may be empty: a lab to deploy and use by hand
	Faults     []Fault
	Measure    Measure
	Unmet      []Expectation // those whose condition the lab does not meet
	Expect     []Expectation
	Report     []string // of record.Charts: what pages of results begin with
	Engine     Engine

	// Point is the sweep point: the value (bool, int64, float64 or string) at each path of the
	// sweep that the command line does not set. It is empty without a sweep.
	Point   map[string]any
	Set     []string // what the command line replaced, as in Options
	Command []string // Command.Given of the program that is the workload; nil: the lab has its own
	Sources []Source // where every value came from, for `weft explain`

	notes    []note            // about files that the lab names
	sections map[string]origin // where each section is, even an empty one; "" is the lab itself
}

// note is what a file that the lab names at a path says and the lab leaves out, or why it may not
// be the one that is meant.
type note struct{ path, text string }

// Notes returns, as problems with positions, what the files of jobs and networks that the lab names
// say and the lab leaves out, and a module that is older than its source.
func (l *Lab) Notes() (all Problems) {
	for _, n := range l.notes {
		all = append(all, l.problem(n.path, n.text))
	}
	return all
}

// Source says where a value of the resolved lab came from.
type Source struct {
	Path  string // transport.pc4.target_qtime
	Value string // as it would be written in a lab file
	From  string // "line 12", "default: PC4 paper, section IV-E", "command line: --set seed=2", "sweep, line 40"

	// Where to report a problem with the value: in the file (0: not there), or on the command line.
	// A default has the position of its section.
	Line, Column int
	Flag         string
}

// Item is one collective of the workload. An item of the file whose ranks are groups becomes one
// Item for each group; one that arrives as a Poisson process becomes one for each arrival.
type Item struct {
	Index      int    // position in the lab file's workload
	Row        int    // of the summary; the groups of an item share one, each collective of a trace has its own
	Collective string // of schedule.Collectives
	Algorithm  string // of schedule.Algorithms; resolved
	Ranks      Ranks
	Type       schedule.Type
	Op         schedule.Reduction // "": nothing is reduced
	Size       units.Bytes        // the buffer of each rank; for an incast and a parameter server, what each sends
	Flows      int                // incast: connections of each sender, with a message of Size on each; else 1
	Parallel   int                // all-to-all: peers at once; 0: no limit
	Group      int                // hierarchical: ranks per group
	FarFirst   bool               // halving-doubling: the first exchange is with the farthest peer
	Chunk      units.Bytes        // messages are cut into chunks of this size; 0: they are not
	Repeat     int                // repetitions, at least 1
	Start      units.Time         // from the start of the run; with Previous 0
	Previous   bool               // each rank starts when it has finished the item before
	Compute    units.Time         // computation of each rank before each repetition
	Jitter     units.Time         // additional computation, uniform from 0, drawn for each rank and repetition

	// Root is the name of a host. "": the first rank, or, if the root is RootApart, the first host
	// that is not a rank.
	Root string

	// Shuffled makes each rank of a direct all-to-all visit its peers in an order of its own, drawn
	// with the lab's seed.
	Shuffled bool

	// Line says which collective of a trace this is, and which of the Ranks it is for; nil: it is
	// from no trace.
	Line *Line

	// Given has the programs of a job. Its collectives are the items after it, which are Called.
	Given  *schedule.Given
	Listed bool // Given is a list of flows
	Called bool
	Label  string // in the summary, "" for none: the file of a job, or the name of a collective in it

	// Arrivals is the number of Items that one item of the file became because it arrives as a
	// Poisson process, and Arrival the number of this one, from 0. Each draws random ranks anew.
	// 0: the item does not arrive so.
	Arrivals, Arrival int
}

// Ranks selects hosts by exactly one of All, First, Names and Random. For an incast or a parameter
// server they are the senders: All is all but the root, and Random draws from all but a named root.
type Ranks struct {
	All    bool
	First  int      // the first n hosts
	Names  []string // hosts by name, in rank order
	Random int      // the number of hosts drawn with the lab's seed

	// Groups is the number of items that share one draw of Random ranks each, with no host in two
	// of them, and Group the number of this one, from 0. Groups 0: the draw is this item's alone.
	Groups, Group int
}

// Fault is something that happens during the run to a link (it goes down or changes), to a host (it
// ends or freezes), to a clock, or to a byte of a packet.
type Fault struct {
	Index int // position in the lab file's faults
	At    units.Time

	// Corrupt is a host. One byte of the first data packet that arrives there after At is changed
	// without its transport noticing. "": the fault is another.
	Corrupt string

	Link string     // the link by the name of its ends; "": the fault is of no link
	For  units.Time // duration; 0: to the end of the run
	Down bool       // the link is down

	Host        string // the host of Kill or Pause
	Kill, Pause bool   // the host ends, or freezes for For

	Clock *ClockFault // nil: the fault is of no clock

	Rate            *units.Bandwidth // new rate of the link; nil: unchanged
	Scaled          bool             // with Rate: buffers and marking thresholds change in proportion
	Delay           *units.Time      // new delay; nil: unchanged
	Loss, BitErrors *float64         // new shares of lost packets and wrong bits; nil: unchanged
	Toward          string           // the change is only in the direction to this end; "": in both

	// Reroute is the time after which all switches know that a link went down or came up. 0: they
	// never do. The two at its ends know at once.
	Reroute units.Time
}

// Expectation is one line of the expect section, without its condition.
type Expectation struct {
	Text         string
	When         string // its condition; "": none
	WhenAt       int    // where that begins in the line, in bytes
	Why          string // what the lab has in place of what When says; "": the condition holds
	Engine       string // sim or emu: for runs in that engine, which the lab leaves open; "": for all
	Index        int    // position in the lab file's expect
	Line, Column int
	Flag         string // of the command line that it is from; "": the file
}

// In returns the lab with the expectations of a run in an engine: sim, emu, or auto for a run that
// was left out.
func (l *Lab) In(engine string) *Lab {
	in := *l
	in.Expect, in.Unmet = nil, slices.Clone(l.Unmet)
	for _, e := range l.Expect {
		if e.Engine == "" || e.Engine == engine || engine == "auto" {
			in.Expect = append(in.Expect, e)
			continue
		}
		e.Why = "the engine is " + engine
		in.Unmet = append(in.Unmet, e)
	}
	return &in
}

// origin returns where the expectation is written.
func (e *Expectation) origin() origin { return origin{line: e.Line, column: e.Column, flag: e.Flag} }

// That returns the expectation as it is written, with its condition.
func (e *Expectation) That() string {
	if e.When == "" {
		return e.Text
	}
	return e.Text + " when " + e.When
}

// Rows returns the number of rows of a run's summary: one for each item of the file and each
// collective of a trace.
func (l *Lab) Rows() int { return rowsOf(l.Workload) }
