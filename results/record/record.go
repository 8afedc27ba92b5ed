package record

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
	Status    string         `json:"status"` // ok, failed, interrupted
	Error     string         `json:"error,omitempty"`
	Verified  bool           `json:"verified"`

	Fidelity    *Fidelity    `json:"fidelity,omitempty"` // emulation only
	Flows       Flows        `json:"flows"`
	RTT         Quantiles    `json:"rtt_us"`      // of every acknowledged data packet
	BaseRTTUS   float64      `json:"base_rtt_us"` // of the network: the longest among pairs that talk, data packet there, ack back
	Collectives []Collective `json:"collectives"`
	Network     Network      `json:"network"`
	Rates       *Rates       `json:"rates,omitempty"` // where measure.rates asks for them
	Plateaus    []Plateau    `json:"plateaus,omitempty"`
	Acks        *Acks        `json:"acks,omitempty"` // where measure.acks asks for them
	Clocks      Clocks       `json:"clocks"`
	Expect      []Expect     `json:"expect"`
	Warnings    []string     `json:"warnings,omitempty"`

	LabTimeUS float64 `json:"lab_time_us"` // instant of the last completion
	WallS     float64 `json:"wall_s"`
	Events    int64   `json:"events"` // simulator events
}

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
	CPUMax         float64  `json:"cpu_max"` // busiest second, share of all processors
	Reasons        []string `json:"reasons,omitempty"`
}

// Expect is one expectation and how it came out.
type Expect struct {
	That string  `json:"that"`
	Got  float64 `json:"got"`            // the left side
	Unit string  `json:"unit,omitempty"` // of Got: us, B, Gb/s; bool, of which 1 is true; absent: a plain number
	OK   bool    `json:"ok"`
	Note string  `json:"note,omitempty"` // on a miss: what was found, or why nothing could be
}
