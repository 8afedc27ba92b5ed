package lab

import "weft/transport"

// value is a default as it would be written, and where it is from.
type value struct{ text, source string }

// defaults holds every default that does not depend on another value, as it would be written in a lab file,
// with where it is from. A * stands for any index. They are read by the same code as what a user writes. This
// table is the place to retune them.
//
// Defaults that follow from other values are beside the code that reads the value: the algorithm of a
// collective, chunk, root, and what a tier or a custom link takes over from topology.link.
var defaults = withDeclared(map[string]value{
	"seed": {"1", "ours"},

	"transport.kind": {"pc4", "ours"},

	"workload.*.algorithm": {"auto", "ours"},
	"workload.*.ranks":     {"all", "ours"},
	"workload.*.type":      {"float32", "nccl-tests: -d float"},
	"workload.*.op":        {"sum", "nccl-tests: -o sum"},
	"workload.*.far_first": {"false", "ours: most of the data goes to the nearest"},
	"workload.*.flows":     {"1", "ours"},
	"workload.*.order":     {"around", "STrack paper, section 4.3: to the next rank first, and around"},
	"workload.*.parallel":  {"0", "PC4 paper, section IV-B: all flows at once"},
	"workload.*.repeat":    {"1", "ours"},
	"workload.*.start":     {"0s", "ours"},
	"workload.*.compute":   {"0s", "ours"},
	"workload.*.jitter":    {"0s", "ours"},

	"faults.*.reroute": {"off", "ours"},
})

// overlay returns the defaults that follow from other sections: how switches mark for a transport, and where CCM sees a port congested.
func overlay(root *node) map[string]value {
	over := make(map[string]value)
	own := root.at0("transport")
	kind := own.at0("kind").textOr(defaults["transport.kind"].text)
	congested := defaults["transport.ccm.congested"]
	if marking, ok := transport.MarkingOf(kind, own.at0(transportSection(kind)).written); ok {
		over["queues.ecn.kmin"] = value{marking.Kmin, marking.Source}
		over["queues.ecn.kmax"] = value{marking.Kmax, marking.Source}
		over["queues.ecn.pmax"] = value{marking.Pmax, marking.Source}
		congested.text = marking.Kmin
	}
	congested.text = root.at0("queues").at0("ecn").at0("kmin").textOr(congested.text)
	over["transport.ccm.congested"] = congested
	return over
}
