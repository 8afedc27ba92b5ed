package transport

import (
	"fmt"

	"weft/transport/cc"
	"weft/transport/cc/ccm"
	"weft/transport/cc/dcqcn"
	"weft/transport/cc/pc4"
	"weft/transport/path"
	"weft/transport/wire"
	"weft/units"
)

// ccmScheme is coordinated congestion management: a congestion control whose reaction CCM holds
// back while switches can route around congestion. Packets then arrive out of order, so selective
// repeat is the default; go-back-N shows the cost without it.
func ccmScheme(s *Spec, p ccm.Params) scheme {
	planned, mode := s.Initial, s.Collective
	sch := scheme{
		either: true, paths: p.Paths,
		controller: func(l cc.Link) cc.Controller { return ccm.NewSender(p, l, planned) },
		receiver:   meter,
		chooser:    func(cc.Link, uint64, units.Bytes) path.Chooser { return path.NewRepath(p.Paths) },
		span:       widest,
	}
	switch {
	case p.DCQCN != nil:
		sch.receiver = func(units.Bandwidth) cc.Receiver { return dcqcn.NewNotifier(*p.DCQCN) }
	case p.PC4 != nil:
		sch.spaced = true
		sch.receiver = func(line units.Bandwidth) cc.Receiver { return pc4.NewReceiver(*p.PC4, mode, line, planned) }
	}
	return sch
}

// tag returns the coordination tag of a data packet, for switches (CCM draft, section 6.1).
func (s *sender) tag() wire.Coordination {
	if s.coordinated == nil {
		return wire.Coordination{}
	}
	t := wire.Coordination{On: true, CC: s.coordinated.Indicated()}
	if s.paths > 1 {
		t.AR = wire.AskSource
	}
	return t
}

// indexFlows registers the flows of a connection, one per source port, so that notices find the
// sender.
func (e *Endpoint) indexFlows(s *Spec, sender int32) {
	if e.flows == nil {
		e.flows = map[flowKey]int32{}
	}
	for p := range s.Paths() {
		e.flows[flowKey{s.Dst, s.SrcPort + uint16(p)}] = sender
	}
}

// flowKey identifies a flow in a notice; its source is this host.
type flowKey struct {
	dst  HostID
	port uint16
}

// receiveNotice handles a switch's notification at the source (CCM draft, section 6.4). It rejects
// notices that do not come from that switch's address, that are about a flow of another host, or
// that are replayed.
func (e *Endpoint) receiveNotice(now units.Time, in *Incoming) error {
	var n wire.Notice
	if err := n.Decode(in.Header); err != nil {
		return err
	}
	i, ok := e.flows[flowKey{HostID(n.Dst), n.SrcPort}]
	switch {
	case int64(in.Src) != int64(n.Switch) || e.cfg.Switches == 0 || in.Src < e.cfg.Switches:
		return fmt.Errorf("notice of switch %d from %d: %w", n.Switch, in.Src, ErrForeign)
	case !ok || HostID(n.Src) != e.cfg.Host:
		return fmt.Errorf("notice about the flow from %d to %d, port %d: %w", n.Src, n.Dst, n.SrcPort, ErrUnknownConn)
	case in.payload(wire.NoticeSize) != 0:
		return fmt.Errorf("notice with a payload: %w", ErrProtocol)
	}
	s := &e.senders[i]
	err := s.coordinated.OnNotice(now, cc.Notice{Kind: cc.NoticeKind(n.Kind), Last: n.Last, From: n.Switch, At: n.At})
	if err != nil {
		return fmt.Errorf("notice of switch %d on connection %d: %w", n.Switch, s.id, err)
	}
	e.counters.Notices++
	if r, ok := s.chooser.(*path.Repath); ok && n.Kind == wire.NeedsPath {
		r.Next()
		e.counters.Repaths++
		e.coordination(now, s, false, true)
	}
	e.observe(now, s)
	e.schedule(i, now)
	return nil
}

// CoordinationObserver is an Observer that also receives what coordinated congestion management
// does at a source.
type CoordinationObserver interface {
	// Coordinated is called when packets begin (cc) or cease to carry the CC indicator, and when
	// the connection changes to another source port (moved).
	Coordinated(now units.Time, c ConnID, cc, moved bool)
}

// coordination reports a change to an observer that wants it.
func (e *Endpoint) coordination(now units.Time, s *sender, cc, moved bool) {
	if o, ok := e.cfg.Observer.(CoordinationObserver); ok {
		o.Coordinated(now, s.id, cc, moved)
	}
}
