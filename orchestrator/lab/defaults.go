package lab

// Sources that many defaults have in common.
const (
	bolt    = "Bolt, NSDI 2023: its authors' simulations of Swift at 100 Gb/s"
	autoRTO = "ours: longer than the queues of the network can hold a packet, at least 1 ms"
)

// defaults holds every default that does not depend on another value, as it would be written in a lab file,
// with where it is from. A * stands for any index. They are read by the same code as what a user writes. This
// table is the place to retune them.
//
// Defaults that follow from other values are beside the code that reads the value: the algorithm of a
// collective, chunk, root, and what a tier or a custom link takes over from topology.link; those of DCQCN are in
// presets.
var defaults = map[string]value{
	"seed": {"1", "ours"},

	"topology.link.rate":        {"100Gbps", "PC4 paper, section IV"},
	"topology.link.delay":       {"1us", "PC4 paper, section IV"},
	"topology.link.loss":        {"0", "ours"},
	"topology.link.bit_errors":  {"0", "ours"},
	"topology.link.duplicate":   {"0", "ours"},
	"topology.link.reorder":     {"0", "ours"},
	"topology.link.reorder_by":  {"10us", "ours: a queue of one round trip in the networks of the papers"},
	"topology.mtu":              {"4096", "STrack paper, section 4.1"},
	"topology.oversubscription": {"1", "STrack paper, section 4.1: full bisection"},
	"topology.racks_per_pod":    {"1", "ours: so that ways between any two computing racks go by layer 4 (CCM draft, Figure 1)"},
	"topology.detours":          {"false", "ours"},
	"topology.hosts_per_switch": {"1", "ours"},
	"topology.routes":           {"shortest", "ours"},
	"topology.nodes.*.switch":   {"false", "ours"},

	"queues.buffer":   {"5bdp", "STrack paper, section 4.1"},
	"queues.ecn.kmin": {"25%bdp", "STrack paper, section 4.1"},
	"queues.ecn.kmax": {"75%bdp", "STrack paper, section 4.1"},
	"queues.ecn.pmax": {"1", "ours: the STrack paper leaves it open; its authors' simulator marks linearly up to 1"},
	"queues.ecn.mark": {"egress", "STrack paper, section 2.2.2"},
	"queues.pfc":      {"off", "ours"},
	"queues.routing":  {"ecmp", "ours"},
	"queues.light":    {"12.5%bdp", "ours: half of the default kmin"},

	"queues.shared.total":   {"16MB/50Gbps", "alibaba-edu/High-Precision-Congestion-Control, run.py: 32 MB at 100 Gb/s"},
	"queues.pfc.xon_offset": {"3KB", "alibaba-edu/High-Precision-Congestion-Control, switch-mmu.cc"},
	"queues.pfc.reserve":    {"4KB", "alibaba-edu/High-Precision-Congestion-Control, switch-mmu.cc"},
	"queues.pfc.headroom":   {"auto", "3 times rate and delay of the link, as alibaba-edu/High-Precision-Congestion-Control, third.cc; at least what losslessness takes"},
	"queues.pfc.response":   {"0s", "ours"},

	"clocks.sync": {"perfect", "ours"},

	"transport.kind":                {"pc4", "ours"},
	"transport.pc4.target_qtime":    {"2us", "ours: the PC4 paper recommends tuning it (section IV-C)"},
	"transport.pc4.adjust_interval": {"2rtt", "ours, docs/adr/0011: the PC4 paper wants more than one RTT (section III-C)"},
	"transport.pc4.ai":              {"2%", "ours, docs/adr/0011: the PC4 paper gives no value"},
	"transport.pc4.hai":             {"4%", "ours, docs/adr/0011: the PC4 paper gives no value"},
	"transport.pc4.beta":            {"0.4", "ours, docs/adr/0011: the PC4 paper gives no value"},
	"transport.pc4.paced_below":     {"4", "ours, docs/adr/0010: the PC4 paper paces below 1 packet (section III-C)"},
	"transport.pc4.max_mdf":         {"0.5", "ours: as in Swift; the PC4 paper gives no value"},
	"transport.pc4.base_rate":       {"controller", "PC4 paper, section II-A: centralized controllers know the traffic"},
	"transport.pc4.initial":         {"base-rate", "ours: the only start that fits the queues of the PC4 paper, Table II"},
	"transport.pc4.rtt":             {"base", "PC4 paper, section III-A: base_rate x RTT"},
	"transport.pc4.rto_min":         {"1ms", "ours: the PC4 paper gives no value"},
	"transport.pc4.epsilon":         {"100ns", "PC4 paper, section III-B: what the clocks cannot tell apart"},

	"transport.ccm.inner":             {"roce", "ours: the CCM draft leaves it open; DCQCN is its example"},
	"transport.ccm.recovery":          {"selective-repeat", "ours: packets of a flow overtake each other when it takes another path"},
	"transport.ccm.timeout":           {"1ms", "ours: the CCM draft does not say what heals a lost notification"},
	"transport.ccm.paths":             {"1", "ours: hosts have one card, and switches choose"},
	"transport.ccm.congested":         {"25%bdp", "ours: where queues.ecn begins to mark"},
	"transport.ccm.notify_every":      {"50us", "ours: as often as a NIC sends CNPs for a flow"},
	"transport.ccm.refresh":           {"250us", "ours: a quarter of the default timeout"},
	"transport.ccm.strict":            {"false", "ours: see docs/adr/0091"},
	"transport.ccm.notification_loss": {"0", "ours"},

	"transport.roce.preset":            {"nvidia", "ours: what NICs come with"},
	"transport.roce.alpha_first":       {"false", "DCQCN paper, Algorithm 1"},
	"transport.roce.byte_counter":      {"off", "ours: the NICs' counter of 32 MB never leads their timer"},
	"transport.roce.decrease_interval": {"4us", "NVIDIA DOCA, DCQCN parameters: RATE_REDUCE_MONITOR_PERIOD"},
	"transport.roce.first_rate":        {"1", "NVIDIA DOCA, DCQCN parameters: RATE_TO_SET_ON_FIRST_CNP, off"},
	"transport.roce.qps":               {"1", "NCCL: NCCL_IB_QPS_PER_CONNECTION"},
	"transport.roce.split":             {"round-robin", "NCCL: NCCL_IB_SPLIT_DATA_ON_QPS, off"},
	"transport.roce.recovery":          {"go-back-n", "RoCEv2"},
	"transport.roce.repath":            {"off", "ours: RoCE has no repathing; PLB (SIGCOMM 2022) leaves a path after 3 rounds"},
	"transport.roce.rto_min":           {"auto", autoRTO},
	"transport.roce.tries":             {"7", "NCCL: NCCL_IB_RETRY_CNT"},

	"transport.swift.ai":             {"1", bolt},
	"transport.swift.beta":           {"0.8", bolt},
	"transport.swift.max_mdf":        {"0.5", bolt},
	"transport.swift.base_target":    {"10us", bolt},
	"transport.swift.per_hop":        {"1us", bolt},
	"transport.swift.fs_range":       {"100us", bolt},
	"transport.swift.fs_min":         {"0.1", bolt},
	"transport.swift.fs_max":         {"256", bolt},
	"transport.swift.min_window":     {"15B", bolt},
	"transport.swift.max_window":     {"bdp", bolt},
	"transport.swift.initial_window": {"bdp", bolt},
	"transport.swift.retx_reset":     {"5", "csg-htsim, swift.cpp; Bolt has no such rule"},
	"transport.swift.bolt_compat":    {"false", "ours: Bolt's target is above the paper's at every window"},
	"transport.swift.rto_min":        {"auto", autoRTO},
	"transport.swift.tries":          {"7", "NCCL: NCCL_IB_RETRY_CNT"},

	"transport.hpcc.eta":       {"0.95", "HPCC paper, SIGCOMM 2019, section 5.1"},
	"transport.hpcc.max_stage": {"0", "alibaba-edu/High-Precision-Congestion-Control, run.py; its authors call the paper's 5 a slip"},
	"transport.hpcc.wai":       {"auto", "HPCC paper, section 3.3: Winit (1 - eta) / N"},
	"transport.hpcc.flows":     {"100", "ours: a W_AI near the 25 bytes of the authors' run.py at 100 Gb/s"},
	"transport.hpcc.t":         {"auto", "HPCC paper, section 3.2: the base RTT of the network, the same for all"},
	"transport.hpcc.min_rate":  {"100Mbps", "alibaba-edu/High-Precision-Congestion-Control, the simulator's default; without one a window of W_AI alone cannot recover"},
	"transport.hpcc.rto_min":   {"auto", autoRTO},
	"transport.hpcc.tries":     {"7", "NCCL: NCCL_IB_RETRY_CNT"},

	"transport.strack.target":          {"auto", "STrack paper, Table 1: net_base_rtt"},
	"transport.strack.high":            {"3", "STrack paper, Table 1"},
	"transport.strack.ewma":            {"0.125", "STrack paper, Table 1"},
	"transport.strack.alpha":           {"4", "STrack paper, Table 1"},
	"transport.strack.beta":            {"5", "STrack paper, Table 1"},
	"transport.strack.eta":             {"0.15", "STrack paper, Table 1"},
	"transport.strack.gamma":           {"0.8", "STrack paper, Table 1"},
	"transport.strack.max_mdf":         {"0.5", "STrack paper, Algorithm 4, line 15"},
	"transport.strack.max_cwnd":        {"1", "STrack paper, section 3.2: a window of one bandwidth-delay product"},
	"transport.strack.md_requires_ecn": {"false", "STrack paper, Algorithm 4 as printed"},
	"transport.strack.paths":           {"256", "STrack paper, section 4.1: up to 256 paths"},
	"transport.strack.ack_every":       {"16KiB", "ours: four packets of 4 KiB, as in UEC; the STrack paper leaves it open"},
	"transport.strack.threshold":       {"5", "STrack paper, section 3.3.2"},
	"transport.strack.probe_after":     {"3", "STrack paper, section 3.3.2"},
	"transport.strack.rto_min":         {"auto", "ours: 8 base RTTs of the network, at least 100 us; with shared memory as long as queues hold packets"},
	"transport.strack.tries":           {"7", "NCCL: NCCL_IB_RETRY_CNT"},

	"workload.*.algorithm": {"auto", "ours"},
	"workload.*.ranks":     {"all", "ours"},
	"workload.*.type":      {"float32", "nccl-tests: -d float"},
	"workload.*.op":        {"sum", "nccl-tests: -o sum"},
	"workload.*.far_first": {"false", "ours: most of the data goes to the nearest"},
	"workload.*.flows":     {"1", "ours"},
	"workload.*.parallel":  {"0", "PC4 paper, section IV-B: all flows at once"},
	"workload.*.repeat":    {"1", "ours"},
	"workload.*.start":     {"0s", "ours"},
	"workload.*.compute":   {"0s", "ours"},
	"workload.*.jitter":    {"0s", "ours"},

	"faults.*.reroute": {"off", "ours"},

	"measure.queues":       {"10us", "ours"},
	"measure.rates":        {"off", "ours"},
	"measure.queue_events": {"off", "ours"},
	"measure.cwnd":         {"false", "ours"},
	"measure.acks":         {"false", "ours"},
	"measure.from":         {"0s", "ours"},

	"engine.kind":     {"auto", "ours"},
	"engine.runtime":  {"auto", "ours"},
	"engine.datapath": {"auto", "ours"},
	"engine.dilation": {"auto", "ours"},
}
