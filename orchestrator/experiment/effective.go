package experiment

import (
	"fmt"
	"slices"
	"strings"

	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
	"weft/results/record"
	"weft/transport"
	"weft/units"
)

// Effective returns the resulting values of a lab's settings: rates and delays of each tier,
// thresholds in bytes, timeouts in time, the first window and rate of connections, each with its
// origin. Nothing of it is measured.
func Effective(l *lab.Lab) ([]record.Setting, error) {
	g, err := NetworkOf(l)
	if err != nil {
		return nil, err
	}
	e := &effective{lab: l, g: g, m: newMemory(l, g)}
	e.links()
	e.queues()
	if Runnable(l) == nil {
		x, err := BuildOn(l, g)
		if err != nil {
			return nil, err
		}
		e.clocks(x)
		if err := e.transport(x); err != nil {
			return nil, err
		}
	}
	e.dilation()
	return e.all, nil
}

// effective collects the settings.
type effective struct {
	lab *lab.Lab
	g   *topology.Graph
	m   *memory
	all []record.Setting
}

func (e *effective) add(path, value, from string) {
	e.all = append(e.all, record.Setting{Path: path, Value: value, From: from})
}

// origin returns a setting as the lab writes it and where it is from: "queues.ecn.kmin: 25%bdp
// (line 3)".
func (e *effective) origin(path string) string {
	for _, s := range e.lab.Sources {
		if s.Path == path {
			return fmt.Sprintf("%s: %s (%s)", path, s.Value, s.From)
		}
	}
	return path
}

// either returns the origin of the first path that the lab has a value for.
func (e *effective) either(paths ...string) string {
	for _, path := range paths {
		if slices.ContainsFunc(e.lab.Sources, func(s lab.Source) bool { return s.Path == path }) {
			return e.origin(path)
		}
	}
	return paths[len(paths)-1]
}

// tiers returns the tiers of the links in the order of the network.
func (e *effective) tiers() (names []string, of map[string][]*topology.Link) {
	of = make(map[string][]*topology.Link)
	for i := range e.g.Links {
		k := &e.g.Links[i]
		if of[k.Tier] == nil {
			names = append(names, k.Tier)
		}
		of[k.Tier] = append(of[k.Tier], k)
	}
	return names, of
}

// links adds the rates and delays of every tier, and what follows from them.
func (e *effective) links() {
	names, of := e.tiers()
	_, drawn := e.lab.Topology.Drawn() // each with a rate of its own
	for _, tier := range names {
		at, count := "links."+tier+".", fmt.Sprintf("%d links; ", len(of[tier]))
		rate, delay := e.either("topology.tiers."+tier+".rate", "topology.link.rate"),
			e.either("topology.tiers."+tier+".delay", "topology.link.delay")
		if e.lab.Topology.Oversubscribed(tier) {
			rate = "follows from " + e.origin("topology.oversubscription")
		}
		if drawn != nil {
			rate, delay = "topology.links", "topology.links"
		}
		e.add(at+"rate", spread(of[tier], func(k *topology.Link) units.Bandwidth { return k.Rate }), count+rate)
		e.add(at+"delay", spread(of[tier], func(k *topology.Link) units.Time { return k.Delay }), delay)
		e.add(at+"bdp", spread(of[tier], func(k *topology.Link) units.Bytes { return k.Rate.BytesIn(e.m.rtt) }),
			"rate times the base RTT of the network")
	}
	e.add("base_rtt", Short(e.m.rtt).String(),
		fmt.Sprintf("the longest of the network: a packet of %v there and an acknowledgement of %v back, idle",
			dataWire(e.lab.Topology.MTU), ackWire))
}

// queues adds the buffers and thresholds of the switch ports of every tier, in bytes.
func (e *effective) queues() {
	names, of := e.tiers()
	cfg := e.m.fabric(e.lab)
	for _, tier := range names {
		first := of[tier][0]
		at := "queues." + tier + "."
		var ports []int // of switches
		for _, k := range of[tier] {
			for port := 2 * int(k.ID); port < 2*int(k.ID)+2; port++ {
				if int(cfg.Ports[port].From) >= e.g.Hosts {
					ports = append(ports, port)
				}
			}
		}
		if len(ports) == 0 {
			continue
		}
		addFor := func(key, why string, of func(port int) units.Bytes) {
			if slices.ContainsFunc(ports, func(p int) bool { return of(p) != 0 }) {
				e.add(at+key, spread(ports, of), why+e.origin(e.m.path(first, key)))
			}
		}
		add := func(key string, of func(port int) units.Bytes) { addFor(key, "", of) }
		derived := slices.ContainsFunc(ports, func(p int) bool {
			k := &e.g.Links[p/2]
			if e.m.at(k).ECN == nil {
				return false
			}
			_, _, derived := e.m.marks(k, topology.NodeID(cfg.Ports[p].From))
			return derived
		})
		marks := ""
		if derived {
			marks = "from the buffer, because no queue reaches the default: kmax is half of it; "
		}
		add("buffer", func(p int) units.Bytes { return cfg.Ports[p].Buffer })
		addFor("ecn.kmin", marks, func(p int) units.Bytes { return cfg.Ports[p].ECN.Kmin })
		addFor("ecn.kmax", marks, func(p int) units.Bytes { return cfg.Ports[p].ECN.Kmax })
		if e.m.coord != nil {
			e.add(at+"light", spread(ports, func(p int) units.Bytes { return cfg.Ports[p].Light }),
				e.origin("transport."+e.lab.Transport.Kind+".light"))
			e.add(at+"congested", spread(ports, func(p int) units.Bytes { return cfg.Ports[p].Congested }),
				e.origin("transport."+e.lab.Transport.Kind+".congested"))
		} else {
			add("light", func(p int) units.Bytes { return cfg.Ports[p].Light })
		}
		var into []int // ports that the switch at the other end may pause
		for _, k := range of[tier] {
			for port := 2 * int(k.ID); port < 2*int(k.ID)+2; port++ {
				if cfg.Ports[port].PFC[dataClass].On {
					into = append(into, port)
				}
			}
		}
		if len(into) == 0 {
			continue
		}
		ports = into
		add("pfc.xoff", func(p int) units.Bytes { return cfg.Ports[p].PFC[dataClass].Xoff })
		add("pfc.xon", func(p int) units.Bytes { return cfg.Ports[p].PFC[dataClass].Xon })
		add("pfc.reserve", func(p int) units.Bytes { return cfg.Ports[p].PFC[dataClass].Reserve })
		add("pfc.headroom", func(p int) units.Bytes { return cfg.Ports[p].PFC[dataClass].Headroom })
		if alpha := cfg.Ports[into[0]].PFC[dataClass].Alpha; alpha > 0 {
			e.add(at+"pfc.alpha", fmt.Sprintf("%g", alpha),
				"for the rate of the port; "+e.origin("queues.shared.alpha"))
		}
	}
	var memory []units.Bytes
	for i := range cfg.Switches {
		memory = append(memory, cfg.Switches[i].Buffer.Total)
	}
	if slices.ContainsFunc(memory, func(b units.Bytes) bool { return b != 0 }) {
		e.add("queues.memory", spread(memory, func(b units.Bytes) units.Bytes { return b }),
			"of a switch; "+e.origin("queues.shared.total"))
	}
}

// clocks adds the intervals that a run chooses for synchronization, and how long the workload waits
// for it.
func (e *effective) clocks(x *Experiment) {
	if x.Plans[0].Clock == nil {
		return
	}
	for _, c := range x.Clocks.Chosen(x.Plans[0].Clock.Sync) {
		if t, ok := c.Value.(units.Time); ok {
			c.Value = Short(t)
		}
		path := "clocks." + e.lab.Clocks.Sync + "." + c.Key
		e.add(path, fmt.Sprint(c.Value), "unless it is written, from "+c.From+"; "+e.origin(path))
	}
	if len(x.Items) > 0 {
		e.add("clocks.warmup", Short(x.Clocks.Warmup).String(),
			"before the workload begins; "+e.origin("clocks.warmup"))
	}
	if x.Clocks.Warmup == 0 {
		return
	}
	if x.Measure.From > 0 {
		e.add("measure.from", Short(x.Measure.From).String(), "after the clocks' warm-up; "+e.origin("measure.from"))
	}
	for i := range x.Faults.All {
		if f := &x.Faults.All[i]; f.At != e.lab.Faults[i].At {
			at := FaultPath(f.Index, "at")
			e.add(at, Short(f.At).String(), "after the clocks' warm-up; "+e.origin(at))
		}
	}
}

// kept is the maximum number of connections examined: those of a large all-to-all are alike.
const kept = 4096

// transport adds the values that connections begin with, and the results of their parameters.
func (e *effective) transport(x *Experiment) error {
	var begins []transport.Beginning
	seen := make(map[string]bool)
	for i := range x.Conns {
		s := &x.Conns[i]
		line := x.NICRate(topology.NodeID(s.Src))
		key := fmt.Sprint(line, s.Forward, s.Initial, s.RTOMin)
		if seen[key] || len(seen) == kept {
			continue
		}
		seen[key] = true
		b, err := transport.Begin(transport.Config{Host: s.Src, MTU: e.lab.Topology.MTU, LineRate: line}, *s)
		if err != nil {
			return err
		}
		begins = append(begins, b)
	}
	if len(begins) == 0 {
		return nil
	}
	at := settingsOf(&e.lab.Transport) + "."
	conns := fmt.Sprintf("%d connections; ", len(x.Conns))
	e.add("transport.base_rtt", spread(begins, func(b transport.Beginning) units.Time { return Short(b.BaseRTT) }),
		conns+"of their paths")
	e.add("transport.packet", spread(begins, func(b transport.Beginning) units.Bytes { return b.Packet }),
		"a full packet on the wire; "+e.origin("topology.mtu"))
	e.add("transport.first_window", spread(begins,
		func(b transport.Beginning) limit[units.Bytes] { return limit[units.Bytes]{b.Window, "unlimited"} }),
		"of "+e.lab.Transport.Kind)
	e.add("transport.first_rate", spread(begins,
		func(b transport.Beginning) limit[units.Bandwidth] { return limit[units.Bandwidth]{b.Rate, "unpaced"} }),
		"of "+e.lab.Transport.Kind)
	e.add(at+"rto_min", spread(begins, func(b transport.Beginning) units.Time { return Short(b.RTO) }),
		e.timeout(x, at+"rto_min"))
	key := at + "ack_every"
	if _, ok := e.lab.Scope().Setting(key); ok {
		e.add(key, spread(x.Conns[:min(len(x.Conns), kept)],
			func(s transport.Spec) units.Bytes { return s.Selective.AckEvery }),
			"less than 16KiB only where the window would not fill the path otherwise; "+e.origin(key))
	}
	for i, v := range begins[0].Values {
		value := v.Value
		for _, b := range begins[1:] {
			if i < len(b.Values) && b.Values[i].Value != value {
				value = v.Value + " and others"
				break
			}
		}
		key := v.Key
		if !strings.Contains(key, ".") {
			key = at + key
		}
		e.add(key, value, v.Why+"; "+e.origin(key))
	}
	return nil
}

// timeout returns the origin of the minimum retransmission timeout.
func (e *effective) timeout(x *Experiment, path string) string {
	value, _ := e.lab.Scope().Setting(path)
	if source := transport.RTOSource(value); source != "" {
		return e.origin(path) + ": " + source
	}
	if value != "auto" {
		return e.origin(path)
	}
	var wait units.Time
	for i := range x.Conns[:min(len(x.Conns), kept)] {
		wait = max(wait, x.Drain(&x.Conns[i]))
	}
	return fmt.Sprintf("4 base RTTs and at most %v of queueing, at least %v; %s", Short(wait),
		transport.DefaultRTOMin, e.origin(path))
}

// dilation adds the slowdown of an emulation, if it is known before the machine is measured.
func (e *effective) dilation() {
	switch l := e.lab; {
	case l.Engine.Kind == "sim":
		e.add("engine.dilation", "1", "a simulation has virtual time")
	case l.Engine.Dilation > 0:
		e.add("engine.dilation", fmt.Sprintf("%g", l.Engine.Dilation), e.origin("engine.dilation"))
	default:
		e.add("engine.dilation", "unknown", "the emulation uses the lowest that the machine carries, once that is "+
			"measured; "+e.origin("engine.dilation"))
	}
}

// limit is a value for which 0 has a name.
type limit[T interface {
	~int64
	String() string
}] struct {
	value T
	none  string
}

func (l limit[T]) String() string {
	if l.value == 0 {
		return l.none
	}
	return l.value.String()
}

// spread formats a value over all of a list: one text, or a few in the order of the list.
func spread[E any, V interface {
	comparable
	String() string
}](all []E, of func(E) V) string {
	const few = 4
	var found []string
	last, any := *new(V), false
	for _, e := range all {
		v := of(e)
		if any && v == last {
			continue
		}
		last, any = v, true
		if text := v.String(); !slices.Contains(found, text) {
			found = append(found, text)
		}
	}
	if len(found) > few {
		return strings.Join(found[:few], ", ") + fmt.Sprintf(" and %d more", len(found)-few)
	}
	return strings.Join(found, ", ")
}

// Short returns t rounded to three digits.
func Short(t units.Time) units.Time {
	unit := units.Time(1)
	for t/unit >= 1000 {
		unit *= 10
	}
	return (t + unit/2) / unit * unit
}
