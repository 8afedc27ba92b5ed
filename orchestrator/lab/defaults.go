package lab

import "weft/transport"

// value is a default as it would be written, and its source.
type value struct{ text, source string }

// defaults holds every default that does not depend on another value, as it would be written, with
// its source, by the path of its key. A * stands for any index.
var defaults = tableOf(new(file))

// Default returns the default of a key as it would be written; "" if it has none, or one that
// depends on another value.
func Default(path string) string { return defaults[path].text }

// overlay returns the defaults that follow from other sections: the marking thresholds that the
// transport asks of switches, and the length from which switches that coordinate count a queue as
// congested.
func overlay(root *node) map[string]value {
	over := make(map[string]value)
	own := root.at0("transport")
	kind := own.at0("kind").textOr(defaults["transport.kind"].text)
	congested := defaults[transport.CongestedPath]
	if marking, ok := transport.MarkingOf(kind, own.at0(transportSection(kind)).written); ok {
		over["queues.ecn.kmin"] = value{marking.Kmin, marking.Source}
		over["queues.ecn.kmax"] = value{marking.Kmax, marking.Source}
		over["queues.ecn.pmax"] = value{marking.Pmax, marking.Source}
		congested.text = marking.Kmin
	}
	congested.text = root.at0("queues").at0("ecn").at0("kmin").textOr(congested.text)
	over[transport.CongestedPath] = congested
	return over
}
