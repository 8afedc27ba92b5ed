package record

// How a run ended. docs/results.md has the same table.
const (
	Running     = "running"     // it has not: in a manifest only
	OK          = "ok"          // every message finished, and every rank's result was checked and is right
	Unverified  = "unverified"  // it ran to its end, and a result is wrong or was not checked in full
	Unfinished  = "unfinished"  // it ran to its end, and a message or a rank did not finish
	Failed      = "failed"      // it could not go on, was killed, or could not keep its data
	Interrupted = "interrupted" // somebody ended it
)

// Complete says whether the run went to its end, so that its numbers are of all of it, whatever they are worth.
func (s *Summary) Complete() bool {
	return s.Status == OK || s.Status == Unverified || s.Status == Unfinished
}

// Summary is what a run comes down to: summary.json, and what `weft run --json` prints. Every time and rate
// is in lab units; field names end in their unit.
type Summary struct {
	Format    int            `json:"format"` // version of the run directory
	Run       string         `json:"run"`
	Lab       string         `json:"lab"`
	Point     map[string]any `json:"point,omitempty"`    // values of the sweep at this point
	Engine    string         `json:"engine"`             // sim, emu
	Datapath  string         `json:"datapath,omitempty"` // fabric
	Runtime   string         `json:"runtime,omitempty"`  // namespace
	Dilation  float64        `json:"dilation"`           // 1 in sim
	Seed      uint64         `json:"seed"`
	Transport string         `json:"transport"`
	Status    string         `json:"status" jsonschema:"enum=ok,enum=unverified,enum=unfinished,enum=failed,enum=interrupted"`
	Error     string         `json:"error,omitempty"` // why the status is not ok
	Verified  bool           `json:"verified"`        // every rank has the right result, and all of it was checked

	Fidelity    *Fidelity    `json:"fidelity,omitempty"` // emulation only
	Retry       *Retry       `json:"retry,omitempty"`    // of a run that was made since the one before it was too late
	Flows       Flows        `json:"flows"`
	RTOMinUS    float64      `json:"rto_min_us"`              // least retransmission timeout of a connection, the longest of all; 0 without connections
	RTOMinKey   string       `json:"rto_min_key,omitempty"`   // the setting that says so: transport.pc4.rto_min
	Tail        *Tail        `json:"tail_timeouts,omitempty"` // absent: timeouts do not decide the slowest messages
	RTT         Quantiles    `json:"rtt_us"`                  // of every acknowledged data packet
	BaseRTTUS   float64      `json:"base_rtt_us"`             // of the network: the longest among pairs that talk, data packet there, ack back
	Collectives []Collective `json:"collectives"`
	Network     Network      `json:"network"`
	Rates       *Rates       `json:"rates,omitempty"` // where measure.rates asks for them
	Plateaus    []Plateau    `json:"plateaus,omitempty"`
	Acks        *Acks        `json:"acks,omitempty"` // where measure.acks asks for them
	Clocks      Clocks       `json:"clocks"`
	Expect      []Expect     `json:"expect"`
	Refused     []Refused    `json:"refused,omitempty"` // packets that nobody's part of the workload sends, by host and why
	Warnings    []string     `json:"warnings,omitempty"`

	LabTimeUS float64 `json:"lab_time_us"` // instant of the last completion
	WallS     float64 `json:"wall_s"`
	Events    int64   `json:"events"` // simulator events
}

// Refused counts packets that were refused: they are no part of the workload, or were damaged.
type Refused struct {
	Host    string `json:"host"` // that sent them, of those that the network refused; otherwise that refused them
	By      string `json:"by" jsonschema:"enum=network,enum=host"`
	Why     string `json:"why"`
	Packets int64  `json:"packets"`
}

// Who refuses packets.
const (
	ByNetwork = "network" // before they were in it, so that they took nobody's place
	ByHost    = "host"    // that they reached
)

// Quantiles describe a distribution.
type Quantiles struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// Flows describes the messages of the run.
type Flows struct {
	Count      int64     `json:"count"`
	Unfinished int64     `json:"unfinished"`
	Bytes      int64     `json:"bytes"`
	FCT        Quantiles `json:"fct_us"`
	Slowdown   Quantiles `json:"slowdown"`
}

// Tail is what retransmission timeouts are of the slowest messages: those that take as long as the 99th percentile or longer.
type Tail struct {
	Timeouts int64   `json:"timeouts"`
	Messages int64   `json:"messages"`  // that waited for one
	WaitedUS float64 `json:"waited_us"` // most that a message waited for timeouts
}

// Collective is one item of the workload: of all its groups, if its ranks are groups, or of all its arrivals.
type Collective struct {
	Name      string  `json:"name"`
	Label     string  `json:"label,omitempty"` // what a trace calls it
	Algorithm string  `json:"algorithm"`
	Ranks     int     `json:"ranks"`
	Bytes     int64   `json:"bytes"`
	Repeat    int     `json:"repeat"`
	TimeUS    float64 `json:"time_us"`              // first rank's start to last rank's end, mean over repetitions; of groups the slowest one's
	Groups    int     `json:"groups,omitempty"`     // of as many ranks each; absent: the ranks are no groups
	FastestUS float64 `json:"fastest_us,omitempty"` // the time of the fastest group
	AlgBWGbps float64 `json:"algbw_gbps"`
	BusBWGbps float64 `json:"busbw_gbps"`
	Wrong     int64   `json:"wrong"`
	Checked   int64   `json:"checked"`

	FCT *Quantiles `json:"fct_us,omitempty"` // of its messages; absent: it is the only item, or none of them was completed
}

// Network counts what the fabric saw.
type Network struct {
	Packets     int64     `json:"packets"` // handed to NICs
	DataPackets int64     `json:"data_packets"`
	Delivered   int64     `json:"delivered"`
	CEMarks     int64     `json:"ce_marks"`
	Drops       int64     `json:"drops"` // that the model ordered
	Retransmits int64     `json:"retransmits"`
	Timeouts    int64     `json:"timeouts"`
	Lost        int64     `json:"lost"`                    // corrupted on a link
	Cut         int64     `json:"cut"`                     // on a link that went down, waiting for it, or without another way
	Duplicated  int64     `json:"duplicated,omitempty"`    // copies that links made
	Late        int64     `json:"late,omitempty"`          // that links delivered late
	Reordered   int64     `json:"reordered,omitempty"`     // data packets that arrived before an earlier one of their connection
	Switched    int64     `json:"path_switches,omitempty"` // flows that adaptive switches moved to another port, and source ports that senders left, each time
	CCM         *CCM      `json:"ccm,omitempty"`
	Pauses      int64     `json:"pauses"`         // that PFC sent
	PausedUS    float64   `json:"paused_us"`      // how long ports were paused, all together
	QueueDelay  Quantiles `json:"queue_delay_us"` // per delivered packet, all switch queues of its path
	MaxQueue    int64     `json:"max_queue_bytes"`

	Refused int64 `json:"refused,omitempty"` // packets that the network or hosts refused: see Summary.Refused
	Beside  int64 `json:"beside,omitempty"`  // carried that are neither Weft's nor a program's of the lab

	After *After `json:"after,omitempty"` // where measure.from is set

	// How long what waits in the port that measure.queue_events names takes to leave, over the events of its queue: a
	// packet joining it, a packet leaving it. Not weighted by time.
	QueueEventDelay *Quantiles `json:"queue_event_delay_us,omitempty"`
}

// CCM counts what switches and sources did for coordinated congestion management.
type CCM struct {
	NeedsCC    int64 `json:"needs_cc"`     // notifications of type 1 that switches sent, those of a last resort included
	Released   int64 `json:"released"`     // of type 2
	NeedsPath  int64 `json:"needs_path"`   // of type 3
	Lost       int64 `json:"lost"`         // of all three, by transport.ccm.notification_loss
	Heeded     int64 `json:"heeded"`       // by sources
	Refused    int64 `json:"refused"`      // by sources: forged, replayed, about flows that are not theirs
	Ignored    int64 `json:"ignored"`      // by switches that have no use for them
	BadTags    int64 `json:"bad_tags"`     // data packets whose AR indicator names no switch that could be asked
	Repaths    int64 `json:"repaths"`      // changes of a source port
	LastResort int64 `json:"last_resorts"` // packets for which no path was light
	Forgotten  int64 `json:"forgotten"`    // flows of incast that had to make room for others
	MostFlows  int64 `json:"most_flows"`   // of incast at one port

	Steps  []Step `json:"steps,omitempty"`        // what switches and hosts did, by when each first happened
	Unkept int64  `json:"steps_unkept,omitempty"` // steps that read otherwise and came when there were enough
}

// Step is something that happened for coordinated congestion management, as a sentence.
type Step struct {
	Step    string  `json:"step"`
	Count   int64   `json:"count"`
	FirstUS float64 `json:"first_us"`
	LastUS  float64 `json:"last_us"`
}

// After counts what the fabric saw from measure.from on.
type After struct {
	Drops    int64 `json:"drops"`
	MaxQueue int64 `json:"max_queue_bytes"` // in one port of a switch, at a sampling instant (measure.queues)
}

// Acks is what senders hear first: of marks, and of delay.
type Acks struct {
	Connections int64   `json:"connections"`  // that had an acknowledgement
	FirstMarked int64   `json:"first_marked"` // of them, whose first one said that its packet was marked
	MarkUS      float64 `json:"mark_us"`      // when the first mark came; 0: none did
	MarkRTTUS   float64 `json:"mark_rtt_us"`  // the round trip of the packet that it was about
	DelayUS     float64 `json:"delay_us"`     // when a round trip of twice the network's base RTT was first seen; 0: none was
}

// Rates is what connections carried, headers not counted, from measure.from on and while all were open: from the last
// start to the first end, in whole sampling intervals.
type Rates struct {
	FromUS    float64 `json:"from_us"`
	UntilUS   float64 `json:"until_us"`
	Conns     int     `json:"connections"`
	TotalGbps float64 `json:"total_gbps"`
	MinGbps   float64 `json:"min_gbps"` // the slowest connection
	MeanGbps  float64 `json:"mean_gbps"`
	MaxGbps   float64 `json:"max_gbps"`
	Jain      float64 `json:"jain"` // fairness of the connections' rates, 1 when all are equal
}

// Plateau is a time in which the same connections are open: between a first message's start or a last one's end and the next. Where
// measure.rates asks for them, and at most 64 times.
type Plateau struct {
	FromUS    float64 `json:"from_us"`
	UntilUS   float64 `json:"until_us"` // a base RTT before the next, in whole sampling intervals
	Conns     int     `json:"connections"`
	Jain      float64 `json:"jain"`       // fairness of what the connections carried in all of it, their first round trips included
	TotalGbps float64 `json:"total_gbps"` // headers not counted
	SettledUS float64 `json:"settled_us"` // after FromUS, until four intervals first have Jain's index of 0.99 and 95 % of the throughput; as long as it lasts where none do
}

// Clocks describes the error of the hosts' clocks, and what it cost to keep them together. What is absent was not
// measured: with perfect clocks there is nothing to measure.
type Clocks struct {
	Sync  string    `json:"sync"`
	Error Quantiles `json:"error_ns"` // between two hosts, over all pairs and samples since the workload began, or measure.from

	P999        float64    `json:"error_p999_ns,omitempty"`
	RMS         float64    `json:"error_rms_ns,omitempty"` // root mean square of the error
	Samples     int64      `json:"samples,omitempty"`      // instants at which all clocks were compared, warm-up included
	Reference   *Quantiles `json:"reference_ns,omitempty"` // between each host and the one that the others follow
	Bound       *Quantiles `json:"bound_ns,omitempty"`     // what hosts said that they are within
	Coverage    *float64   `json:"coverage,omitempty"`     // share of pairs that are no farther apart than their bounds together
	LimitNS     float64    `json:"limit_ns,omitempty"`
	ConvergedUS *float64   `json:"converged_us,omitempty"` // from when on no two hosts were farther apart than the limit; absent: at the end they were
	Packets     int64      `json:"packets,omitempty"`      // of synchronization
	Bytes       int64      `json:"bytes,omitempty"`        // that they took on the wire
	Share       float64    `json:"share,omitempty"`        // of what all NICs could send in the run
	Refused     int64      `json:"refused,omitempty"`      // messages that could not be used
	Filtered    int64      `json:"filtered,omitempty"`     // measurements that were outliers
	Steps       int64      `json:"steps,omitempty"`        // corrections that were not continuous
	Resets      int64      `json:"resets,omitempty"`       // times that a host began anew

	Falsetickers int64 `json:"falsetickers,omitempty"` // times that a host outvoted a server of time
	NoMajority   int64 `json:"no_majority,omitempty"`  // times that a host found no majority among its servers, and went on alone

	Stability *Stability `json:"stability,omitempty"`
}

// Stability is that of the hosts' clocks against the reference's, since the workload began, or measure.from: at each
// averaging time the worst host's. Nothing is filtered.
type Stability struct {
	Hosts    int        `json:"hosts"`       // that were compared: those whose protocol ran all the time
	MaxTE    float64    `json:"max_te_ns"`   // largest error
	Constant float64    `json:"constant_ns"` // largest mean of a host's error
	At       []Averaged `json:"at"`
	Classes  []Class    `json:"g8273_2"`
}

// Averaged is stability at one averaging time.
type Averaged struct {
	TauUS float64 `json:"tau_us"`
	ADEV  float64 `json:"adev"`    // Allan deviation, of overlapping intervals: a share
	MDEV  float64 `json:"mdev"`    // modified Allan deviation: a share
	TDEV  float64 `json:"tdev_ns"` // time deviation
	MTIE  float64 `json:"mtie_ns"` // largest change of the error within that time
}

// Class is the limits of a class of ITU-T G.8273.2, to read the numbers beside: they are for 1000 s of one piece of equipment,
// and no run of a lab says that they are kept.
type Class struct {
	Name     string  `json:"class"`
	MaxTE    float64 `json:"max_te_ns"`
	Constant float64 `json:"constant_ns"`
	MTIE     float64 `json:"mtie_ns"`
	TDEV     float64 `json:"tdev_ns"`
}

// Fidelity says how far an emulated run kept to its schedule.
type Fidelity struct {
	Verdict        string   `json:"verdict"`         // ok, degraded, invalid
	LatenessP99NS  float64  `json:"lateness_p99_ns"` // lab time
	LatenessMaxNS  float64  `json:"lateness_max_ns"`
	BaseRTTNS      float64  `json:"base_rtt_ns"`
	UnorderedDrops int64    `json:"unordered_drops"`
	ForeignDrops   int64    `json:"foreign_drops,omitempty"` // of these, in send queues of nodes that sent what is no part of the workload
	CPUMax         float64  `json:"cpu_max"`                 // busiest second, share of all processors
	Reasons        []string `json:"reasons,omitempty"`
	Advice         string   `json:"advice,omitempty"` // what to do about them; empty: the verdict is ok
}

// The largest p99 lateness, as a share of the base round trip, that is still ok, and still degraded.
const (
	OKLateness       = 0.05
	DegradedLateness = 0.20
)

// Invalid says that a run was emulated so late, or with such losses, that its numbers show nothing.
func (f *Fidelity) Invalid() bool { return f != nil && f.Verdict == "invalid" }

// Accepted says whether a verdict is good enough for `weft run --strict`: ok, or with degraded that as well.
func (f *Fidelity) Accepted(strict string) bool {
	return f == nil || strict == "" || f.Verdict == "ok" || f.Verdict == strict
}

// Retry says of an emulated run that it was made at a higher dilation, since the fidelity of the one before was not ok.
type Retry struct {
	Of       string  `json:"of"`       // directory of the run before, which is kept
	Verdict  string  `json:"verdict"`  // its fidelity
	Dilation float64 `json:"dilation"` // that it had
	Factor   float64 `json:"factor"`   // by which this run's is higher
	Why      string  `json:"why"`      // of that factor
	Counts   bool    `json:"counts"`   // this run does, and not the one before
}

// Expect is one expectation and how it came out.
type Expect struct {
	That string  `json:"that"`
	Got  float64 `json:"got"`            // the left side
	Unit string  `json:"unit,omitempty"` // of Got and Want: us, B, Gb/s; bool, of which 1 is true; absent: a plain number or a word
	Word string  `json:"word,omitempty"` // the left side if it is a word, such as a fidelity; Got is 0 then

	Want *float64 `json:"want,omitempty"` // the right side, unless the line has its number or word itself

	OK   bool   `json:"ok"`
	Note string `json:"note,omitempty"` // on a miss: what was found, or why nothing could be; of one that was skipped, why; across points, how many met it and which is closest

	// Skipped: the command line left no points to judge it by. It is neither met nor missed.
	Skipped bool `json:"skipped,omitempty"`

	Doubt string `json:"doubt,omitempty"` // why it may hold or be missed for another reason than the one meant
}

// Missed reports whether it was judged and is not met.
func (e *Expect) Missed() bool { return !e.OK && !e.Skipped }
