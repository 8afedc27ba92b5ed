package transport

import (
	"errors"
	"fmt"

	"weft/transport/cc"
	"weft/transport/wire"
	"weft/units"
)

// Config is what an endpoint is made of.
type Config struct {
	Host     HostID
	MTU      units.Bytes     // payload of a full packet, 1 to wire.MaxPayload
	LineRate units.Bandwidth // of the NIC
	Seed     uint64          // for choices that schemes leave to chance
	Switches HostID          `json:",omitempty"` // nodes from here on are switches, whose notices count; 0: none
	OwnClock bool            `json:",omitempty"` // the host's clock is not lab time: see SetShift and Incoming.Shift

	Observer Observer `json:"-"` // nil: nobody watches
}

// Observer is told what acknowledgements bring.
type Observer interface {
	// Acked is told of every acknowledgement.
	Acked(now units.Time, c ConnID, a Acked)
	// Window is told when the window or the pacing rate has changed; rate is 0 when unpaced.
	Window(now units.Time, c ConnID, cwnd units.Bytes, rate units.Bandwidth)
}

// Acked is what an acknowledgement says of the packet that caused it.
type Acked struct {
	RTT    units.Time
	OneWay units.Time // queueing delay on the way there, as the receiver measured it
	Marked bool       // congestion experienced
}

// Spec is a connection.
type Spec struct {
	ID       ConnID
	Src, Dst HostID
	SrcPort  uint16 // of path 0
	Forward  Path   // from Src to Dst
	Reverse  Path   // from Dst to Src

	Kind       string          // transport: a name in the table of kinds, such as pc4
	CC         cc.Params       // what its congestion control is set to, of the type that the kind has
	Initial    units.Bandwidth // base rate that the controller foresees at the start; 0: none
	Collective string          // what the connection serves: all-reduce, all-to-all, all-gather, ... (PC4, Table I)

	Recovery  string     `json:",omitempty"` // GoBackN or SelectiveRepeat; empty: the default of Kind
	Selective Selective  `json:",omitzero"`  // of SelectiveRepeat
	NetRTT    units.Time `json:",omitempty"` // the longest idle round trip of the network (STrack, net_base_rtt); 0: the connection's own

	RTOMin units.Time // least retransmission timeout; 0: DefaultRTOMin
	Tries  int        // retries in a row before the connection fails, at the timeout of the last; 0: DefaultTries
}

// How losses are recovered from.
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

// Selective are the parameters of selective repeat. What is 0 has its default.
type Selective struct {
	AckEvery   units.Bytes // the receiver acknowledges after so many bytes on the wire; DefaultAckEvery
	Threshold  int         // packets out of order up to which nothing is lost, however small the window; DefaultThreshold
	ProbeAfter float64     // NetRTTs without an acknowledgement before a probe; DefaultProbeAfter
}

// Defaults of Selective: four packets of 4 KiB (UEC), and what STrack recommends in section 3.3.2.
const (
	DefaultAckEvery           = 16 * 1024 * units.Byte
	DefaultThreshold          = 5
	DefaultProbeAfter float64 = 3
)

// Defaults of a Spec: a floor that deep queues do not reach, and the retry count that NCCL sets on its NICs.
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

func (c Config) check() error {
	switch {
	case c.MTU < 1 || c.MTU > wire.MaxPayload:
		return fmt.Errorf("transport: mtu %d is not between 1 and %d", c.MTU, wire.MaxPayload)
	case c.LineRate <= 0:
		return fmt.Errorf("transport: line rate %d is not positive", c.LineRate)
	}
	return nil
}

func (s *Spec) check(host HostID) error {
	switch {
	case s.Src == s.Dst:
		return fmt.Errorf("transport: connection %d leads from host %d to itself", s.ID, s.Src)
	case s.Src != host && s.Dst != host:
		return fmt.Errorf("transport: connection %d from host %d to %d does not concern host %d", s.ID, s.Src, s.Dst, host)
	case s.NetRTT < 0 || s.NetRTT > wire.MaxBaseline:
		return fmt.Errorf("transport: connection %d: network RTT of %d ps is out of range", s.ID, s.NetRTT)
	case s.Selective.AckEvery < 0 || s.Selective.Threshold < 0 || s.Selective.Threshold > maxSpan:
		return fmt.Errorf("transport: connection %d: acknowledgements every %d bytes or a threshold of %d packets is out of range", s.ID, s.Selective.AckEvery, s.Selective.Threshold)
	case !(s.Selective.ProbeAfter >= 0 && s.Selective.ProbeAfter <= 1e6):
		return fmt.Errorf("transport: connection %d: probes after %v RTTs", s.ID, s.Selective.ProbeAfter)
	case s.RTOMin < 0 || s.Tries < 0 || s.Initial < 0:
		return fmt.Errorf("transport: connection %d: timeout %d ps, %d tries or initial rate %d is negative", s.ID, s.RTOMin, s.Tries, s.Initial)
	}
	if err := s.Forward.check(); err != nil {
		return fmt.Errorf("transport: connection %d: way there: %w", s.ID, err)
	}
	if err := s.Reverse.check(); err != nil {
		return fmt.Errorf("transport: connection %d: way back: %w", s.ID, err)
	}
	return nil
}

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
	if d := p.Delay(wire.MaxPayload + wire.DataSize + wire.TelemetrySize(wire.MaxHops) + wire.Overhead); d > wire.MaxBaseline {
		return fmt.Errorf("baseline delay of %d ps is out of range", d)
	}
	return nil
}
