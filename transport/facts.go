package transport

import (
	"weft/transport/cc"
	"weft/transport/cc/dcqcn"
	"weft/transport/wire"
	"weft/units"
)

// Facts are the properties of a transport that the rest of Weft needs. They are part of its
// registration, so that no other package compares names.
type Facts struct {
	Telemetry   bool // switches write telemetry into its packets (INT)
	BaseRate    bool // acknowledgements carry a base rate (PC4)
	Coordinated bool // switches read a tag of its packets, choose paths and notify senders (CCM)
	NetRTT      bool // its base RTT is the longest of the network, for every connection
	Selective   bool // its default recovery is selective repeat
	Lossless    bool // it is meant for lossless networks: those with PFC
	Trimmable   bool // switches may trim its data packets (UEC)
	Module      bool // it is a file beside the lab, which the lab must name

	Help []Help // how a controller that knows all flows helps its senders

	Color   int    // of its lines in all charts: a colour of plot.Series, from 1; 0: none is kept for it
	Control string // what its congestion control is called, if not as it is; else empty
}

// Help is a key of a transport's section by which a controller that knows all flows helps senders.
type Help struct {
	Key     string
	Values  []string // the values with which the controller helps
	Without string   // a value without its help
}

// helped says that the controller helps by a key of the section, unless its value is without.
func (k kind) helped(key, without string, values ...string) kind {
	k.facts.Help = append(k.facts.Help, Help{key, values, without})
	return k
}

// FactsOf returns the facts of a transport; the zero value for an unknown name.
func FactsOf(name string) Facts {
	k, err := kindOf(name)
	if err != nil {
		return Facts{}
	}
	return k.facts
}

// FactsFor is FactsOf for a transport with these parameters, on which facts can depend.
func FactsFor(name string, p cc.Params) Facts {
	f := FactsOf(name)
	if t, ok := p.(interface{ Telemetry() bool }); ok {
		f.Telemetry = t.Telemetry()
	}
	if k, err := kindOf(name); err == nil && k.inner != nil {
		inner, _ := k.inner(p)
		f.BaseRate = FactsOf(inner).BaseRate
	}
	return f
}

// Data returns the bytes that data packets carry after their headers on a path across that many
// switches.
func (f Facts) Data(switches int) units.Bytes {
	if f.Coordinated {
		return wire.CoordinationSize
	}
	if f.Trimmable {
		return wire.RequestSize
	}
	return f.telemetry(switches)
}

// Reply returns the size of an acknowledgement's header on a path across that many switches, with
// what follows it. selective is the kind of recovery.
func (f Facts) Reply(selective bool, switches int) units.Bytes {
	if !selective {
		return wire.AckSize + f.telemetry(switches)
	}
	a := wire.Sack{Rated: f.BaseRate}
	return a.Len() + f.telemetry(switches)
}

// telemetry returns the bytes of telemetry in a packet on a path across that many switches.
func (f Facts) telemetry(switches int) units.Bytes {
	if f.Telemetry {
		return wire.TelemetrySize(switches)
	}
	return 0
}

// Marking is a transport's default for ECN marking at switches.
type Marking struct {
	Kmin, Kmax, Pmax string // as a lab writes them
	Source           string // where they come from
}

// MarkingOf returns a transport's default for ECN marking. ok is false if the transport has none.
// written returns the text of a key of its section, such as "preset", if the lab sets it.
func MarkingOf(name string, written func(key string) (text string, ok bool)) (m Marking, ok bool) {
	k, err := kindOf(name)
	switch {
	case err != nil:
		return Marking{}, false
	case k.inside != nil:
		inner := k.inside(written)
		return MarkingOf(inner, func(key string) (string, bool) { return written(inner + "." + key) })
	case k.marks == nil:
		return Marking{}, false
	}
	return k.marks(written), true
}

// marking adds the default for ECN marking.
func (k kind) marking(of func(written func(key string) (text string, ok bool)) Marking) kind {
	k.marks = of
	return k
}

// markingOfPreset returns the default of a preset of DCQCN.
func markingOfPreset(written func(string) (string, bool)) Marking {
	name, _ := written("preset")
	p := dcqcn.PresetOf(name).Marking()
	return Marking{p.ECN[0], p.ECN[1], p.ECN[2], p.Source}
}

// insideOfCCM returns the name of the congestion control inside ccm.
func insideOfCCM(written func(string) (string, bool)) string {
	if name, _ := written("inner"); name != "" {
		return name
	}
	return defaultInner
}
