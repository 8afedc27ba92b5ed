package lab

// The types of this file are the lab file as it is written: every key of the format. Schema makes the JSON Schema
// of them. Parse reads the text itself, since it needs the place of every value; a test holds the two together.

type writtenLab struct {
	Weft       int                  `json:"weft" jsonschema:"enum=1" jsonschema_description:"Format version."`
	Name       nameTextType         `json:"name" jsonschema_description:"Names the results folder and labels the nodes."`
	About      string               `json:"about,omitempty" jsonschema_description:"What the lab shows."`
	Seed       int                  `json:"seed,omitempty" jsonschema:"minimum=0" jsonschema_description:"Every random choice derives from it."`
	Topology   topologyType         `json:"topology" jsonschema_description:"Hosts, switches and links."`
	Queues     queuesType           `json:"queues,omitempty" jsonschema_description:"Egress queues of switches."`
	Clocks     clocksType           `json:"clocks,omitempty" jsonschema_description:"Clock errors and synchronization."`
	Background backgroundType       `json:"background,omitempty" jsonschema_description:"Unmeasured bursts between random hosts, without congestion control; simulator only. For measured arrivals use poisson in the workload."`
	Transport  transportType        `json:"transport,omitempty" jsonschema_description:"What carries the messages."`
	Workload   []writtenItem        `json:"workload,omitempty" jsonschema_description:"Collectives; they run concurrently unless start says otherwise."`
	Faults     faultsType           `json:"faults,omitempty" jsonschema_description:"What happens to links, hosts and clocks."`
	Measure    measureType          `json:"measure,omitempty" jsonschema_description:"What is recorded besides flows."`
	Expect     []string             `json:"expect,omitempty" jsonschema_description:"Checked after the run; a miss is exit code 3. A condition after when restricts an expectation to some points of a sweep."`
	Sweep      map[string]sweptType `json:"sweep,omitempty" jsonschema_description:"Paths and their values; every combination is a run. Comma-separated paths change together: their values are lists of equal length."`
	Engine     engineType           `json:"engine,omitempty" jsonschema_description:"How the lab runs; flags override it."`
}

type writtenItem struct {
	Trace      traceFileType  `json:"trace,omitempty" jsonschema_description:"CSV file below the lab's folder whose collectives the ranks run in order; replaces collective (docs/collectives.md)."`
	Collective collectiveType `json:"collective,omitempty" jsonschema_description:"What the ranks do."`
	Algorithm  algorithmType  `json:"algorithm,omitempty" jsonschema_description:"auto is the collective's first: ring for all-reduce, all-gather, reduce-scatter; direct for all-to-all; chain for broadcast, reduce."`
	Ranks      ranksType      `json:"ranks,omitempty" jsonschema_description:"all, the first N, a list in rank order, or drawn. incast, ps: the senders."`
	Root       string         `json:"root,omitempty" jsonschema_description:"broadcast, reduce, gather, scatter: default the first rank. incast, ps: the receiver, default the first non-rank."`
	Size       bytesType      `json:"size,omitempty" jsonschema_description:"As in nccl-tests: each rank's buffer. incast, ps: bytes per sender."`
	Type       elementType    `json:"type,omitempty" jsonschema_description:"Element type."`
	Op         reductionType  `json:"op,omitempty" jsonschema_description:"Reduction."`
	Flows      int            `json:"flows,omitempty" jsonschema:"minimum=1,maximum=10000" jsonschema_description:"incast: connections per sender, each with a message."`
	Parallel   int            `json:"parallel,omitempty" jsonschema:"minimum=0,maximum=65536" jsonschema_description:"all-to-all (direct, windowed): concurrent peers per rank; 0: all."`
	Group      int            `json:"group,omitempty" jsonschema:"minimum=1,maximum=65536" jsonschema_description:"hierarchical: ranks per group."`
	Order      orderType      `json:"order,omitempty" jsonschema_description:"all-to-all (direct): peers in ring order, or shuffled per rank."`
	FarFirst   flagType       `json:"far_first,omitempty" jsonschema_description:"halving-doubling: start with the farthest peer."`
	Chunk      chunkType      `json:"chunk,omitempty" jsonschema_description:"Pieces that messages are cut into."`
	Repeat     int            `json:"repeat,omitempty" jsonschema:"minimum=1,maximum=100000" jsonschema_description:"Repetitions."`
	Start      startType      `json:"start,omitempty" jsonschema_description:"Absolute, or when a rank finished the item before."`
	Compute    timeType       `json:"compute,omitempty" jsonschema_description:"Computation before each repetition."`
	Jitter     timeType       `json:"jitter,omitempty" jsonschema_description:"Extra computation, uniform from 0, per rank and repetition."`
	Poisson    writtenPoisson `json:"poisson,omitempty" jsonschema_description:"Repeat as a Poisson process, with random ranks redrawn; measured and verified."`
}

type writtenPoisson struct {
	Every timeType `json:"every" jsonschema_description:"Mean interval."`
	For   timeType `json:"for" jsonschema_description:"Duration, from start."`
}

type writtenRandomRanks struct {
	Random int `json:"random,omitempty" jsonschema:"minimum=1,maximum=65536" jsonschema_description:"Hosts drawn with the seed."`
	Groups int `json:"groups,omitempty" jsonschema:"minimum=1,maximum=65536" jsonschema_description:"Disjoint groups that each run the item."`
	Size   int `json:"size,omitempty" jsonschema:"minimum=1,maximum=65536" jsonschema_description:"Ranks per group."`
}

type writtenFault struct {
	At        timeType        `json:"at" jsonschema_description:"When."`
	Link      linkNameType    `json:"link,omitempty" jsonschema_description:"Link by its ends."`
	Down      everType        `json:"down,omitempty" jsonschema_description:"Duration; true: until the end."`
	For       everType        `json:"for,omitempty" jsonschema_description:"Duration of a changed setting; true: until the end."`
	Rate      rateType        `json:"rate,omitempty" jsonschema_description:"New rate."`
	Delay     timeType        `json:"delay,omitempty" jsonschema_description:"New delay."`
	Loss      probabilityType `json:"loss,omitempty" jsonschema_description:"New loss."`
	BitErrors probabilityType `json:"bit_errors,omitempty" jsonschema_description:"New bit error rate."`
	Reroute   offTimeType     `json:"reroute,omitempty" jsonschema_description:"Delay until all switches route around the link (docs/faults.md); off: only its own ends do, at once."`
	Corrupt   string          `json:"corrupt,omitempty" jsonschema_description:"Host whose next data packet gets a wrong byte, unnoticed by the transport."`
	Host      nameTextType    `json:"host,omitempty" jsonschema_description:"Host, instead of a link."`
	Toward    nameTextType    `json:"toward,omitempty" jsonschema_description:"Change only the direction to this end."`
	Clock     nameTextType    `json:"clock,omitempty" jsonschema_description:"Host whose clock or synchronization fails."`
	Step      string          `json:"step,omitempty" jsonschema_description:"Clock step, such as -1us."`
	Skew      string          `json:"skew,omitempty" jsonschema_description:"Frequency change, such as 5ppm."`
	Lies      string          `json:"lies,omitempty" jsonschema_description:"Error of the time the host serves; 0s: none again."`
	Over      timeType        `json:"over,omitempty" jsonschema_description:"Duration of the frequency change."`
	Sync      offType         `json:"sync,omitempty" jsonschema_description:"Synchronization stops; it restarts after for."`
	Kill      bool            `json:"kill,omitempty" jsonschema_description:"The host ends."`
	Pause     timeType        `json:"pause,omitempty" jsonschema_description:"The host freezes and loses arriving packets."`
}
