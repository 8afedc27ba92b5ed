package emulate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/host"
	"weft/internal/quiettest"
	"weft/internal/testenv"
	"weft/orchestrator/runtime"
	"weft/realtime"
	"weft/results/record"
	"weft/transport"
	"weft/transport/wire"
	"weft/units"
)

// mustRun runs x, which must succeed, and checks the invariants of every run.
func mustRun(t *testing.T, x Experiment) *Outcome {
	t.Helper()
	o, err := runChecked(t, x)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// runChecked runs x, and checks the invariants of every run that succeeds.
func runChecked(t *testing.T, x Experiment) (*Outcome, error) {
	t.Helper()
	testenv.NeedNamespaces(t)
	x.Processes.Stderr = os.Stderr
	o, err := Run(t.Context(), x)
	if err != nil {
		return nil, err
	}
	for _, d := range o.Dones {
		if d.Wrong != 0 {
			t.Errorf("rank %d has %d wrong elements of %d", d.Rank, d.Wrong, d.Checked)
		}
	}
	for _, f := range o.Flows {
		if f.Acked <= f.Start {
			t.Errorf("flow without an end: %+v", f)
		}
	}
	if o.Report.Broken != "" || o.Transport.BadPackets != 0 {
		t.Errorf("broken %q, %d bad packets", o.Report.Broken, o.Transport.BadPackets)
	}
	for h, r := range o.Report.Refusals {
		if r != (realtime.Refusals{}) {
			t.Errorf("the fabric refused of host %d: %+v", h, r)
		}
	}
	if n := &o.Transport; o.Fabric.Injected != n.DataPackets+n.Acks+n.Probes {
		t.Errorf("the network carried %d packets, hosts sent %d, %d acknowledgements and %d probes", o.Fabric.Injected,
			n.DataPackets, n.Acks, n.Probes)
	}
	t.Logf("verdict %s %v", o.Fidelity.Verdict, o.Fidelity.Reasons)
	return o, nil
}

// checkOnTime runs an experiment that measures time until check returns nil, a few times at most.
// See quiettest.Check. A run whose verdict is not ok proves nothing.
func checkOnTime(t *testing.T, x Experiment, check func(o *Outcome) error) {
	t.Helper()
	quiettest.Check(t, 4, func() error {
		o := mustRun(t, x)
		if err := check(o); err == nil || o.Fidelity.Verdict == record.OK {
			return err
		} else {
			return fmt.Errorf("%w: %w", quiettest.ErrDisturbed, err)
		}
	})
}

func TestPrivAllToAll(t *testing.T) { bothNICs(t, checkAllToAll) }

func checkAllToAll(t *testing.T, bypass bool) {
	const n, packets, repeat = 4, 20, 3
	x := allToAll(n, packets, repeat, 500)
	x.SampleQueues, x.Windows = 2*units.Microsecond, true
	x.Processes.Bypass = bypass
	var last Progress
	x.Progress = func(p Progress) {
		if want := units.Bytes(n * (n - 1) * packets * repeat * benchMTU); p.Total != want {
			t.Errorf("%d bytes in all at %+v, want %d", p.Total, p, want)
		}
		if p.Done < last.Done || p.Total < last.Total {
			t.Errorf("progress goes back from %+v to %+v", last, p)
		}
		last = p
	}
	o := mustRun(t, x)
	if got, want := len(o.Flows), n*(n-1)*repeat; got != want {
		t.Errorf("%d flows, want %d", got, want)
	}
	if got, want := len(o.Dones), n*repeat; got != want {
		t.Errorf("%d dones, want %d", got, want)
	}
	if want := units.Bytes(n * (n - 1) * packets * repeat * benchMTU); last.Done != want || last.Total != want {
		t.Errorf("progress ends at %+v, want %d bytes", last, want)
	}
	if len(o.Samples) == 0 || len(o.Windows) == 0 || o.RTT.Count() == 0 || o.QueueDelay.Count() == 0 {
		t.Errorf("%d samples, %d windows, %d round trips, %d queue delays", len(o.Samples), len(o.Windows),
			o.RTT.Count(), o.QueueDelay.Count())
	}
	if o.Elapsed <= 0 || o.Fidelity.CPUMax <= 0 {
		t.Errorf("elapsed %d ps, busiest second %g", o.Elapsed, o.Fidelity.CPUMax)
	}
	sent := int64(0)
	for p, c := range o.Report.Ports {
		if int(x.Fabric.Ports[p].From) < n {
			sent += c.Packets
		}
	}
	if len(o.Report.Ports) != len(x.Fabric.Ports) || sent != o.Fabric.Injected {
		t.Errorf("%d ports, NICs sent %d packets; want %d ports and %d packets", len(o.Report.Ports), sent,
			len(x.Fabric.Ports), o.Fabric.Injected)
	}
	if !slices.IsSortedFunc(o.Samples, func(a, b realtime.Sample) int { return int(a.At - b.At) }) {
		t.Error("samples are out of order")
	}
}

// The same over packet sockets on veth pairs, for machines without /dev/net/tun.
func TestPrivVeth(t *testing.T) {
	x := allToAll(3, 10, 2, 500)
	x.Processes.Veth = true
	if o := mustRun(t, x); len(o.Dones) != 6 {
		t.Errorf("%d dones, want 6", len(o.Dones))
	}
}

// One packet at a time: nothing ever waits, so all it takes beyond the idle path is the
// emulation's.
func TestPrivIdleDelay(t *testing.T) { bothNICs(t, checkIdleDelay) }

func checkIdleDelay(t *testing.T, bypass bool) {
	const dilation = 1000
	x := star(2, dilation)
	x.Processes.Bypass = bypass
	x.work(host.Item{Collective: "incast", Algorithm: "direct", Root: 1, Size: benchMTU, Repeat: 400},
		func(src, _ int) bool { return src == 0 }, 1)
	checkOnTime(t, x, func(o *Outcome) error {
		idle := starPath().Delay(benchMTU + wire.DataSize + wire.Overhead)
		allowed := max(idle*3/100, units.Microsecond/10)
		excess, rtt := o.OneWay.Quantile(0.5), o.RTT.Quantile(0.5)
		t.Logf("one way %v + %v (p99 %v), round trip %v of %v (p99 %v)", idle, excess, o.OneWay.Quantile(0.99), rtt,
			x.BaseRTT, o.RTT.Quantile(0.99))
		if excess > allowed {
			return fmt.Errorf("a packet takes %v more than the idle path's %v, want at most %v", excess, idle, allowed)
		}
		if rtt < x.BaseRTT || rtt > x.BaseRTT+3*allowed {
			return fmt.Errorf("round trip %v, want %v", rtt, x.BaseRTT)
		}
		return nil
	})
}

// One flow alone gets the whole link. Its window is what is under way in the base round trip, so
// that each real round trip's excess, a few wake-ups of 50 us, costs throughput: dilation 4000
// makes it less than a hundredth.
func TestPrivOneFlow(t *testing.T) {
	const packets, dilation = 2000, 4000
	x := star(2, dilation)
	x.work(host.Item{Collective: "incast", Algorithm: "direct", Root: 1, Size: packets * benchMTU, Repeat: 1},
		func(src, _ int) bool { return src == 0 }, 1)
	rate := func(f host.Flow) units.Bandwidth {
		return units.Rate(packets*(benchMTU+wire.DataSize+wire.Overhead), f.Acked-f.Start-x.BaseRTT)
	}
	want := rate(simulate(t, x)[0])
	checkOnTime(t, x, func(o *Outcome) error {
		got := rate(o.Flows[0])
		t.Logf("%v, simulated %v, on a link of %v; round trip %v of %v", got, want, benchRate, o.RTT.Quantile(0.5),
			x.BaseRTT)
		if share := float64(got) / float64(benchRate); share < 0.98 || share > 1.02 {
			return fmt.Errorf("one flow gets %.1f %% of the link's rate", 100*share)
		}
		return nil
	})
}

// The smallest labs, of one cold all-to-all that is over in 21 us, are on time at the dilation
// that auto gives them.
func TestPrivAutoIsOKForASmallLab(t *testing.T) {
	testenv.NeedNamespaces(t)
	if testing.Short() {
		t.Skip("takes several seconds")
	}
	c, err := Calibrate(t.Context(), Processes{Stderr: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	x := allToAll(4, 16, 1, 1)
	line := transport.Path{Propagation: 2 * units.Microsecond, Rates: []units.Bandwidth{benchRate, benchRate}}
	for i := range x.Fabric.Ports {
		x.Fabric.Ports[i].Delay = units.Microsecond
	}
	for i := range x.Plans {
		for k := range x.Plans[i].Conns {
			x.Plans[i].Conns[k].Forward, x.Plans[i].Conns[k].Reverse = line, line
		}
	}
	x.BaseRTT = line.Delay(benchMTU+wire.DataSize+wire.Overhead) + line.Delay(wire.AckSize+wire.Overhead)
	x.Dilation = AutoDilation(c, Load(host.Demands(x.Plans)), x.BaseRTT)
	quiettest.Check(t, 3, func() error {
		if o := mustRun(t, x); o.Fidelity.Verdict != record.OK {
			return fmt.Errorf("verdict %s (%s) at dilation %g, base round trip %v", o.Fidelity.Verdict,
				strings.Join(o.Fidelity.Reasons, "; "), x.Dilation, x.BaseRTT)
		}
		return nil
	})
}

// Programs that know nothing of Weft are carried with the delays of the model.
func TestPrivPing(t *testing.T) {
	testenv.NeedProgram(t, "ping")
	const dilation = 1000
	x := star(3, dilation)
	var out bytes.Buffer
	x.During = func(ctx context.Context, c runtime.Cluster) error {
		return c.Exec(ctx, "h0", runtime.Command{
			Args: []string{"ping", "-n", "-q", "-c", "10", "-i", "0.05", x.Addrs[2].String()}, Stdout: &out,
			Stderr: &out,
		})
	}
	testenv.NeedNamespaces(t)
	quiettest.Check(t, 3, func() error {
		out.Reset()
		o, err := Run(t.Context(), x)
		if err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		m := regexp.MustCompile(`= ([0-9.]+)/`).FindStringSubmatch(out.String())
		if m == nil || !strings.Contains(out.String(), " 0% packet loss") { // it does not wait long for the last
			return fmt.Errorf("ping said\n%s", out.String())
		}
		if o.Report.ARP == 0 || o.Fabric.Delivered < 20 {
			t.Errorf("%d ARP answers, %d packets delivered", o.Report.ARP, o.Fabric.Delivered)
		}
		shortest, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		const frame = 64 + 20 + 14 + 4
		want := 2 * starPath().Delay(frame).Microseconds() * dilation / 1000 // in ms of real time
		if shortest < want || shortest > 1.1*want {
			return fmt.Errorf("the shortest round trip took %.3f ms, the model's takes %.3f", shortest, want)
		}
		return nil
	})
}

func TestPrivIperf(t *testing.T) {
	testenv.NeedProgram(t, "iperf3")
	x := star(2, 1000) // 100 Mb/s of real time
	var out bytes.Buffer
	x.During = func(ctx context.Context, c runtime.Cluster) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		server := make(chan error, 1)
		go func() {
			server <- c.Exec(ctx, "h1", runtime.Command{Args: []string{"iperf3", "-s", "-1"}, Stdout: &bytes.Buffer{}})
		}()
		defer func() { cancel(); <-server }()
		for limit := time.Now().Add(quiettest.Patience); ; {
			out.Reset()
			err := c.Exec(ctx, "h0", runtime.Command{
				Args: []string{"iperf3", "-c", x.Addrs[1].String(), "-t", "1", "-f", "m"}, Stdout: &out, Stderr: &out,
			})
			if err == nil || time.Now().After(limit) {
				return err
			}
			select { // until the server listens
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	testenv.NeedNamespaces(t)
	quiettest.Check(t, 3, func() error {
		if _, err := Run(t.Context(), x); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		m := regexp.MustCompile(`([0-9.]+) Mbits/sec +receiver`).FindStringSubmatch(out.String())
		if m == nil {
			t.Fatalf("iperf3 said\n%s", out.String())
		}
		if rate, _ := strconv.ParseFloat(m[1], 64); rate < 60 || rate > 100 {
			return fmt.Errorf("TCP gets %s Mb/s of a link of 100 Mb/s", m[1])
		}
		return nil
	})
}

// endlessWorkload returns a workload that does not end by itself in the time of a test. underWay
// waits until some of it is done.
func endlessWorkload() (x Experiment, underWay func(context.Context)) {
	x = allToAll(4, 500, 1000, 5000)
	done := make(chan struct{})
	once := sync.OnceFunc(func() { close(done) })
	x.Progress = func(p Progress) {
		if p.Done > 0 {
			once()
		}
	}
	return x, func(ctx context.Context) {
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
}

func TestPrivDeathIsReportedByName(t *testing.T) { bothNICs(t, checkDeathIsReportedByName) }

func checkDeathIsReportedByName(t *testing.T, bypass bool) {
	for _, victim := range []string{"h2", runtime.Fabric} {
		x, underWay := endlessWorkload()
		x.Processes.Bypass = bypass
		killed := make(chan quiettest.Stopwatch, 1)
		x.During = func(ctx context.Context, c runtime.Cluster) error {
			underWay(ctx)
			p := c.Fabric()
			if victim != runtime.Fabric {
				p = c.Node(2)
			}
			killed <- quiettest.Start()
			if err := unix.Kill(p.PID, unix.SIGKILL); err != nil {
				return err
			}
			<-ctx.Done()
			return nil
		}
		o, err := Run(t.Context(), x)
		(<-killed).AtMost(t, 3*time.Second, "the end after "+victim+" was killed")
		var exit *runtime.ExitError
		if !errors.As(err, &exit) || exit.Name != victim {
			t.Errorf("%s was killed: %v", victim, err)
		}
		if victim == "h2" && (!strings.Contains(err.Error(), "it was at item 0 (all-to-all by direct)") ||
			!strings.Contains(err.Error(), "rank 2")) {
			t.Errorf("%v; want what h2 was at", err)
		}
		if o == nil || len(o.Results) != 4 || o.Results[1] == nil || o.Transport.DataPackets == 0 ||
			o.Fidelity.Verdict != record.Invalid {
			t.Errorf("%s was killed: what the others knew is lost: %+v", victim, o)
		}
		if victim == "h2" && (o.Report == nil || o.Results[2] != nil) {
			t.Errorf("results after the death of h2: report %v, its results %v", o.Report, o.Results[2])
		}
	}
}

func TestPrivSilenceIsReportedByName(t *testing.T) {
	testenv.NeedNamespaces(t)
	for _, victim := range []string{"h2", runtime.Fabric} {
		x, underWay := endlessWorkload()
		var at time.Time
		stopped := make(chan quiettest.Stopwatch, 1)
		x.During = func(ctx context.Context, c runtime.Cluster) error {
			underWay(ctx)
			p := c.Fabric()
			if victim != runtime.Fabric {
				p = c.Node(2)
			}
			at = time.Now()
			stopped <- quiettest.Start()
			if err := unix.Kill(p.PID, unix.SIGSTOP); err != nil {
				return err
			}
			<-ctx.Done()
			return nil
		}
		o, err := Run(t.Context(), x)
		(<-stopped).AtMost(t, silence+3*time.Second, "the end after "+victim+" was stopped")
		took := time.Since(at)
		if err == nil || !strings.Contains(err.Error(), victim) || !strings.Contains(err.Error(), "does not answer") {
			t.Errorf("%s was stopped: %v", victim, err)
		}
		if took < silence/2 {
			t.Errorf("%s was stopped: it took only %v to end", victim, took)
		}
		if o == nil || o.Results[1] == nil || o.Fidelity.Verdict != record.Invalid {
			t.Errorf("%s was stopped: what the others knew is lost: %+v", victim, o)
		}
	}
}

func TestPrivInterruptKeepsWhatThereIs(t *testing.T) {
	testenv.NeedNamespaces(t)
	ctx, cancel := context.WithCancel(t.Context())
	x, underWay := endlessWorkload()
	x.During = func(ctx context.Context, _ runtime.Cluster) error {
		underWay(ctx)
		cancel()
		return nil
	}
	o, err := Run(ctx, x)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's end", err)
	}
	if o == nil || o.Report == nil || o.Transport.DataPackets == 0 || slices.Contains(o.Results, nil) ||
		o.Elapsed <= 0 {
		t.Errorf("what there was is lost: %+v", o)
	}
}

// A corrupted byte that no checksum detected makes results wrong: no result counts as verified, and
// the error names the receiver and the step.
func TestPrivCorruptedByte(t *testing.T) { bothNICs(t, checkCorruptedByte) }

func checkCorruptedByte(t *testing.T, bypass bool) {
	x := allToAll(3, 10, 1, 1000)
	x.Processes.Bypass = bypass
	x.Plans[1].Corrupt = []units.Time{0, 1000 * units.Second}
	o, err := Run(t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	wrong := 0
	for _, d := range o.Dones {
		if d.Wrong == 0 {
			continue
		}
		wrong++
		if d.Rank != 1 || d.Wrong != 1 || d.Blame == nil || d.Blame.Step < 0 || d.Blame.Peer == 1 {
			t.Errorf("%+v, %+v", d, d.Blame)
		}
	}
	if wrong != 1 {
		t.Errorf("%d ranks are wrong, want 1", wrong)
	}
	for h, n := range o.Results {
		if want := h % 2; n.Uncorrupted != want { // that of h1 after the end
			t.Errorf("h%d: %d planned corruptions not applied, want %d", h, n.Uncorrupted, want)
		}
	}
}

// A network that loses everything: the error says which host waits for which.
func TestPrivStall(t *testing.T) {
	testenv.NeedNamespaces(t)
	x := allToAll(3, 10, 1, 1000)
	x.Stall = time.Second
	x.Fabric.Switches[0].Route = []int32{-1, -1, -1}
	_, err := Run(t.Context(), x)
	for _, want := range []string{"nothing has moved", "host h1: item 0 (all-to-all direct), rank 1, repetition 0",
		" step "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want who waits for whom: %q", err, want)
		}
	}
}

func TestRefusesWhatCannotBe(t *testing.T) {
	x := star(2, 0.5)
	x.Plans = x.Plans[:1]
	x.Addrs[0] = x.Addrs[0].Next().Next()
	_, err := Run(t.Context(), x)
	for _, want := range []string{"dilation 0.5", "1 plans, 2 addresses"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

func TestStallFollowsTheDilation(t *testing.T) {
	for dilation, want := range map[float64]time.Duration{1: 10 * time.Second, 1000: 20 * time.Second} {
		if x := star(2, dilation); x.stall() != want {
			t.Errorf("at dilation %g: %v, want %v", dilation, x.stall(), want)
		}
	}
	if x := (Experiment{Stall: time.Second}); x.stall() != time.Second {
		t.Errorf("%v, want the limit of the experiment", x.stall())
	}
}
