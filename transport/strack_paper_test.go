package transport_test

import (
	"math/rand/v2"
	"testing"

	"weft/transport"
	"weft/transport/cc/strack"
	"weft/transport/wire"
	"weft/units"
)

// strackRack returns the last hop of the STrack paper's network (section 4): 400 Gb/s, a base RTT
// of 8 us, marks between a quarter and three quarters of the bandwidth-delay product of 400 kB,
// drops beyond five.
func strackRack(seed uint64) netConfig {
	const bdp = 400 * units.KB
	rng := rand.New(rand.NewPCG(seed, 0))
	return netConfig{
		Line: 400 * units.Gbps, Delay: 1950 * units.Nanosecond, MTU: 4096, Buffer: 5 * bdp,
		Mark: func(queued units.Bytes) bool { return float64(queued-bdp/4)/float64(bdp/2) > rng.Float64() },
	}
}

// sprayedSpec returns a connection of a transport that sprays packets over its paths.
func sprayedSpec(kind string) transport.Spec {
	s := selectiveRepeat(kind, transport.Spec{})
	s.NetRTT = 8 * us
	return s
}

// idealTime returns the time that n senders of size bytes each need on a fully used link.
func idealTime(n int, size units.Bytes) units.Time {
	packets := (size + 4095) / 4096
	return (400 * units.Gbps).TransmitTime(units.Bytes(n) * (size + packets*(wire.DataSize+wire.Overhead)))
}

// Scenario B1 with a window: one flow has the line but for what coalescing costs, three packets of
// a window of 95; with a tenth more window, all of it.
func TestOneSprayedFlow(t *testing.T) {
	const size = 16 * units.MB
	for most, share := range map[float64]float64{1: 0.97, 1.1: 0.999} {
		for _, kind := range []string{"strack", "spray"} {
			s := sprayedSpec(kind)
			changeParams(&s, func(p *strack.Params) { p.MaxCWND = most })
			_, last := runIncast(t, strackRack(1), 1, size, s)
			if got := (idealTime(1, size) + 8*us).Seconds() / last.Seconds(); got < share || got > 1.001 {
				t.Errorf("%s with a window of %v: %v, %.4f of the line", kind, most, last, got)
			}
		}
	}
}

// Fig. 16 to 20, 8, 32 and 128 to 1: done as soon as the line allows, packets are dropped "at the
// first RTT" and what its queue lasts, not after.
func TestSTrackIncast(t *testing.T) {
	for _, n := range []int{8, 32, 128} {
		const size = 4 * units.MB
		cfg := strackRack(1)
		cfg.Hosts = n + 1
		net, done := strackIncast(t, cfg, n, size, sprayedSpec("strack"))
		early := -1
		net.At(100*us, func() { early = net.Dropped })
		net.Run(units.Second)
		ideal := idealTime(n, size)
		if *done < ideal || *done > ideal*102/100+50*us {
			t.Errorf("%d to 1: %v of %v", n, *done, ideal)
		}
		if n < 128 && (net.Dropped != early || net.Dropped == 0) {
			t.Errorf("%d to 1: %d dropped in the first 100 us, %d in all", n, early, net.Dropped)
		}
		var c transport.Counters
		for _, e := range net.Hosts {
			c.Add(e.Counters())
		}
		if int(c.Retransmits) > net.Dropped+net.Dropped/20 || n < 128 && c.Timeouts > 0 {
			t.Errorf("%d to 1: %d dropped, %+v", n, net.Dropped, c)
		}
		if err := net.CheckConservation(); err != nil {
			t.Error(err)
		}
	}
}

// strackIncast has n hosts send to one. done is when the last message was acknowledged.
func strackIncast(t *testing.T, cfg netConfig, n int, size units.Bytes, s transport.Spec) (net *testNet, done *units.Time) {
	t.Helper()
	net, err := newNet(cfg)
	if err != nil {
		t.Fatal(err)
	}
	done = new(units.Time)
	for i := 1; i <= n; i++ {
		c := s
		c.ID, c.Src = transport.ConnID(i), transport.HostID(i)
		if err := net.Connect(c); err != nil {
			t.Fatal(err)
		}
		net.Events[i] = func(e transport.Event) { *done = e.At }
		if err := net.Send(i, c.ID, transport.Message{ID: 1, Size: size}); err != nil {
			t.Fatal(err)
		}
	}
	return net, done
}

// Fig. 17: the flows of an incast "can achieve their fair share", and Fig. 20: the queue settles at
// the target of 8 us.
func TestSTrackIncastIsFairAndSettles(t *testing.T) {
	cfg := strackRack(1)
	cfg.Hosts = 33
	net, _ := strackIncast(t, cfg, 32, 16*units.MB, sprayedSpec("strack"))
	r := watchGoodput(net, 500*us)
	for at := units.Time(1); at < 10; at++ {
		net.Run(at * 500 * us)
		net.MaxQueue = 0
	}
	net.Run(5 * units.Millisecond)
	var sum, squares float64
	for c := transport.ConnID(1); c <= 32; c++ {
		x := r.gbps(c, 4500*us)
		sum, squares = sum+x, squares+float64(x*x)
	}
	if jain := sum * sum / (32 * squares); jain < 0.95 || sum < 395 {
		t.Errorf("Jain %.3f, %.1f Gb/s", jain, sum)
	}
	if d := cfg.Line.TransmitTime(net.MaxQueue); d < 6*us || d > 16*us {
		t.Errorf("queues up to %v in a steady state", d)
	}
}
