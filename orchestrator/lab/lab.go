package lab

import (
	"weft/collectives/schedule"
	"weft/fabric/queues"
	"weft/orchestrator/topology"
	"weft/units"
)

// Lab is a checked lab: every default filled in, every value in range. A Lab that Parse returned cannot be
// refused by a later stage for a reason that its text alone could have shown.
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
	Traces     []Trace // that the workload names
	Workload   []Item  // in the file's order; may be empty: a lab to deploy and use by hand
	Faults     []Fault
	Measure    Measure
	Expect     []Expectation
	Engine     Engine

	// Point is the sweep point: the value (bool, int64, float64 or string) at each path of the sweep that the
	// command line does not set. It is empty without a sweep.
	Point   map[string]any
	Set     []string // what the command line replaced, as in Options
	Sources []Source // where every value came from, for `weft explain`

	sections map[string]origin // where the sections are, also the empty ones; "" is the lab itself
}

// Source says where a value of the resolved lab came from.
type Source struct {
	Path  string // transport.pc4.target_qtime
	Value string // as it would be written in a lab file
	From  string // "line 12", "default: PC4 paper, section IV-E", "command line: --set seed=2", "sweep, line 40"

	// Where a problem with the value is to be reported: in the file (0: not there), or on the command line. A
	// default has the position of the section it belongs to.
	Line, Column int
	Flag         string
}

// Item is one collective of the workload. A workload whose ranks are groups has an item for each of them, one that arrives again and
// again an item for each time.
type Item struct {
	Index      int    // position in the lab file's workload
	Row        int    // of the summary: the groups of an item share one, and every collective of a trace has its own
	Collective string // of schedule.Collectives
	Algorithm  string // of schedule.Algorithms; resolved
	Ranks      Ranks
	Root       string // name of the host; "": of those that RootApart the first host that is not a rank, of others the first rank
	Type       schedule.Type
	Op         schedule.Reduction // "": nothing is reduced
	Size       units.Bytes
	Flows      int         // incast: connections of each sender, with a message of Size on each; else 1
	Parallel   int         // all-to-all: peers at once; 0: no limit
	Group      int         // hierarchical: ranks per group
	FarFirst   bool        // halving-doubling: the first exchange is with the farthest peer
	Shuffled   bool        // all-to-all, direct: each rank goes through its peers in an order of its own, drawn with the lab's seed
	Chunk      units.Bytes // 0: messages are not cut
	Repeat     int
	Start      units.Time
	Previous   bool       // start: previous
	Compute    units.Time // how long each rank computes before each repetition
	Jitter     units.Time // how much longer at most, drawn for each rank and repetition
	Line       *Line      // of a trace: which of its collectives this is, and for which of the Ranks; nil: of none

	// Arrivals is how many items one of the lab file stands for because it arrives again and again; Arrival is which of them it is,
	// from 0. Each draws random ranks anew. 0: it does not.
	Arrivals, Arrival int
}

// Ranks selects hosts. Exactly one of the fields says how. For an incast or a parameter server they are the
// senders: all are all but the root, and random ones are drawn from all but a root that is named.
type Ranks struct {
	All    bool
	First  int      // the first n hosts
	Names  []string // hosts by name, in rank order
	Random int      // so many hosts, drawn by the lab's seed

	// Groups is how many items with as many ranks share one draw, no host in two of them; Group is which of them it
	// is, from 0. 0: the draw is this item's alone.
	Groups, Group int
}

// Fault is something that happens to a link during the run: it goes down, or its line changes. Rate, Delay, Loss and
// BitErrors that are nil stay as they are. Or it happens to a host, which ends, or stands still for a time.
type Fault struct {
	Index int // position in the lab file's faults
	At    units.Time

	// Corrupt is a host: a byte of the first data packet that comes to it from then on is wrong, unnoticed by its transport.
	// "": the fault is another.
	Corrupt string

	Link string     // by the name of its ends; "": it happens to a host
	For  units.Time // how long; 0: to the end of the run
	Down bool

	Host        string
	Kill, Pause bool // one of the two, of a host

	Clock *ClockFault // of a clock; nil: the fault is another

	Rate            *units.Bandwidth
	Delay           *units.Time
	Loss, BitErrors *float64
	Toward          string // the end of the link to which the line changes; "": both

	// Reroute is how long after a link went down or came up all switches have taken it into account. 0: never; the
	// two at its ends have at once.
	Reroute units.Time
}

// Expectation is a line of the expect section, without its condition.
type Expectation struct {
	Text         string
	Index        int // position in the lab file's expect
	Line, Column int
}

// Rows is how many rows the summary of a run has: one for each item of the file, and for each collective of a trace.
func (l *Lab) Rows() int { return rowsOf(l.Workload) }
