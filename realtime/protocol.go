package realtime

import (
	"time"

	"weft/clocksync"
	"weft/fabric"
	"weft/results/stats"
	"weft/units"
)

// Kinds of message between the orchestrator and the fabric process, in the order in which they are first
// said. The orchestrator says configure, start and at last stop; the fabric process says ready, alive every
// AliveEvery from the start, samples, steps and gone from time to time, and report.
const (
	KindConfigure = "configure" // Config
	KindReady     = "ready"     // nothing: every port is attached, ARP is answered; of the kernel's datapath, Ready
	KindStart     = "start"     // Start
	KindAlive     = "alive"     // nothing: it is not stuck
	KindSamples   = "samples"   // []Sample
	KindSteps     = "steps"     // []fabric.Step
	KindGone      = "gone"      // Gone
	KindStop      = "stop"      // nothing: stop carrying, report
	KindReport    = "report"    // Report
)

// Kinds of request that the orchestrator may make between start and stop; a capture also between ready and start, so
// that it has the first frame. Each is answered, in order.
const (
	KindChange  = "change"  // fabric.Change, made at once, whatever its instant; answered by did
	KindHalt    = "halt"    // Halt; answered by did
	KindPlug    = "plug"    // Plug, with the descriptor of the host's new cable; answered by did
	KindCapture = "capture" // Capture, with a socket for Captured records; answered by did
	KindLook    = "look"    // nothing; answered by state
	KindMeasure = "measure" // Measure: of the kernel's links, by probes; answered by measured
	KindDid     = "did"     // Did
	KindState   = "state"   // State
	KindFound   = "found"   // Found
)

// Did says whether what was asked for was done.
type Did struct {
	Error string // empty: it was
}

// Ready is at which dilation the kernel carries packets: Config's, or one of those that it may have instead.
type Ready struct {
	Dilation float64
	Tried    []Tried // before
}

// Tried is a dilation at which links are not what the lab asks for.
type Tried struct {
	Dilation float64
	Links    string // as in Report
}

// Halt stops a host, or lets it go on: while it is stopped nothing that it sends is carried, and what arrives for it
// is lost.
type Halt struct {
	Host   int
	Halted bool
}

// Measure asks what a direction of a link of the kernel's is really like.
type Measure struct {
	Port int // index in Config.Network.Ports
}

// Found is what probes found of a direction. Rate and Delay are the lab's.
type Found struct {
	Error  string // why it could not be measured; empty: it was
	Missed string // what is not as asked, in words; empty: everything is
	Tries  int
	Rate   units.Bandwidth // what was found
	Delay  units.Time      // of a full packet on the idle line, its transmission included
	Asked  units.Time      // the same, as the lab says
	Lost   int             // probes
	Sent   int
}

// Gone says that a host's end of its cable is gone, so that until Plug nothing is carried from it or to it; or is down, as State says then.
type Gone struct {
	Host int
}

// Plug gives a host a new cable.
type Plug struct {
	Host int
	Kind string // PortTAP or PortPacket
}

// State is what the network is like at an instant.
type State struct {
	At      units.Time
	Network fabric.Counters
	Ports   []PortState // by their index in Config.Network.Ports
	Hosts   []HostState
	Waiting []string // who waits for whom: see fabric.Network.Waiting

	Refused, Halted int64 // see Report
}

// PortState is what a port is like.
type PortState struct {
	Up        bool
	Rate      units.Bandwidth
	Delay     units.Time
	Loss      float64
	BitErrors float64
	Disorder  fabric.Disorder
	Queued    units.Bytes
	Counters  fabric.PortCounters
}

// HostState is what a host is like, as the network sees it.
type HostState struct {
	Gone   bool // its end of the cable is gone
	Down   bool // its end of the cable is down
	Halted bool

	Own int64 // packets of the host to Weft's own ports that were carried, whatever was in them

	Refusals // of what it sent
}

// Refusals count the frames of one host that the network did not carry.
type Refusals struct {
	Malformed int64 // cut short, or with a broken header of IPv4 or, to Weft's port, of UDP
	NotRouted int64 // broadcast, multicast, unknown destinations, protocols other than IPv4 and ARP
	Spoofed   int64 // from an address of the network's, or to Weft's ports from one that is not the host's
}

// Add adds those of another host.
func (r *Refusals) Add(o Refusals) {
	r.Malformed += o.Malformed
	r.NotRouted += o.NotRouted
	r.Spoofed += o.Spoofed
}

// AliveEvery is the real time between two messages that say that the fabric process is not stuck.
const AliveEvery = 200 * time.Millisecond

// Config is all that the fabric process must know beside its ports.
type Config struct {
	Network  fabric.Config
	Changes  []fabric.Change // by their instants
	Dilation float64
	Slower   []float64  // larger dilations, in the order in which the kernel may have them where its links are not as asked
	Hosts    []Address  // by host
	Sample   units.Time // interval of queue samples in lab time; 0: none
	MaxFrame int        // longest frame in bytes, Ethernet header included; 0: 10 KB

	// Switch is the address, no host's, from which hosts are told that their NIC is paused: see wire.Pause. Zero:
	// they are not told, and what they send waits in the NIC.
	Switch [4]byte

	// Switches are the addresses, none of them a host's, from which switches send: notifications of CCM, and what measures their links. Empty:
	// they send nothing.
	Switches [][4]byte

	// More says that another configure follows the report.
	More bool

	// Ahead is the longest that a data packet of Weft's transport may come before the departure instant in
	// its header; it is held until then. What comes earlier is not believed and leaves at once.
	Ahead units.Time

	// Pause is how much time may pass between two looks at the network when there is much to do: what
	// deliveries may be late by for the sake of fewer wake-ups, in lab time. 0: as few as can be.
	Pause units.Time

	// Departs says that data packets and synchronization messages say when they leave behind all that they carry
	// (wire.AppendDeparture), which is taken off, since their stamps are of imperfect clocks.
	Departs bool

	// Transparent has switches correct PTP's event messages for the time that they waited in them.
	Transparent bool

	// PeerDelay has every switch measure its links once per interval, and add the delay of the link that a Sync came by as well:
	// they are peer-to-peer transparent clocks. Network.Stations is PTP's event port, and Switches are the addresses that they
	// send from. 0: they do not. Control has what they send served before data.
	PeerDelay units.Time
	Control   bool
}

// Address is how a host is known on the network.
type Address struct {
	Name string
	IP   [4]byte
	MAC  MAC
}

// Kinds of descriptor.
const (
	PortTAP    = "tap"    // the character device of a TAP: frames without the packet information header
	PortPacket = "packet" // an AF_PACKET socket bound to one end of a veth
)

// Port is the fabric's end of a host's cable.
type Port struct {
	FD   int
	Kind string // PortTAP or PortPacket
}

// Start says when lab time begins.
type Start struct {
	T0 int64 // CLOCK_MONOTONIC in nanoseconds
}

// Sample is the length of one queue at one instant, and what it has marked and dropped since lab time began. Empty queues are
// not reported; those of the kernel, which is seldom asked, are where they have marked or dropped since their last sample.
type Sample struct {
	At     units.Time
	Port   int // index in Network.Ports
	Queued units.Bytes
	Marks  int64 // packets
	Drops  int64 // packets
}

// Report is what the fabric process knows at the end. Times are lab time.
type Report struct {
	Elapsed units.Time // lab time at which it stopped
	Network fabric.Counters
	Ports   []fabric.PortCounters // by port, as in Config.Network

	Delivery   *stats.Dist // how late each frame was written, against its scheduled arrival
	Departure  *stats.Dist // how late each data packet of Weft's was read, against its departure instant
	QueueDelay *stats.Dist // waiting in switches, per delivered data packet

	Refused  int64      // frames that the kernel would not take at the destination: not ordered by the model
	Refusals []Refusals // by the host that sent them
	Beside   []int64    // packets carried that are neither Weft's own nor among Answers, likewise
	Answers  []int64    // ICMP errors carried about packets that were carried to the host, which its kernel had no use for, likewise
	Early    int64      // frames before the start of lab time
	Halted   int64      // frames that hosts which were halted sent or should have received
	ARP      int64      // requests answered
	Backlog  int        // the most frames read in a row from one port

	Bridges *clocksync.Counters `json:",omitempty"` // of switches that are peer-to-peer transparent clocks; nil: none is

	Uncaptured int64 // records of captures that were lost, because nobody read them in time

	MaxNIC units.Bytes // the most that was seen waiting in one host's NIC

	CPU       int64  // processor time used since the start, in real nanoseconds
	Scheduler string // what the kernel granted: see poller.TakeOver
	Links     string // what was measured of links before, as a table; empty: nothing
	Broken    string // what conservation check of the network failed; empty: none
}
