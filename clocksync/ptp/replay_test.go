package ptp

import (
	"testing"

	"weft/clocksync"
	"weft/clocksync/internal/testnet"
	"weft/units"
)

// Messages recorded while a master was alive are replayed while it is silent. Sequence numbers do
// not distinguish them from those of a master that restarted, but their time does.
func TestReplayAfterSilence(t *testing.T) {
	for _, peer := range []bool{false, true} {
		for _, gap := range []units.Time{2 * ms, 4 * ms, 5 * ms, 12 * ms, 40 * ms, 150 * ms} {
			var tape []clocksync.Message
			p := pairOver(nil)
			p.change = func(c *Config) { c.PeerDelay = peer }
			cfg := p.config(t, 2)
			cfg.OnWire = func(at units.Time, from clocksync.Node, m *clocksync.Outgoing) {
				if m.To == 1 && at > 100*ms && at < 140*ms {
					tape = append(tape, clocksync.Message{From: from, Port: m.Port, Data: append([]byte(nil), m.Data[:m.N]...)})
				}
			}
			cfg.Blocked = func(f, _ clocksync.Node, at units.Time) bool { return f == 0 && at > 300*ms && at < 302*ms+gap }
			w := testnet.New(cfg)
			w.Run(300*ms + gap)
			steps := w.Protocol(1).Counters().Steps
			for range 2 {
				for _, m := range tape {
					// A Sync alone has no effect, and neither have requests. Everything else must
					// be refused.
					var read Message
					if err := read.Decode(m.Data); err != nil {
						t.Fatal(err)
					}
					if err := w.Inject(1, m); err == nil && read.Type != Sync && read.Type != PDelayReq {
						t.Errorf("silence of %v, peer delay %v: %v %d was taken", gap, peer, read.Type, read.Sequence)
					}
				}
				w.Run(w.Now + ms)
			}
			w.Every(w.Now, ms/2, func() {
				e := w.Time(1) - w.Time(0)
				if b, ok := w.Bound(1); !ok || max(e, -e) > b {
					t.Errorf("silence of %v, peer delay %v: error %v outside of %v", gap, peer, e, b)
				}
			})
			w.Run(w.Now + 100*ms)
			e := w.Time(1) - w.Time(0)
			if c := w.Protocol(1).Counters(); max(e, -e) > 100*units.Nanosecond || c.Steps != steps || c.Stale == 0 {
				t.Errorf("silence of %v, peer delay %v: error %v after it, %d steps, %+v", gap, peer, e, c.Steps-steps, c)
			}
		}
	}
}

// A master that restarted counts from 0 again and is followed, and so is one whose clock is set
// back while it sends.
func TestTimeMayGoBackOnlyAlive(t *testing.T) {
	p := pairOver(nil)
	p.change = func(c *Config) { c.StepAlarm = 0 }
	w := p.world(t)
	w.Run(200 * ms)
	w.Crash(0)
	w.Run(204 * ms)
	w.Restart(0)
	w.Run(300 * ms)
	if e := w.Time(1) - w.Time(0); max(e, -e) > 100*units.Nanosecond || w.Protocol(1).Correction().State != clocksync.Locked {
		t.Errorf("after a restart the error is %v, %v", e, w.Protocol(1).Correction().State)
	}
	w.Step(0, -units.Second)
	w.Run(500 * ms)
	if e := w.Time(1) - w.Time(0); max(e, -e) > 100*units.Nanosecond || w.Protocol(1).Correction().State != clocksync.Locked {
		t.Errorf("after its clock was set back the error is %v, %v", e, w.Protocol(1).Correction().State)
	}
}

// A backup that never heard of the reference serves its own time. It and its slaves state no bound
// until the reference is there; from then on bounds hold.
func TestBackupThatNeverHeardTheReference(t *testing.T) {
	p := pairOver(nil)
	cfg := p.config(t, 4)
	cfg.Blocked = func(f, to clocksync.Node, at units.Time) bool { return (f == 0 || to == 0) && at < 150*ms }
	w := testnet.New(cfg)
	w.Every(0, ms/2, func() {
		for n := clocksync.Node(1); n < 4; n++ {
			e := w.Time(n) - w.Time(0)
			b, ok := w.Bound(n)
			switch {
			case ok && w.Now < 150*ms:
				t.Errorf("at %v node %d, %v off, says that it is within %v", w.Now, n, e, b)
			case ok && max(e, -e) > b:
				t.Errorf("at %v node %d is %v off and says %v", w.Now, n, e, b)
			}
		}
	})
	w.Run(149 * ms)
	if e := w.Time(3) - w.Time(1); max(e, -e) > 100*units.Nanosecond {
		t.Errorf("who follows the backup is %v from it", e)
	}
	w.Run(300 * ms)
	for n := clocksync.Node(1); n < 4; n++ {
		e := w.Time(n) - w.Time(0)
		if _, ok := w.Bound(n); !ok || max(e, -e) > 100*units.Nanosecond {
			t.Errorf("node %d is %v off after the reference came, %v", n, e, w.Protocol(n).Correction().State)
		}
	}
}

// Accuracy classes are never finer than the bound, and no coarser than necessary.
func TestAccuracyClasses(t *testing.T) {
	for _, bound := range []units.Time{0, 1, 2, 30 * units.Nanosecond, 70 * units.Nanosecond, 3 * units.Microsecond, 9 * units.Second} {
		got, ok := accuracyBound(accuracyOf(bound))
		if !ok || got < bound && bound > 1 || got > 5*max(bound, 1) {
			t.Errorf("bound %v is announced as %v", bound, got)
		}
	}
	for _, class := range []uint8{0, accuracyExact - 1, 0x31, accuracyUnknown, 255, accuracyOf(11 * units.Second)} {
		if b, ok := accuracyBound(class); ok {
			t.Errorf("class %#x says %v", class, b)
		}
	}
}

// However good the oscillators are, an offset that is not stepped over is gone about ten intervals
// after the first sample.
func TestGoodOscillatorsConvergeAsFast(t *testing.T) {
	for _, skew := range []float64{1e-9, 5e-9, 2e-6, 20e-6} {
		p := pairOver(nil)
		p.skew, p.offset, p.wander = skew, 450*units.Nanosecond, 0
		p.change = func(c *Config) { c.LimitRate(skew); c.Gains.P, c.Gains.I = 0.2, 0.02 }
		w := p.world(t)
		w.Run(40 * ms)
		if e := w.Time(1) - w.Time(0); max(e, -e) > 60*units.Nanosecond {
			t.Errorf("skew %g: error %v after 40 ms", skew, e)
		}
	}
}

// With half of all messages lost, time is kept less accurately and bounds hold.
func TestHalfOfAllMessagesAreLost(t *testing.T) {
	for _, loss := range []float64{0.2, 0.36, 0.51} {
		p := pairOver(nil)
		p.change = func(c *Config) { c.Gains.P, c.Gains.I = 0.2, 0.02 }
		cfg := p.config(t, 2)
		cfg.Loss = loss
		w := testnet.New(cfg)
		var worst units.Time
		w.Every(200*ms, ms/2, func() {
			e := w.Time(1) - w.Time(0)
			worst = max(worst, e, -e)
			if b, ok := w.Bound(1); ok && max(e, -e) > b {
				t.Errorf("loss %v: error %v outside of %v", loss, e, b)
			}
		})
		w.Run(600 * ms)
		c := w.Protocol(1).Counters()
		t.Logf("loss %v: error up to %v; %+v", loss, worst, c)
		if worst > units.Microsecond || c.Lost > 2 {
			t.Errorf("loss %v: error up to %v, %+v", loss, worst, c)
		}
	}
}

// A Sync that is far too late is ignored. A master whose time has moved is followed.
func TestSpikes(t *testing.T) {
	p := pairOver(nil)
	p.change = func(c *Config) { c.Gains.P, c.Gains.I = 0.2, 0.02 }
	cfg := p.config(t, 2)
	cfg.Late, cfg.LateBy = 0.1, 20*units.Microsecond
	w := testnet.New(cfg)
	var worst units.Time
	w.Every(200*ms, ms/2, func() { e := w.Time(1) - w.Time(0); worst = max(worst, e, -e) })
	w.Run(500 * ms)
	if c := w.Protocol(1).Counters(); worst > 200*units.Nanosecond || c.Filtered == 0 {
		t.Errorf("error up to %v, %d left aside", worst, c.Filtered)
	}
}
