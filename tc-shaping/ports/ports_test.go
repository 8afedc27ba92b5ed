package ports

import (
	"testing"

	"weft/fabric"
	"weft/tc-shaping/qdisc"
	"weft/units"
)

// The dilation stretches times and leaves sizes alone.
func TestReal(t *testing.T) {
	p := &fabric.PortConfig{Buffer: units.MB, ECN: fabric.ECNConfig{On: true, Kmin: 10_000, Kmax: 20_000, Pmax: 0.5},
		Link: fabric.Link{Jitter: units.Microsecond}}
	p.Rate, p.Delay, p.Loss = 100*units.Gbps, units.Microsecond, 0.01
	l := &p.Link
	d := Real(p, l, 2000, 4284, nil, qdisc.Full())
	if d.Rate != 50*units.Mbps || d.Delay.Microseconds() != 2000 || d.Jitter.Microseconds() != 2000 ||
		d.Loss != 0.01 || d.Overhead != 4 ||
		d.Limit != units.MB || d.RED == nil || d.RED.Min != 10_000 || d.RED.Max != 20_000 || d.RED.Pmax != 0.5 {
		t.Errorf("%+v %+v", d, d.RED)
	}
	if d := Real(p, l, 2000, 4284, &qdisc.Source{}, qdisc.Full()); d.Limit != hostQueue {
		t.Errorf("the NIC of a host holds %v", d.Limit)
	}
	if l.Delay = 0; !Real(p, l, 2000, 4284, nil, qdisc.Full()).NeedsNetem() {
		t.Error("without delay there is no line, and a packet arrives before it is transmitted")
	}
}
