package sim

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"weft/fabric"
	"weft/transport"
	"weft/units"
)

const (
	ns = units.Nanosecond
	us = units.Microsecond
)

// star returns hosts around one switch. The links to hosts have the settings of p.
func star(hosts int, p fabric.PortConfig) fabric.Config {
	cfg := fabric.Config{Hosts: hosts, Switches: make([]fabric.SwitchConfig, 1)}
	for h := range hosts {
		up := fast
		up.From, up.To = fabric.NodeID(h), fabric.NodeID(hosts)
		down := p
		down.From, down.To = up.To, up.From
		cfg.Ports = append(cfg.Ports, up, down)
		sw := &cfg.Switches[0]
		sw.Groups = append(sw.Groups, []int32{int32(2*h + 1)})
		sw.Route = append(sw.Route, int32(h))
	}
	return cfg
}

// incast returns hosts 1, 2, ... that each send a number of packets to host 0.
func incast(senders int, packets, window uint32) []*fake {
	hosts := []*fake{newFake(0, 0, 0, 0)}
	for h := range senders {
		hosts = append(hosts, newFake(h+1, 0, packets, window))
	}
	return hosts
}

// newSim returns a simulation of a network and its hosts.
func newSim[H Host](t testing.TB, cfg fabric.Config, hosts []H, opts Options) *Sim {
	t.Helper()
	s, err := New(cfg, hosts, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// mustRun runs a simulation, which must succeed.
func mustRun(t testing.TB, s *Sim) {
	t.Helper()
	if err := s.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// One packet there and its acknowledgement back, over every kind of path of a fat-tree: 2, 4 and 6
// links.
func TestRoundTripIsTheClosedForm(t *testing.T) {
	for dst, links := range map[int]units.Time{1: 2, 2: 4, 3: 4, 4: 6, 15: 6} {
		cfg := fatTree(4, fast)
		hosts := make([]*fake, cfg.Hosts)
		for h := range hosts {
			hosts[h] = newFake(h, 0, 0, 0)
		}
		hosts[0] = newFake(0, dst, 1, 1)
		s := newSim(t, cfg, hosts, Options{})
		mustRun(t, s)
		want := links * (2*us + fast.Rate.TransmitTime(fakeSize) + fast.Rate.TransmitTime(fakeAckSize))
		if hosts[0].finished != want || s.End() != want {
			t.Errorf("to host %d: done at %d, run ended at %d, want %d", dst, hosts[0].finished, s.End(), want)
		}
		if c := s.Counters(); c.Injected != 2 || c.Delivered != 2 || s.Events() != 2*int64(links)+2 {
			t.Errorf("to host %d: %+v, %d events", dst, c, s.Events())
		}
	}
}

// A window that fills the path keeps the link full: packets leave back to back, each asked for when
// the one before has left.
func TestOneFlowFillsTheLine(t *testing.T) {
	hosts := []*fake{newFake(0, 1, 1000, 20), newFake(1, 0, 0, 0)}
	s := newSim(t, star(2, fast), hosts, Options{})
	mustRun(t, s)
	data, ack := fast.Rate.TransmitTime(fakeSize), fast.Rate.TransmitTime(fakeAckSize)
	if want := 1000*data + data + 2*ack + 4*us; hosts[0].finished != want {
		t.Errorf("done at %d, want %d", hosts[0].finished, want)
	}
	if s.QueueDelay().Max() != 0 || s.QueueDelay().Count() != 1000 {
		t.Errorf("%d packets, longest wait %d", s.QueueDelay().Count(), s.QueueDelay().Max())
	}
}

// Both directions at once: each NIC sends data and acknowledgements, and nothing is starved.
func TestBothDirections(t *testing.T) {
	hosts := []*fake{newFake(0, 1, 1000, 20), newFake(1, 0, 1000, 20)}
	s := newSim(t, star(2, fast), hosts, Options{})
	mustRun(t, s)
	least := 1000 * (fast.Rate.TransmitTime(fakeSize) + fast.Rate.TransmitTime(fakeAckSize))
	for h, f := range hosts {
		if f.finished < least || f.finished > least+6*us {
			t.Errorf("host %d done at %d, want little after %d", h, f.finished, least)
		}
	}
}

func TestIncastQueuesAndMarks(t *testing.T) {
	p := fast
	p.ECN = fabric.ECNConfig{On: true, Kmin: 10_000, Kmax: 30_000, Pmax: 1}
	s := newSim(t, star(9, p), incast(8, 100, 4), Options{})
	mustRun(t, s)
	d := s.QueueDelay()
	// 32 packets in flight over a path that holds about 13: some 19 wait for 0.34 µs each.
	if p50 := d.Quantile(0.5); p50 < 4*us || p50 > 9*us || d.Mean() < 4*us || d.Mean() > 9*us {
		t.Errorf("wait of p50 %d, mean %d", p50, d.Mean())
	}
	if d.Quantile(1) > d.Max() || d.Quantile(0.5) > d.Quantile(0.99) || d.Max() > 12*us {
		t.Errorf("p50 %d, p99 %d, p100 %d, max %d", d.Quantile(0.5), d.Quantile(0.99), d.Quantile(1), d.Max())
	}
	c := s.Counters()
	if c.Marks < 500 || c.Marks > 800 || c.Dropped != 0 || s.net.PortCounters(1).Marks != c.Marks || c.MaxQueue < 60_000 {
		t.Errorf("%+v", c)
	}
}

// Packets are lost, timers fire, and every flow still ends.
func TestLossIsRepairedByTimers(t *testing.T) {
	p := fast
	p.Buffer = 20_000
	hosts := incast(8, 100, 20)
	s := newSim(t, star(9, p), hosts, Options{})
	mustRun(t, s)
	c := s.Counters()
	timeouts := 0
	for _, f := range hosts {
		timeouts += f.timeouts
		if f.acked != f.total {
			t.Errorf("%d of %d acknowledged", f.acked, f.total)
		}
	}
	if c.Dropped == 0 || timeouts == 0 || s.End() < units.Millisecond {
		t.Errorf("%+v, %d timeouts, end %d", c, timeouts, s.End())
	}
	if refused, err := s.Refused(); refused != 0 || err != nil {
		t.Errorf("refused %d: %v", refused, err)
	}
}

// The same network, hosts and seeds give the same run.
func TestRunsAreEqual(t *testing.T) {
	type result struct {
		end      units.Time
		events   int64
		counters fabric.Counters
		p99      units.Time
		finished []units.Time
		samples  []units.Bytes
	}
	once := func() (r result) {
		cfg, hosts := permutation(4, 200, 30)
		for i := range cfg.Ports {
			cfg.Ports[i].Buffer = 100_000
		}
		s := newSim(t, cfg, hosts, Options{SampleEvery: us, Sample: func(_ units.Time, port int, queued units.Bytes) {
			r.samples = append(r.samples, units.Bytes(port), queued)
		}})
		mustRun(t, s)
		for _, f := range hosts {
			r.finished = append(r.finished, f.finished)
		}
		r.end, r.events, r.counters, r.p99 = s.End(), s.Events(), s.Counters(), s.QueueDelay().Quantile(0.99)
		return r
	}
	a, b := once(), once()
	if a.end != b.end || a.events != b.events || a.counters != b.counters || a.p99 != b.p99 ||
		!slices.Equal(a.finished, b.finished) || !slices.Equal(a.samples, b.samples) {
		t.Errorf("two runs differ:\n%+v\n%+v", a, b)
	}
	if a.counters.Dropped == 0 || len(a.samples) == 0 {
		t.Errorf("%+v, %d samples: too easy", a.counters, len(a.samples))
	}
}

func TestSamplesComeInStep(t *testing.T) {
	next, calls := units.Time(0), 0
	var most units.Bytes
	s := newSim(t, star(9, fast), incast(8, 100, 4), Options{
		SampleEvery: 3 * us,
		Sample: func(now units.Time, port int, queued units.Bytes) {
			if now%(3*us) != 0 || now < next || port != 1 {
				t.Errorf("port %d sampled at %d", port, now)
			}
			next = now + 3*us
			most = max(most, queued)
			calls++
		},
	})
	mustRun(t, s)
	if want := int(s.End() / (3 * us)); calls < want-3 || calls > want {
		t.Errorf("%d samples in %d µs", calls, s.End()/us)
	}
	if c := s.Counters(); most == 0 || most > c.MaxQueue {
		t.Errorf("longest queue sampled %d, counted %d", most, c.MaxQueue)
	}
}

func TestProgress(t *testing.T) {
	var at []int64
	s := newSim(t, star(9, fast), incast(8, 1000, 4), Options{
		ProgressEvery: 10_000,
		Progress:      func(_ units.Time, events int64) { at = append(at, events) },
	})
	mustRun(t, s)
	if want := []int64{12288, 24576, 36864}; !slices.Equal(at, want) {
		t.Errorf("progress at %v, want %v", at, want)
	}
}

// Nothing is left to happen: the run says who waits.
func TestStall(t *testing.T) {
	p := fast
	p.Buffer = 1 // whatever must wait is lost
	hosts := incast(12, 10, 10)
	for _, f := range hosts {
		f.rto = 0 // and nobody sends it again
	}
	names := []string{"root"}
	s := newSim(t, star(13, p), hosts, Options{Names: names})
	err := s.Run(context.Background())
	var stall *StallError
	if !errors.As(err, &stall) || len(stall.Waiting) == 0 || stall.At == 0 {
		t.Fatalf("%v", err)
	}
	if len(stall.Waiting) > 8 && !strings.HasSuffix(err.Error(), " more") {
		t.Errorf("%v", err)
	}
	if !strings.Contains(err.Error(), "host ") || strings.Contains(err.Error(), "root") {
		t.Errorf("%v", err)
	}
}

func TestLimit(t *testing.T) {
	s := newSim(t, star(9, fast), incast(8, 1000, 4), Options{Limit: 50 * us})
	if err := s.Run(context.Background()); !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), "50.000 us") {
		t.Errorf("%v", err)
	}
	if s.End() < 49*us || s.End() > 51*us {
		t.Errorf("reached %d", s.End())
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s := newSim(t, star(9, fast), incast(8, 100_000, 4), Options{
		ProgressEvery: 1, Progress: func(units.Time, int64) { cancel() },
	})
	if err := s.Run(ctx); !errors.Is(err, context.Canceled) || s.Events() != 2*checkEvery {
		t.Errorf("%v after %d events", err, s.Events())
	}
	if err := s.Run(ctx); err == nil {
		t.Error("ran twice")
	}
}

func TestHostFails(t *testing.T) {
	p := fast
	p.Buffer = 1
	hosts := incast(4, 10, 10)
	for _, f := range hosts {
		f.tries = 2
	}
	s := newSim(t, star(5, p), hosts, Options{Names: []string{"a", "b", "c", "d", "e"}})
	if err := s.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "no answer from 0") {
		t.Errorf("%v", err)
	}
	hosts = incast(1, 10, 10)
	hosts[1].failed = errors.New("host 1: born broken")
	s = newSim(t, star(2, fast), hosts, Options{})
	if err := s.Run(context.Background()); err == nil || err.Error() != "host 1: born broken" {
		t.Errorf("%v", err)
	}
}

// odd changes how a fake behaves.
type odd struct {
	*fake
	deadline func() (units.Time, bool)
	transmit func(now units.Time, out *transport.Outgoing) bool
	advanced []units.Time
}

func (o *odd) Deadline() (units.Time, bool) { return o.deadline() }
func (o *odd) Advance(now units.Time)       { o.advanced = append(o.advanced, now) }
func (o *odd) Transmit(now units.Time, out *transport.Outgoing) bool {
	if o.transmit != nil {
		return o.transmit(now, out)
	}
	return o.fake.Transmit(now, out)
}

// A host whose deadline stays in the past would keep lab time from moving.
func TestDeadlineThatStays(t *testing.T) {
	o := &odd{fake: newFake(0, 1, 1, 1), deadline: func() (units.Time, bool) { return 5 * us, true }}
	o.transmit = func(units.Time, *transport.Outgoing) bool { return false }
	s := newSim(t, star(2, fast), []Host{o, newFake(1, 0, 0, 0)}, Options{})
	err := s.Run(context.Background())
	if err == nil || !strings.Contains(err.Error(), "host 0 does not get past its deadline at 5000000 ps") {
		t.Errorf("%v", err)
	}
	if len(o.advanced) > 2*maxSpins || slices.Max(o.advanced) != 5*us {
		t.Errorf("advanced %d times until %d", len(o.advanced), slices.Max(o.advanced))
	}
}

// A host that is due while its NIC is busy is advanced once, and asked again when the NIC is idle.
func TestDueWhileTheNICIsBusy(t *testing.T) {
	var o *odd
	asked := []units.Time{}
	due := units.Time(100 * ns)
	o = &odd{fake: newFake(0, 1, 2, 2), deadline: func() (units.Time, bool) { return due, o.next < 2 }}
	o.transmit = func(now units.Time, out *transport.Outgoing) bool {
		asked = append(asked, now)
		return o.fake.Transmit(now, out)
	}
	s := newSim(t, star(2, fast), []Host{o, newFake(1, 0, 0, 0)}, Options{})
	mustRun(t, s)
	busy := fast.Rate.TransmitTime(fakeSize)
	if want := []units.Time{100 * ns}; !slices.Equal(o.advanced, want) {
		t.Errorf("advanced at %v, want %v", o.advanced, want)
	}
	if len(asked) < 2 || asked[0] != 0 || asked[1] != busy {
		t.Errorf("asked at %v, want 0 and %d", asked, busy)
	}
}

// A timer that is moved later again and again is armed once, and comes when it is due.
func TestTimerThatMoves(t *testing.T) {
	f := newFake(0, 1, 100, 1)
	f.rto = 7 * us // the round trip is 4.7 µs
	s := newSim(t, star(2, fast), []*fake{f, newFake(1, 0, 0, 0)}, Options{})
	mustRun(t, s)
	if f.timeouts != 0 || f.acked != 100 {
		t.Errorf("%d timeouts, %d acknowledged", f.timeouts, f.acked)
	}
	// 6 events a packet, and now and then a look at the timer.
	if s.Events() > 710 {
		t.Errorf("%d events", s.Events())
	}
}

// broken sends packets that the receiver does not understand.
type broken struct{ *fake }

func (b broken) Transmit(now units.Time, out *transport.Outgoing) bool {
	ok := b.fake.Transmit(now, out)
	out.N = 3
	return ok
}

func TestRefusedPacketsAreCounted(t *testing.T) {
	b := broken{newFake(0, 1, 4, 4)}
	b.rto, b.tries = 20*us, 3
	s := newSim(t, star(2, fast), []Host{b, newFake(1, 0, 0, 0)}, Options{})
	if err := s.Run(context.Background()); err == nil {
		t.Error("done without an answer")
	}
	if n, err := s.Refused(); n != 12 || !errors.Is(err, errFakeHeader) {
		t.Errorf("refused %d: %v", n, err)
	}
	for h, want := range []transport.Refusals{{}, {transport.Unreadable: 12}} {
		if got := s.RefusedBy(h); got != want {
			t.Errorf("host %d refused %v, want %v", h, got, want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	if _, err := New(star(2, fast), incast(4, 1, 1), Options{}); err == nil {
		t.Error("5 hosts on a network of 2")
	}
	bad := star(2, fast)
	bad.Ports[0].Rate = 0
	if _, err := New(bad, incast(1, 1, 1), Options{}); err == nil || !strings.Contains(err.Error(), "rate of 0") {
		t.Errorf("%v", err)
	}
}

// Once queues and pools have grown, packets cost no allocation.
func TestRunDoesNotAllocate(t *testing.T) {
	var warm, last runtime.MemStats
	calls := 0
	cfg, hosts := permutation(4, 3000, 30)
	s := newSim(t, cfg, hosts, Options{ProgressEvery: 1, Progress: func(units.Time, int64) {
		switch calls++; {
		case calls == 60:
			runtime.ReadMemStats(&warm)
		case calls == 140:
			runtime.ReadMemStats(&last)
		}
	}})
	mustRun(t, s)
	if calls < 140 {
		t.Fatalf("only %d events", s.Events())
	}
	// Now and then a queue sets a new record and its storage doubles.
	if n := last.Mallocs - warm.Mallocs; n > 20 {
		t.Errorf("%d allocations in %d events", n, 80*checkEvery)
	}
}

// A run that did all its work fails none the less when the network has lost count of a packet: here
// one on a link whose arrival nobody waits for any more.
func TestLostCountFailsARunThatWouldBeDone(t *testing.T) {
	for _, forget := range []bool{false, true} {
		cfg := star(4, fast)
		var s *Sim
		stray := func(now units.Time, net *fabric.Network) error {
			p := net.Get()
			p.Src, p.Dst, p.Size = 2, 3, 1000
			net.Inject(now, p)
			for i := range cfg.Ports {
				if forget && cfg.Ports[i].From == 2 {
					s.partitions[0].queue.Clear(net.PortEntity(i))
				}
			}
			return nil
		}
		hosts := []*fake{newFake(0, 1, 4, 4), newFake(1, 0, 0, 0), newFake(2, 0, 0, 0), newFake(3, 0, 0, 0)}
		s = newSim(t, cfg, hosts, Options{Actions: []Action{{At: us, Do: stray}}})
		err := s.Run(context.Background())
		if hosts[0].acked != 4 {
			t.Fatalf("%d of 4 packets acknowledged: %v", hosts[0].acked, err)
		}
		if forget != (err != nil) {
			t.Errorf("forgotten %t: the run ended with %v", forget, err)
		}
	}
}
