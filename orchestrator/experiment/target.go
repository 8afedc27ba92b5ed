package experiment

import (
	"weft/transport"
	"weft/units"
)

// DelayTarget returns the shortest queueing delay that a connection aims at, of the first thousands
// of connections; 0 if none steers by delay. In an emulation, lateness above it decides rates.
func (x *Experiment) DelayTarget() (shortest units.Time) {
	for i := range x.Conns[:min(len(x.Conns), kept)] {
		s := &x.Conns[i]
		target, err := transport.DelayTarget(x.endpoint(s), s)
		if err == nil && target > 0 && (shortest == 0 || target < shortest) {
			shortest = target
		}
	}
	return shortest
}
