package deploy

import (
	"time"

	"weft/units"
)

// Kinds of message between whoever deploys a lab and its supervisor, over the connection that the supervisor inherits.
const (
	kindUp   = "up"   // supervisor: the lab is up; up
	kindKeep = "keep" // deployer: then keep it; until this is said the lab ends with the deployer
	kindKept = "kept" // supervisor: it is written down
)

// up is what the lab came to be.
type up struct {
	Dilation float64
	Why      string // as in Deployment
}

// Kinds of message on the socket of a supervisor. A connection carries one request, which comes first. Every request is
// answered by what is named here, or by an error.
const (
	kindState    = "state"    // nothing; State
	kindExec     = "exec"     // Exec, with three descriptors, or one that is a terminal; exit
	kindExit     = "exit"     // Exit
	kindSignal   = "signal"   // Signal, while a program runs; no answer
	kindLink     = "link"     // Link; done
	kindNode     = "node"     // Node; done
	kindCapture  = "capture"  // Capture, with a socket; Capturing
	kindEvents   = "events"   // Follow; event, until there is no more, then done
	kindEvent    = "event"    // Event
	kindDone     = "done"     // Done
	kindCheck    = "check"    // Check; measured, until there is no more, then checked
	kindMeasured = "measured" // Measured
	kindChecked  = "checked"  // Checked
	kindEnd      = "end"      // nothing; ended
	kindEnded    = "ended"    // Ended: nothing runs any more, and the supervisor is about to end
)

// Exec is a program to be run in a node. Its descriptors are standard input, output and error, or a terminal that is all
// of them.
type Exec struct {
	Node string   `json:"node"`
	Args []string `json:"args"`
	Env  []string `json:"env,omitempty"`
	TTY  bool     `json:"tty,omitempty"`
}

// Exit is how a program ended.
type Exit struct {
	Code int    `json:"code"` // 128 and its number if a signal ended it; CodeNode if Ended
	Text string `json:"text,omitempty"`

	// Ended says why the program did not run, or not to its end: the node, or the lab, has ended or stands still. It is
	// empty where the program itself ended.
	Ended string `json:"ended,omitempty"`
}

// CodeNode is the exit code of a program that its node kept from running to its end. Like that of env(1) and docker-run(1)
// it is one that programs rarely use.
const CodeNode = 125

// Link is a change of a link of a lab, of both directions. What is nil stays.
type Link struct {
	Link      string           `json:"link"`
	Up        *bool            `json:"up,omitempty"`
	Rate      *units.Bandwidth `json:"rate_bps,omitempty"`
	Delay     *units.Time      `json:"delay_ps,omitempty"`
	Loss      *float64         `json:"loss,omitempty"`
	BitErrors *float64         `json:"bit_errors,omitempty"`
	Duplicate *float64         `json:"duplicate,omitempty"`
	Reorder   *float64         `json:"reorder,omitempty"`
	ReorderBy *units.Time      `json:"reorder_by_ps,omitempty"`
	Jitter    *units.Time      `json:"jitter_ps,omitempty"`
}

// Node is something to be done to a node.
type Node struct {
	Node   string `json:"node"`
	Action string `json:"action"` // kill, pause, resume, restart
}

// Actions on nodes.
const (
	NodeKill    = "kill"
	NodePause   = "pause"
	NodeResume  = "resume"
	NodeRestart = "restart"
)

// Capture is what is to be captured: what a node sends and receives, or what a port sends.
type Capture struct {
	What string `json:"what"` // a node, or a port such as edge0->agg1
	Snap int    `json:"snap,omitempty"`
}

// Capturing says what is being captured.
type Capturing struct {
	Lab      string  `json:"lab"`
	Name     string  `json:"name"`
	Port     bool    `json:"port"`
	Dilation float64 `json:"dilation"`
}

// Follow asks for events.
type Follow struct {
	Follow bool `json:"follow"` // also those to come
}

// Event is something that became of a lab.
type Event struct {
	Time  time.Time      `json:"time"`
	AtUS  float64        `json:"at_us"` // lab time; before the network began 0
	Lab   string         `json:"lab"`
	Event string         `json:"event"`
	Node  string         `json:"node,omitempty"`
	Link  string         `json:"link,omitempty"`
	Text  string         `json:"text,omitempty"`
	Args  map[string]any `json:"args,omitempty"`
}

// Done says whether what was asked for was done.
type Done struct{}

// Ended says how the end of a lab went.
type Ended struct {
	Error string `json:"error,omitempty"`
}

// State is what a deployed lab is like.
type State struct {
	Lab        string      `json:"lab"`
	Topology   string      `json:"topology"`
	File       string      `json:"file"`
	Deployment string      `json:"deployment"`
	Began      time.Time   `json:"began"`
	Runtime    string      `json:"runtime"`
	Datapath   string      `json:"datapath"`
	Dilation   float64     `json:"dilation"`
	Supervisor int         `json:"supervisor_pid"`
	Memory     string      `json:"memory"` // what nodes may use, and what keeps them to it, in words
	Subnet     string      `json:"subnet"` // that its hosts share, and no other lab of the state directory has
	NowUS      float64     `json:"now_us"` // lab time
	Committed  bool        `json:"committed"`
	Broken     string      `json:"broken,omitempty"` // why the network has ended
	Notes      []string    `json:"notes,omitempty"`  // what the machine did not grant
	Nodes      []NodeState `json:"nodes"`
	Links      []LinkState `json:"links"`
	Network    *Totals     `json:"network,omitempty"`
}

// NodeState is a host or a switch.
type NodeState struct {
	Name    string `json:"name"`
	Tier    string `json:"tier"`
	Address string `json:"address,omitempty"`
	MAC     string `json:"mac,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Cable   string `json:"cable,omitempty"` // tap, packet
	State   string `json:"state"`           // running, paused, dead; modelled for a switch of the fabric
	Why     string `json:"why,omitempty"`   // of a dead one, and of one without its interface

	Unplugged bool `json:"unplugged,omitempty"` // it runs, without its interface: the network does not reach it

	// Frames of a host that the fabric did not carry: without a destination, broken, and those that pretend to be from somebody else.
	NotRouted int64 `json:"not_routed,omitempty"`
	Malformed int64 `json:"malformed,omitempty"`
	Spoofed   int64 `json:"spoofed,omitempty"`

	// Frames of a host to Weft's own ports, which the fabric carried and which no agent takes, as no workload runs: forged, or of a
	// program that uses these ports.
	Untaken int64 `json:"untaken,omitempty"`
}

// LinkState is a link as it is now.
type LinkState struct {
	Name    string  `json:"name"`
	A       string  `json:"a"`
	B       string  `json:"b"`
	State   string  `json:"state"` // up, down, absent
	RateBPS int64   `json:"rate_bps"`
	DelayUS float64 `json:"delay_us"`
	Loss    float64 `json:"loss"`

	// How packets come twice or late; not there in labs whose links do neither.
	Duplicate   float64 `json:"duplicate,omitempty"`
	Reorder     float64 `json:"reorder,omitempty"`
	ReorderByUS float64 `json:"reorder_by_us,omitempty"`
	JitterUS    float64 `json:"jitter_us,omitempty"`

	Changed bool        `json:"changed,omitempty"` // it is not as the lab file has it
	Ports   []PortState `json:"ports"`             // from A, from B
}

// PortState is one direction of a link.
type PortState struct {
	Name        string `json:"name"` // edge0->agg1
	QueuedBytes int64  `json:"queued_bytes"`
	MaxQueue    int64  `json:"max_queue_bytes"`
	Packets     int64  `json:"packets"`
	Bytes       int64  `json:"bytes"`
	Drops       int64  `json:"drops"`
	Lost        int64  `json:"lost"`
	Cut         int64  `json:"cut"`
	Marks       int64  `json:"ce_marks"`
}

// Totals are what the network has carried.
type Totals struct {
	Injected  int64 `json:"injected"`
	Delivered int64 `json:"delivered"`
	Drops     int64 `json:"drops"`
	Lost      int64 `json:"lost"`
	Cut       int64 `json:"cut"`
	Marks     int64 `json:"ce_marks"`
	Refused   int64 `json:"unordered_drops"` // frames that a node's kernel did not take
	NotRouted int64 `json:"not_routed"`      // this and the next three: of the nodes, whose own numbers are in NodeState
	Malformed int64 `json:"malformed"`
	Spoofed   int64 `json:"spoofed"`
	Untaken   int64 `json:"untaken"`
	Halted    int64 `json:"to_or_from_paused"`
}
