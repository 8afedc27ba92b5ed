package transport

import (
	"weft/transport/cc/dcqcn"
	"weft/transport/wire"
	"weft/units"
)

// Facts are what the rest of Weft needs to know about a transport. They stand in its registration, so that nothing else compares names.
type Facts struct {
	Telemetry   bool // switches write into its packets
	Coordinated bool // switches take part in its congestion management: they read a tag of its packets, choose paths and notify senders
	NetRTT      bool // its base RTT is that of the whole network, also between hosts that are nearer
	Selective   bool // its connections use selective repeat unless they ask for go-back-N
	Lossless    bool // it is meant for networks that lose nothing: those with PFC
}

// FactsOf returns the facts of a transport; none for an unknown name.
func FactsOf(name string) Facts {
	k, err := kindOf(name)
	if err != nil {
		return Facts{}
	}
	return k.facts
}

// Data returns what data packets have behind their headers when they cross a number of switches.
func (f Facts) Data(switches int) units.Bytes {
	if f.Coordinated {
		return wire.CoordinationSize
	}
	return f.Reply(switches)
}

// Reply returns what acknowledgements bring back of what switches wrote.
func (f Facts) Reply(switches int) units.Bytes {
	if f.Telemetry {
		return wire.TelemetrySize(switches)
	}
	return 0
}

// Marking is how switches mark for a transport in labs that do not say.
type Marking struct {
	Kmin, Kmax, Pmax string // as a lab writes them
	Source           string
}

// MarkingOf returns how switches mark for a transport in labs that do not say; ok is false where the transport has no values of its own. written
// returns the text of a key
// of its section, such as "preset", if the lab writes it.
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

// marking adds how switches mark for a transport.
func (k kind) marking(of func(written func(key string) (text string, ok bool)) Marking) kind {
	k.marks = of
	return k
}

// markingOfPreset is how switches mark for a preset of DCQCN.
func markingOfPreset(written func(string) (string, bool)) Marking {
	name, _ := written("preset")
	p := dcqcn.PresetOf(name).Marking()
	return Marking{p.ECN[0], p.ECN[1], p.ECN[2], p.Source}
}

// insideOfCCM names the congestion control inside ccm.
func insideOfCCM(written func(string) (string, bool)) string {
	if name, _ := written("inner"); name != "" {
		return name
	}
	return usualInner
}
