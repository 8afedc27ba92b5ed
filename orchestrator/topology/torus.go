package topology

import (
	"fmt"
	"slices"
	"strconv"

	"weft/params"
)

// Torus has the sizes of a torus.
type Torus struct {
	Dimensions     []int // switches along each of two or three dimensions
	HostsPerSwitch int
}

// Keys implements Shape.
func (t *Torus) Keys() []params.Key {
	return []params.Key{
		params.List("dimensions", params.ItemsOf(&t.Dimensions, 3,
			func(n *int) params.Key { return params.One(params.Integer(n, 2, 64)) }).
			AtLeast(2, "the number of switches along each of two or three dimensions, such as [4, 4]"),
			"switches along each dimension"),
		params.New("hosts_per_switch", params.Integer(&t.HostsPerSwitch, 1, MaxHosts), "hosts per switch").
			Default("1", "ours"),
	}
}

// Hosts implements Shape.
func (t *Torus) Hosts() int {
	if len(t.Dimensions) == 0 {
		return 0
	}
	hosts := t.HostsPerSwitch
	for _, n := range t.Dimensions {
		hosts *= n
	}
	return hosts
}

// build puts switches on the points of a grid in which every row is a ring, named t0-0 or t0-0-0
// and on. A ring of two switches is one link.
func (t *Torus) build(b *builder) error {
	switches, text := 1, ""
	for _, d := range t.Dimensions {
		switches *= d
		text += "x" + strconv.Itoa(d)
	}
	each := "1 host"
	if t.HostsPerSwitch > 1 {
		each = strconv.Itoa(t.HostsPerSwitch) + " hosts"
	}
	b.g.Title = fmt.Sprintf("torus, %s, %s at each switch", text[1:], each)
	n := int64(switches) * int64(t.HostsPerSwitch)
	if err := checkSize(n, int64(switches), n+int64(switches*len(t.Dimensions))); err != nil {
		return err
	}
	b.g.Grid = slices.Clone(t.Dimensions)
	hosts := b.many(int(n), "h", Host, "host")
	first := NodeID(len(b.g.Nodes))
	for s := range switches {
		name := ""
		for _, x := range point(s, t.Dimensions) {
			name += "-" + strconv.Itoa(x)
		}
		b.node("t"+name[1:], Switch, "switch")
	}
	for h := range int(n) {
		b.link(hosts+NodeID(h), first+NodeID(h/t.HostsPerSwitch), "host", b.tier("host"))
	}
	for s := range switches {
		at := point(s, t.Dimensions)
		for d, size := range t.Dimensions {
			if size == 2 && at[d] == 1 {
				continue
			}
			x := at[d]
			at[d] = (x + 1) % size
			b.link(first+NodeID(s), first+NodeID(index(at, t.Dimensions)), "switch", b.tier("switch"))
			at[d] = x
		}
	}
	return nil
}

// point returns the coordinates of switch s in a grid. The last one changes fastest.
func point(s int, dimensions []int) []int {
	at := make([]int, len(dimensions))
	for d := len(dimensions) - 1; d >= 0; d-- {
		at[d] = s % dimensions[d]
		s /= dimensions[d]
	}
	return at
}

// index returns the switch at coordinates of a grid: the inverse of point.
func index(at, dimensions []int) (s int) {
	for d, x := range at {
		s = s*dimensions[d] + x
	}
	return s
}
