package lab

// defaults holds every default that does not depend on another value, as it would be written in a lab file,
// with where it is from. A * stands for any index. They are read by the same code as what a user writes. This
// table is the place to retune them.
//
// Defaults that follow from other values are beside the code that reads the value: the algorithm of a
// collective, chunk, root, and what a tier or a custom link takes over from topology.link.
var defaults = map[string]struct{ text, source string }{
	"seed": {"1", "ours"},

	"topology.link.rate":        {"100Gbps", "PC4 paper, section IV"},
	"topology.link.delay":       {"1us", "PC4 paper, section IV"},
	"topology.mtu":              {"4096", "STrack paper, section 4.1"},
	"topology.oversubscription": {"1", "STrack paper, section 4.1: full bisection"},
	"topology.nodes.*.switch":   {"false", "ours"},

	"queues.buffer":   {"5bdp", "STrack paper, section 4.1"},
	"queues.ecn.kmin": {"25%bdp", "STrack paper, section 4.1"},
	"queues.ecn.kmax": {"75%bdp", "STrack paper, section 4.1"},
	"queues.ecn.pmax": {"1", "ours: the STrack paper leaves it open; its authors' simulator marks linearly up to 1"},
	"queues.ecn.mark": {"egress", "STrack paper, section 2.2.2"},
	"queues.routing":  {"ecmp", "ours"},

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

	"workload.*.algorithm": {"auto", "ours"},
	"workload.*.ranks":     {"all", "ours"},
	"workload.*.parallel":  {"0", "PC4 paper, section IV-B: all flows at once"},
	"workload.*.repeat":    {"1", "ours"},
	"workload.*.start":     {"0s", "ours"},

	"measure.queues": {"10us", "ours"},
	"measure.cwnd":   {"false", "ours"},

	"engine.kind":     {"auto", "ours"},
	"engine.runtime":  {"auto", "ours"},
	"engine.datapath": {"auto", "ours"},
	"engine.dilation": {"auto", "ours"},
}
