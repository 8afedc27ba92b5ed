package check

import (
	"fmt"

	"weft/collectives/schedule"
	"weft/units"
)

// Order chooses the next step. It returns an index of steps, which is not empty.
type Order func(steps []Step) int

// Execute executes the programs of all ranks once in each order, and returns the first error.
// layouts has the buffers and the results of the ranks.
func Execute(programs []schedule.Program, layouts []schedule.Layout, orders ...Order) error {
	e, err := newExecution(programs, layouts)
	if err != nil {
		return err
	}
	for _, next := range orders {
		if err := e.run(next); err != nil {
			return err
		}
	}
	return nil
}

// run executes the programs in one order.
func (e *execution) run(next Order) error {
	e.reset()
	for len(e.steps) > 0 {
		i := next(e.steps)
		s := e.steps[i]
		last := len(e.steps) - 1
		e.steps[i] = e.steps[last]
		e.steps = e.steps[:last]
		if err := e.take(s); err != nil {
			return err
		}
	}
	return e.finish()
}

// OpError is an op that does what it may not.
type OpError struct {
	Rank, Op int
	Err      error
}

func (e *OpError) Error() string { return fmt.Sprintf("%v: %v", opID{e.Rank, e.Op}, e.Err) }

// Unwrap returns the error without the op.
func (e *OpError) Unwrap() error { return e.Err }

// ResultError is a wrong result of a rank. It is or wraps a ByteError if one byte is to blame.
type ResultError struct {
	Rank int
	Err  error
}

func (e *ResultError) Error() string { return fmt.Sprintf("rank %d: %v", e.Rank, e.Err) }

// Unwrap returns the error without the rank.
func (e *ResultError) Unwrap() error { return e.Err }

// ByteError says what is wrong with a byte of a result, which is the first one of a cell.
type ByteError struct {
	Off units.Bytes
	Err error
}

func (e *ByteError) Error() string { return fmt.Sprintf("byte %d of the result %v", e.Off, e.Err) }

// opID identifies an op of a rank.
type opID struct{ rank, op int }

func (o opID) String() string { return fmt.Sprintf("rank %d op %d", o.rank, o.op) }

// state is the state of an op.
type state uint8

const (
	waiting state = iota // has dependencies that are not complete
	ready                // a send may begin, a receive may take its message
	running              // its region is being read or written
	complete
)

// Action is a kind of Step.
type Action uint8

// Kinds of Step, in the order of a message.
const (
	Begin       Action = iota + 1 // a send begins to read its region
	Arrive                        // the first byte of a message reaches its receive
	Apply                         // the last byte has arrived: the receive is complete
	Acknowledge                   // the acknowledgement has arrived: the send is complete
)

// Step is a step that may happen next.
type Step struct {
	Do Action
	op opID
}

// progress is the execution's state of one op.
type progress struct {
	state
	pending int     // dependencies that are not complete
	next    []int32 // ops that depend on it
	mate    opID    // the op at the other end of the message
	sent    []cell  // for a receive, the message once it has been sent
}

// execution is the state of all ranks.
type execution struct {
	programs []schedule.Program
	layouts  []schedule.Layout
	ops      [][]progress
	memory   []memory
	steps    []Step
	left     int // ops that are not complete
}

func newExecution(programs []schedule.Program, layouts []schedule.Layout) (*execution, error) {
	e := &execution{programs: programs, layouts: layouts, ops: make([][]progress, len(programs))}
	grain := grain(programs, layouts)
	for r, p := range programs {
		m, err := newMemory(layouts[r], r, grain)
		if err != nil {
			return nil, err
		}
		e.memory = append(e.memory, m)
		e.ops[r] = make([]progress, len(p))
	}
	if err := e.match(); err != nil {
		return nil, err
	}
	for r, p := range programs {
		for i, op := range p {
			for _, a := range op.After {
				if a < 0 || int(a) >= len(p) || int(a) == i {
					return nil, fmt.Errorf("%v: is after op %d of %d", opID{r, i}, a, len(p))
				}
				e.ops[r][a].next = append(e.ops[r][a].next, int32(i))
			}
		}
	}
	return e, nil
}

// reset restores the initial state.
func (e *execution) reset() {
	e.left, e.steps = 0, e.steps[:0]
	for r, p := range e.programs {
		e.memory[r].reset()
		e.left += len(p)
		for i := range p {
			o := &e.ops[r][i]
			o.state, o.pending, o.sent = waiting, len(p[i].After), nil
		}
	}
	for r, p := range e.programs {
		for i := range p {
			if len(p[i].After) == 0 {
				e.free(opID{r, i})
			}
		}
	}
}

// match finds the receive of every send.
func (e *execution) match() error {
	type message struct {
		from, to int
		tag      uint32
	}
	n := 0
	for _, p := range e.programs {
		n += len(p)
	}
	sends := make(map[message]opID, n/2)
	for r, p := range e.programs {
		for i, op := range p {
			at := opID{r, i}
			if op.Len < 1 || op.Off < 0 || op.Off+op.Len > e.memory[r].size(op.Buf) {
				return fmt.Errorf("%v: region [%d,+%d) is outside its buffer", at, op.Off, op.Len)
			}
			if op.Peer < 0 || op.Peer >= len(e.programs) || op.Peer == r {
				return fmt.Errorf("%v: peer %d", at, op.Peer)
			}
			if op.Kind != schedule.Send {
				continue
			}
			m := message{r, op.Peer, op.Tag}
			if other, twice := sends[m]; twice {
				return fmt.Errorf("%v and %v have the same tag %d", other, at, op.Tag)
			}
			sends[m] = at
		}
	}
	for r, p := range e.programs {
		for i, op := range p {
			if op.Kind != schedule.Recv {
				continue
			}
			at, m := opID{r, i}, message{op.Peer, r, op.Tag}
			send, ok := sends[m]
			if !ok {
				return fmt.Errorf("%v: nothing is sent with tag %d from rank %d", at, op.Tag, op.Peer)
			}
			if n := e.at(send).Len; n != op.Len {
				return fmt.Errorf("%v receives %d bytes, %v sends %d", at, op.Len, send, n)
			}
			delete(sends, m)
			e.ops[r][i].mate = send
			e.ops[send.rank][send.op].mate = at
		}
	}
	for _, send := range sends {
		return fmt.Errorf("%v: what it sends is never received", send)
	}
	return nil
}

// at returns op o.
func (e *execution) at(o opID) *schedule.Op { return &e.programs[o.rank][o.op] }

// of returns the progress of op o.
func (e *execution) of(o opID) *progress { return &e.ops[o.rank][o.op] }

// free makes an op ready, once its dependencies are complete.
func (e *execution) free(o opID) {
	p := e.of(o)
	p.state = ready
	switch {
	case e.at(o).Kind == schedule.Send:
		e.steps = append(e.steps, Step{Begin, o})
	case e.of(p.mate).state >= running:
		e.steps = append(e.steps, Step{Arrive, o})
	}
}

// take executes a step.
func (e *execution) take(s Step) error {
	op, p, m := e.at(s.op), e.of(s.op), &e.memory[s.op.rank]
	switch s.Do {
	case Begin:
		p.state = running
		content, err := m.read(op)
		if err != nil {
			return &OpError{s.op.rank, s.op.op, err}
		}
		mate := e.of(p.mate)
		mate.sent = content
		if mate.state == ready {
			e.steps = append(e.steps, Step{Arrive, p.mate})
		}
	case Arrive:
		p.state = running
		if err := m.lock(op); err != nil {
			return &OpError{s.op.rank, s.op.op, err}
		}
		e.steps = append(e.steps, Step{Apply, s.op})
	case Apply:
		if err := m.write(op, p.sent); err != nil {
			return &OpError{s.op.rank, s.op.op, err}
		}
		p.sent = nil
		e.steps = append(e.steps, Step{Acknowledge, p.mate})
		e.complete(s.op)
	case Acknowledge:
		m.release(op)
		e.complete(s.op)
	}
	return nil
}

// complete marks op o as complete and frees the ops without other dependencies.
func (e *execution) complete(o opID) {
	p := e.of(o)
	p.state = complete
	e.left--
	for _, i := range p.next {
		next := opID{o.rank, int(i)}
		if n := e.of(next); n.pending > 1 {
			n.pending--
		} else {
			n.pending = 0
			e.free(next)
		}
	}
}

// finish checks that all ops are complete, and verifies the results.
func (e *execution) finish() error {
	if e.left > 0 {
		for r := range e.ops {
			for i := range e.ops[r] {
				if o := (opID{r, i}); e.of(o).state != complete {
					return fmt.Errorf("deadlock: %d ops wait for ever, among them %v", e.left, o)
				}
			}
		}
	}
	for r, l := range e.layouts {
		if err := e.memory[r].verify(l.Result, r, len(e.programs)); err != nil {
			return &ResultError{r, err}
		}
	}
	return nil
}

// grain returns the largest size that divides all offsets and lengths of the programs and layouts.
func grain(programs []schedule.Program, layouts []schedule.Layout) units.Bytes {
	var g units.Bytes
	with := func(sizes ...units.Bytes) {
		for _, n := range sizes {
			for n != 0 {
				g, n = n, g%n
			}
		}
	}
	for _, p := range programs {
		for _, op := range p {
			with(op.Off, op.Len)
		}
	}
	for _, l := range layouts {
		with(l.In, l.Out)
		for _, c := range l.Local {
			with(c.Off, c.Len, c.From)
		}
		for _, w := range l.Result {
			with(w.Off, w.Len, w.From)
		}
	}
	return g
}
