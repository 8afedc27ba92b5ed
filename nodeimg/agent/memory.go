package agent

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// largePage is the size of the pages that inLargePages asks for, in bytes.
const largePage = 2 << 20

// inLargePages asks the kernel for large pages for a buffer that nothing is in yet: getting one takes as long as a few small
// ones, and each small one would have to be looked up when a packet comes for it. Where there are none the buffer is as good.
func inLargePages(b []byte) {
	if len(b) < 2*largePage {
		return
	}
	skip := -uintptr(unsafe.Pointer(&b[0])) % largePage
	_ = unix.Madvise(b[skip:][:(uintptr(len(b))-skip)&^(largePage-1)], unix.MADV_HUGEPAGE)
}
