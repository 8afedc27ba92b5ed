package agent

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// largePage is the size of the pages that inLargePages asks for, in bytes.
const largePage = 2 << 20

// inLargePages asks the kernel for large pages for a fresh buffer. Getting one takes as long as a
// few small ones, and small ones would cost a lookup each when packets arrive. The buffer works as
// well without.
func inLargePages(b []byte) {
	if len(b) < 2*largePage {
		return
	}
	skip := -uintptr(unsafe.Pointer(&b[0])) % largePage
	_ = unix.Madvise(b[skip:][:(uintptr(len(b))-skip)&^(largePage-1)], unix.MADV_HUGEPAGE)
}
