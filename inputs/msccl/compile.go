package msccl

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"weft/collectives/check"
	"weft/collectives/graph"
	"weft/collectives/schedule"
	"weft/units"
)

// Compile returns the programs of the algorithm for a size, as nccl-tests has it, of elements of
// some type. It proves them first.
func (a *Algorithm) Compile(size units.Bytes, kind schedule.Type) (*schedule.Given, error) {
	unit := units.Bytes(a.chunks) * kind.Size()
	if size <= 0 || size%unit != 0 {
		return nil, fmt.Errorf("%s: size %v is no multiple of %d chunks of %d bytes; expected one such as %v", a.file,
			size,
			a.chunks, kind.Size(), max(unit, size-size%unit))
	}
	if err := a.Prove(); err != nil {
		return nil, err
	}
	c, err := a.compile(size / units.Bytes(a.chunks))
	if err != nil {
		return nil, err
	}
	return c.given(), nil
}

// Prove executes the algorithm symbolically in several orders.
func (a *Algorithm) Prove() error {
	c, err := a.compile(schedule.Element)
	if err != nil {
		return err
	}
	const shuffles = 4
	orders := []check.Order{func([]check.Step) int { return 0 }, func(s []check.Step) int { return len(s) - 1 }}
	for seed := range uint64(shuffles) {
		r := rand.New(rand.NewPCG(seed, 0))
		orders = append(orders, func(s []check.Step) int { return r.IntN(len(s)) })
	}
	err = check.Execute(c.programs, c.layouts, orders...)
	var op *check.OpError
	var result *check.ResultError
	switch {
	case errors.As(err, &op):
		at := c.from[op.Rank][op.Op]
		return graph.Errorf(a.file, at.step.line, "%s, chunk %d: %w", describe(op.Rank, at.block, at.step),
			c.programs[op.Rank][op.Op].Off/schedule.Element, op.Err)
	case errors.As(err, &result):
		return c.wrong(result)
	case err != nil:
		return fmt.Errorf("%s: %w", a.file, err)
	}
	return nil
}

// wrong returns the error of a wrong result, with the step that left it.
func (c *compiler) wrong(result *check.ResultError) error {
	var b *check.ByteError
	if !errors.As(result.Err, &b) {
		return fmt.Errorf("%s: GPU %d: %w", c.file, result.Rank, result.Err)
	}
	chunk := b.Off / c.size
	var last *origin
	for i := range c.programs[result.Rank] {
		o := &c.programs[result.Rank][i]
		if o.Kind == schedule.Recv && o.Buf == schedule.Out && o.Off <= b.Off && b.Off < o.Off+o.Len {
			last = &c.from[result.Rank][i]
		}
	}
	if last == nil {
		return graph.Errorf(c.file, 1, "GPU %d, chunk %d: no step receives it, and it %w", result.Rank, chunk, b.Err)
	}
	return graph.Errorf(c.file, last.step.line, "%s, chunk %d: what it leaves %w",
		describe(result.Rank, last.block, last.step), chunk, b.Err)
}

// compiler makes programs with chunks of a size.
type compiler struct {
	*Algorithm
	size     units.Bytes
	programs []schedule.Program
	layouts  []schedule.Layout
	from     [][]origin // by rank and op: the step that it is of
	tags     uint32
}

// origin is where an op comes from.
type origin struct {
	block int
	step  *step
}

func (a *Algorithm) compile(chunk units.Bytes) (*compiler, error) {
	c := &compiler{Algorithm: a, size: chunk, programs: make([]schedule.Program, a.Ranks),
		layouts: make([]schedule.Layout, a.Ranks), from: make([][]origin, a.Ranks)}
	spec := schedule.Spec{Collective: a.Collective, Algorithm: schedule.Algorithms(a.Collective)[0], Ranks: a.Ranks,
		Size: units.Bytes(a.chunks) * chunk}
	for rank := range a.Ranks {
		l, err := schedule.Shape(spec, rank)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.file, err)
		}
		if a.inplace && l.In > 0 {
			return nil, graph.Errorf(a.file, 1, "%s in place; expected one with an output of its own", a.Collective)
		}
		if !a.inplace && l.In == 0 { // the layout is of an algorithm in place
			for _, x := range l.Local {
				l.In += x.Len
			}
		}
		c.layouts[rank] = l
		if err := c.rank(rank); err != nil {
			return nil, err
		}
	}
	return c, c.match()
}

// region returns where chunks of a buffer are.
func (c *compiler) region(rank int, p place, count int) (schedule.Buf, units.Bytes, error) {
	l := &c.layouts[rank]
	chunks := func(n units.Bytes) int { return int(n / c.size) }
	buf, first, most := schedule.Out, p.chunk, 0
	switch {
	case p.buffer == 's':
		first += c.chunks
		most = c.chunks + c.scratch[rank]
		l.Out = max(l.Out, units.Bytes(min(first+max(0, count), most))*c.size)
	case p.buffer == 'o':
		end := l.Result[len(l.Result)-1]
		first, most = first+chunks(l.Result[0].Off), chunks(end.Off+end.Len)
	case c.inplace: // where the layout has the input
		in := l.Local[0]
		first, most = first+chunks(in.Off), chunks(in.Off+in.Len)
	default:
		buf, most = schedule.In, chunks(l.In)
	}
	d, said := c.declared[rank], 0
	switch p.buffer {
	case 'i':
		said = d.input
	case 'o':
		said = d.output
	}
	if said > 0 { // fewer than the collective has
		most = min(most, first-p.chunk+said)
	}
	if p.chunk < 0 || count < 1 || first+count > most {
		if most -= first - p.chunk; p.buffer == 's' {
			most = c.scratch[rank]
		}
		return 0, 0, fmt.Errorf("chunks %d to %d of buffer %c of %d", p.chunk, p.chunk+count-1, p.buffer, most)
	}
	return buf, units.Bytes(first) * c.size, nil
}

// rank makes the program of a rank.
func (c *compiler) rank(rank int) error {
	blocks := c.gpus[rank]
	type state struct {
		done   int     // number of steps that are compiled
		last   int32   // last receive; -1: none
		sends  []int32 // all sends
		ends   []int32 // by step: the last op up to it that may be waited for; -1: none
		marker []int32 // by step: the last send up to it; -1: none
		extra  []int32 // of nops before the next step
	}
	states := make([]state, len(blocks))
	for i := range states {
		states[i].last = -1
	}
	for left := true; left; {
		left = false
		moved := false
		for t := range blocks {
			st := &states[t]
			for st.done < len(blocks[t].steps) {
				s := &blocks[t].steps[st.done]
				after := st.extra
				if s.block >= 0 {
					other := &states[s.block]
					if s.block == t && s.after >= st.done || other.done <= s.after {
						left = true
						break
					}
					for _, op := range []int32{other.ends[s.after], other.marker[s.after]} {
						if op >= 0 {
							after = append(after, op)
						}
					}
				}
				moved, st.extra = true, nil
				if err := c.step(rank, t, s, after, &st.last, &st.sends); err != nil {
					return graph.Errorf(c.file, s.line, "%s: %w", describe(rank, t, s), err)
				}
				if s.kind == "nop" || s.kind == "cpy" {
					st.extra = after
				}
				st.ends = append(st.ends, st.last)
				send := int32(-1)
				if n := len(st.sends); n > 0 {
					send = st.sends[n-1]
				}
				st.marker = append(st.marker, send)
				st.done++
			}
		}
		if left && !moved {
			return graph.Errorf(c.file, 1, "GPU %d: steps of thread blocks wait for each other in a cycle", rank)
		}
	}
	c.finals(rank)
	return nil
}

// step appends the ops of a step.
func (c *compiler) step(rank, t int, s *step, after []int32, last *int32, sends *[]int32) error {
	k := kinds[s.kind]
	p := &c.programs[rank]
	add := func(op schedule.Op) int32 {
		if op.Off < 0 {
			op.Off = 0
		}
		*p = append(*p, op)
		c.from[rank] = append(c.from[rank], origin{t, s})
		return int32(len(*p) - 1)
	}
	order := append([]int32(nil), after...)
	if *last >= 0 {
		order = append(order, *last)
	}
	length := units.Bytes(s.count) * c.size
	b := &c.gpus[rank][t]
	if s.kind == "cpy" {
		return c.prepared(rank, s)
	}
	from, to := s.src, s.dst
	if s.kind == "rrs" {
		to = s.src // the sum is kept where the summand was
	} else if k.recv {
		from = s.dst
	}
	if k.reduce && s.kind != "rrs" {
		if err := c.prepared(rank, s); err != nil {
			return err
		}
	}
	if k.recv {
		buf, off, err := c.region(rank, to, s.count)
		if err != nil {
			return err
		}
		for _, i := range *sends { // what is being sent must have left
			if o := &(*p)[i]; o.Buf == buf && o.Off < off+length && off < o.Off+o.Len {
				order = append(order, i)
			}
		}
		*last = add(schedule.Op{Kind: schedule.Recv, Buf: buf, Reduce: k.reduce, Peer: b.recv, Off: off, Len: length,
			After: order})
		order = []int32{*last}
	}
	if k.send {
		buf, off, err := c.region(rank, from, s.count)
		if err != nil {
			return err
		}
		*sends = append(*sends, add(schedule.Op{Kind: schedule.Send, Buf: buf, Peer: b.send, Off: off, Len: length,
			After: order}))
	}
	return nil
}

// prepared returns an error unless the destination of a step has what the step reads: it is the
// same place, or the output begins there with a copy of that input, and still has it.
func (c *compiler) prepared(rank int, s *step) error {
	from, src, err := c.region(rank, s.src, s.count)
	if err != nil {
		return err
	}
	buf, dst, err := c.region(rank, s.dst, s.count)
	if err != nil || from == buf && src == dst {
		return err
	}
	end := dst + units.Bytes(s.count)*c.size
	begins := func(l schedule.Copy) bool {
		return s.src.buffer == 'i' && !c.inplace && buf == schedule.Out && dst >= l.Off && end <= l.Off+l.Len &&
			dst-l.Off+l.From == src
	}
	written := func(o schedule.Op) bool {
		return o.Kind == schedule.Recv && o.Buf == buf && o.Off < end && dst < o.Off+o.Len
	}
	if slices.ContainsFunc(c.layouts[rank].Local, begins) && !slices.ContainsFunc(c.programs[rank], written) {
		return nil
	}
	if s.kind == "cpy" {
		return errors.New("programs here copy nothing but the input to its place in the output, before it is written")
	}
	return fmt.Errorf("chunk %d of buffer %c is reduced into chunk %d of buffer %c; programs here reduce into the "+
		"place of the summand", s.src.chunk, s.src.buffer, s.dst.chunk, s.dst.buffer)
}

// finals marks the receives that write a region last.
func (c *compiler) finals(rank int) {
	p := c.programs[rank]
	written := map[units.Bytes]bool{}
	for i := len(p) - 1; i >= 0; i-- {
		o := &p[i]
		if o.Kind != schedule.Recv || o.Buf != schedule.Out {
			continue
		}
		o.Final = true
		for at := o.Off; at < o.Off+o.Len; at += c.size {
			o.Final = o.Final && !written[at]
			written[at] = true
		}
	}
}

// match gives messages their tags: the sends of a thread block and the receives of the one at the
// other end belong together in order.
func (c *compiler) match() error {
	type lane struct{ from, to, channel int }
	sends := map[lane][]int{}
	next := map[[2]int]uint32{}
	for rank := range c.programs {
		for i := range c.programs[rank] {
			o := &c.programs[rank][i]
			if o.Kind != schedule.Send {
				continue
			}
			l := lane{rank, o.Peer, c.gpus[rank][c.from[rank][i].block].channel}
			o.Flow = int32(l.channel)
			o.Tag = next[[2]int{rank, o.Peer}]
			next[[2]int{rank, o.Peer}]++
			c.tags = max(c.tags, o.Tag+1)
			sends[l] = append(sends[l], i)
		}
	}
	for rank := range c.programs {
		for i := range c.programs[rank] {
			o := &c.programs[rank][i]
			if o.Kind != schedule.Recv {
				continue
			}
			at := c.from[rank][i]
			l := lane{o.Peer, rank, c.gpus[rank][at.block].channel}
			if len(sends[l]) == 0 {
				return graph.Errorf(c.file, at.step.line, "%s: GPU %d sends nothing for it on channel %d",
					describe(rank, at.block, at.step), o.Peer, l.channel)
			}
			send := sends[l][0]
			sends[l] = sends[l][1:]
			s := &c.programs[o.Peer][send]
			if s.Len != o.Len {
				return graph.Errorf(c.file, at.step.line, "%s: receives %d chunks; GPU %d sends %d",
					describe(rank, at.block, at.step), o.Len/c.size, o.Peer, s.Len/c.size)
			}
			o.Tag, o.Flow = s.Tag, s.Flow
		}
	}
	for l, left := range sends {
		if len(left) > 0 {
			at := c.from[l.from][left[0]]
			return graph.Errorf(c.file, at.step.line, "%s: GPU %d does not receive it",
				describe(l.from, at.block, at.step), l.to)
		}
	}
	return nil
}

// given returns the programs.
func (c *compiler) given() *schedule.Given {
	g := &schedule.Given{Tags: max(1, c.tags), Parts: make([]*schedule.Part, c.Ranks)}
	for rank := range g.Parts {
		g.Parts[rank] = schedule.NewPart(c.programs[rank], c.layouts[rank])
	}
	return g
}
