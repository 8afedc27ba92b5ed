package swift_test

import (
	"testing"

	"weft/transport/cc"
	"weft/units"
)

// newBolt is a sender that behaves as Bolt's simulator does.
func newBolt(t *testing.T, packets float64) *script {
	p := simple()
	p.BoltCompat = true
	c := newScript(t, p, packets)
	c.wait(units.Millisecond)
	return c
}

func (c *script) sent(inFlight units.Bytes) {
	c.s.OnSent(c.now, cc.Sent{Size: 1000, InFlight: inFlight})
}

// wantWait compares how long the next packet has to wait from now; 0: not at all.
func (c *script) wantWait(want units.Time) {
	c.t.Helper()
	if got := max(c.s.NotBefore()-c.now, 0); got != want {
		c.t.Errorf("at %v: the next packet waits %v, want %v", c.now, got, want)
	}
	c.wantGap(0)
}

// Before the first acknowledgement there is no round trip to wait for: the whole first window goes,
// and one more packet.
func TestBoltFirstWindow(t *testing.T) {
	c := newBolt(t, 2.5)
	for i := range units.Bytes(3) {
		if i*1000 >= c.s.Window() {
			t.Fatalf("%d packets fill a window of %v", i, c.s.Window())
		}
		c.wantWait(0)
		c.sent((i + 1) * 1000)
	}
	if c.s.Window() > 3000 {
		t.Errorf("window of %v", c.s.Window())
	}
	c.wantWait(0)
}

// "delay = rtt·mss/cwnd" when less than a packet is left, from the packet that left so little, or
// from the acknowledgement.
func TestBoltWaitsForTheOneMore(t *testing.T) {
	c := newBolt(t, 2.5)
	c.ackLeaving(12*us, 1000) // 1.5 packets are left
	c.wantCWND(2.5)
	c.wantWait(0)
	c.sent(2000) // half a packet is left: 12 us / 2.5
	c.wantWait(4800 * units.Nanosecond)
	c.wait(4800 * units.Nanosecond)
	c.sent(3000) // the one more: the next waits again, whatever is left
	c.wantWait(4800 * units.Nanosecond)
	c.wait(8 * us)
	c.ackLeaving(12*us, 2000) // half a packet: decided now, though the last packet left long ago
	c.wantWait(4800 * units.Nanosecond)
}

// A wait that is on lasts.
func TestBoltWaitLasts(t *testing.T) {
	c := newBolt(t, 0.5)
	c.ackLeaving(12*us, 0)
	c.wantCWND(0.5)
	c.wantWait(24 * us)
	c.wait(us)
	c.ackLeaving(4*us, 0) // below the target: a packet more
	c.wantCWND(1.5)
	c.wantWait(23 * us)
	c.timeout(1)
	c.wantWait(23 * us)
	c.wait(23 * us)
	c.wantWait(0)
	c.gap() // a new decision
	c.wantCWND(0.375)
	c.wantWait(units.Time(4 * us * 8 / 3))
}

// Whatever a round trip was taken for, the instant stays in range.
func TestBoltWaitIsBounded(t *testing.T) {
	c := newBolt(t, 0.015)
	c.ackLeaving(1<<62, 0)
	c.wantWait(1000 * units.Second)
}
