package emulate

import (
	"context"
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

// getsOn returns an error when a run makes no progress any more. No progress is expected while a
// host computes or starts later, while a change of the network is due, and while a connection waits
// to retransmit and may succeed. After a host was killed, the run ends once the others have done
// what they can without it; it does not wait for their retransmissions.
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
			return r.stalled(still, ", and the remaining hosts wait for "+strings.Join(dead, ", ")+" forever")
		}
	}
	return nil
}

// watching reports whether hosts stay for the sake of their clocks, with or without progress.
func (r *run) watching(lab units.Time) bool {
	return slices.ContainsFunc(r.x.Plans, func(p host.Plan) bool { return lab < p.Until })
}

// resumes reports whether a host starts or continues by itself, or the network changes, after lab.
func (r *run) resumes(lab units.Time) bool {
	if slices.ContainsFunc(r.x.Changes, func(c fabric.Change) bool { return lab < c.At }) {
		return true
	}
	return slices.ContainsFunc(r.nodes, func(n nodeState) bool { return !n.done && lab < n.progress.Resumes })
}

// retries reports whether a connection waits to retransmit with a chance of success: links lose
// packets at random, or the network or a host has changed since its last transmission. Connections
// back off far beyond Experiment.stall. If nothing has changed, the next attempt ends like the last
// one (docs/adr/0053).
func (r *run) retries(lab units.Time) bool {
	random, changed := r.x.random(), r.x.changed(lab)
	return slices.ContainsFunc(r.nodes, func(n nodeState) bool {
		t := n.progress.Retries
		return !n.done && lab < t.Due && (random || t.Tried < changed)
	})
}

// random reports whether links lose packets at random.
func (x *Experiment) random() bool { return x.Fabric.HasLink(x.Changes, (*fabric.Link).Loses) }

// changed returns the last instant before until at which the network changed or a host resumed; 0:
// none.
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

// GivenUp returns the approximate end of a run without progress since moved, if its transports do
// not give up earlier.
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

// bereft returns the killed hosts that every unfinished host waits for, directly or through others,
// at lab. It is empty if some host waits for none of them.
func (r *run) bereft(lab units.Time) []string {
	const wanted = 2
	// 0: waits for no killed host, as far as is known; 1: waits for one; 2: is one, and waited for
	state := make([]int, len(r.nodes))
	killed := func(i int) bool {
		return slices.ContainsFunc(r.x.Plans[i].Halts, func(k host.Halt) bool {
			return k.Until == units.Never &&
				k.At <= lab
		})
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

// ErrStalled is wrapped by the error of a run without progress.
var ErrStalled = errors.New("nothing has moved")

// stalled returns the error of a run without progress for the given time: a first line with the
// reason, if known, then a line for each waiting host and congested port.
func (r *run) stalled(still time.Duration, why string) error {
	hosts, unfinished := r.waiting()
	text := fmt.Sprintf(" for %.1f s (%v of lab time)%s: %d of %d hosts are not done", still.Seconds(),
		r.scale.LabSpan(int64(still)).Rounded(), why, unfinished, len(r.nodes))
	for _, line := range hosts {
		text += "\n  " + line
	}
	if err := r.carrier.conn.SendValue(realtime.KindLook, nil); err != nil {
		r.fabric.lose(err)
	}
	r.await(context.Background(), rescueTime, func() bool { return r.seen != nil || r.fabric.lost != nil })
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

// The numbers of hosts and ports that an error names.
const (
	maxWaiting = 4
	maxPorts   = 16
)

// waiting returns a line for each waiting host with what it waits for, and the number of unfinished
// hosts.
func (r *run) waiting() (lines []string, unfinished int) {
	for i := range r.nodes {
		n := &r.nodes[i]
		if n.done {
			continue
		}
		switch unfinished++; {
		case unfinished > maxWaiting:
		case n.progress.Waiting == "":
			lines = append(lines, r.name(i)+" does not report what it waits for")
		default:
			lines = append(lines, n.progress.Waiting)
		}
	}
	if more := unfinished - maxWaiting; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more hosts", more))
	}
	return lines, unfinished
}
