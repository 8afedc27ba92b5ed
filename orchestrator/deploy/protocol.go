package deploy

import (
	"net/netip"
	"time"

	"weft/nodeimg/boot"
)

// Kinds of message between the deployer and the supervisor, over the connection that the supervisor
// inherits.
const (
	kindSay  = "say"  // from the supervisor: what happens; body a line
	kindUp   = "up"   // from the supervisor: the lab is up; body up
	kindKeep = "keep" // from the deployer: keep it; until then the lab ends with the deployer
	kindKept = "kept" // from the supervisor: the journal records it
)

// up is the body of kindUp.
type up struct {
	Dilation float64
	Why      string   // see Deployment
	Failed   []string // see Change
}

// Kinds of message on the socket of a supervisor, with their bodies and answers. A connection
// carries one request, as its first message. Every request may also be answered by an error.
const (
	kindHello    = "hello"    // no body; answer done, at once. A supervisor of an earlier version: an error
	kindState    = "state"    // no body; answer state with State
	kindExec     = "exec"     // Exec with 3 descriptors, or 1 terminal; answer exit
	kindExit     = "exit"     // body Exit
	kindSignal   = "signal"   // no body: ends the program of exec; no answer
	kindLink     = "link"     // Link; answer done
	kindNode     = "node"     // Node; answer done
	kindCapture  = "capture"  // Capture with a socket; answer capture with Capturing
	kindEvents   = "events"   // Follow; answers event, at the end done
	kindEvent    = "event"    // body Event
	kindDone     = "done"     // body Done
	kindAttach   = "attach"   // Attach with a network namespace; answer attached with Attached
	kindAttached = "attached" // body Attached
	kindDetach   = "detach"   // Detach, with a network namespace if it exists; answer done
	kindCheck    = "check"    // Check; answers measured, at the end checked
	kindMeasured = "measured" // body Measured
	kindChecked  = "checked"  // body Checked
	kindEnd      = "end"      // no body; answer ended
	kindEnded    = "ended"    // body Ended: nothing runs any more, and the supervisor exits
)

// Exec is a program to be run in a node. Its descriptors are standard input, output and error, or
// one terminal for all three.
type Exec struct {
	Node string   `json:"node"`
	Args []string `json:"args"`
	Env  []string `json:"env,omitempty"`
	TTY  bool     `json:"tty,omitempty"`

	Shown   string `json:"shown,omitempty"`    // see runtime.Command
	LabTime bool   `json:"lab_time,omitempty"` // the program's clocks show lab time
	Whole   bool   `json:"whole,omitempty"`    // its process group ends with it
}

// Exit is how a program ended.
type Exit struct {
	Code int    `json:"code"` // 128 plus its number if a signal ended it; CodeNode with Ended
	Text string `json:"text,omitempty"`

	// Ended is why the program did not run, or not to its end with a network: the node, the lab or
	// its network has ended or does not answer, or the node is paused. Else it is empty.
	Ended string `json:"ended,omitempty"`
	// Stood is how much of the time the network stood or ran late, if it was too much for numbers,
	// or that it did not answer in the end. The kernel datapath does not know how late it is.
	Stood string `json:"stood,omitempty"`
}

// CodeNode is the exit code of a program with Exit.Ended. Programs rarely use it themselves; env(1)
// and docker-run(1) use the same for a like purpose.
const CodeNode = 125

// Link is a change of both directions of a link.
type Link struct {
	Link string `json:"link"`
	Up   *bool  `json:"up,omitempty"`  // nil: it stays up or down
	Set  string `json:"set,omitempty"` // properties such as "delay=5us,loss=0.1%"; the others stay
}

// Node is an action on a node.
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

// Capture selects frames to be copied: all that a node sends and receives, or all that a port
// sends.
type Capture struct {
	What string `json:"what"`           // a node, or a port such as edge0->agg1
	Snap int    `json:"snap,omitempty"` // bytes of each frame; 0: all
}

// Capturing describes a capture that has begun.
type Capturing struct {
	Lab      string  `json:"lab"`
	Name     string  `json:"name"`
	Port     bool    `json:"port"`
	Dilation float64 `json:"dilation"`
	Silent   string  `json:"silent,omitempty"` // why a host sends and receives nothing now
}

// Holder is a container that has the interface of a host, or asks for it, in CNI's terms.
type Holder struct {
	Network   string `json:"network"`
	Container string `json:"container"` // its ID
	Interface string `json:"interface"` // in the container
}

// Attach gives a container the interface of a host, or checks that it has it.
type Attach struct {
	Holder
	Host  string `json:"host,omitempty"` // empty: the first that is free, or, with Check, the container's
	Check bool   `json:"check,omitempty"`
}

// Attached is a container's attachment.
type Attached struct {
	Host    string       `json:"host"`
	Address netip.Prefix `json:"address"`
	MAC     string       `json:"mac"`
	Routes  []boot.Route `json:"routes,omitempty"`
	Taken   Taken        `json:"taken,omitempty"` // why there is none; the rest is empty
}

// Detach takes a host's interface from a container.
type Detach struct{ Holder }

// Follow asks for events.
type Follow struct {
	Follow bool `json:"follow"` // future events as well
}

// Event is something that happened to a lab.
type Event struct {
	Time  time.Time      `json:"time"`
	AtUS  float64        `json:"at_us"` // lab time; 0 before the network begins
	Lab   string         `json:"lab"`
	Event string         `json:"event"`
	Node  string         `json:"node,omitempty"`
	Link  string         `json:"link,omitempty"`
	Text  string         `json:"text,omitempty"`
	Args  map[string]any `json:"args,omitempty"`
}

// Done is the answer to a request that was carried out and returns no data.
type Done struct{}

// Ended is the result of the end of a lab.
type Ended struct {
	Error string `json:"error,omitempty"`
}

// State describes a deployed lab as it is now.
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
	Memory     string      `json:"memory"` // the nodes' memory limits and what enforces them, in words
	Subnet     string      `json:"subnet"` // of its hosts; unique within the state directory
	NowUS      float64     `json:"now_us"` // lab time
	Committed  bool        `json:"committed"`
	Broken     string      `json:"broken,omitempty"`   // why the network has ended; empty: it runs
	Machines   []string    `json:"machines,omitempty"` // other machines that the lab is on: "m1 is HOST"
	Notes      []string    `json:"notes,omitempty"`    // limitations of this machine
	Nodes      []NodeState `json:"nodes"`
	Links      []LinkState `json:"links"`
	Network    *Totals     `json:"network,omitempty"`
}

// NodeState is the state of a host or a switch.
type NodeState struct {
	Name    string `json:"name"`
	Tier    string `json:"tier"`
	Address string `json:"address,omitempty"`
	MAC     string `json:"mac,omitempty"`
	Machine string `json:"machine,omitempty"` // m1; absent: this one
	PID     int    `json:"pid,omitempty"`     // there
	Cable   string `json:"cable,omitempty"`   // tap, packet
	Holder  Holder `json:"holder,omitzero"`   // the container that has its interface
	State   string `json:"state"`             // running, paused, dead; modelled for a switch of the fabric
	Why     string `json:"why,omitempty"`     // if dead or unplugged
	Killed  bool   `json:"killed,omitempty"`  // it is dead since weft node killed it

	Clock *ClockState `json:"clock,omitempty"` // of a host that is alive; absent: it is exact

	// The host's program (run:), if it has one and is alive: running, done or failed.
	Program      string `json:"program,omitempty"`
	ProgramError string `json:"program_error,omitempty"` // if it failed

	Unplugged bool `json:"unplugged,omitempty"` // it runs without its interface: the network does not reach it

	// Frames of a host that the fabric did not carry: those without a destination, malformed ones
	// and those with the IP or MAC address of another source. The kernel datapath counts the latter
	// two together, as spoofed.
	NotRouted  int64 `json:"not_routed,omitempty"`
	Malformed  int64 `json:"malformed,omitempty"`
	Spoofed    int64 `json:"spoofed,omitempty"`
	SpoofedMAC int64 `json:"spoofed_mac,omitempty"`

	// Frames of a host to Weft's own UDP ports. The fabric carried them, but without a protocol
	// that synchronizes clocks no agent runs in a deployed lab: they are forged, or some program
	// uses these ports.
	Untaken int64 `json:"untaken,omitempty"`
}

// ClockState is what is true of the clock that programs of a host read as CLOCK_REALTIME.
type ClockState struct {
	OffsetUS float64 `json:"offset_us"` // by which it is ahead of lab time
	State    string  `json:"state"`     // of its synchronization: free, locked, holdover
}

// LinkState is the present state of a link.
type LinkState struct {
	Name    string  `json:"name"`
	A       string  `json:"a"`
	B       string  `json:"b"`
	State   string  `json:"state"` // up, down, absent
	RateBPS int64   `json:"rate_bps"`
	DelayUS float64 `json:"delay_us"`
	Loss    float64 `json:"loss"`

	// Damaged, duplicated and reordered packets; absent for links that deliver each packet intact,
	// once and in order.
	BitErrors   float64 `json:"bit_errors,omitempty"`
	Duplicate   float64 `json:"duplicate,omitempty"`
	Reorder     float64 `json:"reorder,omitempty"`
	ReorderByUS float64 `json:"reorder_by_us,omitempty"`
	JitterUS    float64 `json:"jitter_us,omitempty"`

	Changed bool        `json:"changed,omitempty"` // it differs from the lab file
	Changes []string    `json:"changes,omitempty"` // its properties that do: "loss=0.01"
	Restore []string    `json:"restore,omitempty"` // these as the lab has them: "loss=0"
	Further []string    `json:"further,omitempty"` // those beyond rate, delay and loss that it has: "jitter=1us"
	Ports   []PortState `json:"ports"`             // the directions from A and from B
}

// PortState is the state of one direction of a link.
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

// Totals are the counters of the whole network.
type Totals struct {
	Injected  int64 `json:"injected"`
	Delivered int64 `json:"delivered"`
	// reached a node that was paused or dead, or whose interface was down or gone
	Unreceived int64 `json:"unreceived"`
	Drops      int64 `json:"drops"`
	Lost       int64 `json:"lost"`
	Cut        int64 `json:"cut"`
	Marks      int64 `json:"ce_marks"`
	Refused    int64 `json:"unordered_drops"` // frames that a node's kernel refused
	NotRouted  int64 `json:"not_routed"`      // this and the next four: sums over NodeState
	Malformed  int64 `json:"malformed"`
	Spoofed    int64 `json:"spoofed"`

	SpoofedMAC int64 `json:"spoofed_mac"`

	Untaken int64 `json:"untaken"`
	Halted  int64 `json:"from_paused"` // frames of a paused or killed node, which are not carried
}
