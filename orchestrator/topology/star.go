package topology

import (
	"fmt"

	"weft/params"
)

// Star has the size of a star.
type Star struct{ Size int } // hosts

// Keys implements Shape.
func (t *Star) Keys() []params.Key {
	return []params.Key{params.New("hosts", params.Integer(&t.Size, 2, MaxHosts), "hosts")}
}

// Hosts implements Shape.
func (t *Star) Hosts() int { return t.Size }

// Fit sets the size to the given number of hosts.
func (t *Star) Fit(hosts int) { t.Size = hosts }

// build joins all hosts to one switch.
func (t *Star) build(b *builder) error {
	n := t.Size
	b.g.Title = fmt.Sprintf("star, %d hosts", n)
	if err := checkSize(int64(n), 1, int64(n)); err != nil {
		return err
	}
	hosts := b.many(n, "h", Host, "host")
	sw := b.node("switch0", Switch, "switch")
	for h := range n {
		b.link(hosts+NodeID(h), sw, "host", b.tier("host"))
	}
	return nil
}
