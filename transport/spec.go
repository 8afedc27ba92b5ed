package transport

import (
	"errors"
	"fmt"

	"weft/transport/cc/dcqcn"
	"weft/transport/cc/hpcc"
	"weft/transport/cc/pc4"
	"weft/transport/cc/swift"
	"weft/transport/wire"
	"weft/units"
)

// Config is what an endpoint is made of.
type Config struct {
	Host     HostID
	MTU      units.Bytes     // payload of a full packet, 1 to wire.MaxPayload
	LineRate units.Bandwidth // of the NIC
	Seed     uint64          // for choices that schemes leave to chance

	Observer Observer `json:"-"` // nil: nobody watches
}

// Observer is told what acknowledgements bring.
type Observer interface {
	// Acked is told of every acknowledgement: the round trip of the packet that caused it and its queueing
	// delay on the way there as the receiver measured it.
	Acked(now units.Time, c ConnID, rtt, oneWay units.Time)
	// Window is told when the window or the pacing rate has changed; rate is 0 when unpaced.
	Window(now units.Time, c ConnID, cwnd units.Bytes, rate units.Bandwidth)
}

// Spec is a connection.
type Spec struct {
	ID       ConnID
	Src, Dst HostID
	SrcPort  uint16 // of path 0
	Forward  Path   // from Src to Dst
	Reverse  Path   // from Dst to Src

	Kind       string          // transport: pc4, roce, swift, hpcc
	PC4        pc4.Params      // when Kind is pc4
	DCQCN      dcqcn.Params    `json:",omitzero"` // when Kind is roce
	Swift      swift.Params    `json:",omitzero"` // when Kind is swift
	HPCC       hpcc.Params     `json:",omitzero"` // when Kind is hpcc
	Initial    units.Bandwidth // base rate that the controller foresees at the start; 0: none
	Collective string          // what the connection serves: all-reduce, all-to-all, all-gather, ... (PC4, Table I)

	RTOMin units.Time // least retransmission timeout; 0: DefaultRTOMin
	Tries  int        // timeouts in a row before the connection fails; 0: DefaultTries
}

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
