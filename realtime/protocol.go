package realtime

import (
	"time"

	"weft/clocksync"
	"weft/fabric"
	"weft/internal/stalls"
	"weft/results/frames"
	"weft/results/record"
	"weft/results/stats"
	"weft/units"
)

// Kinds of message between the orchestrator and the fabric process, in the order in which they
// first occur. The orchestrator sends configure, start, labtime.KindScale if the machine's clock
// drifts, and finally stop. The fabric process sends ready, alive every AliveEvery from the start,
// samples, steps and gone from time to time, and report.
const (
	KindConfigure = "configure" // Config
	// KindReady has no value: every port is attached and ARP is answered. With the kernel as the
	// network it has a Ready.
	KindReady   = "ready"
	KindPeers   = "peers"   // []Keys, with as many descriptors: see Part; after configure
	KindNICs    = "nics"    // nothing, with descriptors: see NICs; after configure
	KindStart   = "start"   // Start
	KindAlive   = "alive"   // nothing, or of a part of a network Alive: the process is not stuck
	KindSamples = "samples" // []Sample
	KindFrames  = "frames"  // []frames.Frame
	KindSteps   = "steps"   // []fabric.Step
	KindGone    = "gone"    // Gone
	KindStop    = "stop"    // nothing: stop carrying frames, and report
	KindReport  = "report"  // Report
)

// Kinds of request that the orchestrator may make between start and stop; captures also between
// ready and start, so that they include the first frame. Requests are answered in order.
const (
	KindChange  = "change"  // fabric.Change, made at once whatever its instant; answered by did
	KindHalt    = "halt"    // Halt; answered by did
	KindPlug    = "plug"    // Plug, with the descriptor of the host's new cable; answered by did
	KindCapture = "capture" // Capture, with a socket for Captured records; answered by did
	KindLook    = "look"    // no value; answered by state
	KindMeasure = "measure" // Measure: measure a link of the kernel by probes; answered by found
	KindDid     = "did"     // Did
	KindState   = "state"   // State
	KindFound   = "found"   // Found
)

// Alive is the instant up to which a part of a network has sent all that it has recorded.
type Alive struct {
	At units.Time
}

// Did is the result of a request.
type Did struct {
	Error string // empty: it was done
}

// Ready is the dilation at which the kernel carries packets: Config.Dilation or one of
// Config.Slower.
type Ready struct {
	Dilation float64
	Tried    []Tried // the dilations before it
}

// Tried is a dilation at which links were not as the lab demands.
type Tried struct {
	Dilation float64
	Links    string // see Report.Links
}

// Halt stops a host or lets it continue. While it is stopped nothing that it sends is carried, and
// what arrives for it is lost.
type Halt struct {
	Host   int
	Halted bool
}

// Measure requests a measurement of a direction of a link of the kernel.
type Measure struct {
	Port int // index in Config.Network.Ports
}

// Found is the probes' measurement of a direction. Rate and delays are in lab time.
type Found struct {
	Error  string          // why it could not be measured; empty: it was
	Missed string          // what is not as demanded, in words; empty: everything is
	Tries  int             // number of measurements
	Rate   units.Bandwidth // measured
	Delay  units.Time      // measured, of a full packet on the idle link, with its transmission
	Asked  units.Time      // the same delay by the lab
	Lost   int             // probes
	Sent   int             // probes

	LossTold bool // loss is demanded, and the probes were enough to tell it from none
}

// Gone says that a host's interface is gone, so that nothing is carried from it or to it until
// Plug; or that it is down, which State then says.
type Gone struct {
	Host int
	Why  string `json:",omitempty"` // not empty: the network has shut it out, for this reason
}

// Plug gives a host a new descriptor.
type Plug struct {
	Host int
	Kind string // PortTAP or PortPacket
}

// State is a snapshot of the network.
type State struct {
	At      units.Time
	Network fabric.Counters
	Ports   []PortState // by index in Config.Network.Ports
	Hosts   []HostState
	Waiting []string // what keeps packets from moving: see fabric.Network.Waiting

	Refused, Halted, Unreceived int64    // see Report
	Stalls                      []Stalls // see Report
}

// PortState is a snapshot of a port.
type PortState struct {
	Up       bool
	Link     fabric.Link
	Queued   units.Bytes
	Counters fabric.PortCounters
}

// HostState is a snapshot of a host as the network sees it.
type HostState struct {
	Gone bool // its interface is gone
	Down bool // its interface is down

	Own int64 // packets of the host to Weft's own ports that were carried, whatever their contents

	Refusals // of its frames
}

// Refusals counts the frames of one host that the network did not carry.
type Refusals struct {
	Malformed int64 // cut short, or with a broken header: IPv4's or, to Weft's port, UDP's
	NotRouted int64 // broadcast, multicast, unknown destinations, protocols other than IPv4 and ARP
	// from an IP address of the network, or to Weft's ports from one that is not the host's
	Spoofed int64
	// to Weft's ports, from the host's IP address and a MAC address that is not the host's
	SpoofedMAC int64
}

// Add adds the counters of another host.
func (r *Refusals) Add(o Refusals) {
	r.Malformed += o.Malformed
	r.NotRouted += o.NotRouted
	r.Spoofed += o.Spoofed
	r.SpoofedMAC += o.SpoofedMAC
}

// AliveEvery is the real time between two messages that say that the fabric process is not stuck.
const AliveEvery = 200 * time.Millisecond

// Config is all that the fabric process needs to know besides its ports.
type Config struct {
	Network  fabric.Config
	Changes  []fabric.Change // in order of their instants
	Dilation float64         // above 0; see package labtime
	// Slower is larger dilations, in the order to try them, for a kernel whose links are not as
	// demanded.
	Slower []float64
	Hosts  []Address  // by host
	Sample units.Time // interval of queue samples in lab time; 0: none
	// Frames is when frames of the network are recorded and sent.
	Frames   frames.Schedule
	MaxFrame int // longest frame in bytes with its Ethernet header; 0: 10 KB

	// Switch is the source address of the datagrams that pause NICs (wire.Pause). It
	// must not be a host's. Zero: hosts are not told, and what they send waits in the NIC.
	Switch [4]byte

	// Switches are the addresses from which switches send notifications of CCM and measure their
	// links. They must not be hosts'. Empty: switches send nothing.
	Switches [][4]byte

	// NICs says that hosts have bypass NICs; nil: they have none.
	NICs *NICs `json:",omitempty"`

	// Part says that the process carries a part of the network; nil: all of it.
	Part *Part `json:",omitempty"`

	// More says that another configure follows the report.
	More bool

	// Ahead is the longest time by which a data packet of Weft's transport may be read before the
	// departure instant in its header. It is held until that instant. A packet that is earlier than
	// that is sent at once: its instant is not credible.
	Ahead units.Time

	// Pause is how long the loop may go without looking at the network when there is much to do, in
	// lab time: deliveries may be late by that much for the sake of fewer wake-ups. 0: as little as
	// possible.
	Pause units.Time

	// Stall is the length of the shortest stall that is recorded; 0: none is. Programs says that
	// hosts send through their interfaces although they have bypass NICs.
	Stall    units.Time
	Programs bool

	// Departs says that data packets and synchronization messages end with their departure instant
	// (wire.AppendDeparture), because their stamps are of imperfect clocks. It is removed.
	Departs bool

	// Transparent makes switches correct PTP's event messages for the time that they waited in the
	// switches.
	Transparent bool

	// PeerDelay makes every switch a peer-to-peer transparent clock: it measures its links once per
	// interval, and adds the delay of the link by which a Sync arrived as well. Network.Stations
	// must be PTP's event port, and Switches have the addresses. 0: off. Control sends these
	// messages before data.
	PeerDelay units.Time
	Control   bool
}

// Address is the name and the addresses of a host or switch.
type Address struct {
	Name string
	IP   [4]byte
	MAC  MAC
}

// Kinds of descriptor, for Port.Kind and Plug.Kind.
const (
	PortTAP    = "tap"    // the character device of a TAP: frames without packet information header
	PortPacket = "packet" // an AF_PACKET socket bound to one end of a veth
)

// Port is the fabric process's end of a host's link.
type Port struct {
	FD   int
	Kind string // PortTAP or PortPacket
}

// Start begins lab time.
type Start struct {
	T0 int64 // CLOCK_MONOTONIC in nanoseconds
}

// Sample is the length of one queue at one instant, and what the queue has marked and dropped since
// the start of lab time. Empty queues are not reported; of the kernel's queues, which are sampled
// seldom, those that have marked or dropped since their last sample are.
type Sample struct {
	At     units.Time
	Port   int // index in Network.Ports
	Queued units.Bytes
	Marks  int64 // packets
	Drops  int64 // packets
}

// Stalls is when a process was behind: see package stalls.
type Stalls struct {
	Who string // a part of the network; empty: all of it is one
	stalls.Log
	Late stalls.Log // when data packets of its hosts that should have left came late
}

// Report is the fabric process's report at the end. Times are lab time.
type Report struct {
	Elapsed units.Time // lab time at the end
	Network fabric.Counters
	Ports   []fabric.PortCounters // by port, as in Config.Network
	Sampled bool                  // their MaxQueue are the largest of samples

	Delivery   *stats.Dist // by how much each frame was written after its scheduled arrival
	Departure  *stats.Dist // by how much each data packet of Weft's was read after its departure instant
	QueueDelay *stats.Dist // time in switch queues, by delivered data packet
	// Decisions is by how much after a packet each decision of a switch with CCM was made that
	// follows from it; nil: the switches themselves make them.
	Decisions *stats.Dist `json:",omitempty"`

	Stalls []Stalls // of the process, or of that of each part

	Refused  int64      // frames that the destination's kernel did not take: losses that the model did not order
	Refusals []Refusals // by sending host
	// Beside is, by sending host, the packets carried that are neither Weft's own nor among
	// Answers.
	Beside []int64
	// Answers is, by sending host, the ICMP errors carried about packets that had been carried to
	// the host and that its kernel had no use for.
	Answers []int64
	Early   int64 // frames before the start of lab time
	Unborn  int64 // of these, data packets of Weft's that were to leave later: this process began late
	Halted  int64 // frames that halted hosts sent, which are not carried
	// Unreceived is, of the packets that Network counts as delivered, those whose host was halted,
	// had ended, or had taken its interface down.
	Unreceived int64
	ARP        int64 // requests answered
	Backlog    int   // largest number of frames read in a row from one port

	// Bridges is the counters of switches that are peer-to-peer transparent clocks; nil: there are
	// none.
	Bridges *clocksync.Counters `json:",omitempty"`

	Uncaptured int64 // records of captures that were lost because nothing read them in time

	MaxNIC units.Bytes // largest number of bytes seen waiting in one host's NIC

	Crossings *Crossings `json:",omitempty"` // of a network in parts; nil: it is in one piece

	CPU       int64  // processor time used since the start, in real nanoseconds
	Scheduler string // what the kernel granted: see poller.TakeOver
	Links     string // table of the links' measurements before the run; empty: none
	// Checked is the summary of Links; nil: none.
	Checked *record.LinkCheck `json:",omitempty"`
	Broken  string            // error of the network's conservation check; empty: none
}
