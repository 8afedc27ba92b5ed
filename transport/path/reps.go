package path

import (
	"weft/internal/splitmix"
	"weft/units"
)

// REPS recycles entropies (REPS: Recycled Entropy Packet Spraying, arXiv 2407.21625; UecMpReps of
// uet-htsim, uec_mp.cpp and buffer_reps.cpp). A path that returned without a mark carries one more
// packet; other packets take random paths. After a timeout the paths in the buffer are used again
// and again for a while (frozen): those were good.
type REPS struct {
	state   uint64
	paths   uint16
	explore int // packets that take random paths after the buffer was frozen

	buffer [repsBuffer]uint16
	valid  [repsBuffer]bool
	head   int // the element that is written next
	count  int // elements that were ever written
	fresh  int // elements that are valid, the last before head

	frozen bool
	until  units.Time // frozen until then
	next   int        // frozen: the element that is used next
}

const (
	repsBuffer  = 8                      // repsBufferSize
	repsFreeze  = 10 * units.Millisecond // exit_freeze_after
	repsExplore = 16                     // explore_counter after a frozen period
)

// NewREPS returns a chooser over a number of paths. seed determines the random paths.
func NewREPS(paths int, seed uint64) *REPS { return &REPS{state: seed, paths: uint16(paths)} }

func (r *REPS) random() uint16 { return uint16(splitmix.Next(&r.state) % uint64(r.paths)) }

// OnFeedback keeps a good path (processEv).
func (r *REPS) OnFeedback(now units.Time, f Feedback) {
	if f.Lost && !r.frozen && r.explore == 0 {
		r.frozen, r.until = true, now+repsFreeze
	}
	if r.frozen && now > r.until {
		*r = REPS{state: r.state, paths: r.paths, explore: repsExplore}
	}
	if f.Lost || f.Cut || f.Marked {
		return
	}
	if !r.valid[r.head] {
		r.fresh++
	}
	r.buffer[r.head], r.valid[r.head] = f.Path, true
	r.head = (r.head + 1) % repsBuffer
	r.count = min(r.count+1, repsBuffer)
}

// Choose returns the oldest fresh path, or a random one (nextEntropy).
func (r *REPS) Choose(units.Time) uint16 {
	switch {
	case r.explore > 0:
		r.explore--
		return r.random()
	case r.frozen && r.count > 0:
		i := r.next
		if r.next = (i + 1) % r.count; r.valid[i] {
			r.valid[i] = false
			r.fresh--
		}
		return r.buffer[i]
	case r.frozen || r.fresh == 0:
		return r.random()
	}
	oldest := (r.head - r.fresh + repsBuffer) % repsBuffer
	r.valid[oldest] = false
	r.fresh--
	return r.buffer[oldest]
}

// Mixed recycles paths that returned without a mark in order, and otherwise chooses as Bitmap
// (UecMpMixed of uet-htsim, uec_mp.cpp).
type Mixed struct {
	bitmap  *Bitmap
	recycle []uint16 // ring
	head, n int
}

// NewMixed returns a chooser over a number of paths, a power of two up to 256. seed determines the
// order.
func NewMixed(paths int, seed uint64) *Mixed { return &Mixed{bitmap: NewBitmap(paths, seed)} }

// OnFeedback keeps a good path, and penalizes a bad one.
func (m *Mixed) OnFeedback(now units.Time, f Feedback) {
	m.bitmap.OnFeedback(now, f)
	if f.Lost || f.Cut || f.Marked {
		return
	}
	if m.n == len(m.recycle) {
		if m.n >= maxRecycled {
			return
		}
		grown := make([]uint16, max(16, 2*m.n))
		for i := range m.n {
			grown[i] = m.recycle[(m.head+i)%m.n]
		}
		m.recycle, m.head = grown, 0
	}
	m.recycle[(m.head+m.n)%len(m.recycle)] = f.Path & (m.bitmap.paths - 1)
	m.n++
}

// maxRecycled bounds the list of good paths. It is longer than any window; ours.
const maxRecycled = 1 << 14

// Choose returns the oldest good path, or one that is not penalized.
func (m *Mixed) Choose(now units.Time) uint16 {
	if m.n == 0 {
		return m.bitmap.Choose(now)
	}
	p := m.recycle[m.head]
	m.head = (m.head + 1) % len(m.recycle)
	m.n--
	return p
}
