// Package queues is the section `queues` of a lab file: the queues of switches, with their keys,
// defaults and rules.
//
// In goes the text of the section, by way of package params; out comes Queues. Sizes may be
// relative to the link behind a queue, as in 5bdp. The ports of package fabric, which act on these
// settings, have them in bytes; orchestrator/experiment converts them.
//
// The one idea is that a setting is declared once, in Keys, with its range, default and source.
// What must hold between settings is in Rules and in the conditions of keys: PFC needs a memory
// that the ports of a switch share, and trimming needs a buffer for each port.
//
// Start reading at Queues.Keys. The settings of single links and tiers are in link.go.
package queues

import (
	"fmt"

	"weft/fabric"
	"weft/params"
	"weft/units"
)

// Queues are the settings of the egress queues of switches.
type Queues struct {
	Buffer  params.Size // per port; not used with Shared
	Shared  *Shared     // the memory of each switch, for all its ports; never nil with PFC
	ECN     *ECN        // nil: off
	PFC     *PFC        // nil: off
	Trim    *Trim       // nil: off; never with Shared
	Routing string      // one of Routings
	Light   params.Size // adaptive: a port is light, that is uncongested, while at most this waits

	foreseen
}

// foreseen is what decides where packets wait: in a buffer for each port, or in one that all ports
// of a switch share. With PFC it is shared, because a switch counts all that it holds.
type foreseen struct {
	shared, unshared bool // the key shared is written: as a section, or as off
	pfc, static      bool // the key pfc is not off, and has xoff
}

// Prescan implements params.Prescanner.
func (q *Queues) Prescan(written func(path string) (text string, ok bool)) {
	text, ok := written("shared")
	q.unshared, q.shared = ok && text == "off", ok && text != "off"
	text, ok = written("pfc")
	q.pfc = ok && text != "off"
	_, q.static = written("pfc.xoff")
}

// ecmp is the routing that chooses by the hash of the flow. It is the name of fabric.ECMP in lab
// files.
const ecmp = "ecmp"

// Routings returns the names by which a lab file says how switches choose among equal paths.
func Routings() []string { return []string{ecmp, string(fabric.Spray), string(fabric.Adaptive)} }

// PerPacket reports whether switches choose a path for each packet.
func (q *Queues) PerPacket() bool { return q.Routing != ecmp }

// Balance returns how switches choose among equal paths.
func (q *Queues) Balance() fabric.Balance {
	if q.PerPacket() {
		return fabric.Balance(q.Routing)
	}
	return fabric.ECMP
}

// Keys implements params.Section.
func (q *Queues) Keys() []params.Key {
	return []params.Key{
		params.New("buffer", params.Amount(&q.Buffer), "Per port; not with shared or pfc.").
			Default("5bdp", "STrack paper, section 4.1").
			Only(func() (bool, string) {
				switch {
				case q.pfc && q.unshared:
					return false, "" // Rules rejects it
				case q.pfc:
					return false, "pfc needs memory that the ports of a switch share, " +
						"not a buffer per port; expected shared: {total: 32MB} instead"
				}
				return !q.shared, "given together with queues.shared, which replaces it; expected one of them"
			}),
		params.Sub("shared", func() params.Section {
			q.Shared = &Shared{dynamic: !q.static, pfc: q.pfc}
			return q.Shared
		}, "One memory for all ports of a switch; PFC implies it.", "off").
			Only(func() (bool, string) { return q.shared || q.pfc || q.unshared, "" }),
		params.Sub("ecn", func() params.Section { q.ECN = new(ECN); return q.ECN },
			"Marking by queue length.", "on", "off"),
		params.Sub("pfc", func() params.Section { q.PFC = new(PFC); return q.PFC },
			"Priority flow control of the data class.", "on", "off").Default("off", "ours"),
		params.Sub("trim", func() params.Section { q.Trim = new(Trim); return q.Trim },
			"Packets that do not fit are cut to their headers, which overtake data; not with shared.", "on", "off").
			Default("off", "ours").
			Only(func() (bool, string) {
				return !q.shared && !q.pfc, "trimming needs a buffer per port; leave out shared and pfc"
			}).MayBe("off"),
		params.New("routing", params.Word(&q.Routing, Routings()...),
			"Choice among equal paths: per flow, or per packet at random or by queue length; ccm: spray.").
			Default("ecmp", "ours"),
		params.New("light", params.Amount(&q.Light),
			"adaptive: a port is light up to this queue; flows stay on light ports.").
			Default("12.5%bdp", "ours: half of the default kmin").
			Only(func() (bool, string) {
				return q.Balance().ByLight(),
					"only adaptive routing asks whether a port is light; expected routing: adaptive"
			}),
	}
}

// Rules rejects PFC without a shared memory.
func (q *Queues) Rules(r params.Rules) {
	if q.pfc && q.unshared {
		r.Refuse("shared", "off, but pfc needs memory that the ports of a switch share; expected a section such as "+
			"{total: 32MB}")
	}
}

// Shared is one packet memory for all ports of a switch.
type Shared struct {
	Total params.Size // per switch

	// Per is what a Total in proportion to a rate follows: PerPort or PerSwitch.
	Per string

	// Alpha is the dynamic threshold, a multiple of the free memory. Without PFC it bounds a queue;
	// with PFC it bounds what waits of the packets that arrived by a port before that port is
	// paused. 0: PFC.Xoff is the threshold.
	Alpha float64

	dynamic, pfc bool
}

// What a shared memory in proportion to a rate follows, for Shared.Per.
const (
	PerPort   = "port"   // the rate of the switch's fastest port
	PerSwitch = "switch" // the rates of all its ports together
)

// Keys implements params.Section.
func (m *Shared) Keys() []params.Key {
	return []params.Key{
		params.New("total", params.Amount(&m.Total), "Per switch.").
			Default("16MB/50Gbps", "alibaba-edu/High-Precision-Congestion-Control, run.py: 32 MB at 100 Gb/s"),
		params.New("per", params.Word(&m.Per, PerPort, PerSwitch),
			"What a proportional total follows: the fastest port, or all together.").
			Default(PerPort, "ours"),
		params.New("alpha", alpha(&m.Alpha), "Dynamic threshold, a multiple of the free memory: of a queue, "+
			"or with PFC of what waits from a port.").
			Following(func() (text, source string) {
				if m.pfc {
					return "1/8", "alibaba-edu/High-Precision-Congestion-Control, switch-mmu.cc: shift 3"
				}
				return "1", "ours: SONiC's dynamic_th 0; a queue may hold what is free"
			}).
			Only(func() (bool, string) {
				return m.dynamic, "given together with queues.pfc.xoff, which replaces it; expected one of them"
			}),
	}
}

// Rules rejects a memory of no bytes.
func (m *Shared) Rules(r params.Rules) {
	if r.Good("total") && m.Total.None() {
		r.Refuse("total", "%v is too small", m.Total)
	}
	if r.Good("total") && m.Total.Per == 0 {
		r.Idle("per", "total", "is for a total in proportion to a rate, and %v is not; leave it out, "+
			"or expected a total such as 5MB/1Tbps", m.Total)
	}
}

// alpha is the value of a dynamic threshold: a multiple of the free memory.
func alpha(to *float64) params.Value {
	const most = 1024 // thresholds of switches go to 2^3
	const expected = "a multiple of the free memory, above 0, such as 1/8 or 0.5"
	return params.Custom(to, params.ParseGain, params.ShowDecimal, expected, func() params.Form {
		return params.Form{
			Number: "number", Least: "0", Most: fmt.Sprint(most),
			Patterns: []string{params.Percents, params.Fraction}, Example: "1/8",
		}
	}).Within(expected+", up to 1024", func(v float64) bool { return v > 0 && v <= most })
}

// ECN is RED on the instantaneous queue, see fabric.ECNConfig.
type ECN struct {
	Kmin, Kmax params.Size
	Pmax       float64
	Ingress    bool // mark on enqueue instead of on dequeue
}

// Keys implements params.Section.
func (e *ECN) Keys() []params.Key {
	return []params.Key{
		params.New("kmin", params.Amount(&e.Kmin),
			"No marks up to this length. roce, ccm: the preset's (100KB/25Gbps).").
			Default("25%bdp", "STrack paper, section 4.1"),
		params.New("kmax", params.Amount(&e.Kmax),
			"Every packet is marked above this length. roce: the preset's (400KB/25Gbps); beyond the "+
				"buffer: half of it.").
			Default("75%bdp", "STrack paper, section 4.1"),
		params.New("pmax", params.Share(&e.Pmax, 0, 1), "Marking probability at kmax. roce: the preset's (0.2).").
			Default("1", "ours: the STrack paper leaves it open; its authors' simulator marks linearly up to 1"),
		params.New("mark", params.Choice(&e.Ingress, "egress", "ingress"), "Mark on dequeue or on enqueue.").
			Default("egress", "STrack paper, section 2.2.2"),
	}
}

// Rules rejects thresholds that contradict each other, and a pmax without effect.
func (e *ECN) Rules(r params.Rules) {
	switch {
	case !r.Good("kmin", "kmax"):
	case !e.Kmin.Comparable(e.Kmax):
		r.Refuse("kmin", "%v and kmax, %v, cannot be compared; expected both in bytes or both in bdp", e.Kmin, e.Kmax)
	case e.Kmin.Above(e.Kmax):
		r.Refuse("kmin", "%v is above kmax, %v; expected at most that", e.Kmin, e.Kmax)
	case e.Kmin == e.Kmax && e.Pmax != 1:
		r.Idle("pmax", "kmin", "says how often packets are marked between kmin and kmax, but both are %v "+
			"and beyond kmax every packet is; expected 1, or another kmax", e.Kmin)
	}
}

// Trim is packet trimming, see fabric.TrimConfig.
type Trim struct {
	Size units.Bytes // of a trimmed packet on the wire; 0: its headers
	Fair bool        // sometimes trim the last packet that waits in place of the one that does not fit
}

// Keys implements params.Section.
func (t *Trim) Keys() []params.Key {
	return []params.Key{
		params.New("size", params.Bytes(&t.Size, 1, units.KB).Or("headers", 0),
			"Of a trimmed packet on links; headers: 106 bytes.").
			Default("headers", "ours; htsim: 64 bytes (main_uec.cpp, trimsize)"),
		params.New("victim", params.Choice(&t.Fair, "arriving", "either"),
			"either: by chance the last that waits.").
			Default("arriving", "ours; htsim: either (compositequeue.cpp, receivePacket)"),
	}
}

// PFC is priority flow control of the data class, see fabric.PFCConfig. A port is paused by
// the waiting packets that arrived by it.
type PFC struct {
	Xoff     *params.Size // pause above; nil: Shared.Alpha is the threshold
	Xon      *params.Size // with Xoff: resume at or below; nil: two full packets below Xoff
	Offset   units.Bytes  // without Xoff: resume this far below the threshold
	Reserve  units.Bytes  // memory of each port's own, used first
	Headroom *params.Size // for packets in flight to a paused port; nil: see the key headroom
	Response units.Time   // time that the far end takes to obey a pause
}

// Keys implements params.Section.
func (p *PFC) Keys() []params.Key {
	const most, mmu = 64 * units.GB, "alibaba-edu/High-Precision-Congestion-Control, switch-mmu.cc"
	return []params.Key{
		params.New("xoff", params.Maybe(&p.Xoff, "", params.Amount),
			"Static pause threshold per port; default: shared.alpha.").OrNone(),
		params.New("xon", params.Maybe(&p.Xon, "auto", params.Amount), "With xoff: resume threshold.").
			Following(func() (text, source string) { return "auto", "bobzhuyb/ns3-rdma: two full packets below xoff" }).
			Only(func() (bool, string) { return p.Xoff != nil, "applies with xoff; expected xon_offset" }),
		params.New("xon_offset", params.Bytes(&p.Offset, 0, most),
			"Without xoff: resume this far below the threshold.").
			Default("3KB", mmu).
			Only(func() (bool, string) { return p.Xoff == nil, "applies without xoff; expected xon" }),
		params.New("reserve", params.Bytes(&p.Reserve, 0, most), "Memory of each port's own, used first.").
			Default("4KB", mmu),
		params.New("headroom", params.Maybe(&p.Headroom, "auto", params.Amount),
			"Memory per port for packets in flight after a pause.").
			Default("auto", "3 times rate and delay of the link, "+
				"as alibaba-edu/High-Precision-Congestion-Control, third.cc; at least what losslessness takes"),
		params.New("response", params.Time(&p.Response, 0, units.Millisecond),
			"How long the far end takes to act on a pause.").
			Default("0s", "ours"),
	}
}

// Rules rejects an xon that is not below xoff.
func (p *PFC) Rules(r params.Rules) {
	if r.Good("xoff", "xon") && p.Xon != nil && (!p.Xon.Comparable(*p.Xoff) || p.Xon.Above(*p.Xoff)) {
		r.Refuse("xon", "%v is not below xoff, %v", p.Xon, p.Xoff)
	}
}
