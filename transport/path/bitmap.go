package path

import (
	"weft/internal/splitmix"
	"weft/units"
)

// Bitmap sprays over all paths in turn, and skips each for a while that returned a mark or lost a
// packet. It is UecMpBitmap of the reference simulator (uet-htsim, uec_mp.cpp). The order changes
// with each cycle, as in Spray.
type Bitmap struct {
	state   uint64
	paths   uint16 // a power of two
	index   uint16
	mask    uint16
	penalty []uint8 // by path: how often it is to be skipped (_ev_skip_bitmap)
}

// Penalties (processEv; the last is _max_penalty).
const (
	penaltyMarked = 1
	penaltyCut    = 4
	maxPenalty    = 15
)

// NewBitmap returns a chooser over a number of paths, a power of two up to 256. seed determines the
// order.
func NewBitmap(paths int, seed uint64) *Bitmap {
	b := &Bitmap{state: seed, paths: uint16(paths), penalty: make([]uint8, paths)}
	b.shuffle()
	return b
}

func (b *Bitmap) shuffle() { b.mask = uint16(splitmix.Next(&b.state)) & (b.paths - 1) }

// current returns the path whose turn it is.
func (b *Bitmap) current() uint16 { return b.index ^ b.mask }

// step moves to the next path.
func (b *Bitmap) step() {
	if b.index++; b.index == b.paths {
		b.index = 0
		b.shuffle()
	}
}

// Choose returns the next path without a penalty. Only the first that is skipped has its penalty
// reduced, so that penalties last (nextEntropy).
func (b *Bitmap) Choose(units.Time) uint16 {
	p := b.current()
	if b.penalty[p] > 0 {
		b.penalty[p]--
		for range b.paths {
			b.step()
			if p = b.current(); b.penalty[p] == 0 {
				break
			}
		}
	}
	b.step()
	return p
}

// OnFeedback adds a penalty to a path.
func (b *Bitmap) OnFeedback(_ units.Time, f Feedback) {
	p := f.Path & (b.paths - 1)
	more := uint8(0)
	switch {
	case f.Lost:
		more = maxPenalty
	case f.Cut:
		more = penaltyCut
	case f.Marked:
		more = penaltyMarked
	}
	b.penalty[p] = min(b.penalty[p]+more, maxPenalty)
}
