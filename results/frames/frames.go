// Package frames keeps what a network looked like at regular instants of a run, so that it can be
// watched later or during the run.
//
// A frame has the state of every port that did something, and of every connection. Frames come from
// an engine, in order of time, and leave as rows of a run directory or as messages to a browser.
//
// The one idea: nobody knows beforehand how long a run takes. So recording begins with a short
// interval, and whenever there are maxFrames frames, every second frame is merged into the next
// and the interval doubles. A run of any length ends with at least half of maxFrames frames unless
// it is shorter than that many intervals, in memory that does not grow.
//
// What frames cost depends on their rows, of which a frame of a large network has thousands. So
// the interval also doubles whenever there are more rows than Limit allows, which may grow with
// the run.
//
// Counters in a frame count from the start of the run, so merging loses no packet: the bytes
// between two frames are right however many frames were between them.
//
// The package is pure: it reads no clock and no file. A Recorder belongs to one goroutine.
package frames

import (
	"cmp"
	"slices"

	"weft/fabric"
	"weft/units"
)

// Limits of a recording. Our own choices: enough for a smooth replay of half a minute, and at most
// 50 MB.
const (
	maxFrames = 512
	maxRows   = 1 << 20
)

// minFrames is the number of frames that Limit leaves. Our own choice.
const minFrames = 24

// Port is the state of a port in a frame. Counters count from the start of the run.
type Port struct {
	Port   int32       // index in the network's configuration
	Paused bool        // PFC holds at least one class
	Queued units.Bytes // bytes that wait; without the packet that is being sent
	Sent   units.Bytes // bytes of packets whose transmission has started
	Marks  int64       // packets marked CE
	Drops  int64       // packets that did not fit
}

// PortAt returns the state of a port at a frame's instant.
func PortAt(port int, p fabric.PortState) Port {
	return Port{
		Port: int32(port), Queued: p.Queued, Sent: p.Sent, Marks: p.Marks, Drops: p.Drops, Paused: p.Paused,
	}
}

// Conn is the state of a connection in a frame.
type Conn struct {
	Conn    uint32
	Arrived units.Bytes // payload that has arrived, from the start of the run; less than before: not known
	Window  units.Bytes // congestion window; 0: not known, or as it was
}

// Frame is the network at one instant. A port or a connection without a row has not changed since
// the frame before, and nothing waits in such a port.
type Frame struct {
	At    units.Time
	Ports []Port // in order of ports
	Conns []Conn // in order of connections
}

// rows returns the number of rows of the frame.
func (f *Frame) rows() int { return len(f.Ports) + len(f.Conns) }

// Recorder keeps the frames of one run.
type Recorder struct {
	from     units.Time
	interval units.Time
	fixed    bool
	frames   []Frame
	rows     int
	limit    int  // of rows
	first    Port // last row of port 0

	ahead []Frame // of connections, later than all frames: see AddConns
}

// Auto returns a recorder that begins at from with the given interval, and doubles the interval as
// the run continues.
func Auto(from, interval units.Time) *Recorder {
	return &Recorder{from: from, interval: max(interval, 1), limit: maxRows}
}

// Fixed returns a recorder with a frame every interval. The interval doubles only if the frames
// would need too much memory.
func Fixed(from, interval units.Time) *Recorder {
	r := Auto(from, interval)
	r.fixed = true
	return r
}

// Limit sets the number of rows from which on the interval doubles while more than minFrames frames
// are kept.
func (r *Recorder) Limit(rows int) { r.limit = min(rows, maxRows) }

// Schedule returns the schedule by which an engine that cannot ask the recorder makes its frames.
// It is called before the first frame.
func (r *Recorder) Schedule() Schedule {
	return Schedule{From: r.from, Every: r.interval, Fixed: r.fixed}
}

// First returns the instant of the first frame.
func (r *Recorder) First() units.Time { return r.from + r.interval }

// Add keeps a frame, which must be later than all before, and returns the instant of the next one.
// A frame without ports gets a row of port 0, so that stored rows show that there was a frame. The
// recorder owns the frame from then on. A frame at an instant that is no multiple of the
// present interval is merged into the next that is.
func (r *Recorder) Add(f Frame) (next units.Time) {
	if len(f.Ports) == 0 {
		f.Ports = []Port{{Sent: r.first.Sent, Marks: r.first.Marks, Drops: r.first.Drops}}
	} else if p := f.Ports[0]; p.Port == 0 {
		r.first = p
	}
	if n := len(r.frames); n > 0 && !r.regular(r.frames[n-1].At) {
		r.rows -= r.frames[n-1].rows()
		f = merge(&r.frames[n-1], f)
		r.frames = r.frames[:n-1]
	}
	for len(r.ahead) > 0 && r.ahead[0].At <= f.At {
		f.Conns = mergeRows(f.Conns, r.ahead[0].Conns, connKey, Conn.Then)
		r.ahead = r.ahead[1:]
	}
	r.rows += f.rows()
	r.frames = append(r.frames, f)
	if !r.fixed && len(r.frames) >= maxFrames || r.full() {
		r.thin()
	}
	return r.Next(f.At)
}

// full reports whether there are too many rows.
func (r *Recorder) full() bool {
	n := len(r.frames)
	return r.rows > r.limit && n > minFrames || r.rows > maxRows && n > 2
}

// Next returns the instant of the first frame after an instant, which is not before the first.
func (r *Recorder) Next(after units.Time) units.Time {
	return r.from + (max(after-r.from, 0)/r.interval+1)*r.interval
}

// maxAhead is the number of frames of connections that wait for the network's. Our own choice:
// hosts are at most a report ahead.
const maxAhead = 1024

// AddConns adds states of connections, in order of connections, that were observed apart from the
// network, and belong to the first frame at or after an instant. A row with only Arrived or only
// Window leaves the other as it was. Rows of a later instant than all frames wait for their frame.
func (r *Recorder) AddConns(at units.Time, conns []Conn) {
	if i := firstAt(r.frames, at); i < len(r.frames) {
		f := &r.frames[i]
		r.rows -= f.rows()
		f.Conns = mergeRows(f.Conns, conns, connKey, Conn.Then)
		if r.rows += f.rows(); r.full() {
			r.thin()
		}
		return
	}
	i := firstAt(r.ahead, at)
	if (i == len(r.ahead) || r.ahead[i].At != at) && len(r.ahead) < maxAhead {
		r.ahead = slices.Insert(r.ahead, i, Frame{At: at})
	}
	i = min(i, len(r.ahead)-1)
	r.ahead[i].Conns = mergeRows(r.ahead[i].Conns, conns, connKey, Conn.Then)
}

// firstAt returns the index of the first frame at or after an instant.
func firstAt(all []Frame, at units.Time) int {
	i, _ := slices.BinarySearchFunc(all, at, func(f Frame, at units.Time) int { return cmp.Compare(f.At, at) })
	return i
}

// Schedule is when frames are due in an engine that cannot ask a Recorder, because it runs in
// another process.
type Schedule struct {
	From  units.Time // frames come after it
	Every units.Time // first interval; 0: no frames
	Fixed bool       // the interval stays
}

// After returns the instant of the frame after one at now, or of the first frame if now is From. An
// interval that is not fixed doubles after as many intervals as the recorder's does.
func (s Schedule) After(now units.Time) units.Time {
	every := s.Every
	for !s.Fixed && now-s.From >= maxFrames*every {
		every *= 2
	}
	return s.From + ((now-s.From)/every+1)*every
}

// regular reports whether an instant is a multiple of the interval.
func (r *Recorder) regular(at units.Time) bool { return (at-r.from)%r.interval == 0 }

// thin doubles the interval. Frames at other instants are merged into the next.
func (r *Recorder) thin() {
	r.interval *= 2
	kept := r.frames[:0]
	r.rows = 0
	for i := range r.frames {
		f := r.frames[i]
		if n := len(kept); n > 0 && !r.regular(kept[n-1].At) {
			r.rows -= kept[n-1].rows()
			f = merge(&kept[n-1], f)
			kept = kept[:n-1]
		}
		kept = append(kept, f)
		r.rows += f.rows()
	}
	clear(r.frames[len(kept):])
	r.frames = kept
}

// merge returns next with the rows of prev that next does not replace.
func merge(prev *Frame, next Frame) Frame {
	out := Frame{At: next.At, Ports: next.Ports, Conns: mergeRows(prev.Conns, next.Conns, connKey, Conn.Then)}
	if replaced(prev.Ports, next.Ports) {
		return out
	}
	out.Ports = mergeRows(prev.Ports, next.Ports, func(p Port) int64 { return int64(p.Port) },
		func(_, later Port) Port { return later })
	for i, j := 0, 0; i < len(out.Ports); i++ {
		p := &out.Ports[i]
		for j < len(next.Ports) && next.Ports[j].Port < p.Port {
			j++
		}
		if j == len(next.Ports) || next.Ports[j].Port != p.Port {
			p.Queued, p.Paused = 0, false // next has no row because nothing waits there
		}
	}
	return out
}

// replaced reports whether next has a row of every port in prev, as in a busy network.
func replaced(prev, next []Port) bool {
	j := 0
	for i := range prev {
		for j < len(next) && next[j].Port < prev[i].Port {
			j++
		}
		if j == len(next) || next[j].Port != prev[i].Port {
			return false
		}
	}
	return true
}

func connKey(c Conn) int64 { return int64(c.Conn) }

// Then returns a later row of the same connection, with what that does not know from this one.
func (c Conn) Then(later Conn) Conn {
	later.Arrived = max(c.Arrived, later.Arrived)
	later.Window = cmp.Or(later.Window, c.Window)
	return later
}

// mergeRows merges two ordered lists. Of two rows with one key it keeps what both makes of them.
func mergeRows[T any](prev, next []T, key func(T) int64, both func(prev, next T) T) []T {
	if len(prev) == 0 {
		return next
	}
	out := make([]T, 0, max(len(prev), len(next)))
	for len(prev) > 0 && len(next) > 0 {
		switch a, b := key(prev[0]), key(next[0]); {
		case a < b:
			out, prev = append(out, prev[0]), prev[1:]
		case a > b:
			out, next = append(out, next[0]), next[1:]
		default:
			out, prev, next = append(out, both(prev[0], next[0])), prev[1:], next[1:]
		}
	}
	return append(append(out, prev...), next...)
}

// Frames returns all frames in order of time. They are valid until the next call of Add.
func (r *Recorder) Frames() []Frame { return r.frames }
