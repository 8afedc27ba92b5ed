package cc_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"weft/params"
	"weft/transport/cc"
	"weft/transport/cc/cctest"
	"weft/units"
)

// Params are the parameters of the example.
type Params struct {
	Cut float64 // the share by which a mark reduces the window
}

// Keys implements params.Section: the name, type, range, meaning and default of each key, and the
// source of the default.
func (p *Params) Keys() []params.Key {
	return []params.Key{
		params.New("cut", params.Share(&p.Cut, 0.01, 0.99), "Share of the window that a mark takes.").Default("0.3", "ours"),
	}
}

// Check returns an error that names the first parameter out of range, or nil.
func (p Params) Check() error { return params.Check("example", &p) }

// Sender adds a packet to its window per RTT, and cuts the window by a share at most once per RTT
// with a mark.
type Sender struct {
	params Params
	packet float64    // size of a full packet in bytes
	window float64    // bytes
	rtt    units.Time // last RTT
	cut    units.Time // when the window was last cut
	ever   bool       // cut is valid
}

// NewSender returns a sender whose window is the bandwidth-delay product. p must pass Check.
func NewSender(p Params, l cc.Link) *Sender {
	bdp := float64(l.Line) * l.BaseRTT.Seconds() / 8
	return &Sender{params: p, packet: float64(l.Packet), window: max(bdp, float64(l.Packet)), rtt: l.BaseRTT}
}

// OnStart keeps the window of the last message.
func (s *Sender) OnStart(units.Time) {}

// OnSent does nothing.
func (s *Sender) OnSent(units.Time, cc.Sent) {}

// OnAck increases or cuts the window.
func (s *Sender) OnAck(now units.Time, a cc.Ack) {
	s.rtt = a.RTT
	if a.Marked {
		s.shrink(now, 1-s.params.Cut)
		return
	}
	s.window += s.packet * float64(a.Size) / s.window
}

// OnLoss halves the window.
func (s *Sender) OnLoss(now units.Time, _ cc.Loss) { s.shrink(now, 0.5) }

// shrink cuts the window, at most once per RTT: only then does the last cut show.
func (s *Sender) shrink(now units.Time, factor float64) {
	if s.ever && now-s.cut < s.rtt {
		return
	}
	s.window, s.cut, s.ever = max(s.window*factor, s.packet), now, true
}

// Window returns the window in bytes.
func (s *Sender) Window() units.Bytes { return units.Bytes(s.window) }

// PacingRate returns 0: packets are clocked by acknowledgements.
func (s *Sender) PacingRate() units.Bandwidth { return 0 }

// Whatever happens, the window is at least one byte.
func TestExampleStandsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Params{Cut: rapid.Float64Range(0.01, 0.99).Draw(t, "cut")}
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		cctest.Run(t, cctest.Limits{MinWindow: 1}, func(_ *rapid.T, l cc.Link) cc.Controller { return NewSender(p, l) })
	})
}

// Four flows share a port that marks above 100 kB.
func Example() {
	b := cctest.Bottleneck{
		Line: 100 * units.Gbps, Delay: 2 * units.Microsecond, Packet: 4096,
		Mark: func(queued units.Bytes, _ float64) bool { return queued > 100*units.KB },
	}
	net := cctest.NewNet(b, b.Start(func(l cc.Link) cc.Controller { return NewSender(Params{Cut: 0.3}, l) }, 0, 0, 0, 0)...)
	net.Run(units.Millisecond)
	fair, used := net.Fairness(5 * units.Millisecond)
	fmt.Printf("Jain's index above 0.95: %t, use of the link above 0.99: %t\n", fair > 0.95, used > 0.99)
	// Output: Jain's index above 0.95: true, use of the link above 0.99: true
}
