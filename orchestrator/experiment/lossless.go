package experiment

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"weft/fabric"
	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
	"weft/units"
)

// checkLossless rejects PFC that would lose packets, or would hide congestion from the sender that
// must react to it, with the numbers and with values that work. It reports the first fault of each
// kind, since ports and switches are mostly alike. roomy is false if it was reported that some
// switch has too little memory for anything.
func (m *memory) checkLossless(l *lab.Lab, cfg *fabric.Config, roomy bool) error {
	faults := map[fabric.LosslessRule][]fabric.LosslessFault{}
	declared := *cfg
	if len(l.Faults) > 0 {
		declared = atWorst(cfg, m.worst)
	}
	for _, f := range fabric.CheckLossless(&declared, largest(l)) {
		faults[f.Rule] = append(faults[f.Rule], f)
	}
	if !roomy {
		delete(faults, fabric.RuleMemory)
	}
	if !roomy || len(faults[fabric.RuleMemory]) > 0 {
		delete(faults, fabric.RuleECN) // it follows: nothing is left for a queue that marks
	}
	k := losslessText{l, m.g, &declared}
	var found lab.Problems
	for _, rule := range []fabric.LosslessRule{fabric.RuleCovered, fabric.RuleHeadroom, fabric.RuleMemory,
		fabric.RuleECN} {
		same := faults[rule]
		if len(same) == 0 {
			continue
		}
		more := ""
		if n := len(same) - 1; n > 0 {
			more = fmt.Sprintf(" (and %d similar)", n)
		}
		what, instead := k.say(same)
		var p lab.Problem
		if errors.As(l.Errorf(faultyKey(l, m.g, &same[0]), "this network cannot be lossless: %s%s; %s", what, more,
			instead), &p) {
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found
}

// faultyKey returns the path of the value that breaks a rule.
func faultyKey(l *lab.Lab, g *topology.Graph, f *fabric.LosslessFault) string {
	of := func(port int, key string) string {
		return l.QueuesPath(g.Links[port/2].Tier, port/2, key)
	}
	switch f.Rule {
	case fabric.RuleHeadroom:
		return of(f.Port, "pfc.headroom")
	case fabric.RuleECN:
		return of(f.Queue, "ecn.kmin")
	case fabric.RuleMemory:
		return "queues.shared.total"
	default:
		return "queues.pfc"
	}
}

// checkCycles rejects PFC on a network whose packets could wait for each other in a cycle, so
// that nothing would ever move again.
func checkCycles(l *lab.Lab, g *topology.Graph) error {
	if l.Queues.PFC == nil {
		return nil
	}
	text := cycleOf(g)
	if text == "" {
		return nil
	}
	instead := "routes: up-down"
	if l.Topology.Detours() {
		instead = "detours: false, or routes: up-down"
	}
	return l.Errorf("queues.pfc", "the switches %s could deadlock by waiting for each other in a cycle (the routes of "+
		"this %s have one, and there are no virtual channels); expected off, or in topology %s",
		text, l.Topology.Kind, instead)
}

// cycleOf names the switches that could wait for each other in a cycle; "" if none could.
func cycleOf(g *topology.Graph) string {
	text := ""
	cycle := g.Deadlock()
	for _, p := range cycle {
		k := g.Links[p/2]
		from := k.A
		if p%2 == 1 {
			from = k.B
		}
		text += g.Nodes[from].Name + ", "
	}
	return strings.TrimSuffix(text, ", ")
}

// worstLink decides how much of a port's data is in flight to a switch that has paused it.
type worstLink struct {
	rate  units.Bandwidth
	delay units.Time // of packets; a pause takes as long to reach the sender
}

// worstLinks returns the highest rate of each port and the longest delay that the network or a
// fault of the lab gives it. They need not coincide: what left at one rate may be in flight when a
// fault lengthens the delay.
func worstLinks(l *lab.Lab, g *topology.Graph) []worstLink {
	worst := make([]worstLink, g.Ports())
	for i := range worst {
		k := &g.Links[i/2]
		worst[i] = worstLink{k.Rate, k.Delay}
	}
	for i := range l.Faults {
		f := &l.Faults[i]
		id, ok := g.LinkNamed(f.Link)
		if !ok {
			continue // it happens to a host, or is refused later
		}
		for port := 2 * id; port < 2*id+2; port++ {
			k := &g.Links[id]
			if to := [2]topology.NodeID{k.B, k.A}[port%2]; f.Toward != "" && f.Toward != g.Nodes[to].Name {
				continue
			}
			if f.Rate != nil {
				worst[port].rate = max(worst[port].rate, *f.Rate)
			}
			if f.Delay != nil {
				worst[port].delay = max(worst[port].delay, *f.Delay)
			}
		}
	}
	return worst
}

// atWorst returns cfg with the given rates and delays.
func atWorst(cfg *fabric.Config, worst []worstLink) fabric.Config {
	c := *cfg
	c.Ports = slices.Clone(cfg.Ports)
	for i := range c.Ports {
		c.Ports[i].Rate, c.Ports[i].Delay = worst[i].rate, worst[i].delay
	}
	return c
}

// losslessText describes faults of losslessness in terms of the lab.
type losslessText struct {
	lab *lab.Lab
	g   *topology.Graph
	cfg *fabric.Config
}

// say describes what is wrong, by the first of the faults of one rule, and what would be right for
// all of them.
func (k *losslessText) say(faults []fabric.LosslessFault) (what, instead string) {
	f := &faults[0]
	sw := k.g.Nodes[f.Switch].Name
	switch f.Rule {
	case fabric.RuleHeadroom:
		p := &k.cfg.Ports[f.Port]
		need := units.Bytes(0)
		for i := range faults {
			need = max(need, faults[i].Need)
		}
		when, base := "", &k.g.Links[f.Port/2]
		if p.Rate != base.Rate || p.Delay != base.Delay {
			when = " while the faults of this lab last"
		}
		return fmt.Sprintf("%s has a headroom of %v for what %s still sends when it is paused, which can be %v%s: "+
				"what %v carries in %v there and %v back, %v to react, and two packets of %v",
				sw, f.Have, k.name(p.From), f.Need, when, p.Rate, p.Delay, p.Delay, p.PFC[f.Class].Response,
				largest(k.lab)),
			fmt.Sprintf("expected auto, or at least %v", need)
	case fabric.RuleMemory:
		need := units.Bytes(0)
		for i := range faults {
			need = max(need, k.total(&faults[i]))
		}
		return fmt.Sprintf("the headrooms and reserves of %s take %v, and it has %v", sw, f.Need, f.Have),
			fmt.Sprintf("expected at least %v, so that each port can hold two packets more and is paused behind its "+
				"Kmin, or a smaller queues.pfc.headroom where it exceeds the data in flight", need)
	case fabric.RuleECN:
		least, total := f.Have, units.Bytes(0)
		for i := range faults {
			least, total = min(least, faults[i].Have), max(total, k.total(&faults[i]))
		}
		instead = fmt.Sprintf("expected kmin below %v, or ecn: off", least)
		if k.cfg.Ports[f.Port].PFC[f.Class].Alpha > 0 {
			instead += fmt.Sprintf(", or queues.shared.total of at least %v", total)
		} else {
			instead += fmt.Sprintf(", or queues.pfc.xoff above %v with memory for it", f.Need)
		}
		return fmt.Sprintf("%s marks when more than %v (kmin) wait, but pauses a port such as that of %s when %v of "+
			"it wait, so that no sender would ever slow down",
			sw, f.Need, k.name(k.cfg.Ports[f.Port].From), f.Have), instead
	default:
		return f.Error(), "expected all or none of its ports protected"
	}
}

func (k *losslessText) name(n fabric.NodeID) string { return k.g.Nodes[n].Name }

// total returns the memory that the switch of a fault needs for all reserves and headrooms, and for
// every queue to mark before a port that feeds it is paused. It is rounded up to three digits.
func (k *losslessText) total(f *fabric.LosslessFault) units.Bytes {
	apart, shared, ports := units.Bytes(0), 0.0, 0
	for i := range k.cfg.Ports {
		p := &k.cfg.Ports[i]
		if p.To != f.Switch {
			continue
		}
		ports++
		c := p.PFC[dataClass]
		apart += c.Reserve + c.Headroom
		for j := range k.cfg.Ports {
			o := &k.cfg.Ports[j]
			if o.From != f.Switch || !o.ECN.On {
				continue
			}
			at := float64(o.ECN.Kmin + 1 - c.Reserve) // the threshold must be above Kmin
			if c.Alpha > 0 {
				at *= (1 + c.Alpha) / c.Alpha
			}
			shared = max(shared, at)
		}
	}
	shared = max(shared, float64(2*units.Bytes(ports)*largest(k.lab)))
	need := float64(apart) + shared + 1
	digits := math.Pow(10, math.Floor(math.Log10(need))-2)
	return units.Bytes(math.Ceil(need/digits) * digits)
}
