package bypass

import (
	"fmt"
	"math"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Side is a side of a bell.
type Side int

// The sides.
const (
	Fabric Side = iota
	Node
)

// Forever is the end of a sleep that only a ring ends.
const Forever = math.MaxInt64

// pageSize is the size of a bell's page in bytes, and apart the distance of the words of the two
// sides: two cache lines.
const (
	pageSize = 4096
	apart    = 128
)

// NewBell returns the descriptors of a bell: its page, the eventfd that wakes the fabric process,
// and the one that wakes the process of nodes.
func NewBell() (files [3]*os.File, err error) {
	if files[0], err = Create("weft-bell", pageSize); err != nil {
		return files, err
	}
	for i := range 2 {
		fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
		if err != nil {
			for _, f := range files[:1+i] {
				f.Close()
			}
			return [3]*os.File{}, fmt.Errorf("bypass: %w", os.NewSyscallError("eventfd", err))
		}
		files[1+i] = os.NewFile(uintptr(fd), "bell")
	}
	return files, nil
}

// A Bell wakes the other side, and is what this side waits for.
type Bell struct {
	// FD becomes readable when the other side rings.
	FD    int
	other int // eventfd of the other side
	page  []byte
	mine  *int64 // until when this side sleeps; 0: it is awake
	their *int64 // until when the other does
}

// OpenBell returns a side of a bell. It takes ownership of the descriptors of NewBell.
func OpenBell(fds []int, side Side) (*Bell, error) {
	if len(fds) != 3 {
		for _, fd := range fds {
			unix.Close(fd)
		}
		return nil, fmt.Errorf("bypass: %d descriptors for a bell; expected 3", len(fds))
	}
	page, err := Map(fds[0], pageSize)
	if err != nil {
		unix.Close(fds[1])
		unix.Close(fds[2])
		return nil, err
	}
	at := func(s Side) *int64 { return (*int64)(unsafe.Pointer(&page[int(s)*apart])) }
	return &Bell{FD: fds[1+side], other: fds[2-side], page: page, mine: at(side), their: at(1 - side)}, nil
}

// Sleep tells the other side that this one is about to wait for FD until an instant. The caller
// looks once more at its rings before it waits: what was pushed before this call, nobody rings for.
func (b *Bell) Sleep(until int64) { atomic.StoreInt64(b.mine, until) }

// Awake tells the other side that this one looks at its rings again, and needs no ringing.
func (b *Bell) Awake() {
	if atomic.LoadInt64(b.mine) != 0 {
		atomic.StoreInt64(b.mine, 0)
	}
}

// Ring wakes the other side if it sleeps beyond the instant at which something pushed is due. It
// reports whether it made a system call.
func (b *Bell) Ring(due int64) bool {
	until := atomic.LoadInt64(b.their)
	if until == 0 || due >= until || !atomic.CompareAndSwapInt64(b.their, until, 0) {
		return false
	}
	one := [8]byte{1} // little-endian on both architectures
	// fails only if the count is full, and then the other side is awake
	_, _, _ = unix.RawSyscall(unix.SYS_WRITE, uintptr(b.other), uintptr(unsafe.Pointer(&one)), 8)
	return true
}

// Clear makes FD unreadable until the next ring.
func (b *Bell) Clear() {
	var n [8]byte // empty: nobody rang
	_, _, _ = unix.RawSyscall(unix.SYS_READ, uintptr(b.FD), uintptr(unsafe.Pointer(&n)), 8)
}

// Close closes this side.
func (b *Bell) Close() {
	unix.Close(b.FD)
	unix.Close(b.other)
	Unmap(b.page)
}
