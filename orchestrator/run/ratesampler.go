package run

import (
	"weft/host"
	"weft/orchestrator/experiment"
	"weft/orchestrator/summary"
	"weft/results/record"
	"weft/transport"
	"weft/units"
)

// rateSampler samples the rates of connections.
type rateSampler struct {
	summary.Rates
	hosts []*host.Host
	files *writer
	last  []units.Bytes // by connection: bytes that had arrived at the last sample
}

// newRateSampler returns a sampler of all connections of an experiment.
func newRateSampler(x *experiment.Experiment, hosts []*host.Host, files *writer) *rateSampler {
	return &rateSampler{
		Rates: summary.Rates{Every: x.Lab.Measure.Rates, Rtt: x.BaseRTT, Conns: len(x.Conns)},
		hosts: hosts, files: files, last: make([]units.Bytes, len(x.Conns)),
	}
}

// tick takes a sample.
func (r *rateSampler) tick(now units.Time) { r.add(now, arrivals(r.hosts)) }

// arrivals returns a function that calls its argument with the payload that has arrived on each
// connection of hosts.
func arrivals(hosts []*host.Host) func(each func(c transport.ConnID, bytes units.Bytes)) {
	return func(each func(c transport.ConnID, bytes units.Bytes)) {
		for _, h := range hosts {
			h.Arrived(each)
		}
	}
}

// add adds a sample of the connections by which arrived says what has arrived.
func (r *rateSampler) add(now units.Time, arrived func(each func(c transport.ConnID, bytes units.Bytes))) {
	arrived(func(c transport.ConnID, bytes units.Bytes) {
		n := bytes - r.last[c]
		if n == 0 || r.files.err != nil {
			return
		}
		r.last[c] = bytes
		row := record.Rate{At: now, Conn: uint32(c), Bytes: n, Rate: units.Rate(n, r.Every)}
		r.Rows = append(r.Rows, row)
		r.files.check(r.files.dir.Rate(row))
	})
}
