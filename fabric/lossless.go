package fabric

import (
	"fmt"

	"weft/units"
)

// LosslessRule is a rule that a configuration must follow so that PFC loses nothing and serves its
// purpose.
type LosslessRule uint8

// The rules.
const (
	// RuleCovered: if a switch protects a class of one of its ports, it protects that class of
	// every port.
	RuleCovered LosslessRule = iota + 1
	// RuleHeadroom: the headroom of a port holds what arrives after the pause was sent: the bytes
	// on the link and those that the port sends until the pause takes effect, the packet that
	// caused the pause, and the one that the port finishes.
	RuleHeadroom
	// RuleMemory: reserves and headrooms leave some of the switch's memory to be shared.
	RuleMemory
	// RuleECN: a queue that is fed by one port marks packets before that port is paused (DCQCN,
	// SIGCOMM 2015, section 4). Otherwise nothing is lost, but congestion control never sees
	// congestion.
	RuleECN
)

// LosslessFault is a rule that a configuration breaks.
type LosslessFault struct {
	Rule   LosslessRule
	Switch NodeID
	Port   int         // index in Config.Ports of the port that is or should be paused; RuleMemory: -1
	Queue  int         // RuleECN: the port whose queue marks too late
	Class  uint8       // of the packets; RuleMemory: 0
	Need   units.Bytes // minimum headroom; reserved memory; Kmin
	Have   units.Bytes // headroom; total memory; bytes at which the port is paused

	text string
}

// Error describes the fault, with its numbers.
func (f LosslessFault) Error() string { return f.text }

// Headroom returns the minimum headroom with which a port loses nothing: 2·delay·rate +
// response·rate + 2·mtu. mtu is the largest packet on the wire.
func Headroom(rate units.Bandwidth, delay, response units.Time, mtu units.Bytes) units.Bytes {
	span := 2*delay + response
	inFlightBytes := rate.BytesIn(span)
	if rate.TransmitTime(inFlightBytes) < span {
		inFlightBytes++ // round up to a byte
	}
	return inFlightBytes + 2*mtu
}

// CheckLossless returns the rules that cfg breaks, in order of switches and ports; none if no port
// has PFC. mtu is the largest packet on the wire. cfg must be one that New accepts, except for its
// buffers.
func CheckLossless(cfg *Config, mtu units.Bytes) (faults []LosslessFault) {
	k := losslessCheck{cfg: cfg, mtu: mtu, in: make([][]int, len(cfg.Switches)), out: make([][]int, len(cfg.Switches))}
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		if s := int(p.To) - cfg.Hosts; s >= 0 {
			k.in[s] = append(k.in[s], i)
		}
		if s := int(p.From) - cfg.Hosts; s >= 0 {
			k.out[s] = append(k.out[s], i)
		}
	}
	for s := range cfg.Switches {
		shared := k.memory(s)
		for class := range uint8(Classes) {
			k.class(s, class, shared)
		}
	}
	return k.faults
}

// losslessCheck is a CheckLossless in progress.
type losslessCheck struct {
	cfg     *Config
	mtu     units.Bytes
	in, out [][]int // by switch: the ports that lead to it, and its own
	faults  []LosslessFault
}

func (k *losslessCheck) fault(f LosslessFault, format string, args ...any) {
	name := k.cfg.Switches[int(f.Switch)-k.cfg.Hosts].Name
	if name == "" {
		name = fmt.Sprintf("switch %d", int(f.Switch)-k.cfg.Hosts)
	}
	f.text = name + ": " + fmt.Sprintf(format, args...)
	k.faults = append(k.faults, f)
}

// memory checks switch s as a whole and returns the size of its shared memory.
func (k *losslessCheck) memory(s int) units.Bytes {
	total := k.cfg.Switches[s].Buffer.Total
	if total == 0 {
		return boundless
	}
	reserved := units.Bytes(0)
	for _, i := range k.in[s] {
		for _, f := range k.cfg.Ports[i].PFC {
			if f.On {
				reserved += f.Reserve + f.Headroom
			}
		}
	}
	if reserved >= total {
		k.fault(LosslessFault{Rule: RuleMemory, Switch: NodeID(k.cfg.Hosts + s), Port: -1, Need: reserved, Have: total},
			"headrooms and reserves of %d ports take %d bytes, the buffer has %d", len(k.in[s]), reserved, total)
		return 0
	}
	return total - reserved
}

// class checks a class in switch s.
func (k *losslessCheck) class(s int, class uint8, shared units.Bytes) {
	protected := 0
	for _, i := range k.in[s] {
		if k.cfg.Ports[i].PFC[class].On {
			protected++
		}
	}
	if protected == 0 {
		return
	}
	for _, i := range k.in[s] {
		p := &k.cfg.Ports[i]
		f := p.PFC[class]
		at := LosslessFault{Switch: p.To, Port: i, Class: class}
		if !f.On {
			at.Rule = RuleCovered
			k.fault(at, "port %d from node %d has no PFC in class %d, %d others have", i, p.From, class, protected)
			continue
		}
		if need := Headroom(p.Rate, p.Delay, f.Response, k.mtu); f.Headroom < need {
			at.Rule, at.Need, at.Have = RuleHeadroom, need, f.Headroom
			k.fault(at, "port %d from node %d: headroom of %d bytes, "+
				"needs %d: 2 x %.3f us + %.3f us at %d b/s, and 2 x %d bytes",
				i, p.From, f.Headroom, need, p.Delay.Microseconds(), f.Response.Microseconds(), p.Rate, k.mtu)
		}
		k.ecn(s, at, f, shared)
	}
}

// ecn checks that each queue of switch s, if one port alone feeds it, marks before that port is
// paused.
func (k *losslessCheck) ecn(s int, at LosslessFault, f PFCConfig, shared units.Bytes) {
	pause := pausesAt(f, shared)
	for _, o := range k.out[s] {
		if e := &k.cfg.Ports[o].ECN; e.On && e.Kmin >= pause {
			at.Rule, at.Need, at.Have, at.Queue = RuleECN, e.Kmin, pause, o
			k.fault(at, "port %d marks above %d bytes (Kmin), "+
				"but a port that feeds it (%d, from node %d) is paused at %d",
				o, e.Kmin, at.Port, k.cfg.Ports[at.Port].From, at.Have)
			return
		}
	}
}

// pausesAt returns the number of waiting bytes at which a port is paused, if nothing else uses the
// shared memory.
func pausesAt(f PFCConfig, shared units.Bytes) units.Bytes {
	if f.Alpha > 0 {
		return f.Reserve + min(times(f.Alpha/(1+f.Alpha), shared), shared) // used = alpha (shared - used)
	}
	return f.Reserve + min(f.Xoff, shared)
}
