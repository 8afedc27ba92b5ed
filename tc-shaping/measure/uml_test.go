package measure_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"weft/internal/quiettest"
	"weft/orchestrator/uml/umltest"
	"weft/tc-shaping/measure"
	"weft/tc-shaping/qdisc"
	"weft/tc-shaping/tcnl"
	"weft/units"
)

// Packets of the tests: 1,000 bytes as queues count them.
const (
	wire   units.Bytes = 1000
	packet             = wire - qdisc.Ethernet
)

// attempts is how often a measurement is repeated until it passes: a slow machine adds 0.15 to 0.35
// ms to most delays of User Mode Linux, and a wrong qdisc is wrong each time.
const attempts = 20

// measureUntil measures until the result is right. A link whose bucket allows for quiettest.Gap
// keeps its rate unless something disturbs the machine.
func (l *link) measureUntil(measure func() error) {
	l.t.Helper()
	quiettest.Check(l.t, attempts, measure)
}

func TestUMLRateAndDelay(t *testing.T) {
	if umltest.Outside(t) {
		return
	}
	for _, c := range []struct {
		rate  units.Bandwidth
		delay time.Duration
	}{{units.Mbps, 20 * time.Millisecond}, {4 * units.Mbps, 5 * time.Millisecond},
		{8 * units.Mbps, 10 * time.Millisecond}} {
		l := newLink(t, qdisc.Direction{Rate: c.rate, Limit: units.MB, Delay: c.delay, Lateness: quiettest.Gap})
		l.wantRate(c.rate)
		l.wantDelay(c.delay + c.rate.TransmitTime(wire).Duration())
	}
}

// A kernel without netem still enforces rates.
func TestPrivRate(t *testing.T) {
	newLink(t, qdisc.Direction{Rate: 50 * units.Mbps, Limit: units.MB,
		Lateness: quiettest.Gap}).wantRate(50 * units.Mbps)
}

// wantRate checks with a train that fills the link: within 2 %.
func (l *link) wantRate(asked units.Bandwidth) {
	l.t.Helper()
	l.measureUntil(func() error {
		got := measure.Rate(l.send(measure.Train{Count: 300, Size: packet, Wait: 5 * time.Second}), 60, wire)
		l.t.Logf("rate: asked for %v, measured %v", asked, got)
		if math.Abs(float64(got)/float64(asked)-1) > 0.02 {
			return fmt.Errorf("rate: asked for %v, measured %v: more than 2 %% off", asked, got)
		}
		return nil
	})
}

// wantDelay checks the median delay of packets that find no queue: within 3 % + 50 us.
func (l *link) wantDelay(asked time.Duration) {
	l.t.Helper()
	l.measureUntil(func() error {
		got := measure.Delay(l.send(measure.Train{Count: 50, Size: packet, Gap: 15 * time.Millisecond}), 0.5)
		l.t.Logf("one-way delay: asked for %v, measured %v", asked, got)
		if (got - asked).Abs() > asked*3/100+50*time.Microsecond {
			return fmt.Errorf("one-way delay: asked for %v, measured %v: more than 3 %% + 50 us off", asked, got)
		}
		return nil
	})
}

// Marks start at a queue of Min bytes, to a packet.
func TestUMLMarksBeginAtKmin(t *testing.T) {
	if umltest.Outside(t) {
		return
	}
	const rate, delay, kmin = units.Mbps, 2 * time.Millisecond, 20_000
	l := newLink(t, qdisc.Direction{Rate: rate, Delay: delay, Limit: units.MB, RED: &qdisc.RED{Min: kmin, Max: kmin,
		Pmax: 1, ECN: true}})
	l.measureUntil(func() error {
		packets := l.send(measure.Train{Count: 50, Size: packet})
		onset := onset(measure.Queues(packets, delay+rate.TransmitTime(wire).Duration(), wire))
		t.Logf("onset: asked for %d bytes, measured %d", kmin, onset)
		if onset < kmin-wire || onset > kmin+wire {
			return fmt.Errorf("onset: asked for %d bytes, measured %d: more than a packet off", kmin, onset)
		}
		return nil
	})
}

// Between Min and Max the marked share follows the requested line, with one stage and with two.
func TestUMLMarksFollowTheLine(t *testing.T) {
	if umltest.Outside(t) {
		return
	}
	const rate, delay = 4 * units.Mbps, 2 * time.Millisecond
	const kmin, kmax = 20_000, 60_000
	for _, pmax := range []float64{0.2, 0.5, 1} {
		l := newLink(t, qdisc.Direction{Rate: rate, Delay: delay, Limit: units.MB, Lateness: quiettest.Gap,
			RED: &qdisc.RED{Min: kmin, Max: kmax, Pmax: pmax, ECN: true}})
		line := func(q units.Bytes) float64 { return pmax * float64(q-kmin) / (kmax - kmin) }
		for _, level := range []units.Bytes{30_000, 40_000, 50_000} {
			l.checkMarkingAt(level, rate, delay, line)
		}
	}
}

// checkMarkingAt keeps the queue at a level and compares the marked share with the requested one,
// at the queue lengths that packets found. It counts 400 packets within 8 packets of the level,
// because the level moves when the machine stalls. The share of 400 packets has a standard
// deviation of 2.5 points, of which two stages leave half a point; if that is too coarse, it counts
// up to 2,400 packets.
func (l *link) checkMarkingAt(level units.Bytes, rate units.Bandwidth, delay time.Duration,
	line func(units.Bytes) float64) {
	l.t.Helper()
	bucket := l.asked.Burst()
	burst := int((level + bucket) / wire)
	idle := delay + rate.TransmitTime(bucket).Duration() // a burst from the bucket waits on the link
	l.measureUntil(func() error {
		var samples []measure.Sample
		for range 8 {
			packets := l.send(measure.Train{Count: burst + 300, Size: packet, Burst: burst,
				Gap: rate.TransmitTime(wire).Duration()})
			for _, s := range measure.Queues(packets, idle, wire)[burst:] {
				if s.Queue >= level-8*wire && s.Queue <= level+8*wire {
					samples = append(samples, s)
				}
			}
			if n := len(samples); n >= 2400 {
				break
			} else if n >= 400 {
				if got, want := markedShare(samples, line); math.Abs(got-want) <= 0.05 {
					break
				}
			}
		}
		got, want := markedShare(samples, line)
		l.t.Logf("queue kept at %d bytes: share of %d packets marked %.3f, line %.3f", level, len(samples), got, want)
		if len(samples) < 400 || math.Abs(got-want) > 0.05 {
			return fmt.Errorf("queue kept at %d bytes: of %d packets (400 wanted) %.3f marked, line %.3f: more "+
				"than 5 points off, or too few",
				level, len(samples), got, want)
		}
		return nil
	})
}

// Packets in flight are no queue: a link that holds six times Kmin marks nothing, and marks the
// same packets if they are sent at once.
func TestUMLREDDoesNotCountWhatIsInFlight(t *testing.T) {
	if umltest.Outside(t) {
		return
	}
	const rate, delay, kmin = 4 * units.Mbps, 200 * time.Millisecond, 16_000
	l := newLink(t, qdisc.Direction{Rate: rate, Delay: delay, Limit: units.MB, Lateness: quiettest.Gap,
		RED: &qdisc.RED{Min: kmin, Max: 2 * kmin, Pmax: 1, ECN: true}})
	paced := measure.Train{Count: 600, Size: packet, Gap: 2500 * time.Microsecond}
	l.measureUntil(func() error {
		marks := countMarks(l.send(paced))
		t.Logf("delay behind the queue, %d bytes in flight, Kmin %d: %d of %d marked",
			rate.BytesIn(units.FromDuration(delay))*4/5, kmin, marks, paced.Count)
		if marks > 0 {
			return fmt.Errorf("%d packets of a link that is not full were marked", marks)
		}
		return nil
	})

	l.measureUntil(func() error {
		marks := countMarks(l.send(measure.Train{Count: paced.Count, Size: packet, Burst: paced.Count}))
		t.Logf("sent at once: %d of %d marked", marks, paced.Count)
		if marks < paced.Count/2 {
			return fmt.Errorf("of packets that queue %d of %d were marked", marks, paced.Count)
		}
		return nil
	})
}

func TestUMLLossAndCopies(t *testing.T) {
	if umltest.Outside(t) {
		return
	}
	for _, p := range []float64{0.01, 0.1} {
		l := newLink(t, qdisc.Direction{Delay: time.Millisecond, Loss: p})
		l.wantShare("loss", p, measure.Lost)
		l.wantShare("duplicate", 0, countCopies)
		l = newLink(t, qdisc.Direction{Delay: time.Millisecond, Duplicate: p})
		l.wantShare("duplicate", p, countCopies)
		l.wantShare("loss", 0, measure.Lost)
	}
}

// wantShare checks a share within 3 standard deviations of a binomial.
func (l *link) wantShare(what string, p float64, count func([]measure.Packet) int) {
	l.t.Helper()
	l.measureUntil(func() error {
		const n = 2000
		got := count(l.send(measure.Train{Count: n, Size: 100, Gap: 200 * time.Microsecond,
			Wait: 200 * time.Millisecond}))
		sigma := math.Sqrt(n * p * (1 - p))
		l.t.Logf("%s: asked for %g of %d, %d +- %.1f; counted %d", what, p, n, int(n*p), sigma, got)
		if math.Abs(float64(got)-n*p) > 3*sigma {
			return fmt.Errorf("%s: asked for %g of %d, counted %d: more than 3 sigma (%.1f) off", what, p, n, got,
				sigma)
		}
		return nil
	})
}

// Jitter is exponential, and the share of late packets is the requested one.
func TestUMLJitterAndLatePackets(t *testing.T) {
	if umltest.Outside(t) {
		return
	}
	const delay, mean = 5 * time.Millisecond, 40 * time.Millisecond
	l := newLink(t, qdisc.Direction{Delay: delay, Jitter: mean})
	train := measure.Train{Count: 1500, Size: 100, Gap: time.Millisecond, Wait: time.Second}
	l.measureUntil(func() error {
		p := l.send(train)
		for _, q := range []float64{0.25, 0.5, 0.9} {
			want := delay + time.Duration(-math.Log(1-q)*float64(mean))
			if got := measure.Delay(p, q); math.Abs(float64(got)/float64(want)-1) > 0.15 {
				return fmt.Errorf("quantile %g of the delay is %v, want %v of an exponential", q, got, want)
			}
		}
		return nil
	})
	l = newLink(t, qdisc.Direction{Delay: delay, Reorder: 0.2, ReorderBy: 10 * mean})
	l.measureUntil(func() error {
		if got := measure.Delay(l.send(train), 0.78); got > 3*delay {
			return fmt.Errorf("78 %% of the packets take up to %v; only 20 %% are to be later than %v", got, delay)
		}
		if got, want := measure.Delay(l.send(train), 0.9), delay+5*mean; math.Abs(float64(got)/float64(want)-1) > 0.2 {
			return fmt.Errorf("quantile 0.9 of the delay is %v; the middle of the late ones is at %v", got, want)
		}
		return nil
	})
}

// A change of rate, limit and marking leaves queued packets where they are.
func TestUMLChangeKeepsTheQueue(t *testing.T) {
	if umltest.Outside(t) {
		return
	}
	slow := qdisc.Direction{Rate: 400 * units.Kbps, Delay: 5 * time.Millisecond, Limit: 200_000,
		Lateness: quiettest.Gap,
		RED:      &qdisc.RED{Min: 50_000, Max: 100_000, Pmax: 0.1, ECN: true}}
	fast := slow
	fast.Rate, fast.Limit, fast.Delay = 4*units.Mbps, 300_000, 2*time.Millisecond
	fast.RED = &qdisc.RED{Min: 20_000, Max: 30_000, Pmax: 0.2, ECN: true}
	l := newLink(t, slow)
	next, err := qdisc.Plan(fast, qdisc.Full())
	l.noError(err)
	l.measureUntil(func() error {
		l.noError(l.Apply(l.tree))
		return l.checkChange(next)
	})
	other, err := qdisc.Plan(qdisc.Direction{Rate: units.Mbps, Limit: 100_000}, qdisc.Full())
	l.noError(err)
	if err := l.Change(next, other); !errors.Is(err, tcnl.ErrRebuild) {
		t.Errorf("a change to another shape: %v, want %v", err, tcnl.ErrRebuild)
	}
}

// checkChange changes the link to next while packets wait, and reports whether the queue has
// drained.
func (l *link) checkChange(next qdisc.Tree) error {
	sent := l.statistics().Packets
	done := make(chan []measure.Packet)
	go func() { // 100 packets take 2 s at the old rate and 0.2 s at the new one
		p, err := measure.Run(l.t.Context(), l.sender, l.receiver, measure.Train{Count: 100, Size: packet,
			Wait: 4 * time.Second})
		if err != nil {
			l.t.Error(err)
		}
		done <- p
	}()
	before := l.statistics()
	for before.Packets+before.Waiting < sent+100 && l.t.Context().Err() == nil {
		before = l.statistics()
	}
	l.noError(l.Change(l.tree, next))
	after, err := l.Statistics(next)
	l.noError(err)
	got, err := l.Read(l.tree)
	l.noError(err)
	for _, diff := range qdisc.Compare(next, got) {
		l.t.Error(diff)
	}
	packets := <-done
	l.t.Logf("%d waited before the change, %d after it; %d of 100 lost", before.Waiting, after.Waiting,
		measure.Lost(packets))
	if before.Waiting < 20 || after.Waiting+20 < before.Waiting || measure.Lost(packets) > 0 {
		return fmt.Errorf("%d packets waited before the change, %d after it, %d of 100 were lost", before.Waiting,
			after.Waiting, measure.Lost(packets))
	}
	return nil
}

// The counters agree with the prober.
func TestUMLStatistics(t *testing.T) {
	if umltest.Outside(t) {
		return
	}
	for _, pmax := range []float64{0.3, 1} {
		l := newLink(t, qdisc.Direction{Rate: units.Mbps, Delay: time.Millisecond, Limit: 40_000,
			RED: &qdisc.RED{Min: 10_000, Max: 30_000, Pmax: pmax, ECN: true}})
		l.measureUntil(l.checkCounters)
	}
}

// checkCounters sends more than the queue holds, and compares the counters with what arrived.
func (l *link) checkCounters() error {
	zero := l.statistics()
	packets := l.send(measure.Train{Count: 80, Size: packet})
	s := l.statistics()
	marks, lost := uint64(countMarks(packets)), uint64(measure.Lost(packets))
	l.t.Logf("80 sent: %d marked, %d lost; counters %+v", marks, lost, s)
	if s.Packets-zero.Packets != 80-lost || s.Arrived-zero.Arrived != 80-lost || s.Drops-zero.Drops != lost ||
		s.Sent-zero.Sent != units.Bytes(80-lost)*wire || s.Backlog != 0 || s.InFlight != 0 || s.Lost != zero.Lost {
		return fmt.Errorf("the counters differ: %d lost of 80, %+v, before %+v", lost, s, zero)
	}
	if lost == 0 || s.Marks == zero.Marks {
		return fmt.Errorf("the queue was not full: %+v, before %+v", s, zero)
	}
	queues, err := l.Near.Conn.Queues()
	l.noError(err)
	if q := queues[l.Near.Device]; q != (tcnl.Queue{Marks: s.Marks, Drops: s.Drops}) {
		l.t.Errorf("read with all others: %+v; alone %+v", q, s)
	}
	// Packets are marked before the limit drops them: the kernel alone counts those.
	if s.Marks-zero.Marks > marks+lost || s.MarksAtMost-zero.MarksAtMost < marks {
		l.t.Errorf("%d marked packets came and %d were lost; the kernel counts %+v, before %+v", marks, lost, s, zero)
	}
	return nil
}
