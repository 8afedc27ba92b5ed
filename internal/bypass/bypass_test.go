package bypass

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// dup returns a descriptor of a file that the callee may close.
func dup(t *testing.T, f *os.File) int {
	t.Helper()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// Both sides see the same memory, and neither can change its size.
func TestMemoryIsSharedAndSealed(t *testing.T) {
	const size = 3 * 4096
	f, err := Create("test", size)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	a, err := Map(dup(t, f), size)
	if err != nil {
		t.Fatal(err)
	}
	defer Unmap(a)
	b, err := Map(dup(t, f), size)
	if err != nil {
		t.Fatal(err)
	}
	defer Unmap(b)
	if a[size-1] = 7; b[size-1] != 7 {
		t.Error("the mappings differ")
	}
	if f.Truncate(0) == nil || f.Truncate(2*size) == nil {
		t.Error("the size was changed")
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_WRITE); err == nil {
		t.Error("a seal was added")
	}
	if _, err := Map(dup(t, f), size+4096); err == nil {
		t.Error("a larger size was accepted")
	}
}

// Memory that anybody could shrink is not mapped.
func TestUnsealedMemoryIsRefused(t *testing.T) {
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Ftruncate(fd, 4096); err != nil {
		t.Fatal(err)
	}
	if _, err := Map(fd, 4096); err == nil {
		t.Error("mapped")
	}
	file, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := Map(dup(t, file), 0); err == nil {
		t.Error("a device was mapped")
	}
}

// A side is woken while it sleeps, once, and only for what is due before it wakes by itself.
func TestBell(t *testing.T) {
	files, err := NewBell()
	if err != nil {
		t.Fatal(err)
	}
	open := func(side Side) *Bell {
		var fds []int
		for _, f := range files {
			fds = append(fds, dup(t, f))
		}
		b, err := OpenBell(fds, side)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		return b
	}
	sides := [2]*Bell{open(Fabric), open(Node)}
	for _, f := range files {
		f.Close()
	}
	readable := func(b *Bell) bool {
		fds := []unix.PollFd{{Fd: int32(b.FD), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 0)
		return err == nil && n > 0
	}
	for i, b := range sides {
		other := sides[1-i]
		if other.Ring(0) || readable(b) {
			t.Error("an awake side was woken")
		}
		b.Sleep(100)
		if other.Ring(100) || readable(b) {
			t.Error("a side was woken for what it sees in time")
		}
		if !other.Ring(99) || !readable(b) || readable(other) {
			t.Error("a sleeping side was not woken")
		}
		if other.Ring(0) {
			t.Error("a side was woken twice")
		}
		if b.Clear(); readable(b) {
			t.Error("readable after Clear")
		}
		b.Sleep(Forever)
		b.Awake()
		if other.Ring(0) || readable(b) {
			t.Error("an awake side was woken")
		}
	}
	if _, err := OpenBell([]int{dup(t, os.Stdin)}, Node); err == nil {
		t.Error("a bell of one descriptor")
	}
}
