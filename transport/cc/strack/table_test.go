package strack_test

import (
	"testing"

	"weft/params"
	"weft/transport/cc"
	"weft/transport/cc/strack"
	"weft/units"
)

// Table 1 on the networks of section 4.2 and on the one it is scaled to: what an acknowledgement
// adds to a window, in packets per window acknowledged.
func TestTable1Scales(t *testing.T) {
	for _, c := range []struct {
		line             units.Bandwidth
		rtt              units.Time
		bdp              units.Bytes
		gain, beta, eta  float64 // packets per RTT
		perMicrosecond   float64 // alpha
		withinGain, sure float64
	}{
		{100 * gbps, 8 * us, 100_000, 1.78, 3.33, 0.10, 0.222, 0.005, 0.005},
		{200 * gbps, 8 * us, 200_000, 3.56, 6.67, 0.20, 0.444, 0.005, 0.005},
		{400 * gbps, 8 * us, 400_000, 7.11, 13.33, 0.40, 0.889, 0.005, 0.005},
		{800 * gbps, 8 * us, 800_000, 14.22, 26.67, 0.80, 1.778, 0.005, 0.005},
		{100 * gbps, 12 * us, 150_000, 4.00, 5.00, 0.15, 0.333, 0.005, 0.005},
	} {
		l := cc.Link{Line: c.line, Packet: 4000, BaseRTT: c.rtt, NetRTT: c.rtt}
		one := func(delay units.Time, wait units.Time) float64 {
			p := params.Defaults[strack.Params]()
			p.MaxCWND = 10
			s := strack.NewSender(p, l)
			for i := range units.Time(6) { // away from the maximum
				s.OnAck((i+1)*(c.rtt+1), cc.Ack{RTT: 3 * c.rtt, Marked: true})
			}
			now := 6 * (c.rtt + 1) // the clock of η has just begun
			w := s.CWND()
			s.OnAck(now+wait, cc.Ack{Size: 4000, Packets: 1, RTT: c.rtt + delay, Marked: wait > 0})
			if wait > 0 {
				return s.CWND() - w
			}
			return (s.CWND() - w) * w
		}
		near(t, c.line.String()+": greatest window", strack.NewSender(steady(), l).MaxWindow()*4000, float64(c.bdp), 1e-6)
		near(t, c.line.String()+": gain at no delay", one(0, 0), c.gain, c.withinGain)
		near(t, c.line.String()+": alpha", one(c.rtt-us, 0), c.perMicrosecond, c.sure)
		near(t, c.line.String()+": beta", one(3*c.rtt+1, 0), c.beta, c.sure)
		near(t, c.line.String()+": eta", one(c.rtt-us, c.rtt+1), c.eta, c.sure)
	}
}

// The vector: no delay and a window of 100 packets at 400 Gb/s adds 7.11/100 per acknowledgement.
func TestVectorOfSmallGain(t *testing.T) {
	p := steady()
	p.MaxCWND = 1.5
	c := newScript(t, p, 400*gbps)
	c.shrink(100)
	w := c.s.CWND()
	c.ack(1, 0, false)
	near(t, "increase", c.s.CWND()-w, 7.111/w, 1e-5)
}
