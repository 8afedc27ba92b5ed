package emulate

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"weft/fabric"
	"weft/host"
	"weft/internal/quiettest"
	"weft/orchestrator/kernelpath"
	"weft/orchestrator/uml/umltest"
	"weft/params"
	"weft/realtime"
	"weft/transport/cc/dcqcn"
	"weft/units"
)

// onKernel has the machine's kernel carry a star's packets.
func onKernel(x Experiment) Experiment {
	x.Kernel = &Kernel{Switches: []netip.Addr{netip.MustParseAddr("10.128.0.1")},
		Net: netip.MustParsePrefix("10.0.0.0/8")}
	for i := range x.Fabric.Ports {
		if p := &x.Fabric.Ports[i]; int(p.From) >= x.Fabric.Hosts {
			p.ECN = fabric.ECNConfig{On: true, Ingress: true, Kmin: 500_000, Kmax: 1_000_000, Pmax: 1}
		}
	}
	if can, err := kernelpath.Available(); err == nil {
		x.Kernel.Can = can
	}
	return x
}

// underUML reports whether the test runs under User Mode Linux, whose kernel has every qdisc.
func underUML(t *testing.T) bool { return !umltest.Outside(t) }

// linksMissed reports whether a run did not begin since the links of the kernel's network were not
// as the lab asks for, as beside other load.
func linksMissed(err error) bool {
	return err != nil && strings.Contains(err.Error(), "links differ from the lab")
}

// runOnKernel runs an experiment until its links are what the lab asks for and all checks pass,
// unless something disturbs the machine.
func runOnKernel(t *testing.T, x Experiment, checks ...func(*Outcome) error) (o *Outcome) {
	t.Helper()
	quiettest.Check(t, 3, func() (err error) {
		if o, err = Run(t.Context(), x); err != nil && !linksMissed(err) {
			t.Fatal(err)
		}
		for _, check := range checks {
			if err == nil {
				err = check(o)
			}
		}
		return err
	})
	return o
}

// The kernel carries what the fabric would: every message arrives, counters of queues and hosts
// agree, and links were measured before.
func TestUMLKernel(t *testing.T) {
	if !underUML(t) {
		return
	}
	const n, packets = 3, 10
	x := onKernel(allToAll(n, packets, 1, 40_000))
	x.SampleQueues = units.Microsecond
	var shown []Shown
	x.Kernel.Shown = func(s Shown) { shown = append(shown, s) }
	o := runOnKernel(t, x, func(o *Outcome) error {
		if o.Transport.Retransmits != 0 { // timeouts are of real time
			return fmt.Errorf("%d retransmits", o.Transport.Retransmits)
		}
		return nil
	})
	if len(o.Flows) != n*(n-1) {
		t.Errorf("%d flows", len(o.Flows))
	}
	sent := o.Transport.DataPackets + o.Transport.Acks
	if o.Fabric.Injected != sent || o.Fabric.Delivered != sent || o.Fabric.Dropped != 0 ||
		o.Fidelity.UnorderedDrops != 0 {
		t.Errorf("hosts sent %d packets; %+v, %d lost without order", sent, o.Fabric, o.Fidelity.UnorderedDrops)
	}
	if o.Report.Links == "" || o.QueueDelay.Count() == 0 {
		t.Errorf("links %q, %d delays", o.Report.Links, o.QueueDelay.Count())
	}
	if k := o.Report.Checked; k == nil || k.Measured < 2 || k.Directions != 2*n || k.Probes == 0 || k.RateError > 0.02 {
		t.Errorf("the links in numbers: %+v", k)
	}
	s := shown[len(shown)-1] // of the last try
	if !strings.Contains(s.Text, "qdisc htb 1:") || s.Switch == "" || s.At <= 0 || s.Dilation != x.Dilation {
		t.Errorf("in mid-run: %+v", s)
	}
	t.Logf("%s\nround trip %v, idle %v; %v", o.Report.Links, o.RTT.Quantile(0.5), x.BaseRTT, o.Fidelity.Reasons)
	if p50 := o.RTT.Quantile(0.5); p50 < x.BaseRTT*9/10 {
		t.Errorf("the median round trip is %v, less than that of an idle network, %v", p50, x.BaseRTT)
	}
}

// Samples say what ports have marked by then, counted from the start of lab time: no more than all
// in the end, and in order.
func TestUMLKernelSamplesMarks(t *testing.T) {
	if !underUML(t) {
		return
	}
	const n = 4
	x := star(n, 40_000)
	x.work(host.Item{Collective: "all-to-all", Algorithm: "direct", Size: n * 20 * benchMTU, Repeat: 1},
		func(int, int) bool { return true }, 1)
	x = onKernel(x)
	for h := range x.Plans {
		for i := range x.Plans[h].Conns { // PC4's packets are not marked
			x.Plans[h].Conns[i].Kind, x.Plans[h].Conns[i].CC = "roce", params.Defaults[dcqcn.Params]()
		}
	}
	for i := range x.Fabric.Ports {
		if e := &x.Fabric.Ports[i].ECN; e.On {
			e.Kmin, e.Kmax = 4000, 4001 // whatever finds a packet waiting is marked
		}
	}
	x.Fabric.Ports[1].Rate /= 4 // a queue before the first host
	x.SampleQueues = units.Microsecond / 2
	runOnKernel(t, x, func(o *Outcome) error {
		all := countMarks(t, o)
		if t.Logf("%d samples, the last of %d marks; %d in the end", len(o.Samples), all, o.Fabric.Marks); all == 0 {
			return errors.New("no marks") // where hosts are held up there is no queue
		}
		return nil
	})
}

// countMarks returns the number of marks at the end of the samples, which must add up.
func countMarks(t *testing.T, o *Outcome) (all int64) {
	t.Helper()
	last := map[int]int64{}
	for _, s := range o.Samples {
		if s.Marks < last[s.Port] || s.Drops != 0 {
			t.Errorf("after %d marks: %+v", last[s.Port], s)
		}
		last[s.Port] = s.Marks
	}
	for _, marks := range last {
		all += marks
	}
	if all > o.Fabric.Marks {
		t.Errorf("samples of %d marks; the network has %d", all, o.Fabric.Marks)
	}
	return all
}

// A link that goes down loses everything until it is up again, by order.
func TestUMLKernelLinkDown(t *testing.T) {
	if !underUML(t) {
		return
	}
	x := onKernel(allToAll(3, 60, 1, 40_000))
	down, up := false, true
	x.Changes = []fabric.Change{
		{At: 5 * units.Microsecond, Ports: []int{0, 1}, Up: &down},
		{At: 12 * units.Microsecond, Ports: []int{0, 1}, Up: &up},
	}
	o := runOnKernel(t, x)
	if o.Fabric.Lost == 0 || o.Transport.Retransmits == 0 || o.Fidelity.UnorderedDrops != 0 {
		t.Errorf("%d lost on lines, %d sent again, %d lost without order", o.Fabric.Lost, o.Transport.Retransmits,
			o.Fidelity.UnorderedDrops)
	}
	if len(o.Flows) != 6 {
		t.Errorf("%d flows", len(o.Flows))
	}
}

// At a dilation at which links are not as asked another is tried, if there may be one, and what
// runs has that.
func TestUMLKernelSlower(t *testing.T) {
	if !underUML(t) {
		return
	}
	const hopeless = 100 // 1 Gb/s
	x := onKernel(allToAll(2, 5, 1, hopeless))
	x.Kernel.Slower = []float64{2 * hopeless, 40_000}
	var ready realtime.Ready
	x.Kernel.Slowed = func(r realtime.Ready) { ready = r }
	began := time.Now()
	o := runOnKernel(t, x)
	if len(o.Flows) != 2 || ready.Dilation != 40_000 || len(ready.Tried) != 2 {
		t.Fatalf("%d flows, at %g after %+v", len(o.Flows), ready.Dilation, ready.Tried)
	}
	if tried := ready.Tried[0]; tried.Dilation != hopeless || !strings.Contains(tried.Links, "outside") ||
		strings.Contains(o.Report.Links, "outside") {
		t.Errorf("at %g:\n%s\nat last:\n%s", tried.Dilation, tried.Links, o.Report.Links)
	}
	if limit := units.Time(float64(units.FromDuration(time.Since(began))) / 40_000); o.Elapsed > limit {
		t.Errorf("lab time went on to %v, in %v at most", o.Elapsed, limit)
	}
	x.Kernel.Slower = nil
	if _, err := Run(t.Context(), x); err == nil || !strings.Contains(err.Error(),
		"links differ from the lab") || !strings.Contains(err.Error(), "outside") {
		t.Errorf("without another dilation: %v", err)
	}
}
