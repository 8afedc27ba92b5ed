package check

import (
	"errors"
	"fmt"
	"slices"

	"weft/collectives/schedule"
	"weft/units"
)

// use counts the ops of a rank that are accessing a cell.
type use struct {
	readers int  // sends that are not acknowledged yet
	adders  int  // receives that add to it
	writer  bool // a receive that replaces it
	final   bool // it was written for the last time
}

// memory holds the two buffers of a rank.
type memory struct {
	grain   units.Bytes // size of a cell
	content [2][]cell
	uses    [2][]use
	fresh   [2][]cell // initial content
}

// maxCells is the largest number of cells of a buffer. Larger proofs show nothing that smaller ones
// do not.
const maxCells = 1 << 20

// newMemory returns the buffers of a rank with their initial content.
func newMemory(l schedule.Layout, rank int, grain units.Bytes) (memory, error) {
	m := memory{grain: grain}
	if grain == 0 {
		return m, errors.New("nothing is moved")
	}
	for b, size := range [2]units.Bytes{schedule.In: l.In, schedule.Out: l.Out} {
		n := size / grain
		if n > maxCells {
			return m, fmt.Errorf("%d cells of %d bytes are too many: prove a smaller size", n, grain)
		}
		m.content[b] = make([]cell, n)
		m.uses[b] = make([]use, n)
	}
	for i := range m.content[schedule.In] {
		m.content[schedule.In][i] = input(rank, i)
	}
	for _, c := range l.Local {
		if c.Off < 0 || c.Off+c.Len > l.Out {
			return m, fmt.Errorf("local copy to [%d,+%d) of %d bytes", c.Off, c.Len, l.Out)
		}
		for i := range int(c.Len / grain) {
			m.content[schedule.Out][int(c.Off/grain)+i] = input(rank, int(c.From/grain)+i)
		}
	}
	m.fresh = [2][]cell{slices.Clone(m.content[0]), slices.Clone(m.content[1])}
	return m, nil
}

// reset restores the initial content of the buffers.
func (m *memory) reset() {
	for b := range m.content {
		copy(m.content[b], m.fresh[b])
		clear(m.uses[b])
	}
}

// size returns the length of a buffer in bytes.
func (m *memory) size(b schedule.Buf) units.Bytes { return units.Bytes(len(m.content[b])) * m.grain }

// span returns the cells of an op's region.
func (m *memory) span(op *schedule.Op) ([]cell, []use) {
	from, to := op.Off/m.grain, (op.Off+op.Len)/m.grain
	return m.content[op.Buf][from:to], m.uses[op.Buf][from:to]
}

// read begins a send: it returns the content of the region and marks it as being read.
func (m *memory) read(op *schedule.Op) ([]cell, error) {
	cells, uses := m.span(op)
	for i := range uses {
		if uses[i].writer || uses[i].adders > 0 {
			return nil, fmt.Errorf("sends [%d,+%d) while it is being overwritten", op.Off, op.Len)
		}
		uses[i].readers++
	}
	return slices.Clone(cells), nil
}

// release ends a send.
func (m *memory) release(op *schedule.Op) {
	_, uses := m.span(op)
	for i := range uses {
		uses[i].readers--
	}
}

// lock begins a receive. Two receives may add to the same cell: a rank does one at a time.
func (m *memory) lock(op *schedule.Op) error {
	_, uses := m.span(op)
	for i := range uses {
		u := &uses[i]
		switch {
		case u.readers > 0:
			return fmt.Errorf("overwrites [%d,+%d) while it is being sent", op.Off, op.Len)
		case u.writer || (u.adders > 0 && !op.Reduce):
			return fmt.Errorf("overwrites [%d,+%d) while another receive does", op.Off, op.Len)
		case u.final:
			return fmt.Errorf("overwrites [%d,+%d), which was final", op.Off, op.Len)
		case op.Reduce:
			u.adders++
		default:
			u.writer = true
		}
	}
	return nil
}

// write ends a receive.
func (m *memory) write(op *schedule.Op, content []cell) error {
	cells, uses := m.span(op)
	for i := range cells {
		if op.Reduce {
			cells[i] = add(cells[i], content[i])
			uses[i].adders--
		} else {
			cells[i] = content[i]
			uses[i].writer = false
		}
		if op.Final {
			if uses[i].final || uses[i].adders > 0 {
				return fmt.Errorf("calls [%d,+%d) final while another receive writes it", op.Off, op.Len)
			}
			uses[i].final = true
		}
	}
	return nil
}

// verify compares Out with the expected result. A cell that a receive has written must be final, or
// it would not be verified in a real run.
func (m *memory) verify(result []schedule.Want, rank, ranks int) error {
	for _, w := range result {
		for i := range int(w.Len / m.grain) {
			at, from := int(w.Off/m.grain)+i, int(w.From/m.grain)+i
			var want cell
			if w.Rank == schedule.All {
				want = everyone(ranks, from)
			} else {
				want = input(w.Rank, from)
			}
			got := m.content[schedule.Out][at]
			if !got.equal(want) {
				return m.wrong(at, "is the reduction of %v, want %v", got, want)
			}
			own := w.Rank == rank // a local copy that nothing else writes to
			if !m.uses[schedule.Out][at].final && !own {
				return m.wrong(at, "was never called final")
			}
		}
	}
	return nil
}

// wrong returns the error of a cell of the result.
func (m *memory) wrong(cell int, format string, args ...any) error {
	return &ByteError{units.Bytes(cell) * m.grain, fmt.Errorf(format, args...)}
}
