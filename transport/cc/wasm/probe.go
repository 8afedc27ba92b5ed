package wasm

import (
	"errors"
	"fmt"
	"slices"

	"weft/transport/cc"
	"weft/units"
)

// errImpure is the error of a module whose answers depend on more than the events of a connection.
var errImpure = errors.New("the events of one connection change another: it keeps something outside of its state; " +
	"expected all of it in the state, because connections share instances")

// probe returns an error if the module fails in a few ordinary events, if two connections that
// share an instance differ from one that has it alone, or if values that no parameter has change
// an answer. It finds mistakes, such as a global variable in the place of a field; it does not
// prove that there are none.
func (m *Module) probe() error {
	s := m.Section()
	for _, k := range s.Keys() {
		if _, err := k.Value.Set(k.Text, false); err != nil {
			return fmt.Errorf("parameter %s: %w", k.Name, err)
		}
	}
	newProbe := func(seed uint64, beyond ...Value) *Sender {
		l := probeLink
		if l.Seed = seed; seed > 1 { // else a variable that Init sets would have the same value
			l.Line, l.MTU, l.Packet, l.Hops = l.Line/4, l.MTU/4, l.Packet/4, l.Hops+2
			l.Baseline, l.BaseRTT, l.NetRTT = 3*l.Baseline, 3*l.BaseRTT, 3*l.NetRTT
		}
		return newSender(m, Params{Values: append(s.Values(), beyond...)}, l)
	}
	alone := newProbe(1)
	want := make([]answer, 0, probes)
	for i := range probes {
		want = append(want, alone.probe(i, false))
	}
	one, other := newProbe(1), newProbe(2)
	for i := range probes {
		other.probe(i, true)
		got := one.probe(i, false)
		if one.err == nil && got != want[i] {
			return errImpure
		}
	}
	for _, s := range []*Sender{alone, other, one} {
		if s.err != nil {
			return fmt.Errorf("tried with a few events: %w", s.err)
		}
	}
	n := len(m.Params)
	strange := newProbe(1, slices.Repeat([]Value{{Number: notDeclared}}, maxParams-n)...)
	for i := range probes {
		if got := strange.probe(i, false); got != want[i] || strange.err != nil {
			return fmt.Errorf("it reads parameter p[%d] or a later one, which is 0, and declares %d; "+
				"expected a declaration of each", n, n)
		}
	}
	return nil
}

// notDeclared is tried in the place of parameters that a module does not declare.
const notDeclared = 1_000_003.5

// answer is a module's answer to an event: see the fields of Sender.
type answer struct {
	window    units.Bytes
	rate      units.Bandwidth
	timer     units.Time
	notBefore units.Time
}

// probes is the number of events of a try.
const probes = 48

// probeLink is the path of a try: two hops at 100 Gb/s.
var probeLink = cc.Link{
	Line: 100 * units.Gbps, MTU: 4096, Packet: 4180, Baseline: 4 * units.Microsecond, BaseRTT: 8 * units.Microsecond,
	NetRTT: 8 * units.Microsecond, Hops: 2,
}

// probe passes event i of a try to the sender. Those of a bad connection have more marks and
// losses.
func (s *Sender) probe(i int, bad bool) answer {
	now := units.Time(i+1) * 3 * units.Microsecond
	rtt := probeLink.BaseRTT + units.Time(i%5)*2*units.Microsecond
	switch {
	case s.timer <= now:
		s.Advance(now)
	case i == 0:
		s.OnStart(now)
	case i%3 == 1:
		s.OnSent(now, cc.Sent{Size: probeLink.Packet, InFlight: units.Bytes(i%4+1) * probeLink.Packet})
	case i%11 == 0 && s.module.CNP:
		s.OnCNP(now)
	case i%23 == 0 || bad && i%7 == 0:
		s.OnLoss(now, cc.Loss{Kind: cc.Gap, Size: probeLink.Packet})
	default:
		a := cc.Ack{Size: probeLink.Packet, Packets: 1, InFlight: probeLink.Packet, SentAt: now - rtt, RTT: rtt,
			OneWay: rtt - probeLink.BaseRTT, Marked: i%13 == 0 || bad && i%3 == 0}
		if s.module.INT {
			a.INT = []cc.Hop{{At: now - rtt/2, Sent: units.Bytes(i) * probeLink.Packet, Rate: probeLink.Line}}
		}
		s.OnAck(now, a)
	}
	return answer{s.window, s.rate, s.timer, s.notBefore}
}
