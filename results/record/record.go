package record

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// The status of a run. docs/results.md has the same table.
const (
	Running     = "running"     // in progress; in a manifest only
	Damaged     = "damaged"     // its manifest or summary cannot be read; in lists and pages only
	OK          = "ok"          // every message finished, and every result was checked in full and is right
	Unverified  = "unverified"  // ran to its end, but a result is wrong or was not checked in full
	Unfinished  = "unfinished"  // ran to its end, but a message or a rank did not finish
	Failed      = "failed"      // could not continue, was killed, or could not store its data
	Interrupted = "interrupted" // stopped by the user
)

// Charts are the names of the charts of runs and sweeps, in the order of the pages of labs that do
// not say what they are about.
var Charts = []string{
	"fct", "slowdown", "rtt", "queueing", "busbw", "queues", "rates", "cwnd", "credit", "acks", "clocks",
}

// Complete reports whether the run reached its end, so that its numbers cover all of it. The status
// has whether they are right.
func (s *Summary) Complete() bool {
	return s.Status == OK || s.Status == Unverified || s.Status == Unfinished
}

// End returns the instant at which the run ended, in microseconds of lab time.
func (s *Summary) End() float64 { return max(s.LabTimeUS, s.EndUS) }

// NotRun returns the summary of a lab or point that did not run, with a status and the reason.
func NotRun(lab string, point map[string]any, engine, status, why string) *Summary {
	return &Summary{Lab: lab, Point: point, Engine: engine, Status: status, Error: why,
		Collectives: []Collective{}, Expect: []Expect{}}
}

// ProgramsAlone reports whether programs sent every packet. Then nobody counts what the kernel
// repeats, or measures how long packets wait in queues.
func (s *Summary) ProgramsAlone() bool { return s.Transport == Programs }

// Started reports whether the run began, and was not left out by an interruption.
func (s *Summary) Started() bool { return s.Run != "" || s.Status != Interrupted }

// Summary is the result of a run: summary.json, and the output of `weft run --json`.
type Summary struct {
	Format    int            `json:"format"` // version of the run directory
	Run       string         `json:"run"`
	Lab       string         `json:"lab"`
	Point     map[string]any `json:"point,omitempty"`    // values by path; absent outside a sweep
	Engine    string         `json:"engine"`             // sim or emu
	Datapath  string         `json:"datapath,omitempty"` // emulation only: fabric or kernel
	Runtime   string         `json:"runtime,omitempty"`  // emulation only: namespace, docker, ...
	NIC       string         `json:"nic,omitempty"`      // emulation only: bypass, or some; absent: socket
	Dilation  float64        `json:"dilation"`           // 1 in sim
	Seed      uint64         `json:"seed"`
	Transport string         `json:"transport"`         // Programs if nothing else sends
	Carried   string         `json:"carried,omitempty"` // what carried the packets of programs; absent: it has none
	Module    *Module        `json:"module,omitempty"`  // the congestion control, if it is a module
	Status    string         `json:"status"`            // any but Running
	Error     string         `json:"error,omitempty"`   // why Status is not ok
	Verified  bool           `json:"verified"`          // every result is right and checked in full; null: none

	Fidelity    *Fidelity    `json:"fidelity,omitempty"` // emulation only
	Retry       *Retry       `json:"retry,omitempty"`    // only of a run that repeats one with a worse fidelity
	Flows       Flows        `json:"flows"`
	RTOMinUS    float64      `json:"rto_min_us"`              // largest minimum RTO of connections; 0 without any
	RTOMinKey   string       `json:"rto_min_key,omitempty"`   // its setting: transport.pc4.rto_min
	Tail        *Tail        `json:"tail_timeouts,omitempty"` // absent unless timeouts decide how slow they are
	Unadjusted  bool         `json:"unadjusted,omitempty"`    // congestion control never changed a window or rate
	RTT         Quantiles    `json:"rtt_us"`                  // of all acknowledged data packets
	BaseRTTUS   float64      `json:"base_rtt_us"`             // data packet and ack on the longest path in use, idle
	Collectives []Collective `json:"collectives"`
	Programs    []Program    `json:"programs,omitempty"`
	Metrics     []Metric     `json:"metrics,omitempty"` // in the output of programs
	Network     Network      `json:"network"`
	Rates       *Rates       `json:"rates,omitempty"` // with measure.rates
	Plateaus    []Plateau    `json:"plateaus,omitempty"`
	Acks        *Acks        `json:"acks,omitempty"` // with measure.acks
	Clocks      Clocks       `json:"clocks"`
	Expect      []Expect     `json:"expect"`
	Refused     []Refused    `json:"refused,omitempty"` // packets outside the workload, by host and reason
	Warnings    []string     `json:"warnings,omitempty"`
	Notes       []string     `json:"notes,omitempty"` // what to know when reading the numbers

	// Unmeasured has the fields of this file that have no value, by path, and why: nobody measured
	// network.retransmits of programs. They are null, with all that they hold.
	Unmeasured map[string]string `json:"unmeasured,omitempty"`

	// LowerBounds has the fields of this file whose values are lower bounds of what they stand for,
	// by path, and why: network.retransmits, if programs send beside collectives.
	LowerBounds map[string]string `json:"lower_bounds,omitempty"`

	LabTimeUS float64 `json:"lab_time_us"`      // of the last completion
	EndUS     float64 `json:"end_us,omitempty"` // of the run; absent if it ended with the last completion
	WallS     float64 `json:"wall_s"`
	Events    int64   `json:"events"`         // simulator events
	Memo      *Memo   `json:"memo,omitempty"` // of the simulator; absent for a workload of one step

	LinkCheck *LinkCheck `json:"link_check,omitempty"` // of the kernel datapath; absent: no link was measured
}

// LinkCheck is how much the links of the kernel datapath differed from the lab when they were
// measured, before lab time. The file links.txt has every property of every measured direction.
type LinkCheck struct {
	Measured     int     `json:"measured"`       // directions of links that were measured
	Directions   int     `json:"directions"`     // of the network
	Unrated      int     `json:"unrated"`        // of Measured, those that delay packets at random: only losses count
	RateError    float64 `json:"rate_error"`     // largest difference, as a share of the rate in the lab
	DelayErrorNS float64 `json:"delay_error_ns"` // largest difference of the delay of a full packet
	Probes       int64   `json:"probes"`         // packets sent to measure rates and losses
	Lost         int64   `json:"lost"`           // of Probes
}

// Memo tells how many steps of a workload the simulator skipped, because it had executed the same
// from the same state before.
type Memo struct {
	Steps    int            `json:"steps"`
	Skipped  int            `json:"skipped"`
	Executed map[string]int `json:"executed,omitempty"` // number of the others, by why they were executed
	Why      string         `json:"why,omitempty"`      // why none can be skipped
}

// Refused counts rejected packets of one host: outside the workload, or damaged.
type Refused struct {
	Host    string `json:"host"` // the sender if By is network, else the receiver
	By      string `json:"by" jsonschema:"enum=network,enum=host"`
	From    string `json:"from,omitempty"` // the sender if By is host; empty: unknown
	Why     string `json:"why"`
	Packets int64  `json:"packets"`
}

// The values of Refused.By.
const (
	ByNetwork = "network" // at the edge, before they used any queue or link
	ByHost    = "host"    // after they crossed the network
)

// Quantiles describe a distribution.
type Quantiles struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// Flows summarizes the messages that were started.
type Flows struct {
	Count      int64     `json:"count"`
	Unfinished int64     `json:"unfinished"`
	Bytes      int64     `json:"bytes"`
	FCT        Quantiles `json:"fct_us"`
	Slowdown   Quantiles `json:"slowdown"`
}

// Tail counts retransmission timeouts of the slowest messages: those at or beyond the 99th
// percentile of completion times.
type Tail struct {
	Timeouts int64   `json:"timeouts"`
	Messages int64   `json:"messages"`  // with a timeout
	WaitedUS float64 `json:"waited_us"` // largest time that a message waited for timeouts

	// Decide is the number that would be less by a tenth or more without the waiting: p99, or only
	// the maximum.
	Decide string `json:"decide" jsonschema:"enum=p99,enum=max"`
}

// The values of Tail.Decide.
const (
	DecideP99 = "p99"
	DecideMax = "max"
)

// Collective is one item of the workload, with all its groups of ranks or arrivals.
type Collective struct {
	Name      string  `json:"name"`
	Label     string  `json:"label,omitempty"` // its name in a trace
	Algorithm string  `json:"algorithm"`
	Ranks     int     `json:"ranks"`
	Bytes     int64   `json:"bytes"`
	Repeat    int     `json:"repeat"`
	TimeUS    float64 `json:"time_us"`               // first start to last end of the slowest group, mean
	TimeMaxUS float64 `json:"time_max_us,omitempty"` // of its longest repetition; absent unless all of several finished
	Groups    int     `json:"groups,omitempty"`      // number of groups; absent for a single one
	FastestUS float64 `json:"fastest_us,omitempty"`  // TimeUS of the fastest group
	AlgBWGbps float64 `json:"algbw_gbps"`
	BusBWGbps float64 `json:"busbw_gbps"`
	Wrong     int64   `json:"wrong"`
	Checked   int64   `json:"checked"` // elements compared with the reference
	// Alike is the part of Checked in steps that the simulator skipped, since it had checked an
	// identical step.
	Alike int64  `json:"checked_alike,omitempty"`
	Items string `json:"items,omitempty"` // its items in the data files, such as 0 or 2-5,9

	// FCT are the completion times of its messages; absent if it is the only item, or no message
	// finished.
	FCT *Quantiles `json:"fct_us,omitempty"`
}

// Longest returns the time of the longest repetition in microseconds; 0: not known.
func (c Collective) Longest() float64 {
	if c.Repeat <= 1 {
		return c.TimeUS
	}
	return c.TimeMaxUS
}

// CollectiveNames returns a name for each of the collectives: that of a file, a trace or a group if
// there is one. Those that share one get the name that expectations use, such as collective.3.
func (s *Summary) CollectiveNames() []string {
	names, times := make([]string, len(s.Collectives)), map[string]int{}
	for i := range s.Collectives {
		names[i] = cmp.Or(s.Collectives[i].Label, s.Collectives[i].Name)
		times[names[i]]++
	}
	for i, name := range names {
		if times[name] > 1 {
			names[i] += fmt.Sprintf(" (collective.%d)", i)
		}
	}
	return names
}

// Network has the counters of the fabric.
type Network struct {
	Packets      int64     `json:"packets"` // handed to NICs
	DataPackets  int64     `json:"data_packets"`
	Delivered    int64     `json:"delivered"`
	CEMarks      int64     `json:"ce_marks"`
	Drops        int64     `json:"drops"` // by the model: full queues
	Retransmits  int64     `json:"retransmits"`
	Timeouts     int64     `json:"timeouts"`
	Lost         int64     `json:"lost"`                    // corrupted on a link
	Cut          int64     `json:"cut"`                     // on, or for want of, a link that went down
	Unreceived   int64     `json:"unreceived,omitempty"`    // reached a host that was paused or had ended
	Duplicated   int64     `json:"duplicated,omitempty"`    // copies made by links
	Late         int64     `json:"late,omitempty"`          // delayed by links
	Reordered    int64     `json:"reordered,omitempty"`     // data packets that arrived before an earlier one
	Switched     int64     `json:"path_switches,omitempty"` // port changes by adaptive switches and by senders
	CCM          *CCM      `json:"ccm,omitempty"`
	Trims        int64     `json:"trims,omitempty"`         // packets cut to their headers by full queues
	TrimmedBytes int64     `json:"trimmed_bytes,omitempty"` // what was cut off
	Credits      int64     `json:"credits,omitempty"`       // messages of receivers that grant credit
	Pauses       int64     `json:"pauses"`                  // sent by PFC
	PausedUS     float64   `json:"paused_us"`               // of all ports together
	QueueDelay   Quantiles `json:"queue_delay_us"`          // of a delivered packet in all switch queues of its path
	MaxQueue     int64     `json:"max_queue_bytes"`

	Refused int64 `json:"refused,omitempty"` // by the network or hosts; see Summary.Refused
	Beside  int64 `json:"beside,omitempty"`  // carried, but neither of Weft nor of a program of the lab

	After *After `json:"after,omitempty"` // with measure.from

	// QueueEventDelay is the time until the queue of the port in measure.queue_events would be
	// empty, at each arrival and departure of a packet. It is not weighted by time.
	QueueEventDelay *Quantiles `json:"queue_event_delay_us,omitempty"`
}

// CCM has the counters of coordinated congestion management (transport.kind: ccm).
type CCM struct {
	NeedsCC    int64 `json:"needs_cc"`     // notifications of type 1 by switches, last resorts included
	Released   int64 `json:"released"`     // notifications of type 2
	NeedsPath  int64 `json:"needs_path"`   // notifications of type 3
	Lost       int64 `json:"lost"`         // notifications lost, by transport.ccm.notification_loss
	Handled    int64 `json:"heeded"`       // notifications that sources acted on
	Refused    int64 `json:"refused"`      // by sources: forged, replayed, about flows of others
	Ignored    int64 `json:"ignored"`      // by switches without a use for them
	BadTags    int64 `json:"bad_tags"`     // data packets whose AR indicator names no valid switch
	Repaths    int64 `json:"repaths"`      // source port changes
	LastResort int64 `json:"last_resorts"` // packets without a light path
	Forgotten  int64 `json:"forgotten"`    // incast flows evicted from full tables
	MostFlows  int64 `json:"most_flows"`   // largest number of incast flows at one port

	Steps  []Step `json:"steps,omitempty"`        // actions of switches and hosts, by first occurrence
	Unkept int64  `json:"steps_unkept,omitempty"` // further steps beyond the limit
}

// Step is an action of coordinated congestion management, as a sentence.
type Step struct {
	Step    string  `json:"step"`
	Count   int64   `json:"count"`
	FirstUS float64 `json:"first_us"`
	LastUS  float64 `json:"last_us"`
}

// After has counters of the fabric from measure.from on. Round trips, queueing delays, queue events
// and rates of the summary are from then on as well; all else is of the whole run.
type After struct {
	FromUS   float64 `json:"from_us"` // measure.from, after the clocks' warm-up
	Drops    int64   `json:"drops"`
	MaxQueue int64   `json:"max_queue_bytes"` // the most that waited in one switch port
}

// Acks says when senders first learned of congestion, by marks and by delay.
type Acks struct {
	Connections int64   `json:"connections"`  // with an acknowledgement
	FirstMarked int64   `json:"first_marked"` // connections whose first acknowledgement was of a marked packet
	MarkUS      float64 `json:"mark_us"`      // instant of the first mark; 0: none
	MarkRTTUS   float64 `json:"mark_rtt_us"`  // round trip of its packet
	DelayUS     float64 `json:"delay_us"`     // instant of the first round trip of twice the base RTT; 0: none
}

// Rates is the throughput of connections without headers, from measure.from on and while all were
// open: from the last start to the first end, in whole sampling intervals.
type Rates struct {
	FromUS    float64 `json:"from_us"`
	UntilUS   float64 `json:"until_us"`
	Conns     int     `json:"connections"`
	TotalGbps float64 `json:"total_gbps"`
	MinGbps   float64 `json:"min_gbps"` // the slowest connection
	MeanGbps  float64 `json:"mean_gbps"`
	MaxGbps   float64 `json:"max_gbps"`
	Jain      float64 `json:"jain"` // Jain's index of the connections, in (0, 1]
}

// Plateau is an interval of more than a base RTT in which the same connections are open: between
// two instants at which a first message starts or a last one ends. A run with measure.rates has at
// most 64.
type Plateau struct {
	FromUS    float64 `json:"from_us"`
	UntilUS   float64 `json:"until_us"` // one base RTT before the next change, in whole sampling intervals
	Conns     int     `json:"connections"`
	Jain      float64 `json:"jain"`       // Jain's index over all of it, first round trips included
	TotalGbps float64 `json:"total_gbps"` // headers not counted
	// SettledUS is the time from FromUS until four intervals together have a Jain's index of 0.99
	// and 95 % of the throughput; null if none do.
	SettledUS *float64 `json:"settled_us"`
	// Short is set if the plateau has fewer than four whole intervals: then nothing is known of its
	// shares, and UntilUS is the next change.
	Short bool `json:"short,omitempty"`
}

// Clocks has the errors of the hosts' clocks, and the cost of synchronization. Absent fields were
// not measured: perfect clocks have no errors.
type Clocks struct {
	Sync string `json:"sync"` // protocol
	// Error is between two hosts, over all pairs and samples since the start of the workload or
	// measure.from.
	Error Quantiles `json:"error_ns"`

	P999        float64    `json:"error_p999_ns,omitempty"`
	RMS         float64    `json:"error_rms_ns,omitempty"` // root mean square of Error
	Samples     int64      `json:"samples,omitempty"`      // sampling instants, warm-up included
	Reference   *Quantiles `json:"reference_ns,omitempty"` // error between each host and the reference
	Bound       *Quantiles `json:"bound_ns,omitempty"`     // error bounds reported by hosts
	Coverage    *float64   `json:"coverage,omitempty"`     // share of BoundPairs within the sum of their bounds
	BoundPairs  int64      `json:"bound_pairs,omitempty"`  // pairs of samples in which both hosts state a bound
	Pairs       int64      `json:"pairs,omitempty"`        // of samples, since the workload began or measure.from
	LimitNS     float64    `json:"limit_ns,omitempty"`     // clocks.limit
	ConvergedUS *float64   `json:"converged_us,omitempty"` // pairs are within LimitNS from then on; absent if never
	Packets     int64      `json:"packets,omitempty"`      // synchronization packets
	Bytes       int64      `json:"bytes,omitempty"`        // of these packets on the wire
	Share       float64    `json:"share,omitempty"`        // of the capacity of all NICs
	Refused     int64      `json:"refused,omitempty"`      // unusable messages
	Filtered    int64      `json:"filtered,omitempty"`     // outliers among measurements
	Steps       int64      `json:"steps,omitempty"`        // discontinuous corrections
	Resets      int64      `json:"resets,omitempty"`       // times a host started over

	Falsetickers int64 `json:"falsetickers,omitempty"` // times a host outvoted a time server
	NoMajority   int64 `json:"no_majority,omitempty"`  // times a host found no majority of servers, and continued alone

	Stability *Stability `json:"stability,omitempty"`
}

// Stability is that of the hosts' clocks against the reference, unfiltered, since the start of the
// workload or measure.from. Each number is that of the worst host.
type Stability struct {
	Hosts    int        `json:"hosts"`       // compared hosts: those whose protocol ran all the time
	MaxTE    float64    `json:"max_te_ns"`   // largest absolute error
	Constant float64    `json:"constant_ns"` // largest mean error of a host
	At       []Averaged `json:"at"`
	Classes  []Class    `json:"g8273_2"`
}

// Averaged is stability at one averaging time.
type Averaged struct {
	TauUS float64 `json:"tau_us"`
	ADEV  float64 `json:"adev"`    // overlapping Allan deviation; dimensionless
	MDEV  float64 `json:"mdev"`    // modified Allan deviation; dimensionless
	TDEV  float64 `json:"tdev_ns"` // time deviation
	MTIE  float64 `json:"mtie_ns"` // maximum time interval error
}

// Class has the limits of a class of ITU-T G.8273.2, for comparison only: they apply to 1000 s of
// one piece of equipment, so no run of a lab proves that they are met.
type Class struct {
	Name     string  `json:"class"`
	MaxTE    float64 `json:"max_te_ns"`
	Constant float64 `json:"constant_ns"`
	MTIE     float64 `json:"mtie_ns"`
	TDEV     float64 `json:"tdev_ns"`
}

// Fidelity says how well an emulated run kept to its schedule.
type Fidelity struct {
	Verdict       string  `json:"verdict"`         // ok, degraded or invalid; unjudged: nothing was measured
	LatenessP99NS float64 `json:"lateness_p99_ns"` // lab time
	LatenessMaxNS float64 `json:"lateness_max_ns"`
	Events        int64   `json:"events,omitempty"` // how many packets and timers were measured
	// what 99 % of round trips are late by at most, over all events of one; it decides nothing
	RoundTripP99NS float64 `json:"round_trip_lateness_p99_ns,omitempty"`
	BaseRTTNS      float64 `json:"base_rtt_ns"`
	// shortest queueing delay that a connection aims at; 0: none steers by delay
	DelayTargetNS float64 `json:"delay_target_ns,omitempty"`
	// p99 of what the machine adds to measured delays; 0 without DelayTargetNS
	DelayErrorP99NS float64 `json:"delay_error_p99_ns,omitempty"`
	// share of the time in which a host's network was in use and its programs' tasks waited for a
	// processor, of the host with the largest
	ProgramWait    float64 `json:"program_wait,omitempty"`
	UnorderedDrops int64   `json:"unordered_drops"`         // packets lost outside the model
	ForeignDrops   int64   `json:"foreign_drops,omitempty"` // of these, in nodes that sent foreign packets
	// packets that went from one part of the network to another, and of these how many came after
	// their instant; 0 in one piece
	Crossings     int64 `json:"crossings,omitempty"`
	LateCrossings int64 `json:"late_crossings,omitempty"`
	// share of the time of the messages, collectives or programs that it has most of in which some
	// process was stopped or late, and what these are; and its longest stalls
	Stalled     float64 `json:"stalled,omitempty"`
	StalledWork string  `json:"stalled_work,omitempty"`
	Stalls      []Stall `json:"stalls,omitempty"`
	// senders may have taken a stall for a queue or a loss, and sent less after it, ranks may have
	// stayed apart, or clocks may have been thrown off
	Slowed bool `json:"stalled_senders,omitempty"`
	// share of data packets for which a node had to open a socket first, which delays them
	Opened  float64  `json:"sockets_opened,omitempty"`
	CPUMax  float64  `json:"cpu_max"` // busiest second, as a share of all processors
	Reasons []string `json:"reasons,omitempty"`
	Advice  string   `json:"advice,omitempty"` // what to do; empty if the verdict is ok
}

// Stall is a time in which processes of an emulated lab did nothing that was due.
type Stall struct {
	Process string  `json:"process"`
	FromUS  float64 `json:"from_us"` // lab time
	ForUS   float64 `json:"for_us"`  // lab time
	RealS   float64 `json:"real_s"`  // its length in real time
}

// The largest p99 lateness that is still ok or degraded, as a share of the base round trip.
const (
	OKLateness       = 0.05
	DegradedLateness = 0.20
)

// Lateness returns the p99 lateness of a run as a multiple of the largest that is still ok: that
// share of the base round trip and, where connections steer by delay, their target.
func (f *Fidelity) Lateness() (times float64) {
	if f.BaseRTTNS > 0 {
		times = f.LatenessP99NS / (OKLateness * f.BaseRTTNS)
	}
	if f.DelayTargetNS > 0 {
		times = max(times, f.DelayErrorP99NS/f.DelayTargetNS)
	}
	return max(times, f.ProgramWait/OKLateness)
}

// The verdicts of a Fidelity that are not OK, and Unjudged in the place of one for an emulation
// that has none.
const (
	Degraded = "degraded"
	Invalid  = "invalid"
	Unjudged = "unjudged"
)

// OfNothing reports whether nothing was judged: no packet or timer was measured. An older Weft
// counted none.
func (f *Fidelity) OfNothing() bool {
	return f.BaseRTTNS > 0 && f.Events == 0 && f.LatenessP99NS == 0
}

// Invalid reports whether the run was so late, or lost so much, that its numbers are useless.
func (f *Fidelity) Invalid() bool { return f != nil && f.Verdict == Invalid }

// Verdicts lists the fidelities of a run that was judged.
func Verdicts() []string { return []string{OK, Degraded, Invalid} }

// Unjudged returns why an emulation has no verdict; "" if it has one.
func (f *Fidelity) Unjudged() string {
	switch {
	case (f.Verdict == OK || f.Verdict == Unjudged) && f.OfNothing(): // ok: an older Weft's
		return "no packet or timer was measured"
	case !slices.Contains(Verdicts(), f.Verdict):
		return cmp.Or(strings.Join(f.Reasons, "; "), "nothing was measured")
	}
	return ""
}

// Unjudged returns why the run has no verdict on its fidelity; "" if it has one. Nobody judges a
// simulation: it keeps its schedule by definition.
func (s *Summary) Unjudged() string {
	switch {
	case s.Fidelity != nil:
		return s.Fidelity.Unjudged()
	case s.Engine == "sim":
		return "the simulator keeps its schedule by definition"
	}
	return "the summary has no verdict"
}

// lacksVerdict reports whether an emulation came to its end without a verdict.
func (s *Summary) lacksVerdict() bool {
	return s.Fidelity == nil && s.Engine == "emu" && s.Run != "" && s.Status == OK
}

// Accepted reports whether the run passes `weft run --strict`: a simulation, or an emulation whose
// verdict is ok or the value of strict. An emulation that was not judged does not.
func (s *Summary) Accepted(strict string) bool {
	f := s.Fidelity
	if f == nil {
		return strict == "" || !s.lacksVerdict()
	}
	return strict == "" || f.Unjudged() == "" && (f.Verdict == OK || f.Verdict == strict)
}

// Retry describes the run that this one repeats at a higher dilation, because its fidelity was not
// ok.
type Retry struct {
	Of       string  `json:"of"`       // directory of that run, which is kept
	Verdict  string  `json:"verdict"`  // of its fidelity
	Dilation float64 `json:"dilation"` // of that run
	Factor   float64 `json:"factor"`   // by which this run's dilation is higher
	Why      string  `json:"why"`      // why this factor
	Counts   bool    `json:"counts"`   // use this run, not that one
}

// Expect is an expectation and its result.
type Expect struct {
	That string  `json:"that"` // its text
	Got  float64 `json:"got"`  // the left side; null if Unmeasured or Skipped
	// Unit of Got and Want: us, B, Gb/s, or bool (1 is true); absent for a plain number or a word.
	Unit string `json:"unit,omitempty"`
	Word string `json:"word,omitempty"` // the left side if it is a word, such as a fidelity; then Got is 0

	Want *float64 `json:"want,omitempty"` // the right side, unless the text has it as a number or word

	OK bool `json:"ok"`
	// Note is what was found if it is missed, or the reason if it is skipped. Across points it is
	// the number of points that meet it, and the closest one.
	Note string `json:"note,omitempty"`

	// Unmeasured is set if a side has no value, which Note explains. The expectation is missed.
	Unmeasured bool `json:"unmeasured,omitempty"`

	// Skipped is set if its condition does not hold, or the command line left no points to judge it
	// by. It is neither met nor missed.
	Skipped bool `json:"skipped,omitempty"`

	Doubt string `json:"doubt,omitempty"` // why the result may not mean what it seems to

	// Unproven is set if the result proves nothing, since the fidelity of a run that it depends on
	// is invalid. Doubt says so.
	Unproven bool `json:"unproven,omitempty"`
}

// Grade returns Bad for a missed expectation, Doubt for one that was skipped or proves nothing, and
// Good otherwise.
func (e *Expect) Grade() Grade {
	switch {
	case e.Missed():
		return Bad
	case e.Skipped || e.Doubt != "":
		return Doubt
	}
	return Good
}

// Missed reports whether the expectation was judged and is not met.
func (e *Expect) Missed() bool { return !e.OK && !e.Skipped }
