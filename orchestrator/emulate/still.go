package emulate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"weft/fabric"
	"weft/host"
	"weft/realtime"
	"weft/units"
)

// getsOn returns an error when nothing moves any more. Nothing need move while a host computes, or is due later, while
// the network is to change, which the lab says, and while a connection waits to send again what may get through this time.
// After a host was killed, nothing moves once the others have done what they can without it; they are not given the time
// that a lost packet needs to be sent again.
func (r *run) getsOn(now time.Time) error {
	lab := r.labNow()
	if r.watching(lab) || r.resumes(lab) || r.retries(lab) {
		r.moved = now
	}
	still := now.Sub(r.moved)
	switch {
	case r.done():
	case still > r.x.stall():
		return r.stalled(still, "")
	case still > r.x.settle():
		if dead := r.bereft(lab); len(dead) > 0 {
			return r.stalled(still, ", and what is left waits for "+strings.Join(dead, ", ")+" for ever")
		}
	}
	return nil
}

// watching says whether hosts are to stay for their clocks' sake, whatever their items do: nothing of these need move.
func (r *run) watching(lab units.Time) bool {
	return slices.ContainsFunc(r.x.Plans, func(p host.Plan) bool { return lab < p.Until })
}

// resumes says whether a host is to go on by itself, or the network is to change, after an instant.
func (r *run) resumes(lab units.Time) bool {
	if slices.ContainsFunc(r.x.Changes, func(c fabric.Change) bool { return lab < c.At }) {
		return true
	}
	return slices.ContainsFunc(r.nodes, func(n nodeState) bool { return !n.done && lab < n.progress.Resumes })
}

// retries says whether a connection is to send something again that may get through although nothing did before: lines lose
// packets at random, or the last change of the network or of a host came after what it sent last. Connections back off far
// beyond Experiment.stall. Where nothing has changed since, the next attempt ends as the last one did (docs/adr/0053).
func (r *run) retries(lab units.Time) bool {
	random, changed := r.x.random(), r.x.changed(lab)
	return slices.ContainsFunc(r.nodes, func(n nodeState) bool {
		t := n.progress.Retries
		return !n.done && lab < t.Due && (random || t.Tried < changed)
	})
}

// random says whether lines lose packets at random.
func (x *Experiment) random() bool {
	return slices.ContainsFunc(x.Fabric.Ports, func(p fabric.PortConfig) bool { return p.Loss > 0 || p.BitErrors > 0 }) ||
		slices.ContainsFunc(x.Changes, func(c fabric.Change) bool { return c.Line != nil && (c.Line.Loss > 0 || c.Line.BitErrors > 0) })
}

// changed returns the last instant until another at which the network changed or a host went on; 0: there was none.
func (x *Experiment) changed(until units.Time) (last units.Time) {
	for i := range x.Changes {
		if at := x.Changes[i].At; at <= until {
			last = max(last, at)
		}
	}
	for h := range x.Plans {
		for _, k := range x.Plans[h].Halts {
			if k.Until <= until && k.Until != units.Never {
				last = max(last, k.Until)
			}
		}
	}
	return last
}

// GivenUp returns about when a run ends in which nothing has moved since an instant, if its transports do not give up before.
func (x *Experiment) GivenUp(moved units.Time) units.Time {
	if x.random() {
		return units.Never
	}
	end := moved
	if changed := x.changed(units.Never); changed > moved {
		end = 2*changed - moved + x.rto() // each timeout is twice as long as the one before
	}
	return end + units.Time(float64(units.FromDuration(x.stall()))/x.Dilation)
}

// bereft returns the names of the hosts that the lab had killed by an instant and that every host that is not done waits
// for, or for one that does, and so on. It is empty when some of them waits for none of those.
func (r *run) bereft(lab units.Time) []string {
	const wanted = 2
	state := make([]int, len(r.nodes)) // 0: waits for none of them, as far as is known; 1: for one; 2: is one, and waited for
	killed := func(i int) bool {
		return slices.ContainsFunc(r.x.Plans[i].Halts, func(k host.Halt) bool { return k.Until == units.Never && k.At <= lab })
	}
	for again := true; again; {
		again = false
		for i := range r.nodes {
			if killed(i) || state[i] != 0 {
				continue
			}
			for _, h := range r.nodes[i].progress.Awaits {
				switch k := int(h); {
				case k < 0 || k >= len(r.nodes):
				case killed(k):
					state[k], state[i], again = wanted, 1, true
				case state[k] == 1:
					state[i], again = 1, true
				}
			}
		}
	}
	var names []string
	for i := range r.nodes {
		switch {
		case state[i] == wanted:
			names = append(names, r.x.Plans[i].Name)
		case !r.nodes[i].done && !killed(i) && state[i] == 0:
			return nil
		}
	}
	return names
}

// ErrStalled is wrapped by the error of a run in which nothing moves any more.
var ErrStalled = errors.New("nothing has moved")

// stalled says in a line that nothing has moved for so long, and why if that is known, and below it who waits for whom: the hosts, and
// the ports of the network.
func (r *run) stalled(still time.Duration, why string) error {
	hosts, unfinished := r.waiting()
	lab := r.scale.LabSpan(int64(still)).Microseconds() / 1e3
	text := fmt.Sprintf(" for %.1f s (%.3g ms of lab time)%s: %d of %d hosts are not done", still.Seconds(), lab, why, unfinished, len(r.nodes))
	for _, line := range hosts {
		text += "\n  " + line
	}
	if err := r.carrier.conn.SendValue(realtime.KindLook, nil); err != nil {
		r.fabric.lose(err)
	}
	r.await(rescueTime, func() bool { return r.seen != nil || r.fabric.lost != nil })
	if r.seen == nil {
		return fmt.Errorf("%w%s", ErrStalled, text)
	}
	lines := r.seen.Waiting
	if more := len(lines) - maxPorts; more > 0 {
		lines = append(lines[:maxPorts:maxPorts], fmt.Sprintf("and %d more", more))
	}
	for _, line := range lines {
		text += "\n  " + line
	}
	return fmt.Errorf("%w%s", ErrStalled, text)
}

// How many hosts and ports an error names.
const (
	maxWaiting = 4
	maxPorts   = 16
)

// waiting says who waits for whom, a line for each host, and how many hosts are not done.
func (r *run) waiting() (lines []string, unfinished int) {
	for i := range r.nodes {
		n := &r.nodes[i]
		if n.done {
			continue
		}
		switch unfinished++; {
		case unfinished > maxWaiting:
		case n.progress.Waiting == "":
			lines = append(lines, r.name(i)+" does not say what it waits for")
		default:
			lines = append(lines, n.progress.Waiting)
		}
	}
	if more := unfinished - maxWaiting; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more hosts", more))
	}
	return lines, unfinished
}
