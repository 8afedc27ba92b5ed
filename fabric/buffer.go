package fabric

import "weft/units"

// The packet memory of a switch, and how much of it lossless classes may use. A packet uses memory
// while it waits: from its arrival to the start of its transmission. A packet that finds the link
// free uses none.
//
// Source of the rules and their numbers: alibaba-edu/High-Precision-Congestion-Control@9f4be2a,
// switch-mmu.cc. Our own choices: a packet that fits into the reserve is always admitted, and no
// threshold lies above the free memory, which matters if alpha is above 1.

// BufferConfig is the packet memory that all ports of a switch share. If Total is 0 there is no
// common limit: a lossy packet is bounded by PortConfig.Buffer, a lossless one by its own PFC
// settings.
//
// Class 0 without PFC, which is control traffic, does not count here: only PortConfig.Buffer bounds
// it.
type BufferConfig struct {
	// Total is the whole memory. What remains after every port's Reserve and Headroom (PFCConfig)
	// is shared.
	Total units.Bytes `json:"total,omitempty"`

	// Alpha bounds lossy queues (dynamic thresholds: Choudhury and Hahne, IEEE/ACM ToN 1998). A
	// packet is dropped if with it more bytes of its class would wait in its output port than Alpha
	// times the free shared memory. 0: a queue may take all free memory.
	Alpha float64 `json:"alpha,omitempty"`
}

// memory is the shared memory of a switch.
type memory struct {
	shared units.Bytes // size
	used   units.Bytes
	alpha  float64 // of lossy queues; 0: no bound
}

// boundless is the size of a shared memory without a limit.
const boundless units.Bytes = 1 << 60

func (m *memory) free() units.Bytes { return m.shared - m.used }

// admits reports whether a lossy packet may join a queue in which queue bytes of its class wait.
func (m *memory) admits(queue, size units.Bytes) bool {
	if size > m.free() {
		return false
	}
	return m.alpha == 0 || queue+size <= times(m.alpha, m.free())
}

// times returns a share of b in whole bytes. For powers of two it equals the shift of the source.
func times(alpha float64, b units.Bytes) units.Bytes {
	return units.Bytes(min(alpha*float64(b), float64(boundless)))
}

// footing is how the memory of a packet is accounted for.
type footing uint8

const (
	uncounted footing = iota // not at all
	lossy                    // as shared memory
	lossless                 // on the account of the port by which it arrived
)

// account is the memory of a switch used by the packets of one class that arrived by one port.
type account struct {
	footing footing
	paused  bool  // the far end was told to pause and not yet to resume
	memory  int32 // index of the switch's memory

	reserve  units.Bytes
	headroom units.Bytes
	alpha    float64     // 0: the threshold is xoff, else it is dynamic
	xoff     units.Bytes // static threshold
	xon      units.Bytes // static threshold: resume at or below
	offset   units.Bytes // dynamic threshold: resume this far below it
	response units.Time  `state:"span"` // see PFCConfig.Response

	held    units.Bytes // in the reserve and in the shared memory
	over    units.Bytes // in the headroom
	maxOver units.Bytes `state:"-"` // largest value of over
}

// shared returns how many bytes of the shared memory the account uses.
func (a *account) shared() units.Bytes { return max(0, a.held-a.reserve) }

// threshold returns how many bytes of the shared memory the account may use before its packets go
// to the headroom.
func (a *account) threshold(m *memory) units.Bytes {
	most := a.shared() + m.free()
	if a.alpha > 0 {
		return min(times(a.alpha, m.free()), most)
	}
	return min(a.xoff, most)
}

// admits reports whether a packet fits. In the source: "drop iff hdrm+size > headroom and
// shared_used+size > thr".
func (a *account) admits(m *memory, size units.Bytes) bool {
	return a.over+size <= a.headroom || a.shared()+size <= a.threshold(m) || a.held+size <= a.reserve
}

// add accounts for a packet that was admitted.
func (a *account) add(m *memory, size units.Bytes) {
	sum := a.held + size
	switch beyond := sum - a.reserve; {
	case beyond <= 0:
		a.held = sum
	case beyond > a.threshold(m):
		a.over += size
		a.maxOver = max(a.maxOver, a.over)
	default:
		m.used += min(size, beyond)
		a.held = sum
	}
}

// remove gives back the memory of a packet: first of the headroom, then of the shared memory, then
// of the reserve.
func (a *account) remove(m *memory, size units.Bytes) {
	over := min(a.over, size)
	m.used -= min(size-over, a.shared())
	a.over -= over
	a.held -= size - over
}

// mustPause reports whether to pause the port: "hdrm > 0 or shared_used >= thr".
func (a *account) mustPause(m *memory) bool {
	return a.over > 0 || a.shared() >= a.threshold(m)
}

// mayResume reports whether to resume the port: "hdrm == 0 and (shared_used == 0 or shared_used +
// offset <= thr)"; with a static threshold "hdrm == 0 and shared_used <= xon".
func (a *account) mayResume(m *memory) bool {
	used := a.shared()
	switch {
	case a.over > 0:
		return false
	case a.alpha > 0:
		return used == 0 || used+a.offset <= a.threshold(m)
	default:
		return used <= a.xon
	}
}
