package host

import (
	"fmt"

	"weft/transport"
	"weft/units"
)

// Halt is a time in which a host stands still: it sends nothing, what arrives is lost, and its
// timers wait. Then it continues as if that time had not passed, except that the world has moved
// on. See docs/adr/0065.
type Halt struct {
	At    units.Time
	Until units.Time // units.Never: for good; the host then counts as done
}

// halts is the present and future halts of a host, which do not overlap and are in order.
type halts struct {
	left   []Halt
	frozen bool // the first of left has begun
}

// newHalts checks the halts of a plan.
func newHalts(p *Plan) (halts, error) {
	last := units.Time(0)
	for _, k := range p.Halts {
		if k.At < last || k.Until <= k.At {
			return halts{}, fmt.Errorf("halted from %d to %d ps; expected an end after that, and a start from %d ps on",
				k.At, k.Until, last)
		}
		last = k.Until
	}
	return halts{left: p.Halts}, nil
}

// standsStill reports whether the host is halted at now, and drops the halts that have ended.
func (k *halts) standsStill(now units.Time) bool {
	for len(k.left) > 0 && k.left[0].Until <= now {
		k.left, k.frozen = k.left[1:], false
	}
	if len(k.left) > 0 && k.left[0].At <= now {
		k.frozen = true
	}
	return k.frozen
}

// forGood reports whether the host is halted for good.
func (k *halts) forGood() bool { return k.frozen && k.left[0].Until == units.Never }

// deadline returns when the host must act next, given the instant without halts.
func (k *halts) deadline(at units.Time, ok bool) (units.Time, bool) {
	switch {
	case len(k.left) == 0:
		return at, ok
	case k.forGood():
		return 0, false
	case k.frozen:
		return k.left[0].Until, true
	case !ok || k.left[0].At < at:
		return k.left[0].At, true
	}
	return at, ok
}

// lose counts a packet that arrives while the host is halted.
func (h *Host) lose() (transport.Placement, error) {
	h.arriving = nil
	h.unreceived++
	return transport.Placement{}, nil
}
