package lab

import (
	"weft/transport/cc"
	"weft/units"
)

// Transport is the transport section.
type Transport struct {
	Kind    string  // of the table of transports
	Section Section // its parameters: a PC4, RoCE, Swift, HPCC or STrack
}

// A Section is the parameters that a lab gives a transport.
type Section interface {
	// Connection returns what a connection of the transport is made of whose sender has a line of a rate.
	Connection(line units.Bandwidth) Connection
}

// Connection is what a lab says of a connection, for its sender's line.
type Connection struct {
	Params    cc.Params
	Recovery  string    // go-back-n, selective-repeat; "": what the transport has
	Selective Selective // of STrack
	Timeouts
}

// Selective are the parameters of selective repeat.
type Selective struct {
	AckEvery   units.Bytes // the receiver acknowledges after so many bytes
	Threshold  int         // packets out of order up to which nothing is lost
	ProbeAfter float64     // base RTTs of the network without an acknowledgement before a probe
}

// Scaled as PC4.TargetQtime lets the target follow the baseline and the number of flows (section III-C).
const Scaled units.Time = -1

// PC4 holds the parameters of PC4 (paper Algorithms 1 and 2; docs/adr for what it leaves open).
type PC4 struct {
	TargetQtime    units.Time // at least 0, or Scaled
	AdjustInterval float64    // in base RTTs, above 1; 0: off
	AI, HAI        float64    // additive increments as a share of the base rate
	Beta           float64
	MaxMDF         float64
	PacedBelow     float64     // windows of fewer packets are paced as well
	BaseRate       string      // controller, observed, table, off
	Initial        string      // base-rate, line, or window
	InitialWindow  units.Bytes // when Initial is window
	RTT            string      // base, measured: which RTT cwnd = tx_rate * rtt uses
	RTOMin         units.Time  // smallest retransmission timeout
	Epsilon        units.Time  // delays up to this count as zero
}

// RoCE holds the parameters of RoCEv2: DCQCN's, those of its queue pairs, and those of go-back-N.
type RoCE struct {
	Preset string // where the values that the lab leaves open come from
	Mode   string // paper, mellanox: which of DCQCN's two machines
	Clamp  string // always, after-increase, after-bytes: when a cut takes the target rate along

	CNPInterval units.Time // least time between two notifications; 0: every marked packet gets one

	G             float64 // gain of α
	InitialAlpha  float64
	AlphaInterval units.Time
	AlphaFirst    bool // paper: raise α before the cut, not after

	DecreaseInterval units.Time // mellanox: at most one cut in it
	FirstRate        float64    // mellanox: what the first notification leaves of the rate
	MinRate          Rate

	RPTimer     units.Time
	ByteCounter units.Bytes // paper; 0: off
	F           int         // stages of fast recovery
	RAI, RHAI   Rate

	QPs      int    // queue pairs of a connection, each with a source port, a sequence and a rate of its own
	Split    string // messages: each is cut over all queue pairs; round-robin: each goes to the next
	Recovery string // go-back-n, selective-repeat
	Repath   int    // congested rounds after which a connection takes another source port; 0: never

	Timeouts
}

// Swift holds the parameters of Swift (SIGCOMM 2020, section 3).
type Swift struct {
	AI     float64 // packets per round trip
	Beta   float64
	MaxMDF float64

	BaseTarget   units.Time
	PerHop       units.Time
	FSRange      units.Time // the most that flow scaling adds
	FSMin, FSMax float64    // windows in packets between which it does

	MinWindow     units.Bytes
	MaxWindow     units.Bytes // 0: the path's bandwidth-delay product
	InitialWindow units.Bytes // 0: the same
	RetxReset     int         // timeouts in a row after which the window is the least
	BoltCompat    bool        // compute the target as the simulator of the Bolt paper does

	Timeouts
}

// HPCC holds the parameters of HPCC (SIGCOMM 2019, section 3).
type HPCC struct {
	Eta      float64     // target utilization
	MaxStage int         // additive increases in a row; 0: every update is multiplicative
	WAI      units.Bytes // additive increase; 0: the first window's (1-Eta)/Flows
	Flows    int         // 0 when WAI is not
	T        units.Time  // 0: the longest base RTT of the network
	MinRate  Rate        // 0: off

	Timeouts
}

// STrack holds the parameters of STrack (paper Algorithms 1 to 4 and Table 1), and of its recovery.
type STrack struct {
	Target   units.Time // target_Qdelay; 0: the base RTT of the network
	High     float64    // target_Qhigh in targets
	EWMA     float64    // weight of the newest delay in the average
	Alpha    float64    // packets, as printed: for 100 Gb/s and 12 us
	Beta     float64    // the same
	Eta      float64    // the same
	Gamma    float64    // of the multiplicative decrease
	MaxMDF   float64    // the most that it takes
	MaxCWND  float64    // greatest and first window, in bandwidth-delay products of the network
	NeedMark bool       // a window shrinks on marked packets only
	Paths    int        // source ports of a connection

	Selective
	Timeouts
}

// Timeouts say when a connection sends again, and when it gives up.
type Timeouts struct {
	RTOMin units.Time // 0: what no queue of the network can hold a packet for, at least 1 ms
	Tries  int        // timeouts in a row
}
