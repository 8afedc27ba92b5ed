package host

import (
	"fmt"
	"reflect"
	"sort"

	"weft/units"
)

// A simulation need not execute a step of the workload that it has executed before from the same
// state (package sim, memo.go). Here is what it asks a host for: whether it is between two
// repetitions, which of them come next and whether they are like earlier ones, and to skip some.

// position is a place in a host's work: its next repetition.
type position struct {
	run    int32 // index in Host.runs; their number after the last
	repeat int32
}

// standing is a position, and how many records the host has there.
type standing struct {
	position
	flows, dones int
	timeouts     int
}

// Unlike returns why a host never skips anything, or "".
func (h *Host) Unlike() string {
	switch {
	case h.clock != nil:
		return "clocks of hosts"
	case h.noise != nil:
		return "background traffic"
	case len(h.halts.left) > 0:
		return "hosts that fail"
	case len(h.corrupt) > 0:
		return "corrupt data"
	case !h.passed:
		return "hosts that must not end before an instant"
	}
	for i := range h.runs {
		switch it := h.runs[i].item; {
		case it.Jitter > 0:
			return "jitter of computations"
		case it.Given != nil || it.Called:
			return "jobs, whose operations have their own order"
		}
	}
	return ""
}

// Begins returns when the host begins its next repetition; units.Never: it has none left, or waits
// for the end of another.
func (h *Host) Begins() units.Time { return h.nextStart }

// Between reports whether no repetition is in progress, and no message. A host that has failed is
// never between two.
func (h *Host) Between() bool {
	current := int(h.position().run)
	for i := current; i < len(h.runs); i++ {
		r := &h.runs[i]
		begun := r.phase != idle || r.repeat > 0
		if r.phase == running || i > current && begun || r.work != nil && len(r.work.open) > 0 {
			return false
		}
	}
	return h.err == nil && (h.nextStart != units.Never || h.over == len(h.runs)) && h.endpoint.Still()
}

// Rest forgets what does not matter any more between repetitions: see transport.Endpoint.
func (h *Host) Rest(now units.Time) {
	h.arriving, h.offset = nil, 0
	h.endpoint.Rest(now)
}

// Where returns where the host is, between two repetitions, for Again and Skip.
func (h *Host) Where() any { return h.standing() }

func (h *Host) standing() standing {
	return standing{h.position(), h.flows.count(), len(h.dones), len(h.endpoint.TimedOut())}
}

func (h *Host) position() position {
	i := h.first
	for i < len(h.runs) && h.runs[i].phase == over {
		i++
	}
	if i == len(h.runs) {
		return position{run: int32(i)}
	}
	return position{int32(i), int32(h.runs[i].repeat)}
}

// next returns the place of the repetition after one.
func (h *Host) next(p position) position {
	if p.repeat++; int(p.run) < len(h.runs) && int(p.repeat) == h.runs[p.run].item.Repeat {
		return position{run: p.run + 1}
	}
	return p
}

// Again returns how often the work from one place to the present one follows again, so that
// at least one repetition comes after that: at most most. The present place was reached by after
// the first one, at an instant.
func (h *Host) Again(since any, at, by units.Time, most int) int {
	then, now := since.(standing), h.standing()
	if then.timeouts != now.timeouts {
		return 0 // each is recorded
	}
	from, here := then.position, now.position
	if from == here {
		return most // it has nothing to do
	}
	ahead := here
	for times := range most {
		shift := by * units.Time(times+1)
		for back := from; ; back, ahead = h.next(back), h.next(ahead) {
			if !h.alike(back, ahead, at, shift) {
				return times
			}
			if back == here {
				break
			}
		}
		if h.begins(int(ahead.run)+1) < at+by+shift {
			return times
		}
	}
	return most
}

// begins returns the earliest start that a later run has of its own.
func (h *Host) begins(run int) units.Time {
	earliest := units.Never
	for ; run < len(h.runs); run = int(h.skip[run]) {
		if it := h.runs[run].item; !it.Previous && !it.Called {
			earliest = min(earliest, it.Start)
		}
	}
	return earliest
}

// alike reports whether the repetition at b is like that at a, and begins by the same rule: that
// at a as seen at an instant, and that at b later by shift.
func (h *Host) alike(a, b position, at, shift units.Time) bool {
	if int(b.run) >= len(h.runs) || (a.repeat == 0) != (b.repeat == 0) {
		return false
	}
	x, y := &h.runs[a.run], &h.runs[b.run]
	if h.kind(a.run) != h.kind(b.run) {
		return false
	}
	if b.repeat > 0 || x.item.Start <= at && y.item.Start <= at+shift {
		return true
	}
	return x.item.Start+shift == y.item.Start
}

// kind returns the first run whose item does the same as that of a run, on the same connections.
func (h *Host) kind(run int32) int32 {
	for i := int32(len(h.kinds)); i <= run; i++ {
		k := i
		for _, first := range h.firsts {
			if same(h.runs[first].item, h.runs[i].item) {
				k = first
				break
			}
		}
		if k == i {
			h.firsts = append(h.firsts, i)
		}
		h.kinds = append(h.kinds, k)
	}
	return h.kinds[run]
}

// same reports whether two items differ only in when they start, how often they are repeated, and
// what they are called.
func same(x, y *Item) bool {
	a := *x
	a.Index, a.Name, a.Start, a.Repeat = y.Index, y.Name, y.Start, y.Repeat
	return reflect.DeepEqual(&a, y)
}

// Skip records what the repetitions from an earlier place to the present one did as often as times
// says, each time later by by, and moves on to the place after that. The caller has asked Again,
// and moves everything else.
func (h *Host) Skip(since any, times int, by units.Time) error {
	mark, here := since.(standing), h.position()
	from := mark.position
	if from == here {
		return nil
	}
	var done []position // the repetitions from there to here
	for p := from; p != here; p = h.next(p) {
		done = append(done, p)
	}
	flows, dones := h.flows.from(mark.flows), h.dones[mark.dones:]
	for _, d := range dones {
		if d.Wrong > 0 {
			return fmt.Errorf("host %s: a wrong result is not repeated", h.plan.Name)
		}
	}
	at := make(map[position]int, len(done))
	for k, p := range done {
		at[p] = k
	}
	ahead, shift := here, units.Time(0)
	to := make([]position, len(done))
	for range times {
		shift += by
		for k := range to {
			to[k], ahead = ahead, h.next(ahead)
		}
		for _, f := range flows {
			was := position{h.runOf(int(f.Item)), f.Repeat}
			h.flows.add(h.moved(f, was, to[at[was]], shift))
		}
		for _, d := range dones {
			p := to[at[position{h.runOf(d.Item), int32(d.Repeat)}]]
			d.Item, d.Repeat = h.runs[p.run].item.Index, int(p.repeat)
			d.Start, d.End, d.Alike = d.Start+shift, d.End+shift, true
			h.dones = append(h.dones, d)
		}
	}
	return h.moveTo(here, ahead, shift)
}

// runOf returns the run of an item.
func (h *Host) runOf(item int) int32 {
	return int32(sort.Search(len(h.runs), func(i int) bool { return h.runs[i].item.Index >= item }))
}

// moved returns the record of a message of one repetition as that of another, later by shift.
func (h *Host) moved(f Flow, from, to position, shift units.Time) Flow {
	l, _ := h.outTo(f.Conn)
	r := &h.runs[to.run]
	f.Message += useOf(l.uses, to.run).base + uint32(to.repeat)*r.tags -
		useOf(l.uses, from.run).base - uint32(from.repeat)*r.tags
	f.Item, f.Repeat = int32(r.item.Index), to.repeat
	f.Start, f.Acked = f.Start+shift, f.Acked+shift
	return f
}

// moveTo moves from the present place to a later one that is alike.
func (h *Host) moveTo(here, to position, shift units.Time) error {
	was := h.runs[here.run]
	for i := here.run; i < to.run; i++ {
		r := &h.runs[i]
		if h.memory != nil && r.work != nil {
			h.memory.Close(r.item.Index)
		}
		r.phase, r.work, r.repeat = over, nil, r.item.Repeat
		h.over++
	}
	r := &h.runs[to.run]
	r.repeat, r.phase = int(to.repeat), was.phase
	if r.begun = was.begun; r.phase == computing {
		r.begun += shift
	}
	if to.repeat == 0 {
		return nil
	}
	if err := h.buildProgram(to.run); err != nil {
		return err
	}
	for k := range r.work.flows {
		f := &r.work.flows[k]
		f.got = uint32(to.repeat) * f.each
	}
	return nil
}
