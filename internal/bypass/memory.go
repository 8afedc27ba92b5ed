package bypass

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// seals fix the size of shared memory. A process that shrank it would end the others by SIGBUS.
const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW

// Create returns a file of shared memory whose size is sealed.
func Create(name string, size int) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, fmt.Errorf("bypass: %w", os.NewSyscallError("memfd_create", err))
	}
	f := os.NewFile(uintptr(fd), name)
	if err = f.Truncate(int64(size)); err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("bypass: shared memory of %d bytes: %w", size, err)
	}
	return f, nil
}

// Map maps shared memory of Create and closes fd. It checks that the size is as expected and
// sealed.
func Map(fd, size int) ([]byte, error) {
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("bypass: %w", err)
	}
	got, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil || got&seals != seals || st.Size != int64(size) {
		return nil, fmt.Errorf("bypass: shared memory of %d bytes with seals %#x; expected %d bytes, sealed (%v)",
			st.Size, got, size, err)
	}
	b, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("bypass: %w", os.NewSyscallError("mmap", err))
	}
	return b, nil
}

// Unmap unmaps what Map has mapped. Nobody may use it any more.
func Unmap(b []byte) {
	_ = unix.Munmap(b) // fails only for memory that Map has not mapped
}
