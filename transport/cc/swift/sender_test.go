package swift_test

import (
	"math"
	"strings"
	"testing"

	"weft/params"
	"weft/transport/cc"
	"weft/transport/cc/swift"
	"weft/units"
)

// Algorithm 1: "if delay < target_delay then if cwnd ≥ 1 then cwnd ← cwnd + ai/cwnd · num_acked".
func TestIncreaseAddsAIPerRoundTrip(t *testing.T) {
	c := newScript(t, simple(), 10)
	c.ack(12*us - 1)
	c.wantCWND(10.1)
	for range 9 {
		c.ack(4 * us)
	}
	if got := c.s.CWND(); got < 10.9 || got > 11 {
		t.Errorf("%.3f packets after a window of acknowledgements, from 10", got)
	}
}

// "else cwnd ← cwnd + ai · num_acked".
func TestIncreaseBelowOnePacket(t *testing.T) {
	c := newScript(t, simple(), 0.5)
	c.ack(4 * us)
	c.wantCWND(1.5)
}

// One acknowledgement for several packets counts as they do; Google's simulator counts bytes.
func TestIncreaseCountsWhatIsAcknowledged(t *testing.T) {
	c := newScript(t, simple(), 10)
	c.s.OnAck(0, cc.Ack{Size: 5000, Packets: 5, RTT: 4 * us})
	c.wantCWND(10.5)
	c.s.OnAck(0, cc.Ack{Size: 0, RTT: 4 * us}) // a duplicate
	c.wantCWND(10.5)
}

// "else if can_decrease then cwnd ← max(1 − β·(delay − target)/delay, 1 − max_mdf) · cwnd".
func TestDecreaseFollowsTheExcess(t *testing.T) {
	c := newScript(t, simple(), 10)
	c.wait(100 * us)
	c.ack(16 * us) // 1 - 0.8·4/16
	c.wantCWND(8)
	c.wait(48 * us)
	c.ack(48 * us) // 1 - 0.8·36/48 = 0.4; max_mdf leaves half
	c.wantCWND(4)
}

// At the target nothing is in excess, and nothing is decreased: the next decrease need not wait.
func TestDelayAtTheTarget(t *testing.T) {
	c := newScript(t, simple(), 10)
	c.ack(12 * us)
	c.wantCWND(10)
	c.wait(us)
	c.ack(16 * us)
	c.wantCWND(8)
}

// "can_decrease ← (now − t_last_decrease ≥ rtt)": once per round trip.
func TestOneDecreasePerRoundTrip(t *testing.T) {
	c := newScript(t, simple(), 10)
	c.ack(16 * us)
	c.wantCWND(8)
	c.wait(16*us - 1)
	c.ack(16 * us)
	c.wantCWND(8)
	c.wait(1)
	c.ack(16 * us)
	c.wantCWND(6.4)
	c.ack(4 * us) // increases need not wait
	c.wantCWND(6.4 + 1/6.4)
}

// "cwnd ← clamp(min_cwnd, cwnd, max_cwnd)".
func TestWindowStaysWithinItsLimits(t *testing.T) {
	c := newScript(t, simple(), 1)
	for range 10000 {
		c.ack(4 * us)
	}
	c.wantCWND(50) // the bandwidth-delay product
	for range 100 {
		c.wait(units.Second)
		c.ack(units.Second)
	}
	c.wantCWND(0.015) // 15 bytes

	p := simple()
	p.MaxWindow = 7 * units.KB
	newScript(t, p, 100).wantCWND(7)
	newScript(t, simple(), 0).wantCWND(50) // starts at the product
}

// "if cwnd < 1 then pacing_delay ← rtt/cwnd else 0".
func TestWindowBelowOnePacketIsPaced(t *testing.T) {
	c := newScript(t, simple(), 1)
	c.wantGap(0)
	c.ack(24 * us) // 1 - 0.8·12/24 = 0.6
	c.wantCWND(0.6)
	c.wantGap(40 * us)
	if w := c.s.Window(); w != 1 {
		t.Errorf("window of %d bytes lets more than one packet out", w)
	}
}

// The endpoint lets a packet out while less than the window is in flight: whole packets, so that
// none overshoots.
func TestWindowIsInWholePackets(t *testing.T) {
	for packets, want := range map[float64]units.Bytes{1: 1000, 1.99: 1000, 2: 2000, 10.5: 10000} {
		c := newScript(t, simple(), packets)
		if got := c.s.Window(); got != want {
			t.Errorf("%v packets: window of %d bytes, want %d", packets, got, want)
		}
		c.wantGap(0)
	}
}

// "On retransmit timeout: retransmit_cnt++; if ≥ RETX_RESET_THRESHOLD cwnd ← min_cwnd else if
// can_decrease ...".
func TestTimeouts(t *testing.T) {
	c := newScript(t, simple(), 40)
	for _, want := range []float64{20, 10, 5, 2.5} {
		c.wait(units.Millisecond)
		c.timeout(1)
		c.wantCWND(want)
	}
	c.timeout(5)
	c.wantCWND(0.015)
}

// An acknowledgement ends the row of timeouts.
func TestAckEndsTheRowOfTimeouts(t *testing.T) {
	c := newScript(t, simple(), 40)
	for range 4 {
		c.timeout(1)
	}
	c.wantCWND(20) // one decrease per round trip
	c.ack(12 * us)
	c.timeout(1)
	c.wantCWND(20)
}

// "On fast recovery: retransmit_cnt ← 0; if can_decrease cwnd ← (1 − max_mdf)·cwnd".
func TestFastRetransmit(t *testing.T) {
	c := newScript(t, simple(), 40)
	c.gap()
	c.wantCWND(20)
	c.wait(us)
	c.gap()
	c.wantCWND(20)
	c.wait(3 * us) // the base RTT, while none was measured
	c.gap()
	c.wantCWND(10)
	for range 4 {
		c.timeout(1)
	}
	c.gap() // ends the row of timeouts
	c.timeout(1)
	c.wantCWND(10)
}

// A new message goes on with the window of the last.
func TestWindowOutlivesAPause(t *testing.T) {
	c := newScript(t, simple(), 40)
	c.gap()
	c.wait(units.Second)
	c.s.OnStart(c.now)
	c.wantCWND(20)
}

func TestCheckNamesWhatIsWrong(t *testing.T) {
	if err := params.Defaults[swift.Params]().Check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*swift.Params){
		"ai: ":              func(p *swift.Params) { p.AI = math.Inf(1) },
		"beta":              func(p *swift.Params) { p.Beta = math.NaN() },
		"max_mdf":           func(p *swift.Params) { p.MaxMDF = 1 },
		"base_target":       func(p *swift.Params) { p.BaseTarget = -us },
		"per_hop":           func(p *swift.Params) { p.PerHop = -1 },
		"range":             func(p *swift.Params) { p.FSRange = 2 * units.Second },
		"flow scaling from": func(p *swift.Params) { p.FSMax = p.FSMin },
		"min_window":        func(p *swift.Params) { p.MinWindow = 0 },
		"max_window":        func(p *swift.Params) { p.MaxWindow = 14 },
		"initial_window":    func(p *swift.Params) { p.InitialWindow = -1 },
		"retx_reset":        func(p *swift.Params) { p.RetxReset = 0 },
	} {
		p := params.Defaults[swift.Params]()
		change(&p)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
