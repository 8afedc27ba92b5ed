package record

import "weft/units"

// Flow is a row of flows.parquet: one message, from the sender's side.
type Flow struct {
	Item, Repeat int // item of the workload, counting every group of ranks as one, and its repetition, both from 0
	Src, Dst     string
	Conn         uint32
	Message      uint32
	Size         units.Bytes
	Start        units.Time // handed to the transport
	Finished     bool
	FCT          units.Time // from Start to the last acknowledgement, when Finished
	Ideal        units.Time // FCT of the same message alone on the idle network
}

// Slowdown is FCT over Ideal, or 0 for a flow that did not finish.
func (f Flow) Slowdown() float64 {
	if !f.Finished || f.Ideal <= 0 {
		return 0
	}
	return float64(f.FCT) / float64(f.Ideal)
}

// Part is a row of collectives.parquet: one rank's part in one repetition of one item.
type Part struct {
	Item, Repeat int
	Collective   string
	Algorithm    string
	Rank         int
	Host         string
	Start, End   units.Time
	Checked      int64 // elements compared with the reference
	Wrong        int64 // of those, the ones that differ
}

// Queue is a row of queues.parquet: one port that held something at one sampling instant, and what it had done by then.
type Queue struct {
	At     units.Time
	Port   string // "edge0->agg1"
	Queued units.Bytes
	Marks  int64 // packets marked since the run began
	Drops  int64 // packets that did not fit since the run began
}

// Ack is a row of acks.parquet: an acknowledgement that a sender took in.
type Ack struct {
	At     units.Time
	Conn   uint32
	RTT    units.Time // of the packet that caused it
	Marked bool       // that packet had seen congestion (CE)
}

// Window is a row of cwnd.parquet: a change of one connection's congestion window.
type Window struct {
	At     units.Time
	Conn   uint32
	Window units.Bytes
	Rate   units.Bandwidth
}

// Rate is a row of rates.parquet: what one connection carried in one sampling interval; none when it was nothing.
type Rate struct {
	At    units.Time // end of the interval
	Conn  uint32
	Bytes units.Bytes
	Rate  units.Bandwidth
}

// Port is a row of ports.parquet: what one port of the network did.
type Port struct {
	Port        string
	Packets     int64
	Bytes       units.Bytes
	Drops       int64
	Marks       int64
	MaxQueue    units.Bytes
	Lost, Cut   int64
	Pauses      int64
	Paused      units.Time
	MaxHeadroom units.Bytes
	Rate        units.Bandwidth // of its link
}

// Clock is a row of clocks.parquet: the truth about one host's synchronized clock at one instant.
type Clock struct {
	At    units.Time
	Host  string
	Error units.Time // synchronized time less true time
	Bound units.Time // what the host says that it is within; 0 while it says nothing
	State string     // free, locked, holdover
	Down  bool       // synchronization does not run on it
}

// Event is a line of events.jsonl. Everything in it is in lab units; wall time has no place here.
type Event struct {
	At     units.Time
	Kind   string // "collective started", "node died" ...
	Where  string // node, port or item, if any
	Detail string
}

// Manifest says what was run, where and by which program: manifest.json. It and the summary are the only
// files of a run that know wall time.
type Manifest struct {
	Format    int            `json:"format"` // version of the run directory
	Run       string         `json:"run"`
	Lab       string         `json:"lab"`
	Point     map[string]any `json:"point,omitempty"`
	Set       []string       `json:"set,omitempty"`    // what the command line replaced in the lab, as path=value
	Settings  []Setting      `json:"settings"`         // the resolved lab, defaults filled in
	Traces    []Trace        `json:"traces,omitempty"` // the files that the lab names
	Seed      uint64         `json:"seed"`
	Version   string         `json:"version"`           // of weft
	Program   string         `json:"program,omitempty"` // SHA-256 of weft itself, the first half
	Go        string         `json:"go"`                // version of the compiler
	Engine    string         `json:"engine"`
	EngineWhy string         `json:"engine_why"` // why this engine was chosen
	Datapath  string         `json:"datapath,omitempty"`
	Runtime   string         `json:"runtime,omitempty"`
	Dilation  float64        `json:"dilation"`
	Faults    []Fault        `json:"faults,omitempty"` // what the lab has happen during the run, in its order
	Machine   Machine        `json:"machine"`
	Process   *Process       `json:"process,omitempty"`
	Started   string         `json:"started"` // RFC 3339, UTC
	Ended     string         `json:"ended,omitempty"`
	Series    *Series        `json:"series,omitempty"`
	Retry     *Retry         `json:"retry,omitempty"`
	Status    string         `json:"status" jsonschema:"enum=running,enum=ok,enum=unverified,enum=unfinished,enum=failed,enum=interrupted"`
	Error     string         `json:"error,omitempty"`
	Fidelity  *Fidelity      `json:"fidelity,omitempty"` // of an emulation that ended
	Files     []File         `json:"files,omitempty"`    // of a run that ended
}

// Series is what a run has in common with the others of its lab that one command line made.
type Series struct {
	ID     string `json:"id"`              // of the command line; no two have the same
	Number int    `json:"number"`          // of this run among those of its lab, from 1
	Of     int    `json:"of"`              // how many there are
	Sweep  string `json:"sweep,omitempty"` // the folder beside this one with what is said of all of them together
}

// Fault is something that the lab has happen to a link, to a host or to a clock.
type Fault struct {
	Path    string  `json:"path"`           // of its settings: faults.0
	Link    string  `json:"link,omitempty"` // by its name in the topology
	Host    string  `json:"host,omitempty"`
	What    string  `json:"what"`               // down, killed, paused, loss 5%, ...
	FromUS  float64 `json:"from_us"`            // when it begins
	UntilUS float64 `json:"until_us,omitempty"` // when it is over; absent: it lasts to the end of the run, or is over at once
	Once    bool    `json:"once,omitempty"`     // it is over at once

	RerouteUS float64 `json:"reroute_us,omitempty"` // after a link goes down or comes up again: when all switches know; absent: they never do

	Cut int64 `json:"cut,omitempty"` // packets that a link cut off when it went down, and later for want of it
}

// LinkDown is what happens to a link that carries nothing.
const LinkDown = "down"

// Began says whether the fault began in a run that ended at an instant, in microseconds of lab time.
func (f Fault) Began(endUS float64) bool { return f.FromUS <= endUS }

// File is a file of a run directory.
type File struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	Sum   uint32 `json:"crc32c"`
}

// Setting is one value of the resolved lab and where it came from.
type Setting struct {
	Path  string `json:"path"`
	Value string `json:"value"`
	From  string `json:"from"`
}

// Trace is a file that the lab names, as it was read.
type Trace struct {
	File string `json:"file"` // below the lab file's folder
	Text string `json:"text"`
}

// Machine is the computer the run was made on.
type Machine struct {
	Host   string `json:"host"`
	OS     string `json:"os"`
	Arch   string `json:"arch"`
	Kernel string `json:"kernel"` // its release; "uml " before it is User Mode Linux, on the machine's own
	CPUs   int    `json:"cpus"`
}

// Process is the process that makes the run, told from all others that have or had its number.
type Process struct {
	PID     int    `json:"pid"`
	Started uint64 `json:"started_ticks"` // clock ticks from the start of the machine
	Boot    string `json:"boot"`          // which start of which machine
	Space   string `json:"pid_namespace"` // that the number is of
}
