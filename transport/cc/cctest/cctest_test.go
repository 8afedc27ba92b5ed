package cctest_test

import (
	"testing"

	"pgregory.net/rapid"

	"weft/transport/cc"
	"weft/transport/cc/cctest"
	"weft/units"
)

// steady is the least a controller can be, with a timer to be driven.
type steady struct {
	line units.Bandwidth
	at   units.Time
}

func (s *steady) OnStart(now units.Time)             { s.at = now + units.Microsecond }
func (s *steady) OnSent(units.Time, cc.Sent)         {}
func (s *steady) OnAck(units.Time, cc.Ack)           {}
func (s *steady) OnLoss(units.Time, cc.Loss)         {}
func (s *steady) Window() units.Bytes                { return 4096 }
func (s *steady) PacingRate() units.Bandwidth        { return s.line }
func (s *steady) Deadline() (at units.Time, ok bool) { return s.at, s.at > 0 }
func (s *steady) Advance(now units.Time)             { s.at = now + units.Microsecond }

func TestRunAcceptsASteadyController(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cctest.Run(t, cctest.Limits{MinWindow: 4096, Also: func(cc.Controller) string { return "" }},
			func(_ *rapid.T, l cc.Link) cc.Controller { return &steady{line: l.Line} })
	})
}
