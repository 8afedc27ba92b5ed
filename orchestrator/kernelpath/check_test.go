package kernelpath

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/fabric"
	"weft/internal/control"
	"weft/realtime"
	"weft/tc-shaping/measure"
	"weft/tc-shaping/ports"
	"weft/tc-shaping/qdisc"
	"weft/units"
)

func TestCheck(t *testing.T) {
	l := twoSwitches(1, 1)
	if _, err := ports.Check(l.Fabric, ports.Sources(l.Addrs), nil, 1000, l.MTU, qdisc.Full()); err != nil {
		t.Error(err)
	}
	// A lab states how late packets may arrive even if none does: 10 us.
	was := l.Fabric.Ports[3].Link
	for _, d := range []fabric.Link{{Jitter: 100 * units.Nanosecond}, {Duplicate: 0.01}, {Reorder: 0.01}} {
		d.Rate, d.Delay, d.ReorderBy = was.Rate, was.Delay, 10*units.Microsecond
		l.Fabric.Ports[3].Link = d
		if _, err := ports.Check(l.Fabric, ports.Sources(l.Addrs), nil, 1000, l.MTU, qdisc.Full()); err != nil {
			t.Errorf("%+v: %v", d, err)
		}
	}
	l.Fabric.Ports[3].Link = was
	// A link must also be possible after a fault has changed it.
	slow := l.Fabric.Ports[2].Link
	slow.Rate = units.Mbps
	fault := fabric.Change{At: 5 * units.Microsecond, Ports: []int{2, 3}, Link: &slow}
	if port, err := ports.Check(l.Fabric, ports.Sources(l.Addrs), []fabric.Change{fault}, 1000_000, l.MTU,
		qdisc.Full()); port != 2 || !errors.Is(err, qdisc.ErrRefused) || !strings.Contains(err.Error(), "from 5µs on") {
		t.Errorf("port %d: %v", port, err)
	}
	l.Fabric.Ports[3].Buffer = 2 * units.KB
	if port, err := ports.Check(l.Fabric, ports.Sources(l.Addrs), nil, 1000, l.MTU, qdisc.Full()); port != 3 ||
		!errors.Is(err, qdisc.ErrRefused) || !strings.Contains(err.Error(), "does not fit") {
		t.Errorf("port %d: %v", port, err)
	}
	l.Fabric.Ports[3].Buffer = units.MB
	if _, err := ports.Check(l.Fabric, ports.Sources(l.Addrs), nil, 1e9, l.MTU, qdisc.Full()); !errors.Is(err,
		qdisc.ErrRefused) || !strings.Contains(err.Error(), "smaller dilation") {
		t.Error(err)
	}
	without := qdisc.Full()
	without.Missing = map[qdisc.Part]string{qdisc.PartNetem: "this kernel does not have it"}
	if _, err := ports.Check(l.Fabric, ports.Sources(l.Addrs), nil, 1000, l.MTU, without); err != nil {
		t.Errorf("receivers can hold packets back where links delay none: %v", err)
	}
	slow = l.Fabric.Ports[2].Link
	slow.Delay += units.Microsecond
	if _, err := ports.Check(l.Fabric, ports.Sources(l.Addrs), []fabric.Change{{Ports: []int{2}, Link: &slow}}, 1000, l.MTU,
		without); err != nil {
		t.Errorf("a delay that changes: %v", err)
	}
	l.Fabric.Ports[3].Duplicate = 0.1
	if _, err := ports.Check(l.Fabric, ports.Sources(l.Addrs), nil, 1000, l.MTU, without); !errors.Is(err,
		qdisc.ErrRefused) || !strings.Contains(err.Error(), "netem") {
		t.Error(err)
	}
}

// A change that the kernel cannot make is rejected with its name, and changes no direction at all.
func TestRefusedChangesChangeNothing(t *testing.T) {
	l := twoSwitches(1, 1)
	n, err := Plan(l)
	if err != nil {
		t.Fatal(err)
	}
	c := &carrier{net: n, kernel: qdisc.Full(), cfg: realtime.Config{Network: *l.Fabric, Dilation: 1000,
		MaxFrame: 4298}}
	c.resetLinks()
	for p := range c.lines {
		if err := c.plan(p, &c.lines[p]); err != nil {
			t.Fatal(err)
		}
	}
	was := slices.Clone(c.lines)
	line := func(change func(*fabric.Link)) *fabric.Link {
		l := l.Fabric.Ports[0].Link
		change(&l)
		return &l
	}
	down := false
	for says, to := range map[string]*fabric.Link{
		"expected a smaller dilation": line(func(l *fabric.Link) { l.Rate = units.Kbps }),
		"bit errors":                  line(func(l *fabric.Link) { l.BitErrors = 1e-3 }),
		"jitter together with reorder": line(func(l *fabric.Link) {
			l.Jitter, l.Reorder, l.ReorderBy = units.Microsecond, 0.1, units.Microsecond
		}),
		"loss of 1e-12": line(func(l *fabric.Link) { l.Loss = 1e-12 }),
	} {
		err := c.make(&fabric.Change{Ports: []int{0, 1}, Link: to, Up: &down})
		if !errors.Is(err, qdisc.ErrRefused) || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
		if !reflect.DeepEqual(c.lines, was) {
			t.Errorf("%q has changed lines", says)
		}
	}
}

// The error about a link that does not match its settings says how busy the machine was, but blames
// the machine only if it stalled.
func TestBroken(t *testing.T) {
	for late, stalls := range map[time.Duration]bool{time.Millisecond: false, 6 * time.Millisecond: true} {
		err := mismatchError([]Finding{{"h0 > s0", measure.Finding{What: "rate", Asked: "10Mbps",
			Measured: "9Mbps"}}}, late)
		for _, want := range []string{"links differ from the lab", late.String(), "9Mbps",
			"larger dilation"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not in %v", want, err)
			}
		}
		if strings.Contains(err.Error(), "this machine stalls") != stalls {
			t.Errorf("%v late: %v", late, err)
		}
	}
}

// A long measurement sends keep-alives, and ends when the peer is gone.
func TestMeanwhile(t *testing.T) {
	near, peer, err := control.Connected()
	if err != nil {
		t.Fatal(err)
	}
	c := &carrier{conn: near}
	heard := make(chan error, 1)
	go func() {
		m, _, err := peer.Recv()
		if err == nil && m.Kind != realtime.KindAlive {
			err = fmt.Errorf("%q", m.Kind)
		}
		heard <- err
	}()
	if err := c.keepingAlive(func(context.Context) { err = <-heard }); err != nil {
		t.Error(err)
	}
	if err != nil {
		t.Error(err)
	}
	peer.Close()
	if err := c.keepingAlive(func(ctx context.Context) { <-ctx.Done() }); err == nil {
		t.Error("nobody listens, and that is no error")
	}
	near.Close()
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
