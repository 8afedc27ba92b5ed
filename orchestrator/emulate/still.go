package emulate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"weft/fabric"
	"weft/fabric/realtime"
	"weft/host"
	"weft/units"
)

// getsOn returns an error when nothing moves any more. Nothing need move while a host computes, or is due later, and while
// the network is to change: the lab says until when. After a host was killed, nothing moves once the others have done what
// they can without it; they are not given the time that a lost packet needs to be sent again.
func (r *run) getsOn(now time.Time) error {
	lab := r.labNow()
	if r.watching(lab) || r.resumes(lab) {
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

// stalled says that nothing has moved for so long, why if that is known, and who waits for whom: the hosts, and the ports of the network.
func (r *run) stalled(still time.Duration, why string) error {
	text := fmt.Sprintf("nothing has moved for %.1f s (%v of lab time)%s: %s", still.Seconds(), r.scale.LabSpan(int64(still)), why, r.waiting())
	if err := r.carrier.conn.SendValue(realtime.KindLook, nil); err != nil {
		r.fabric.lose(err)
	}
	r.await(rescueTime, func() bool { return r.seen != nil || r.fabric.lost != nil })
	if r.seen == nil {
		return errors.New(text)
	}
	lines := r.seen.Waiting
	if more := len(lines) - maxPorts; more > 0 {
		lines = append(lines[:maxPorts:maxPorts], fmt.Sprintf("and %d more", more))
	}
	for _, line := range lines {
		text += "\n  " + line
	}
	return errors.New(text)
}

// How many hosts and ports an error names.
const (
	maxWaiting = 8
	maxPorts   = 16
)

// waiting says who waits for whom.
func (r *run) waiting() string {
	var all []string
	left := 0
	for i := range r.nodes {
		switch n := &r.nodes[i]; {
		case n.done:
		case len(all) == maxWaiting:
			left++
		case n.progress.Waiting == "":
			all = append(all, r.name(i)+" does not say what it waits for")
		default:
			all = append(all, n.progress.Waiting)
		}
	}
	if left > 0 {
		all = append(all, fmt.Sprintf("and %d more", left))
	}
	return strings.Join(all, "; ")
}
