// Package cc is what a congestion control for Weft is written against, as a WebAssembly module.
//
// A congestion control is a struct of plain values, one for each connection, with the methods of
// Controller. A program gives it to Serve in a variable and has an empty main:
//
//	var _ = cc.Serve(cc.Module{Name: "fixed", Params: []cc.Param{...}}, &fixed{})
//
//	func main() {}
//
// and is built by
//
//	GOOS=wasip1 GOARCH=wasm go build -trimpath -buildmode=c-shared -o fixed.wasm .
//
// Weft calls the methods with what happens at a sender and reads Window and others after each.
// There is no clock: the time comes with every event, in picoseconds. There are no files, and no
// random numbers but those of Rand, which follow from the seed of the lab. Sizes are bytes on the
// wire, with all headers.
//
// These must hold. The struct is all that a connection remembers: it is moved byte by byte, so it
// contains no pointers, slices, maps, strings, channels, functions or interfaces, and the program
// keeps nothing elsewhere between events. An event must end soon: a loop that does not ends the
// run.
//
// This package imports nothing and stays compatible: a module that was built with version 1 keeps
// working. docs/your-own-congestion-control.md in Weft's repository is the tutorial, and
// docs/module-abi.md the interface in bytes, for other languages.
package cc

// Version is the version of the interface between module and Weft.
const Version = 1

// Time is an instant or a duration of the lab in picoseconds.
type Time int64

// Units of time.
const (
	Picosecond  Time = 1
	Nanosecond       = 1000 * Picosecond
	Microsecond      = 1000 * Nanosecond
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond
	// Never is later than every instant.
	Never Time = 1<<63 - 1
)

// Seconds returns the time in seconds.
func (t Time) Seconds() float64 { return float64(t) / 1e12 }

// Controller is a congestion control of one connection. It may have the methods of the other
// interfaces as well; Weft calls those that it has.
type Controller interface {
	// Init is called once, before everything else, on a struct whose bytes are 0.
	Init(l *Link, p *Values)
	// Ack is called for every acknowledgement.
	Ack(now Time, a *Ack)
	// Loss is called when packets are given up as lost.
	Loss(now Time, l *Loss)
	// Window returns how many bytes may be in flight, at least 1. A packet may leave while less
	// than that is in flight, so the last packet may overshoot it. Unlimited means no limit.
	Window() float64
}

// Unlimited is a window without a limit, for controls that have a rate only.
const Unlimited = 1e300

// Starter is a Controller that acts at the beginning of a message.
type Starter interface {
	// Start is called when data is queued on an idle connection, with nothing in flight.
	Start(now Time)
}

// Sender is a Controller that counts what leaves.
type Sender interface {
	// Sent is called after a packet has left.
	Sent(now Time, p *Sent)
}

// Notified is a Controller whose receivers answer marks by congestion notification packets.
type Notified interface {
	// Notify is called for every such packet.
	Notify(now Time)
}

// Timed is a Controller with timers.
type Timed interface {
	// Timer returns when Expire must be called, or Never. After Expire it is later than now.
	Timer() Time
	// Expire is called at or after that instant.
	Expire(now Time)
}

// Paced is a Controller with a rate. Without it packets are not paced.
type Paced interface {
	// Rate returns the rate in b/s at which packets are spaced; 0: they are not. A rate above that
	// of the line counts as the line's.
	Rate() float64
}

// Held is a Controller that delays the next packet beyond its rate.
type Held interface {
	// NotBefore returns an instant before which nothing leaves; 0: there is none.
	NotBefore() Time
}

// Link describes the path of a connection on an idle network, from the topology.
type Link struct {
	Line     float64 // rate of the host's NIC in b/s
	MTU      int64   // payload of a full packet
	Packet   int64   // size of a full packet on the wire
	Baseline Time    // one-way delay of a full packet
	BaseRTT  Time    // Baseline plus the delay of the acknowledgement
	NetRTT   Time    // the largest BaseRTT in the network
	Hops     int64   // links in the forward direction
	Seed     uint64  // for Rand; another one for each connection
}

// Sent describes a packet that has left. It is valid during the call.
type Sent struct {
	Size     int64
	InFlight int64 // with this packet
	Again    int64 // 1: it is a retransmission
}

// Ack describes an acknowledgement. It is valid during the call.
type Ack struct {
	Size     int64 // newly acknowledged bytes; 0: a duplicate
	Packets  int64 // newly acknowledged packets
	InFlight int64 // bytes still in flight
	SentAt   Time  // when the acknowledged packet left
	RTT      Time  // now - SentAt, positive
	OneWay   Time  // one-way queueing delay that the receiver measured; may be negative
	Flags    Flags
	Path     int64 // the path that the packet took
	Hops     int64 // number of switches that wrote into the packet; see Hop
}

// Flags of an Ack, added.
type Flags uint64

// The flags.
const (
	Marked     Flags = 1 // the packet was ECN-marked
	AppLimited Flags = 2 // less than the window was in flight
	Probe      Flags = 4 // it answers a probe, not data
)

// Has reports whether a flag is set.
func (f Flags) Has(flag Flags) bool { return f&flag != 0 }

// Hop is a switch port's record in the packet (in-band telemetry).
type Hop struct {
	At     Time    // when, by the switch's clock
	Sent   int64   // bytes that the port had sent before
	Queued int64   // bytes queued behind the packet
	Rate   float64 // rate of the link in b/s
}

// Kind is how a loss was detected.
type Kind int64

// Kinds of Loss.
const (
	Gap     Kind = 1 // the receiver asked to go back, or packets overtook more than reordering explains
	Timeout Kind = 2 // a retransmission timeout
	Probed  Kind = 3 // an answered probe without the packets sent before it
)

// Loss describes packets that were given up as lost. It is valid during the call.
type Loss struct {
	Kind Kind
	Size int64 // bytes to retransmit
	Try  int64 // timeouts in a row, from 1, if Kind is Timeout
}

// Rand is a stream of random numbers. It is part of a control's struct: Rand{l.Seed} in Init.
type Rand struct{ State uint64 }

// Uint64 returns the next number (splitmix64).
func (r *Rand) Uint64() uint64 {
	r.State += 0x9e3779b97f4a7c15
	z := r.State
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Float64 returns the next number, at least 0 and below 1.
func (r *Rand) Float64() float64 { return float64(r.Uint64()>>11) / (1 << 53) }
