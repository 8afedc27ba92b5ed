package kernelpath

import (
	"errors"
	"strings"
	"testing"

	"weft/tc-shaping/measure"
	"weft/tc-shaping/qdisc"
	"weft/units"
)

func TestCheck(t *testing.T) {
	l := two(1, 1)
	if _, err := Check(l.Fabric, 1000, l.MTU, qdisc.Full()); err != nil {
		t.Error(err)
	}
	l.Fabric.Ports[3].Buffer = 2 * units.KB
	if port, err := Check(l.Fabric, 1000, l.MTU, qdisc.Full()); port != 3 || !errors.Is(err, qdisc.ErrRefused) || !strings.Contains(err.Error(), "does not fit") {
		t.Errorf("port %d: %v", port, err)
	}
	l.Fabric.Ports[3].Buffer = units.MB
	if _, err := Check(l.Fabric, 1e9, l.MTU, qdisc.Full()); !errors.Is(err, qdisc.ErrRefused) || !strings.Contains(err.Error(), "smaller dilation") {
		t.Error(err)
	}
	without := qdisc.Full()
	without.Missing = map[qdisc.Part]string{qdisc.PartNetem: "this kernel does not have it"}
	if _, err := Check(l.Fabric, 1000, l.MTU, without); !errors.Is(err, qdisc.ErrRefused) || !strings.Contains(err.Error(), "netem") {
		t.Error(err)
	}
}

func TestTable(t *testing.T) {
	got := Table([]Finding{
		{"h0 > s0", measure.Finding{What: "rate", Asked: "10Mbps", Measured: "9.9Mbps", OK: true}},
		{"s0 > h0", measure.Finding{What: "delay and one packet", Asked: "2ms", Measured: "3ms"}},
	})
	for _, want := range []string{"h0 > s0", "9.9Mbps", "3ms", "outside"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if strings.Count(got, "outside") != 1 {
		t.Error(got)
	}
}
