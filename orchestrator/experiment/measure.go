package experiment

import (
	"weft/units"
)

// Measure says what is measured, and from when on.
type Measure struct {
	From    units.Time // what comes before is not counted; measure.from after the clocks' warm-up
	Clocks  units.Time // errors of clocks count from here: measure.from, or when the workload begins
	Watched int        // port whose queue is followed event by event, -1 for none
}

// addMeasure resolves what is measured.
func (x *compiler) addMeasure() (err error) {
	m := &x.Measure
	if m.From = x.Lab.Measure.From; m.From > 0 {
		m.From += x.Clocks.Warmup
		m.Clocks = m.From
	} else if first, ok := x.Begins(); ok {
		m.Clocks = first
	}
	m.Watched, err = x.watchedPort()
	return err
}

// watchedPort returns the port that measure.queue_events names, or -1.
func (x *compiler) watchedPort() (int, error) {
	name := x.Lab.Measure.Events
	if name == "" {
		return -1, nil
	}
	for i, n := range x.PortNames() {
		if n != name {
			continue
		}
		if int(x.Fabric.Ports[i].From) < x.Graph.Hosts {
			return 0, x.Lab.Errorf("measure.queue_events", "%s is a host's; expected a switch's, such as switch0->h0",
				name)
		}
		return i, nil
	}
	return 0, x.Lab.Errorf("measure.queue_events",
		"no port is named %q; expected a switch and its neighbor, such as switch0->h0", name)
}
