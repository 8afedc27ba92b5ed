package summary

import (
	"fmt"

	"weft/fabric"
	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	"weft/results/record"
	"weft/units"
)

// Reasons for which fields of a summary have no value.
const (
	ofPrograms = "only programs sent, and nobody looks into their packets"
	noMessage  = "no message was sent"
	noPacket   = "no packet entered the network"
	noReport   = "what carried the packets sent no report"
	notKernel  = "the kernel datapath does not count it"
)

// lack names the fields of a summary that nobody measured.
func lack(x *experiment.Experiment, o *Outcome, s *record.Summary) {
	if len(x.Items) == 0 {
		s.Lack("the lab has no collective or flow whose data could be checked", "verified")
	}
	switch {
	case s.ProgramsAlone():
		s.Lack(ofPrograms, append(record.EndpointFields(), "flows.count", "base_rtt_us")...)
	case s.Flows.Count == 0:
		s.Lack(noMessage, record.EndpointFields()...)
	case s.Flows.Count == s.Flows.Unfinished:
		s.Lack("no message was finished", "flows.fct_us", "flows.slowdown")
	}
	if len(x.Programs) > 0 && !s.ProgramsAlone() {
		s.OfPart(record.BesidePrograms, record.PacketFields()...)
		s.Notes = append(s.Notes, "retransmits, timeouts, reordered packets, round trips and time in switch queues "+
			"are "+record.BesidePrograms)
	}
	since := warmUp(x, o, s)
	if o.RTT.Count() == 0 {
		s.Lack("no acknowledgement arrived"+since, "rtt_us")
	}
	if o.Delays == nil || o.Delays.Count() == 0 {
		s.Lack("no data packet was delivered"+since, "network.queue_delay_us")
	}
	if x.Measure.Watched >= 0 && s.Network.QueueEventDelay == nil {
		s.Lack("no packet left the queue of measure.queue_events"+since, "network.queue_event_delay_us")
	}
	network := []string{"network.drops", "network.ce_marks", "network.lost", "network.cut",
		"network.unreceived", "network.duplicated", "network.late", "network.trims", "network.path_switches",
		"network.pauses", "network.paused_us", "network.refused", "network.max_queue_bytes"}
	if o.Uncounted {
		s.Lack(noReport, append(network, "network.packets", "network.delivered")...)
	}
	if s.Network.Packets == 0 {
		s.Lack(noPacket, network...)
	}
	if s.Datapath == lab.DatapathKernel {
		s.Lack(notKernel, "network.cut", "network.duplicated", "network.late")
		if x.Fabric.HasLink(x.Faults.Changes, (*fabric.Link).Shuffles) {
			s.Lack("links delay packets at random, and nobody sees a packet in the kernel's queues",
				"network.queue_delay_us")
		}
	}
	if o.Sampled {
		if x.Lab.Measure.Queues == 0 {
			s.Lack("the kernel datapath without BPF only samples queues; set measure.queues", "network.max_queue_bytes")
		}
		if s.Network.MaxQueue == 0 {
			s.Lack("no sample of the kernel's queues found a packet, which does not show that none waited",
				"network.max_queue_bytes")
		}
		s.AtLeast("the largest of samples of the kernel's queues", "network.max_queue_bytes")
	}
	m := &x.Lab.Measure
	if m.Rates > 0 && s.Rates == nil {
		s.Lack(unsampled(o, "measure.rates", m.Rates, max(x.Measure.From, 1), since), "rates")
		s.Lack("the connections were never all open at once for measure.rates"+since, "rates")
	}
	lackPlateaus(s.Plateaus, m.Rates, s)
	perfect := x.Lab.Clocks.Kind().Perfect
	if !perfect && s.Clocks.Samples == 0 {
		s.Lack(unsampled(o, "clocks.sample", x.Lab.Clocks.Sample, x.Measure.Clocks, since), "clocks.error_ns")
		s.Lack("no two clocks were compared"+since, "clocks.error_ns")
	}
	boundClocks(x, o, s)
	s.Lack(unstated(&s.Clocks), "clocks.bound_ns", "clocks.coverage")
	if !perfect && s.Clocks.Packets == 0 {
		s.Lack("no synchronization packet was sent", "clocks.share", "clocks.steps", "clocks.resets", "clocks.refused",
			"clocks.falsetickers", "clocks.no_majority")
	}
	corrected, _ := corrections(x, o)
	for path, n := range map[string]int64{"clocks.steps": s.Clocks.Steps, "clocks.resets": s.Clocks.Resets,
		"clocks.falsetickers": s.Clocks.Falsetickers, "clocks.no_majority": s.Clocks.NoMajority} {
		vote := path == "clocks.falsetickers" || path == "clocks.no_majority"
		switch {
		case perfect || n > 0:
		case vote && !x.Lab.Clocks.Votes():
			s.Lack(lab.NoVote, path)
		case corrected == 0:
			s.Lack(x.Lab.Clocks.Sync+" corrected no clock before the run ended", path)
		}
	}
}

// unsampled returns why no sample was taken at a multiple of an interval, of the setting key, from
// an instant to the end of a run; "" if one was. since is what warmUp returned.
func unsampled(o *Outcome, key string, every, from units.Time, since string) string {
	if every == 0 || (from+every-1)/every*every <= o.End() {
		return ""
	}
	return fmt.Sprintf("no sample was taken%s: %s is %v, and the run ended at %v", since, key, every, o.End().Rounded())
}

// warmUp returns from when on the statistics are that leave out a warm-up, as the end of a reason
// why one has no value; "" if they are of the whole run. It names those of a run that ended before,
// and warns of it.
func warmUp(x *experiment.Experiment, o *Outcome, s *record.Summary) (since string) {
	from := x.Measure.From
	if from == 0 {
		return ""
	}
	since = fmt.Sprintf(" from measure.from (%v) on", from)
	if end := o.End(); end < from {
		s.Warnings = append(s.Warnings, fmt.Sprintf("measure.from: the run ended at %v, before %v, from which "+
			"on delays, rates and errors of clocks are measured", end.Rounded(), from))
		why := fmt.Sprintf("the run ended before measure.from (%v)", from)
		s.Lack(why, "rtt_us", "network.queue_delay_us", "network.queue_event_delay_us", "network.after", "rates")
		if !x.Lab.Clocks.Kind().Perfect {
			s.Lack(why, "clocks.error_ns")
		}
	}
	return since
}
