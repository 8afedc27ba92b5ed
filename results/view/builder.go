package view

import (
	"cmp"
	"fmt"
	"slices"

	"weft/results/frames"
	"weft/units"
)

// builder collects frames from rows in any order.
type builder struct {
	all  []frames.Frame
	of   map[units.Time]int // index in all
	rows int
}

// at returns the frame of an instant, to which the caller adds one row.
func (b *builder) at(t units.Time) (*frames.Frame, error) {
	if b.rows++; b.rows > maxLoaded {
		return nil, fmt.Errorf("the run has more than %d rows of frames", maxLoaded)
	}
	i, ok := b.of[t]
	if !ok {
		i = len(b.all)
		b.of[t] = i
		b.all = append(b.all, frames.Frame{At: t})
	}
	return &b.all[i], nil
}

// sorted returns the frames in order of time, with rows in order of ports and connections.
func (b *builder) sorted() []frames.Frame {
	slices.SortFunc(b.all, func(x, y frames.Frame) int { return cmp.Compare(x.At, y.At) })
	for i := range b.all {
		f := &b.all[i]
		slices.SortStableFunc(f.Ports, func(x, y frames.Port) int { return cmp.Compare(x.Port, y.Port) })
		slices.SortStableFunc(f.Conns, func(x, y frames.Conn) int { return cmp.Compare(x.Conn, y.Conn) })
	}
	return b.all
}
