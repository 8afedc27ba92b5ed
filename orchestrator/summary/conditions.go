package summary

import (
	"weft/orchestrator/experiment"
	"weft/orchestrator/topology"
	"weft/results/record"
	"weft/transport/cc"
	"weft/units"
)

// Conditions returns what the conditions of a transport ask of a run that is over.
func Conditions(x *experiment.Experiment, o *Outcome, s *record.Summary) *cc.Run {
	return &cc.Run{
		Took: units.Time(s.LabTimeUS * float64(units.Microsecond)), Marks: s.Network.CEMarks,
		Drops: s.Network.Drops, Resent: s.Network.Retransmits, Data: s.Network.DataPackets,
		Queued: units.Time(s.Network.QueueDelay.Max * float64(units.Microsecond)), Used: used(x, o),
	}
}

// used returns the share of its link that a host received, from the start of the first message to
// the end of the last one: the least among hosts that received at least half as much as the one
// that received most. Payload and headers count; it is 1 without finished messages.
func used(x *experiment.Experiment, o *Outcome) float64 {
	type received struct {
		size        units.Bytes
		start, ends units.Time
	}
	all := map[topology.NodeID]received{}
	var most units.Bytes
	for i := range o.Flows {
		f := &o.Flows[i]
		if f.Acked == 0 {
			continue
		}
		r, ok := all[topology.NodeID(f.Dst)]
		if !ok || f.Start < r.start {
			r.start = f.Start
		}
		r.size, r.ends = r.size+f.Size, max(r.ends, f.Acked)
		all[topology.NodeID(f.Dst)] = r
		most = max(most, r.size)
	}
	least := 1.0
	for host, r := range all {
		if r.size >= most/2 && r.ends > r.start {
			least = min(least, float64(x.OnWire(r.size))/float64(max(x.NICRate(host).BytesIn(r.ends-r.start), 1)))
		}
	}
	return least
}
