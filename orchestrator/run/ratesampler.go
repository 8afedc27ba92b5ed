package run

import (
	"weft/host"
	"weft/orchestrator/experiment"
	"weft/orchestrator/summary"
	"weft/results/record"
	"weft/results/store"
	"weft/transport"
	"weft/units"
)

// rateSampler samples the rates of connections.
type rateSampler struct {
	summary.Rates
	hosts []*host.Host
	dir   *store.Run
	last  []units.Bytes // by connection: bytes that had arrived at the last sample
}

// newRateSampler returns a sampler of all connections of an experiment.
func newRateSampler(x *experiment.Experiment, hosts []*host.Host, dir *store.Run) *rateSampler {
	return &rateSampler{
		Rates: summary.Rates{Every: x.Lab.Measure.Rates, Rtt: x.BaseRTT, Conns: len(x.Conns)},
		hosts: hosts, dir: dir, last: make([]units.Bytes, len(x.Conns)),
	}
}

// tick takes a sample.
func (r *rateSampler) tick(now units.Time) error {
	var err error
	for _, h := range r.hosts {
		h.Arrived(func(c transport.ConnID, bytes units.Bytes) {
			n := bytes - r.last[c]
			if n == 0 || err != nil {
				return
			}
			r.last[c] = bytes
			row := record.Rate{At: now, Conn: uint32(c), Bytes: n, Rate: units.Rate(n, r.Every)}
			r.Rows = append(r.Rows, row)
			err = r.dir.Rate(row)
		})
	}
	return err
}
