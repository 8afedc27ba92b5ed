package queues

import "weft/params"

// OfLink is the keys of Queues that a link may set for its own switch ports.
type OfLink struct{ Queues }

// Keys implements params.Section.
func (q *OfLink) Keys() (all []params.Key) {
	refusals := map[string]string{
		"shared": "all ports of a switch share one memory; " +
			"expected it in the section queues, for all switches",
		"routing": "a switch uses one routing for all its ports; " +
			"expected it in the section queues, for all switches",
		"light": "a switch uses one measure for all its ports; " +
			"expected it in the section queues, for all switches",
	}
	for _, k := range q.Queues.Keys() {
		why := refusals[k.Name]
		switch {
		case why != "":
			k = params.Refusal(k.Name, why)
		case k.Name == "pfc":
			k.About, k.Words = "Thresholds and headroom; queues.pfc turns PFC on.", nil
		default:
			k.About = "As queues." + k.Name + "."
		}
		k.Optional, k.When, k.Text = true, nil, ""
		all = append(all, k)
	}
	return all
}
