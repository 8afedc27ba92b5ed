package transport

import (
	"errors"
	"fmt"

	"weft/transport/cc"
	"weft/transport/wire"
	"weft/units"
)

// Config configures an endpoint.
type Config struct {
	Host     HostID
	MTU      units.Bytes     // payload of a full packet, 1 to wire.MaxPayload
	LineRate units.Bandwidth // of the NIC
	Seed     uint64          // for random choices of paths
	Switches HostID          `json:",omitempty"` // the first node that is a switch and may send notices; 0: none
	// the host's clock is not lab time: see SetClockOffset and Incoming.ClockOffset
	OwnClock bool `json:",omitempty"`

	Observer Observer `json:"-"` // nil: none
}

// Observer receives a sender's measurements.
type Observer interface {
	// Acked is called for every acknowledgement.
	Acked(now units.Time, c ConnID, a Acked)
	// Limited is called at acknowledgements, credits and timers if limits have changed.
	Limited(now units.Time, c ConnID, l Limits)
}

// ArrivalObserver is an Observer that also receives every data packet that a receiver takes, also
// those that no acknowledgement is of.
type ArrivalObserver interface {
	// Arrived is called with the packet's queueing delay, as the receiver measures it.
	Arrived(now units.Time, c ConnID, oneWay units.Time)
}

// Limits are the bounds on a sender.
type Limits struct {
	Window   units.Bytes     // of congestion control; 0: none
	Rate     units.Bandwidth // of pacing; 0: none
	Credited bool            // it needs credit of its receiver
	Credit   units.Bytes     // what is left of it, on the wire; negative after a packet larger than the rest
}

// Acked describes the packet that caused an acknowledgement.
type Acked struct {
	RTT    units.Time
	Marked bool // congestion experienced
}

// Spec describes a connection.
type Spec struct {
	ID       ConnID
	Src, Dst HostID
	SrcPort  uint16 // UDP source port of path 0; further paths have the ports that follow
	Forward  Path   // from Src to Dst
	Reverse  Path   // from Dst to Src

	Kind       string          // name of the transport, such as pc4; see Kinds
	CC         cc.Params       // parameters of its congestion control, of the type of Kind
	Initial    units.Bandwidth // planned base rate at the start (PC4); 0: none
	Collective string          // all-reduce, all-to-all, all-gather, ... (PC4, Table I)

	Recovery  string    `json:",omitempty"` // GoBackN or SelectiveRepeat; empty: the default of Kind
	Selective Selective `json:",omitzero"`  // for SelectiveRepeat
	// NetRTT is the longest idle round trip of the network (STrack, net_base_rtt). 0 means that of
	// the connection.
	NetRTT units.Time `json:",omitempty"`

	RTOMin units.Time // minimum retransmission timeout; 0: DefaultRTOMin
	Tries  int        // the connection fails at the timeout of this retry in a row; 0: DefaultTries
}

// Kinds of loss recovery, for Spec.Recovery.
const (
	GoBackN         = "go-back-n"        // InfiniBand's: pc4, swift, hpcc, and roce unless a lab says otherwise
	SelectiveRepeat = "selective-repeat" // STrack's: strack, spray, and ccm unless a lab says otherwise
)

// Selects reports whether the connection uses selective repeat.
func (s *Spec) Selects() bool {
	if s.Recovery == "" {
		return FactsOf(s.Kind).Selective
	}
	return s.Recovery == SelectiveRepeat
}

// Selective are the parameters of selective repeat. 0 means the default.
type Selective struct {
	AckEvery   units.Bytes // bytes on the wire per acknowledgement; DefaultAckEvery
	Threshold  int         // packets out of order that are no loss, even in a smaller window; DefaultThreshold
	ProbeAfter float64     // NetRTTs without an acknowledgement before a probe; DefaultProbeAfter
}

// Defaults of Selective: four packets of 4 KiB (UEC), and the values of STrack, section 3.3.2.
const (
	DefaultAckEvery           = 16 * 1024 * units.Byte
	DefaultThreshold          = 5
	DefaultProbeAfter float64 = 3
)

// Defaults of a Spec: a timeout longer than deep queues hold a packet, and the retry count that
// NCCL sets on its NICs.
const (
	DefaultRTOMin = units.Millisecond
	DefaultTries  = 7
)

// Errors that callers tell apart.
var (
	ErrUnknownConn = errors.New("transport: unknown connection")
	ErrFailed      = errors.New("transport: connection has failed")
	ErrProtocol    = errors.New("transport: packet contradicts the connection's state")
	ErrForeign     = errors.New("transport: packet from a host that is not the connection's peer")
)

// check returns the first thing wrong with c.
func (c Config) check() error {
	switch {
	case c.MTU < 1 || c.MTU > wire.MaxPayload:
		return fmt.Errorf("transport: mtu %d is not between 1 and %d", c.MTU, wire.MaxPayload)
	case c.LineRate <= 0:
		return fmt.Errorf("transport: line rate %d is not positive", c.LineRate)
	}
	return nil
}

// check returns the first thing wrong with s at a host, which must be one of its ends.
func (s *Spec) check(host HostID) error {
	switch {
	case s.Src == s.Dst:
		return fmt.Errorf("transport: connection %d is from host %d to itself", s.ID, s.Src)
	case s.Src != host && s.Dst != host:
		return fmt.Errorf("transport: connection %d from host %d to %d has no end at host %d", s.ID, s.Src, s.Dst, host)
	case s.NetRTT < 0 || s.NetRTT > wire.MaxBaseline:
		return fmt.Errorf("transport: connection %d: network RTT of %d ps is out of range", s.ID, s.NetRTT)
	case s.Selective.AckEvery < 0:
		return fmt.Errorf("transport: connection %d: acknowledgements every %d bytes", s.ID, s.Selective.AckEvery)
	case s.Selective.Threshold < 0 || s.Selective.Threshold > MaxThreshold:
		return fmt.Errorf("transport: connection %d: a threshold of %d reordered packets, at most %d are on their way",
			s.ID, s.Selective.Threshold, MaxThreshold)
	case !(s.Selective.ProbeAfter >= 0 && s.Selective.ProbeAfter <= 1e6):
		return fmt.Errorf("transport: connection %d: probes after %v RTTs", s.ID, s.Selective.ProbeAfter)
	case s.RTOMin < 0 || s.Tries < 0 || s.Initial < 0:
		return fmt.Errorf("transport: connection %d: timeout %d ps, %d tries or initial rate %d is negative", s.ID,
			s.RTOMin, s.Tries, s.Initial)
	}
	if err := s.Forward.check(); err != nil {
		return fmt.Errorf("transport: connection %d: forward path: %w", s.ID, err)
	}
	if err := s.Reverse.check(); err != nil {
		return fmt.Errorf("transport: connection %d: reverse path: %w", s.ID, err)
	}
	return nil
}

// check returns the first thing wrong with p. Baseline delays must fit into headers.
func (p Path) check() error {
	if p.Propagation < 0 || p.Propagation > wire.MaxBaseline/2 {
		return fmt.Errorf("delay of %d ps is out of range", p.Propagation)
	}
	if len(p.Rates) == 0 {
		return errors.New("no links")
	}
	for _, r := range p.Rates {
		if r <= 0 {
			return fmt.Errorf("link rate %d is not positive", r)
		}
	}
	const longest = wire.MaxPayload + wire.DataSize + wire.Overhead
	if d := p.Delay(longest + wire.TelemetrySize(wire.MaxHops)); d > wire.MaxBaseline {
		return fmt.Errorf("baseline delay of %d ps is out of range", d)
	}
	return nil
}
