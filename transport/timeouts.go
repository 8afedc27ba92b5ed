package transport

import (
	"strconv"

	"weft/params"
	"weft/units"
)

// Timeouts are when a connection retransmits, and when it gives up.
type Timeouts struct {
	RTO
	Tries int // unanswered retries in a row before the connection fails
}

// RTO is the minimum retransmission timeout.
type RTO struct {
	RTOMin  units.Time // 0: longer than the network can hold a packet (docs/adr/0190)
	RTORTTs int        // minimum in base RTTs of the network, if RTOMin is not 0
}

// Keys implements params.Section. Every transport's section has them.
func (t *Timeouts) Keys() []params.Key {
	return []params.Key{
		params.New("rto_min", rtoMin(&t.RTO),
			"Minimum retransmission timeout; auto: longer than queues hold packets, at least 4 RTTs, 1ms. "+
				"strack: 8 base RTTs, at least 100us; htsim: 100us; nccl: 4.29s.").
			Default("auto", "ours, docs/adr/0190: one rule for every transport"),
		params.New("tries", params.Integer(&t.Tries, 1, 1000),
			"Unanswered retries before a connection fails.").
			Default(strconv.Itoa(DefaultTries), "NCCL: NCCL_IB_RETRY_CNT"),
	}
}

// rtoMin is the kind of value of rto_min: a time, the name of a preset, or auto.
func rtoMin(to *RTO) params.Value {
	rto := params.Custom(to, func(text string) (RTO, error) {
		v, err := units.ParseTime(text)
		return RTO{RTOMin: v}, err
	}, func(r RTO) string { return r.RTOMin.String() }, "a value from 1us to 10s",
		func() params.Form { return params.Form{Patterns: []string{units.TimePattern()}, Example: "10us"} }).
		Within("1us to 10s", func(r RTO) bool {
			return r.RTOMin >= units.Microsecond &&
				r.RTOMin <= 10*units.Second
		}).Or("auto", RTO{})
	for _, p := range rtoPresets {
		rto = rto.Or(p.name, p.RTO)
	}
	return rto
}

// rtoPresets are the minimum retransmission timeouts of other implementations, by their names in
// rto_min. Every transport accepts all of them, so that transports can be compared with equal
// timeouts.
var rtoPresets = []struct {
	name string
	RTO
	source string
}{
	{"strack", RTO{100 * units.Microsecond, 8},
		"STrack paper, section 3.3: hundreds of us; the 100 us are those of UEC"},
	{"htsim", RTO{100 * units.Microsecond, 0}, "csg-htsim, swift.cpp"},
	{"nccl", RTO{4_294_967_296 * units.Nanosecond, 0}, "NCCL, NCCL_IB_TIMEOUT: 4.096 us times 2 to the 20th"},
}

// RTOSource returns the source of a preset of rto_min, or "" for other names.
func RTOSource(name string) string {
	for _, p := range rtoPresets {
		if p.name == name {
			return p.source
		}
	}
	return ""
}
