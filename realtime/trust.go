package realtime

import (
	"errors"
	"fmt"

	"weft/fabric"
	"weft/internal/clip"
	"weft/internal/control"
	"weft/results/frames"
)

// The process of a part may be on another machine. Those who read its answers use ports and hosts
// in them as indices, so Join refuses answers that no part of the network gives.

// maxHeld is the number of samples, rows of frames and steps of a part that wait for those of the
// others. Ours: some seconds of what a fabric process can send.
const maxHeld = 1 << 20

// longest returns the size of the longest message of a kind that a part sends, in bytes. Ours: a
// row of a sample or a frame takes up to 200 bytes, and a port in a report some hundred.
func (c *Config) longest(kind string) int {
	switch kind {
	case KindSamples, KindFrames:
		return 256 * (2*maxSamples + len(c.Network.Ports))
	case KindSteps:
		return 128 * MaxSteps
	case KindState, KindReport:
		return 1<<20 + 4<<10*(len(c.Network.Ports)+len(c.Hosts))
	}
	return 64 << 10
}

// errPart is an answer that no part of this network gives.
var errPart = errors.New("no part of this network says that")

// index reports whether i is an index of a list of n.
func index[T ~int | ~int32](i T, n int) bool { return i >= 0 && int(i) < n }

// hold appends the elements of a message of a part to all. rows returns the number of rows of an
// element, or that no part sends it.
func hold[T any](m control.Message, s *partState, all *[]T, rows func(*T) (n int, ok bool)) error {
	var more []T
	if err := m.Decode(&more); err != nil {
		return err
	}
	for i := range more {
		n, ok := rows(&more[i])
		if !ok {
			return fmt.Errorf("%w: %s", errPart, m.Kind)
		}
		s.held += n
	}
	if s.held > maxHeld {
		return fmt.Errorf("%d records of it wait for the other parts; expected at most %d", s.held, maxHeld)
	}
	*all = append(*all, more...)
	return nil
}

// sampleRows is the rows of a sample, for hold, as frameRows and stepRows are of the others.
func (c *Config) sampleRows(s *Sample) (n int, ok bool) {
	return 1, s.At >= 0 && index(s.Port, len(c.Network.Ports))
}

// frameRows also notes that the frame was sent.
func (c *Config) frameRows(s *partState, f *frames.Frame) (n int, ok bool) {
	if f.At <= s.framed || len(f.Conns) > 0 {
		return 0, false
	}
	s.framed = f.At
	last := int32(-1)
	for k := range f.Ports {
		p := f.Ports[k].Port
		if p <= last || int(p) >= len(c.Network.Ports) {
			return 0, false
		}
		last = p
	}
	return 1 + len(f.Ports), true
}

func (c *Config) stepRows(s *fabric.Step) (n int, ok bool) {
	nodes := len(c.Hosts) + len(c.Network.Switches)
	return 1, s.At >= 0 && index(s.Switch, nodes) && index(s.Src, nodes) && index(s.Dst, nodes) && index(s.To, nodes) &&
		index(s.Port, len(c.Network.Ports))
}

// recount counts what a part has sent that still waits.
func (s *partState) recount() {
	s.held = len(s.samples) + len(s.steps) + len(s.frames)
	for i := range s.frames {
		s.held += len(s.frames[i].Ports)
	}
}

// checkGone checks that a part says of a host that it is gone.
func (c *Config) checkGone(m control.Message) error {
	var g Gone
	if err := m.Decode(&g); err != nil {
		return err
	}
	if !index(g.Host, len(c.Hosts)) || g.Why != "" { // why is of bypass NICs, which parts do not have
		return fmt.Errorf("%w: host %d is gone", errPart, g.Host)
	}
	return nil
}

// checkState checks a snapshot of a part.
func (c *Config) checkState(s *State) error {
	if len(s.Ports) != len(c.Network.Ports) || len(s.Hosts) != len(c.Hosts) {
		return fmt.Errorf("%w: a snapshot with %d ports and %d hosts", errPart, len(s.Ports), len(s.Hosts))
	}
	for i := range s.Waiting {
		s.Waiting[i] = clip.Line(s.Waiting[i])
	}
	return checkStalls(s.Stalls)
}

// checkStalls checks the stalls of a part, which is one process.
func checkStalls(all []Stalls) error {
	if len(all) != 1 {
		return fmt.Errorf("%w: stalls of %d processes", errPart, len(all))
	}
	return errors.Join(all[0].Check(), all[0].Late.Check())
}

// checkReport checks the report of a part.
func (c *Config) checkReport(r *Report) error {
	hosts := len(c.Hosts)
	if len(r.Ports) != len(c.Network.Ports) || len(r.Refusals) != hosts || len(r.Beside) != hosts ||
		len(r.Answers) != hosts || r.Delivery == nil || r.Departure == nil || r.QueueDelay == nil ||
		r.Crossings == nil || r.Crossings.Lateness == nil || r.Crossings.Slack == nil || r.Elapsed < 0 ||
		r.Links != "" || r.Checked != nil {
		return fmt.Errorf("%w: a report with %d ports and %d hosts, or without what it measured", errPart, len(r.Ports),
			len(r.Refusals))
	}
	r.Scheduler, r.Broken = clip.Line(r.Scheduler), clip.Line(r.Broken)
	return checkStalls(r.Stalls)
}
