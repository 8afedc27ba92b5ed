package table

import (
	"weft/results/record"
	"weft/units"
)

// When says when a fault happens, in a run that ends at endUS microseconds of lab time: "from 50us
// to 1ms".
func When(f record.Fault, endUS float64) string {
	switch {
	case f.FromUS > endUS:
		return "did not happen: the run ended before " + micros(f.FromUS)
	case f.Spared:
		return "did not happen: no data arrived from " + micros(f.FromUS) + " on"
	case f.Once:
		return "at " + micros(f.FromUS)
	case f.UntilUS == 0:
		return "from " + micros(f.FromUS) + " to the end"
	}
	return "from " + micros(f.FromUS) + " to " + micros(f.UntilUS)
}

// Routing says how switches that are not at the ends of a link treat it while it is down: "routed
// around after 100us". It is empty for other faults.
func Routing(f record.Fault, endUS float64) string {
	switch {
	case f.What != record.LinkDown || !f.Began(endUS):
		return ""
	case f.RerouteUS == 0:
		return "never routed around"
	case f.FromUS+f.RerouteUS > endUS:
		return "not routed around yet: the run ended before " + micros(f.FromUS+f.RerouteUS)
	}
	return "routed around after " + micros(f.RerouteUS)
}

// Cut says how many packets a failed link cut off: "161 packets". It is empty if there were none.
func Cut(f record.Fault) string {
	if f.Cut == 0 {
		return ""
	}
	return units.Count(f.Cut) + " packets"
}
