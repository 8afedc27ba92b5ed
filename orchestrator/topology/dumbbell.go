package topology

import (
	"fmt"

	"weft/params"
)

// Dumbbell has the size of a dumbbell.
type Dumbbell struct{ Side int } // hosts on each side

// Keys implements Shape.
func (t *Dumbbell) Keys() []params.Key {
	return []params.Key{params.New("hosts", params.Integer(&t.Side, 1, MaxHosts/2), "hosts per side")}
}

// Hosts implements Shape.
func (t *Dumbbell) Hosts() int { return 2 * t.Side }

// Fit puts half of the hosts on each side.
func (t *Dumbbell) Fit(hosts int) { t.Side = (hosts + 1) / 2 }

// build makes two switches with the same number of hosts each, joined by one link of tier core. The
// first half of the hosts is at switch0.
func (t *Dumbbell) build(b *builder) error {
	n := t.Side
	b.g.Title = fmt.Sprintf("dumbbell, %d hosts on each side", n)
	if err := checkSize(2*int64(n), 2, 2*int64(n)+1); err != nil {
		return err
	}
	hosts := b.many(2*n, "h", Host, "host")
	left := b.many(2, "switch", Switch, "switch")
	for h := range 2 * n {
		b.link(hosts+NodeID(h), left+NodeID(h/n), "host", b.tier("host"))
	}
	b.link(left, left+1, "core", b.tier("core"))
	return nil
}
