package cc

import "testing"

// base has what every control has.
type base struct{ window float64 }

func (b *base) Init(*Link, *Values) {}
func (b *base) Ack(Time, *Ack)      {}
func (b *base) Loss(Time, *Loss)    {}
func (b *base) Window() float64     { return b.window }

type (
	good      struct{ base }
	wholeRate struct{ base }
	noExpire  struct{ base }
	noTimer   struct{ base }
	noNow     struct{ base }
	startAt   struct{ base }
	sentOnly  struct{ base }
	spelling  struct{ base }
)

func (g *good) Rate() float64       { return 1e9 }
func (g *good) Timer() Time         { return Never }
func (g *good) Expire(Time)         {}
func (g *good) Start(Time)          {}
func (g *good) Sent(Time, *Sent)    {}
func (g *good) Notify(Time)         {}
func (g *good) NotBefore() Time     { return 0 }
func (g *good) Cut(share float64)   { g.window *= share }
func (g *good) rate() float64       { return 2 }
func (w *wholeRate) Rate() int64    { return 1 }
func (n *noExpire) Timer() Time     { return 1 }
func (n *noTimer) Expire(Time)      {}
func (n *noNow) Timer() Time        { return 1 }
func (n *noNow) Expire()            {}
func (s *startAt) Start(now int64)  {}
func (s *sentOnly) Sent(*Sent)      {}
func (s *spelling) Notbefore() Time { return 0 }

// Methods that Weft would not call are named, with what was meant.
func TestMistakenMethods(t *testing.T) {
	_ = (&good{}).rate()
	for _, c := range []struct {
		control, value any
		want           string
	}{
		{&good{}, good{}, ""},
		{&base{}, base{}, ""},
		{&wholeRate{}, wholeRate{}, "its method Rate is not one that Weft calls; expected Rate() float64"},
		{&noExpire{}, noExpire{}, "it has a method Timer, and no Expire(now cc.Time); expected both, or neither"},
		{&noTimer{}, noTimer{}, "it has a method Expire, and no Timer() cc.Time; expected both, or neither"},
		{&noNow{}, noNow{}, "its method Expire is not one that Weft calls; expected Expire(now cc.Time)"},
		{&startAt{}, startAt{}, "its method Start is not one that Weft calls; expected Start(now cc.Time)"},
		{&sentOnly{}, sentOnly{}, "its method Sent is not one that Weft calls; expected Sent(now cc.Time, p *cc.Sent)"},
		{&spelling{}, spelling{}, "its method Notbefore is not one that Weft calls; expected NotBefore() cc.Time"},
	} {
		if got := mistaken(c.control, c.value); got != c.want {
			t.Errorf("%T: %q; want %q", c.control, got, c.want)
		}
	}
}
