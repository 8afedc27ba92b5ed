package lab

import "weft/units"

// Lab is a checked lab: every default filled in, every value in range. A Lab that Parse returned cannot be
// refused by a later stage for a reason that its text alone could have shown.
type Lab struct {
	File  string // the name Parse was given; problems are reported under it
	Name  string // 1 to 63 of a-z, 0-9 and -, not - first: safe as the name of a folder, a host or an interface
	About string
	Seed  uint64

	Topology  Topology
	Queues    Queues
	Clocks    Clocks
	Transport Transport
	Workload  []Item // may be empty: a lab to deploy and use by hand
	Measure   Measure
	Expect    []Expectation
	Engine    Engine

	// Point is the sweep point: the value (bool, int64, float64 or string) at each path of the sweep that the
	// command line does not set. It is empty without a sweep.
	Point   map[string]any
	Sources []Source // where every value came from, for `weft explain`
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

// Topology is the topology section. Only the fields of its kind are set.
type Topology struct {
	Kind string // fat-tree, leaf-spine, dumbbell, star, custom

	K                int     // fat-tree: pods; even, at least 2
	Hosts            int     // star: hosts; dumbbell: hosts on each side
	Leaves, Spines   int     // leaf-spine
	HostsPerLeaf     int     // leaf-spine
	Oversubscription float64 // leaf-spine: host bandwidth : uplink bandwidth per leaf; scales the uplink rate

	Link LinkSpec // default of every link

	// Tiers holds the tiers that the lab gives a value of their own, by name: host, edge, core (fat-tree: host =
	// host-edge, edge = edge-agg, core = agg-core); leaf-spine: host, leaf; dumbbell: host, core; star: host.
	// What the lab leaves open is from Link, but for the rate of tier leaf: 0 there means that it follows from
	// Oversubscription, as it does when the tier is absent.
	Tiers map[string]LinkSpec
	MTU   units.Bytes // payload bytes per packet
	Down  []string    // names of links that do not exist from the start

	Nodes []CustomNode // custom
	Links []CustomLink // custom
}

// LinkSpec is what a link is made of.
type LinkSpec struct {
	Rate  units.Bandwidth
	Delay units.Time
}

// CustomNode is a node of a custom topology.
type CustomNode struct {
	Name   string
	Switch bool
}

// CustomLink is a link of a custom topology, between two nodes by name.
type CustomLink struct {
	A, B string
	LinkSpec
}

// Size is an amount of data, absolute or as a multiple of the bandwidth-delay product of the link it is used
// on (its rate times the base RTT of the network). BDP is 0 when the amount is absolute.
type Size struct {
	Bytes units.Bytes
	BDP   float64
}

// Queues is the queues section: egress queues of switches.
type Queues struct {
	Buffer  Size   // per port
	ECN     *ECN   // nil: off
	Routing string // ecmp
}

// ECN is RED on the instantaneous queue.
type ECN struct {
	Kmin, Kmax Size
	Pmax       float64
	Ingress    bool // mark on enqueue instead of on dequeue
}

// Clocks is the clocks section. Only perfect synchronization exists so far.
type Clocks struct {
	Sync string // perfect
}

// Transport is the transport section.
type Transport struct {
	Kind string // pc4
	PC4  PC4
}

// Scaled as PC4.TargetQtime lets the target follow the baseline and the number of flows (section III-C).
const Scaled units.Time = -1

// PC4 holds the parameters of PC4 (paper Algorithms 1 and 2; docs/adr for what it leaves open).
type PC4 struct {
	TargetQtime    units.Time // at least 0, or Scaled
	AdjustInterval float64    // in base RTTs, above 1
	AI, HAI        float64    // additive increments as a share of the base rate
	Beta           float64
	MaxMDF         float64
	PacedBelow     float64     // windows of fewer packets are paced as well
	BaseRate       string      // controller, observed, off
	Initial        string      // base-rate, line, or window
	InitialWindow  units.Bytes // when Initial is window
	RTT            string      // base, measured: which RTT cwnd = tx_rate * rtt uses
	RTOMin         units.Time  // smallest retransmission timeout
	Epsilon        units.Time  // delays up to this count as zero
}

// Item is one collective of the workload.
type Item struct {
	Collective string // all-to-all, all-reduce, incast, permute
	Algorithm  string // resolved: all-to-all: direct; all-reduce: ring; incast, permute: direct
	Ranks      Ranks
	Root       string // incast: name of the receiving host; "" = the first host that is not a rank
	Size       units.Bytes
	Parallel   int         // 0: no limit
	Chunk      units.Bytes // 0: messages are not cut
	Repeat     int
	Start      units.Time
	Previous   bool // start: previous
}

// Ranks selects hosts. Exactly one of the fields says how. For an incast they are the senders: all are all but
// the root, and random ones are drawn from all but a root that is named.
type Ranks struct {
	All    bool
	First  int      // the first n hosts
	Names  []string // hosts by name, in rank order
	Random int      // so many hosts, drawn by the lab's seed
}

// Measure is the measure section.
type Measure struct {
	Queues units.Time // sampling interval of queue lengths; 0: off
	CWND   bool
}

// Expectation is a line of the expect section.
type Expectation struct {
	Text         string
	Line, Column int
}

// Engine is the engine section.
type Engine struct {
	Kind     string  // auto, sim, emu, both
	Runtime  string  // auto, namespace
	Datapath string  // auto, fabric
	Dilation float64 // 0: auto
}
