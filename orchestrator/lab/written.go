package lab

// The types of this file are the lab file as it is written: every key of the format, those whose feature does
// not exist yet included. They exist for Schema, which makes the JSON Schema of them; Parse reads the text
// itself, since it needs the place of every value. A test holds the two together.

type writtenLab struct {
	Weft       int                  `json:"weft" jsonschema:"enum=1" jsonschema_description:"Version of the format."`
	Name       nameTextType         `json:"name" jsonschema_description:"Name of the lab: the folder of its results and the label of its nodes."`
	About      string               `json:"about,omitempty" jsonschema_description:"What the lab shows, in a sentence."`
	Seed       int                  `json:"seed,omitempty" jsonschema:"minimum=0" jsonschema_description:"Every random choice follows from it."`
	Topology   writtenTopology      `json:"topology" jsonschema_description:"Hosts, switches and links."`
	Queues     writtenQueues        `json:"queues,omitempty" jsonschema_description:"Egress queues of switches."`
	Clocks     writtenClocks        `json:"clocks,omitempty" jsonschema_description:"Imperfections of the hosts' clocks, and how they are kept together."`
	Background writtenBackground    `json:"background,omitempty" jsonschema_description:"Traffic beside the workload: bursts to random hosts at random instants, which nothing holds back. Simulator only. It loads the network while the workload is measured; arrivals that are to be measured themselves are items with poisson."`
	Transport  writtenTransport     `json:"transport,omitempty" jsonschema_description:"What carries the messages of the workload."`
	Workload   []writtenItem        `json:"workload,omitempty" jsonschema_description:"Collectives; they run at once unless start says otherwise."`
	Faults     faultsType           `json:"faults,omitempty" jsonschema_description:"What happens to links and hosts during the run."`
	Measure    writtenMeasure       `json:"measure,omitempty" jsonschema_description:"What is recorded besides the flows."`
	Expect     []string             `json:"expect,omitempty" jsonschema_description:"Checked at the end, such as: fct_slowdown.p99 <= 1.10 * flows. A miss fails the run. With a condition it is for some runs of a sweep only: drops == 0 when transport.kind == roce and seed != 1."`
	Sweep      map[string]sweptType `json:"sweep,omitempty" jsonschema_description:"Paths and the values they take: a run for every combination. Several paths that move together are written with commas, and lists of as many values."`
	Engine     writtenEngine        `json:"engine,omitempty" jsonschema_description:"How the lab is run. The command line overrides it."`
}

type writtenTopology struct {
	Kind             topologyKindType    `json:"kind" jsonschema_description:"Shape of the network."`
	K                int                 `json:"k,omitempty" jsonschema:"minimum=2,maximum=64,multipleOf=2" jsonschema_description:"fat-tree: k pods, (k/2)^2 cores, k^3/4 hosts."`
	Hosts            int                 `json:"hosts,omitempty" jsonschema:"minimum=1,maximum=65536" jsonschema_description:"star: hosts. dumbbell: hosts on each side."`
	Leaves           int                 `json:"leaves,omitempty" jsonschema:"minimum=1,maximum=65536" jsonschema_description:"leaf-spine: leaf switches. clos: switches of layer 1 in each computing rack. dragonfly-plus: leaves of each group."`
	Spines           int                 `json:"spines,omitempty" jsonschema:"minimum=1,maximum=4096" jsonschema_description:"leaf-spine: spine switches. clos: switches of layer 2 in each computing rack. dragonfly-plus: spines of each group."`
	HostsPerLeaf     int                 `json:"hosts_per_leaf,omitempty" jsonschema:"minimum=1,maximum=65536" jsonschema_description:"leaf-spine, clos, dragonfly-plus: hosts of each leaf."`
	Racks            int                 `json:"racks,omitempty" jsonschema:"minimum=1,maximum=4096" jsonschema_description:"clos: computing racks, with hosts and layers 1 and 2."`
	SwitchingRacks   int                 `json:"switching_racks,omitempty" jsonschema:"minimum=1,maximum=4096" jsonschema_description:"clos: switching racks, with layers 3 and 4."`
	Cores            int                 `json:"cores,omitempty" jsonschema:"minimum=1,maximum=4096" jsonschema_description:"clos: switches of layer 4 in each switching rack."`
	RacksPerPod      int                 `json:"racks_per_pod,omitempty" jsonschema:"minimum=1,maximum=4096" jsonschema_description:"clos: computing racks that share their switches of layer 3."`
	Groups           int                 `json:"groups,omitempty" jsonschema:"minimum=2,maximum=4096" jsonschema_description:"dragonfly-plus: groups."`
	Detours          flagType            `json:"detours,omitempty" jsonschema_description:"dragonfly-plus: switches that choose by the packet may take a way by a third group when no shortest way is light."`
	Dimensions       []int               `json:"dimensions,omitempty" jsonschema:"minItems=2,maxItems=3" jsonschema_description:"torus: switches along each dimension."`
	HostsPerSwitch   int                 `json:"hosts_per_switch,omitempty" jsonschema:"minimum=1,maximum=65536" jsonschema_description:"torus: hosts of each switch."`
	Routes           routesType          `json:"routes,omitempty" jsonschema_description:"up-down: along a tree, never up after down, so that PFC cannot deadlock in any network; shortest: all shortest ways."`
	Oversubscription float64             `json:"oversubscription,omitempty" jsonschema:"minimum=0.01,maximum=1000" jsonschema_description:"leaf-spine: host bandwidth to uplink bandwidth of a leaf; sets the rate of the uplinks."`
	Link             writtenLink         `json:"link,omitempty" jsonschema_description:"Default of every link."`
	Tiers            writtenTiers        `json:"tiers,omitempty" jsonschema_description:"Links of one tier where they differ from the default."`
	MTU              mtuType             `json:"mtu,omitempty" jsonschema_description:"Payload bytes per packet."`
	Down             downType            `json:"down,omitempty" jsonschema_description:"Links that do not exist from the start, by name such as leaf0-spine3, or so many uplinks of a leaf-spine drawn at random."`
	Nodes            []writtenNode       `json:"nodes,omitempty" jsonschema_description:"custom: hosts and switches."`
	Links            []writtenCustomLink `json:"links,omitempty" jsonschema_description:"custom: links between nodes."`
}

type writtenLink struct {
	Rate      rateType        `json:"rate,omitempty" jsonschema_description:"In each direction."`
	Delay     timeType        `json:"delay,omitempty" jsonschema_description:"Propagation, one way."`
	Loss      probabilityType `json:"loss,omitempty" jsonschema_description:"Share of the packets that are lost at random, in each direction."`
	BitErrors probabilityType `json:"bit_errors,omitempty" jsonschema_description:"Share of the bits that are wrong; a packet is lost by one of them."`
	Duplicate probabilityType `json:"duplicate,omitempty" jsonschema_description:"Share of the packets that come twice. Not with queues.pfc."`
	Reorder   probabilityType `json:"reorder,omitempty" jsonschema_description:"Share of the packets that come late, so that others overtake them. Not with queues.pfc."`
	ReorderBy timeType        `json:"reorder_by,omitempty" jsonschema_description:"By how much they come late at most; uniform."`
	Jitter    offTimeType     `json:"jitter,omitempty" jsonschema_description:"Mean of an exponential delay that every packet has besides, so that some overtake others. Not with queues.pfc."`
	Queues    writtenQueues   `json:"queues,omitempty" jsonschema_description:"Queues of these links. Not yet supported."`
}

type writtenTiers struct {
	Host writtenLink `json:"host,omitempty" jsonschema_description:"Between hosts and their switches."`
	Edge writtenLink `json:"edge,omitempty" jsonschema_description:"fat-tree: between edge and aggregation switches."`
	Core writtenLink `json:"core,omitempty" jsonschema_description:"fat-tree: between aggregation and core switches. dumbbell: the link in the middle."`
	Leaf writtenLink `json:"leaf,omitempty" jsonschema_description:"leaf-spine, dragonfly-plus: between leaves and spines."`

	L1     writtenLink `json:"l1,omitempty" jsonschema_description:"clos: between layers 1 and 2."`
	L2     writtenLink `json:"l2,omitempty" jsonschema_description:"clos: between layers 2 and 3."`
	L3     writtenLink `json:"l3,omitempty" jsonschema_description:"clos: between layers 3 and 4."`
	Global writtenLink `json:"global,omitempty" jsonschema_description:"dragonfly-plus: between groups."`
	Switch writtenLink `json:"switch,omitempty" jsonschema_description:"torus: between switches."`
}

type writtenNode struct {
	Name   nameTextType `json:"name"`
	Switch bool         `json:"switch,omitempty" jsonschema_description:"A switch; otherwise a host."`
	Image  string       `json:"image,omitempty" jsonschema_description:"Container image that holds the program of a host; emulation with --runtime docker has it. Its own command is run if run is left out."`
	Run    []string     `json:"run,omitempty" jsonschema_description:"Program that a host runs in emulation besides its part of the workload, and its arguments: one of this machine, or of the image."`
}

type writtenCustomLink struct {
	Between   []string        `json:"between" jsonschema:"minItems=2,maxItems=2" jsonschema_description:"Names of the two nodes."`
	Rate      rateType        `json:"rate,omitempty" jsonschema_description:"In each direction; topology.link.rate unless given."`
	Delay     timeType        `json:"delay,omitempty" jsonschema_description:"Propagation, one way; topology.link.delay unless given."`
	Loss      probabilityType `json:"loss,omitempty" jsonschema_description:"Share of the packets that are lost at random, in each direction; topology.link.loss unless given."`
	BitErrors probabilityType `json:"bit_errors,omitempty" jsonschema_description:"Share of the bits that are wrong; topology.link.bit_errors unless given."`
	Duplicate probabilityType `json:"duplicate,omitempty" jsonschema_description:"Share of the packets that come twice. Not with queues.pfc."`
	Reorder   probabilityType `json:"reorder,omitempty" jsonschema_description:"Share of the packets that come late, so that others overtake them. Not with queues.pfc."`
	ReorderBy timeType        `json:"reorder_by,omitempty" jsonschema_description:"By how much they come late at most; uniform."`
	Jitter    offTimeType     `json:"jitter,omitempty" jsonschema_description:"Mean of an exponential delay that every packet has besides, so that some overtake others. Not with queues.pfc."`
	Queues    writtenQueues   `json:"queues,omitempty" jsonschema_description:"Queues of this link. Not yet supported."`
}

type writtenQueues struct {
	Buffer  sizeType    `json:"buffer,omitempty" jsonschema_description:"Capacity of each port, in bytes or bandwidth-delay products of its link. Not with shared or pfc."`
	Shared  sharedType  `json:"shared,omitempty" jsonschema_description:"One memory for all ports of a switch, in place of buffer. With pfc there always is one."`
	ECN     ecnType     `json:"ecn,omitempty" jsonschema_description:"Marking by queue length: from kmin on, always from kmax on."`
	PFC     pfcType     `json:"pfc,omitempty" jsonschema_description:"Priority flow control of the data class: a switch pauses who sends it more than it can hold."`
	Routing routingType `json:"routing,omitempty" jsonschema_description:"How a switch chooses among equal paths: by the flow (ecmp), at random for each packet (spray), or by what waits in the ports (adaptive)."`
	Light   sizeType    `json:"light,omitempty" jsonschema_description:"Adaptive routing: a port is light while no more than this waits in it; a flow stays on its port while that is light."`
}

type writtenECN struct {
	Kmin sizeType  `json:"kmin,omitempty" jsonschema_description:"Queue length up to which nothing is marked."`
	Kmax sizeType  `json:"kmax,omitempty" jsonschema_description:"Queue length above which everything is marked."`
	Pmax shareType `json:"pmax,omitempty" jsonschema_description:"Probability of a mark at kmax."`
	Mark markType  `json:"mark,omitempty" jsonschema_description:"When a packet leaves the queue, or when it joins it."`
}

type writtenShared struct {
	Total sizeType  `json:"total,omitempty" jsonschema_description:"All of it; 16MB/50Gbps is 16 MB for each 50 Gb/s of the fastest port."`
	Alpha alphaType `json:"alpha,omitempty" jsonschema_description:"Dynamic threshold, a multiple of what is free. Without pfc: the most a queue may hold. With pfc: what may wait of what came by a port before it is paused."`
}

type writtenPFC struct {
	Xoff     sizeType     `json:"xoff,omitempty" jsonschema_description:"Static threshold per port; queues.shared.alpha unless given."`
	Xon      autoSizeType `json:"xon,omitempty" jsonschema_description:"With xoff: resume at or below; auto is two full packets below xoff."`
	Offset   bytesType    `json:"xon_offset,omitempty" jsonschema_description:"Without xoff: resume so far below the threshold."`
	Reserve  bytesType    `json:"reserve,omitempty" jsonschema_description:"Memory of each port's own, used first."`
	Headroom autoSizeType `json:"headroom,omitempty" jsonschema_description:"Memory of each port for what is on its way when it is paused; auto is enough."`
	Response timeType     `json:"response,omitempty" jsonschema_description:"How long the other end takes to heed a pause that has reached it."`
}

type writtenClocks struct {
	Sync        syncType        `json:"sync,omitempty" jsonschema_description:"What keeps the clocks together: nothing is wrong with them, nothing does, PTP, or Huygens."`
	Preset      oscillatorType  `json:"preset,omitempty" jsonschema_description:"Class of the oscillators: skew and wander that are not given are as there."`
	Offset      clockTimeType   `json:"offset,omitempty" jsonschema_description:"Of a clock when the lab begins, uniform, such as ±1ms; or off."`
	Skew        clockSkewType   `json:"skew,omitempty" jsonschema_description:"Frequency error of a clock, uniform, such as ±20ppm; or off."`
	Wander      clockSkewType   `json:"wander,omitempty" jsonschema_description:"Random walk of the frequency, such as 0.01ppm/√s; or off."`
	Jitter      clockTimeType   `json:"jitter,omitempty" jsonschema_description:"Standard deviation of a time stamp, such as 20ns; or off."`
	Granularity clockTimeType   `json:"granularity,omitempty" jsonschema_description:"Stamps are multiples of it; or off."`
	Stalls      offShareType    `json:"stalls,omitempty" jsonschema_description:"Share of what is sent that is stamped late; or off."`
	Stall       clockTimeType   `json:"stall,omitempty" jsonschema_description:"How late on average, exponentially."`
	Noise       clockNoiseType  `json:"noise,omitempty" jsonschema_description:"Added to measured one-way delays: uniform ±100ns, normal 100ns, exponential 100ns; or off."`
	Reference   string          `json:"reference,omitempty" jsonschema_description:"Host whose clock the others follow; the first unless given."`
	Priority    priorityType    `json:"priority,omitempty" jsonschema_description:"Whether messages queue with data, or are served before it as acknowledgements are."`
	Transparent transparentType `json:"transparent,omitempty" jsonschema_description:"Switches are transparent clocks: they tell PTP how long its messages waited in them. Peer: they also measure the delay of each of their links, and add that of the link that a Sync came by (peer-to-peer transparent clocks); hosts then measure their own link (ptp.delay: peer)."`
	Sample      offTimeType     `json:"sample,omitempty" jsonschema_description:"Interval at which the true error of all clocks is recorded, or off."`
	Limit       timeType        `json:"limit,omitempty" jsonschema_description:"Clocks have converged once they stay within so much of each other."`
	PTP         writtenPTP      `json:"ptp,omitempty" jsonschema_description:"Parameters of PTP."`
	Huygens     writtenHuygens  `json:"huygens,omitempty" jsonschema_description:"Parameters of Huygens."`
	Warmup      autoTimeType    `json:"warmup,omitempty" jsonschema_description:"How long clocks are kept before the workload begins: what the lab says of instants counts from then on. Auto is eight windows of Huygens where the lab says nothing of windows, and else nothing."`
	For         timeType        `json:"for,omitempty" jsonschema_description:"The run lasts at least so long, whatever the workload does."`
}

type writtenBackground struct {
	Load   shareType `json:"load" jsonschema_description:"Share of each host's line rate."`
	Burst  int       `json:"burst,omitempty" jsonschema:"minimum=1,maximum=10000" jsonschema_description:"Packets of a burst, sent as fast as the line is."`
	Packet bytesType `json:"packet,omitempty" jsonschema_description:"Size of each on the wire."`
}

type writtenPTP struct {
	Interval  timeType      `json:"interval,omitempty" jsonschema_description:"Between two Syncs, and two Delay_Reqs or Pdelay_Reqs, also of switches."`
	Announce  autoTimeType  `json:"announce,omitempty" jsonschema_description:"Between two Announces; auto is two intervals."`
	Delay     mechanismType `json:"delay,omitempty" jsonschema_description:"How the delay of the path is measured: end to end by Delay_Req, or by the peer delay mechanism. That is for the two ends of a link: with clocks.transparent: peer it is between a host and its switch, otherwise between a host and its master, through switches that take part in nothing."`
	Filter    filterType    `json:"filter,omitempty" jsonschema_description:"Of the path delay: the median, the mean or the least of the last."`
	Length    int           `json:"filter_length,omitempty" jsonschema:"minimum=1,maximum=1000" jsonschema_description:"How many delays it is over."`
	Servo     servoType     `json:"servo,omitempty" jsonschema_description:"Proportional and integral, or linear regression."`
	KP        float64       `json:"kp,omitempty" jsonschema:"minimum=0.0001,maximum=2" jsonschema_description:"Proportional gain of pi, per sample."`
	KI        float64       `json:"ki,omitempty" jsonschema:"minimum=0.000001,maximum=4" jsonschema_description:"Integral gain of pi, per sample; with 2 kp it is below 4."`
	Servers   int           `json:"servers,omitempty" jsonschema:"minimum=1,maximum=16" jsonschema_description:"Hosts from the reference on that have a source of time of their own, so that their clocks are right. Above 1, the others believe what more than half of them say."`
	Agree     timeType      `json:"agree,omitempty" jsonschema_description:"With several servers: those that are no farther apart do not contradict each other."`
	Backups   int           `json:"backups,omitempty" jsonschema:"minimum=0,maximum=16" jsonschema_description:"Hosts after the reference that may take its place."`
	Boundary  boundaryType  `json:"boundary,omitempty" jsonschema_description:"Hosts that are boundary clocks: they follow, and serve the time to the hosts that are nearest to them. Each follows the nearest, by links, of the reference and the boundary clocks before it. Edge is the first host behind every switch but the reference's; or a list of hosts."`
	FirstStep timeType      `json:"first_step,omitempty" jsonschema_description:"An offset above this is stepped over at first."`
	Step      offTimeType   `json:"step,omitempty" jsonschema_description:"An offset above this is stepped over later, or off."`
	Asymmetry clockTimeType `json:"asymmetry,omitempty" jsonschema_description:"Half of the most by which the two ways of a path may differ: added to the bound that hosts state."`
}

type writtenHuygens struct {
	Degree       int           `json:"degree,omitempty" jsonschema:"minimum=1,maximum=1000" jsonschema_description:"Neighbours of each host in the mesh of probes."`
	Window       autoTimeType  `json:"window,omitempty" jsonschema_description:"After which the mesh is solved; auto is a third of the run, as far as the lab says how long that is: at least ten round trips, at most 20ms."`
	Pairs        autoPairsType `json:"pairs,omitempty" jsonschema_description:"Coded probes per window, pair of neighbours and direction; auto is 25 per ms, and at least 32."`
	Spacing      autoTimeType  `json:"spacing,omitempty" jsonschema_description:"Of the two packets of a coded probe."`
	Filter       autoTimeType  `json:"filter,omitempty" jsonschema_description:"A coded probe whose spacing changed by as much on its way met a queue, and is left out."`
	Share        shareType     `json:"share,omitempty" jsonschema_description:"Of the probes that are left: those that the fit of a pair rests on."`
	Prior        clockSkewType `json:"prior,omitempty" jsonschema_description:"How far a frequency may lie from what the last windows say."`
	Coordinators int           `json:"coordinators,omitempty" jsonschema:"minimum=1,maximum=2" jsonschema_description:"Hosts that solve the mesh, from the reference on."`
	Step         offTimeType   `json:"step,omitempty" jsonschema_description:"A change above this is made at once, or off: all are slewed."`
	Asymmetry    clockTimeType `json:"asymmetry,omitempty" jsonschema_description:"Half of the most by which the two ways of a path may differ: added to the bound that hosts state."`
}

type writtenTransport struct {
	Kind   transportKindType `json:"kind,omitempty" jsonschema_description:"Which transport carries the messages. The sections below hold the parameters of each; one that no run of the lab uses is refused."`
	PC4    writtenPC4        `json:"pc4,omitempty" jsonschema_description:"Parameters of PC4."`
	STrack writtenSTrack     `json:"strack,omitempty" jsonschema_description:"Parameters of STrack, and of spray, which is STrack over paths that are taken in turn."`
	CCM    writtenCCM        `json:"ccm,omitempty" jsonschema_description:"Parameters of CCM, of hosts and of switches: all switches of the lab do it."`
	RoCE   writtenRoCE       `json:"roce,omitempty" jsonschema_description:"Parameters of RoCEv2 with DCQCN."`
	Swift  writtenSwift      `json:"swift,omitempty" jsonschema_description:"Parameters of Swift."`
	HPCC   writtenHPCC       `json:"hpcc,omitempty" jsonschema_description:"Parameters of HPCC."`
}

type writtenPC4 struct {
	TargetQtime    qtimeType      `json:"target_qtime,omitempty" jsonschema_description:"One-way queueing delay to hold; scaled follows the baseline and the number of flows."`
	AdjustInterval roundTripsType `json:"adjust_interval,omitempty" jsonschema_description:"Least time between two adjustments, in base RTTs, above 1; off leaves rates at the base rate."`
	AI             percentType    `json:"ai,omitempty" jsonschema_description:"Additive increment, as a share of the base rate."`
	HAI            percentType    `json:"hai,omitempty" jsonschema_description:"Additive increment while nothing queues, as a share of the base rate."`
	Beta           shareType      `json:"beta,omitempty" jsonschema_description:"Multiplicative decrease constant."`
	MaxMDF         shareType      `json:"max_mdf,omitempty" jsonschema_description:"Largest multiplicative decrease."`
	PacedBelow     float64        `json:"paced_below,omitempty" jsonschema:"minimum=1,maximum=1000" jsonschema_description:"Windows of fewer packets than this are paced as well."`
	BaseRate       baseRateType   `json:"base_rate,omitempty" jsonschema_description:"Where the receiver has the number of incoming flows from."`
	Initial        initialType    `json:"initial,omitempty" jsonschema_description:"What a flow starts with: its base rate, the line rate, or a window in bytes."`
	RTT            roundTripType  `json:"rtt,omitempty" jsonschema_description:"Which RTT turns a rate into a window."`
	RTOMin         timeType       `json:"rto_min,omitempty" jsonschema_description:"Least retransmission timeout."`
	Epsilon        timeType       `json:"epsilon,omitempty" jsonschema_description:"One-way delays up to this count as none."`
}

type writtenRoCE struct {
	Preset           presetType    `json:"preset,omitempty" jsonschema_description:"Whose parameters of DCQCN: those that are not given are as there."`
	Mode             dcqcnModeType `json:"mode,omitempty" jsonschema_description:"Which machine: the DCQCN paper's, or the one in NVIDIA's (Mellanox's) NICs."`
	Clamp            clampType     `json:"clamp,omitempty" jsonschema_description:"When a cut brings the target rate down to the rate: always, if the rate was raised since the last cut, or if the byte counter raised it."`
	CNPInterval      timeType      `json:"cnp_interval,omitempty" jsonschema_description:"Least time between two congestion notifications of a connection; at 0s every marked packet gets one."`
	G                gainType      `json:"g,omitempty" jsonschema_description:"Gain of alpha."`
	InitialAlpha     gainType      `json:"initial_alpha,omitempty" jsonschema_description:"Alpha on the first notification."`
	AlphaInterval    timeType      `json:"alpha_interval,omitempty" jsonschema_description:"Alpha decays once in it."`
	AlphaFirst       flagType      `json:"alpha_first,omitempty" jsonschema_description:"Mode paper: raise alpha before the cut, not after."`
	DecreaseInterval timeType      `json:"decrease_interval,omitempty" jsonschema_description:"Mode mellanox: at most one cut in it."`
	FirstRate        shareType     `json:"first_rate,omitempty" jsonschema_description:"Mode mellanox: what the first notification leaves of the rate; 1 is off."`
	MinRate          lineRateType  `json:"min_rate,omitempty" jsonschema_description:"Least rate."`
	RPTimer          timeType      `json:"rp_timer,omitempty" jsonschema_description:"One stage of recovery for each."`
	ByteCounter      chunkType     `json:"byte_counter,omitempty" jsonschema_description:"Mode paper: one stage of recovery for so much sent, or off."`
	F                int           `json:"f,omitempty" jsonschema:"minimum=1,maximum=1000" jsonschema_description:"Stages of fast recovery."`
	RAI              lineRateType  `json:"rai,omitempty" jsonschema_description:"Added to the target rate in additive increase; 5Mbps/25Gbps is 5 Mb/s for each 25 Gb/s of the line."`
	RHAI             lineRateType  `json:"rhai,omitempty" jsonschema_description:"Added to the target rate in hyper increase."`
	QPs              int           `json:"qps,omitempty" jsonschema:"minimum=1,maximum=16" jsonschema_description:"Queue pairs of a connection, each with a source port, a sequence and a rate of its own."`
	Split            splitType     `json:"split,omitempty" jsonschema_description:"Each message is cut over all queue pairs, or goes to the next one."`
	Recovery         recoveryType  `json:"recovery,omitempty" jsonschema_description:"What is sent again after a loss."`
	Repath           repathType    `json:"repath,omitempty" jsonschema_description:"Take another source port after so many round trips in a row in which half of the acknowledgements were marked, as PLB does."`
	RTOMin           autoTimeType  `json:"rto_min,omitempty" jsonschema_description:"Least retransmission timeout; auto is longer than the queues of the network can hold a packet."`
	Tries            int           `json:"tries,omitempty" jsonschema:"minimum=1,maximum=1000" jsonschema_description:"Timeouts in a row before a connection fails."`
}

type writtenCCM struct {
	Inner            innerType    `json:"inner,omitempty" jsonschema_description:"The congestion control that is coordinated with adaptive routing."`
	RoCE             writtenRoCE  `json:"roce,omitempty" jsonschema_description:"Parameters of the congestion control inside, when it is DCQCN."`
	Swift            writtenSwift `json:"swift,omitempty" jsonschema_description:"The same when it is Swift."`
	PC4              writtenPC4   `json:"pc4,omitempty" jsonschema_description:"The same when it is PC4."`
	Recovery         recoveryType `json:"recovery,omitempty" jsonschema_description:"How losses are recovered from; under go-back-n every change of path looks like one."`
	Timeout          timeType     `json:"timeout,omitempty" jsonschema_description:"How long a source believes that its flow causes incast without hearing it again."`
	Paths            int          `json:"paths,omitempty" jsonschema:"minimum=1,maximum=256" jsonschema_description:"Source ports among which a source changes when it is asked for another path; at 1 it cannot be asked."`
	Light            sizeType     `json:"light,omitempty" jsonschema_description:"A port is light while no more than this waits in it."`
	Congested        sizeType     `json:"congested,omitempty" jsonschema_description:"A port to a host in which more than this waits has incast."`
	NotifyEvery      timeType     `json:"notify_every,omitempty" jsonschema_description:"Least time between two notifications of incast about a flow."`
	Refresh          timeType     `json:"refresh,omitempty" jsonschema_description:"How often a source is reminded of a flow that has not been released."`
	Strict           flagType     `json:"strict,omitempty" jsonschema_description:"Do not tell the source when a packet is marked because no path is light, as the draft has it, though it then ignores the mark."`
	NotificationLoss shareType    `json:"notification_loss,omitempty" jsonschema_description:"Share of notifications that are lost, to see how the rest heals it."`
}

type writtenSwift struct {
	AI            float64      `json:"ai,omitempty" jsonschema:"minimum=0.001,maximum=1000" jsonschema_description:"Packets added per round trip."`
	Beta          shareType    `json:"beta,omitempty" jsonschema_description:"Multiplicative decrease constant."`
	MaxMDF        shareType    `json:"max_mdf,omitempty" jsonschema_description:"Largest multiplicative decrease."`
	BaseTarget    timeType     `json:"base_target,omitempty" jsonschema_description:"Target delay of a path without hops."`
	PerHop        timeType     `json:"per_hop,omitempty" jsonschema_description:"Added to the target for each link of the path."`
	FSRange       timeType     `json:"fs_range,omitempty" jsonschema_description:"The most that flow scaling adds to the target; 0s is no flow scaling."`
	FSMin         float64      `json:"fs_min,omitempty" jsonschema:"minimum=0.0001,maximum=1000000" jsonschema_description:"Window in packets at which it adds all of it."`
	FSMax         float64      `json:"fs_max,omitempty" jsonschema:"minimum=0.0001,maximum=1000000" jsonschema_description:"Window in packets from which on it adds nothing."`
	MinWindow     bytesType    `json:"min_window,omitempty" jsonschema_description:"Least window."`
	MaxWindow     bdpBytesType `json:"max_window,omitempty" jsonschema_description:"Greatest window; bdp is that of the path."`
	InitialWindow bdpBytesType `json:"initial_window,omitempty" jsonschema_description:"First window; bdp is that of the path."`
	RetxReset     int          `json:"retx_reset,omitempty" jsonschema:"minimum=1,maximum=1000" jsonschema_description:"Timeouts in a row after which the window is the least."`
	BoltCompat    flagType     `json:"bolt_compat,omitempty" jsonschema_description:"Compute the target as the simulator of the Bolt paper does, 4 us too high."`
	RTOMin        autoTimeType `json:"rto_min,omitempty" jsonschema_description:"Least retransmission timeout; auto is longer than the queues of the network can hold a packet."`
	Tries         int          `json:"tries,omitempty" jsonschema:"minimum=1,maximum=1000" jsonschema_description:"Timeouts in a row before a connection fails."`
}

type writtenHPCC struct {
	Eta      shareType       `json:"eta,omitempty" jsonschema_description:"Target utilization."`
	MaxStage int             `json:"max_stage,omitempty" jsonschema:"minimum=0,maximum=1000" jsonschema_description:"Additive increases in a row before a multiplicative one; at 0 every update is multiplicative."`
	WAI      autoBytesType   `json:"wai,omitempty" jsonschema_description:"Additive increase of a window; auto is the share of the first window that eta leaves, over flows."`
	Flows    int             `json:"flows,omitempty" jsonschema:"minimum=1,maximum=1000000" jsonschema_description:"With wai auto: flows expected to share a link."`
	T        autoTimeType    `json:"t,omitempty" jsonschema_description:"Base RTT that utilization is counted over; auto is the longest of the network."`
	MinRate  offLineRateType `json:"min_rate,omitempty" jsonschema_description:"Least rate, or off."`
	RTOMin   autoTimeType    `json:"rto_min,omitempty" jsonschema_description:"Least retransmission timeout; auto is longer than the queues of the network can hold a packet."`
	Tries    int             `json:"tries,omitempty" jsonschema:"minimum=1,maximum=1000" jsonschema_description:"Timeouts in a row before a connection fails."`
}

type writtenSTrack struct {
	Target     autoTimeType `json:"target,omitempty" jsonschema_description:"Queueing delay to settle at; auto is the base RTT of the network."`
	High       float64      `json:"high,omitempty" jsonschema:"minimum=1,maximum=1000" jsonschema_description:"Delay that calls for the achieved window, in targets."`
	EWMA       gainType     `json:"ewma,omitempty" jsonschema_description:"Weight of the newest delay in the average."`
	Alpha      float64      `json:"alpha,omitempty" jsonschema:"minimum=0,maximum=1000" jsonschema_description:"Increase below the target, in packets, as printed for 100Gbps and 12us; scaled to the network."`
	Beta       float64      `json:"beta,omitempty" jsonschema:"minimum=0,maximum=1000" jsonschema_description:"Increase on a long delay without a mark, in packets, as printed; scaled to the network."`
	Eta        float64      `json:"eta,omitempty" jsonschema:"minimum=0,maximum=1000" jsonschema_description:"Increase for fairness, in packets, as printed; scaled to the network."`
	Gamma      shareType    `json:"gamma,omitempty" jsonschema_description:"Multiplicative decrease constant."`
	MaxMDF     shareType    `json:"max_mdf,omitempty" jsonschema_description:"Largest multiplicative decrease."`
	MaxCWND    float64      `json:"max_cwnd,omitempty" jsonschema:"minimum=0.01,maximum=1000" jsonschema_description:"Greatest and first window, in bandwidth-delay products of the network."`
	NeedMark   flagType     `json:"md_requires_ecn,omitempty" jsonschema_description:"Shrink windows on marked packets only."`
	Paths      int          `json:"paths,omitempty" jsonschema:"minimum=1,maximum=256" jsonschema_description:"Source ports of a connection; spray: a power of two."`
	AckEvery   bytesType    `json:"ack_every,omitempty" jsonschema_description:"The receiver acknowledges after so many bytes."`
	Threshold  int          `json:"threshold,omitempty" jsonschema:"minimum=1,maximum=10000" jsonschema_description:"Packets out of order up to which nothing counts as lost."`
	ProbeAfter float64      `json:"probe_after,omitempty" jsonschema:"minimum=0.1,maximum=1000" jsonschema_description:"Base RTTs of the network without an acknowledgement before a probe."`
	RTOMin     autoTimeType `json:"rto_min,omitempty" jsonschema_description:"Least retransmission timeout; auto is 8 base RTTs of the network, at least 100us."`
	Tries      int          `json:"tries,omitempty" jsonschema:"minimum=1,maximum=1000" jsonschema_description:"Timeouts in a row before a connection fails."`
}

type writtenItem struct {
	Trace      traceFileType  `json:"trace,omitempty" jsonschema_description:"In place of a collective: a CSV file below the lab file's folder whose lines are collectives that the ranks do one after the other (docs/collectives.md)."`
	Collective collectiveType `json:"collective,omitempty" jsonschema_description:"What the ranks do together."`
	Algorithm  algorithmType  `json:"algorithm,omitempty" jsonschema_description:"How they do it; auto is the first of the collective: ring of all-reduce, all-gather and reduce-scatter, direct of all-to-all, chain of broadcast and reduce."`
	Ranks      ranksType      `json:"ranks,omitempty" jsonschema_description:"Who takes part: all, the first N hosts, a list of hosts in rank order, N at random, or groups of hosts drawn at random, each of which does the same on its own. incast and ps: the senders."`
	Root       string         `json:"root,omitempty" jsonschema_description:"The host that a broadcast, reduce, gather or scatter is about: the first rank unless given. incast and ps: the receiving host; the first that is not a rank unless given."`
	Size       bytesType      `json:"size,omitempty" jsonschema_description:"What nccl-tests calls size: the buffer of each rank; whole elements. incast and ps: what each sender sends."`
	Type       elementType    `json:"type,omitempty" jsonschema_description:"What buffers are made of."`
	Op         reductionType  `json:"op,omitempty" jsonschema_description:"How the elements of several ranks become one, where the collective reduces."`
	Flows      int            `json:"flows,omitempty" jsonschema:"minimum=1,maximum=10000" jsonschema_description:"incast: connections of each sender, with a message of the size on each."`
	Parallel   int            `json:"parallel,omitempty" jsonschema:"minimum=0,maximum=65536" jsonschema_description:"all-to-all, direct and windowed: peers a rank exchanges with at once; 0 is no limit."`
	Group      int            `json:"group,omitempty" jsonschema:"minimum=1,maximum=65536" jsonschema_description:"hierarchical: ranks per group."`
	Order      orderType      `json:"order,omitempty" jsonschema_description:"all-to-all, direct: a rank's peers one after the other around from its neighbour, or each rank's in an order of its own drawn with the seed."`
	FarFirst   flagType       `json:"far_first,omitempty" jsonschema_description:"halving-doubling: the first exchange, of half the buffer, is with the farthest peer."`
	Chunk      chunkType      `json:"chunk,omitempty" jsonschema_description:"Size of the pieces messages are cut into, or off."`
	Repeat     int            `json:"repeat,omitempty" jsonschema:"minimum=1,maximum=100000" jsonschema_description:"How often."`
	Start      startType      `json:"start,omitempty" jsonschema_description:"Time since the start of the run, or previous: when a rank's part of the item before is done."`
	Compute    timeType       `json:"compute,omitempty" jsonschema_description:"How long each rank computes before each repetition of its part."`
	Jitter     timeType       `json:"jitter,omitempty" jsonschema_description:"How much longer at most: drawn for each rank and repetition, uniformly from 0."`
	Poisson    writtenPoisson `json:"poisson,omitempty" jsonschema_description:"The item arrives again and again, by a Poisson process: each time as a collective of its own, with random ranks drawn anew. Its messages are acknowledged, measured and verified, and the run waits for them; background traffic is none of these."`
}

type writtenPoisson struct {
	Every timeType `json:"every" jsonschema_description:"Mean time between two arrivals."`
	For   timeType `json:"for" jsonschema_description:"How long they go on, from start."`
}

type writtenRandomRanks struct {
	Random int `json:"random,omitempty" jsonschema:"minimum=1,maximum=65536" jsonschema_description:"So many hosts, drawn with the seed."`
	Groups int `json:"groups,omitempty" jsonschema:"minimum=1,maximum=65536" jsonschema_description:"So many groups that do the same at once, each on its own; no host is in two."`
	Size   int `json:"size,omitempty" jsonschema:"minimum=1,maximum=65536" jsonschema_description:"Ranks of each group."`
}

type writtenRandomLinks struct {
	Random int        `json:"random" jsonschema:"minimum=1,maximum=1048576" jsonschema_description:"leaf-spine: so many links between leaves and spines, drawn with the seed."`
	Among  leavesType `json:"among,omitempty" jsonschema_description:"Leaves that lose them, drawn with the seed, each as many as any other; all unless given."`
}

type writtenFault struct {
	At        timeType        `json:"at" jsonschema_description:"When."`
	Link      linkNameType    `json:"link,omitempty" jsonschema_description:"By the names of its ends."`
	Down      everType        `json:"down,omitempty" jsonschema_description:"The link is down for so long; true, or nothing, is to the end of the run."`
	For       everType        `json:"for,omitempty" jsonschema_description:"How long a changed line stays so, or true: to the end of the run."`
	Rate      rateType        `json:"rate,omitempty" jsonschema_description:"The line's rate is this."`
	Delay     timeType        `json:"delay,omitempty" jsonschema_description:"The line's delay is this."`
	Loss      probabilityType `json:"loss,omitempty" jsonschema_description:"The line loses this share of the packets."`
	BitErrors probabilityType `json:"bit_errors,omitempty" jsonschema_description:"This share of the bits is wrong."`
	Reroute   offTimeType     `json:"reroute,omitempty" jsonschema_description:"How long after the link went down or came up all switches have taken it into account, or off: only the two at its ends have, at once."`
	Corrupt   string          `json:"corrupt,omitempty" jsonschema_description:"Host: a byte of the first data packet that comes to it from then on is wrong, unnoticed by its transport."`
	Host      nameTextType    `json:"host,omitempty" jsonschema_description:"A host, in place of a link."`
	Toward    nameTextType    `json:"toward,omitempty" jsonschema_description:"The line changes in the direction of this end alone."`
	Clock     nameTextType    `json:"clock,omitempty" jsonschema_description:"Host whose clock it happens to, or what keeps it."`
	Step      string          `json:"step,omitempty" jsonschema_description:"The clock that stamps moves by so much, such as -1us."`
	Skew      string          `json:"skew,omitempty" jsonschema_description:"The frequency of the clock changes by so much, such as 5ppm."`
	Lies      string          `json:"lies,omitempty" jsonschema_description:"The time that the host tells others is wrong by so much; it keeps the right one itself. 0s: it does not lie any more."`
	Over      timeType        `json:"over,omitempty" jsonschema_description:"How long the frequency takes to change."`
	Sync      offType         `json:"sync,omitempty" jsonschema_description:"off: synchronization does not run on the host, and starts anew after for."`
	Kill      bool            `json:"kill,omitempty" jsonschema_description:"The host ends: from then on it neither sends nor answers."`
	Pause     timeType        `json:"pause,omitempty" jsonschema_description:"The host stands still for so long: it sends nothing, and what arrives is lost."`
}

type writtenMeasure struct {
	Queues  offTimeType `json:"queues,omitempty" jsonschema_description:"Sampling interval of queue lengths, or off."`
	Rates   offTimeType `json:"rates,omitempty" jsonschema_description:"Sampling interval of what connections carry, or off."`
	From    timeType    `json:"from,omitempty" jsonschema_description:"Distributions and rates of the summary count from here: what was before is warm-up."`
	Events  offPortType `json:"queue_events,omitempty" jsonschema_description:"Port whose queue is followed event by event, by the names of its switch and of the node it leads to, or off."`
	CWND    flagType    `json:"cwnd,omitempty" jsonschema_description:"Record every change of a window."`
	Acks    flagType    `json:"acks,omitempty" jsonschema_description:"Record every acknowledgement that a sender takes in: the round trip of the packet that caused it, and whether it was marked."`
	Packets flagType    `json:"packets,omitempty" jsonschema_description:"Record every packet. Not yet supported but for off."`
}

type writtenEngine struct {
	Kind     engineKindType `json:"kind,omitempty" jsonschema_description:"auto emulates where the machine can and simulates elsewhere."`
	Runtime  runtimeType    `json:"runtime,omitempty" jsonschema_description:"What nodes are made of."`
	Datapath datapathType   `json:"datapath,omitempty" jsonschema_description:"What switches are made of: auto and fabric, the modelled switches in one process; kernel, a namespace for each switch in which Linux forwards, shaped by tc."`
	Dilation dilationType   `json:"dilation,omitempty" jsonschema_description:"How much slower than the lab the emulation runs; auto is the least this machine can carry."`
}
