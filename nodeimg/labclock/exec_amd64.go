package labclock

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strconv"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tracing is the set of threads that this process makes carry out system calls.
type tracing struct {
	mu      sync.Mutex
	threads map[int]bool
}

func (t *tracing) has(thread int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.threads[thread]
}

func (t *tracing) set(thread int, on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.threads == nil {
		t.threads = map[int]bool{}
	}
	if on {
		t.threads[thread] = true
	} else {
		delete(t.threads, thread)
	}
}

// exec lets a thread carry out an execve, and gives the new program lab time before its first
// instruction. The thread is traced from the call to there, and ends with this process meanwhile.
func (s *session) exec(n *notification) {
	runtime.LockOSThread() // the thread that traces is the only one that may
	defer runtime.UnlockOSThread()
	thread := int(n.pid)
	err := seize(thread, unix.PTRACE_O_EXITKILL|unix.PTRACE_O_TRACEEXEC|unix.PTRACE_O_TRACESYSGOOD)
	switch {
	case err != nil && s.control(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&n.id)) != 0:
		return // it was killed
	case err != nil:
		s.complain(n.pid, "a process that another one traces, or that may not be traced, cannot start a program with "+
			"lab time (%v); attach the debugger to the program once it runs, or use --clock real", err)
		s.fail(n, unix.EPERM)
		return
	}
	// The thread stops where it would return from execve: after the exec, or after its failure.
	if err := unix.PtraceInterrupt(thread); err == nil {
		_ = s.proceed(n) // an error means that it was killed
	}
	started := false
	for {
		stop, ok := await()
		if !ok {
			return // it was killed
		}
		switch {
		case stop.event == unix.PTRACE_EVENT_EXEC: // stop.thread is now the process, whichever thread it was
			started = true
			_ = unix.PtraceInterrupt(stop.thread)
			_ = unix.PtraceCont(stop.thread, 0)
		case started && stop.event == unix.PTRACE_EVENT_STOP:
			s.start(stop.thread)
			return
		case started:
			_ = unix.PtraceCont(stop.thread, int(stop.signal))
		default: // the exec failed, or is about to be repeated and reported again
			detach(stop.thread, stop.signal)
			return
		}
	}
}

// start gives lab time to a process that is stopped before the first instruction of a program, and
// lets it run. If it cannot, it kills the process.
func (s *session) start(process int) {
	s.tracing.set(process, true)
	err := s.patch(process)
	s.tracing.set(process, false) // before it runs, and may start the next program
	if err != nil {
		if !errors.Is(err, errKilled) && !errors.Is(err, unix.ESRCH) {
			s.complain(uint32(process), "the program cannot be given lab time and was killed: %v", err)
		}
		_ = unix.Kill(process, unix.SIGKILL)
	}
	detach(process, 0)
}

// errKilled is the error for a process that ended while it was being patched.
var errKilled = errors.New("it was killed")

// patch maps the node's Page and a page of code into a process, and lets the vDSO's symbols lead to
// that code.
func (s *session) patch(process int) error {
	base, err := vdsoAt(strconv.Itoa(process))
	switch {
	case errors.Is(err, errNarrow):
		return err
	case errors.Is(err, fs.ErrPermission):
		return errors.New("its file may be run but not read, and then only root may change the program; " +
			"make it readable")
	case err != nil:
		return errKilled
	case base == 0:
		return nil // it reads clocks by system calls
	}
	r, err := borrow(process, base+s.image.call)
	if err != nil {
		return err
	}
	err = s.install(r, base)
	return errors.Join(err, r.giveBack())
}

// mapPage has the process map the node's Page, and returns the address. It leaves no descriptor.
func (s *session) mapPage(r *remote) (uint64, error) {
	fd, err := r.call(takeFile)
	if err != nil {
		return 0, fmt.Errorf("a descriptor for its clocks: %w", err)
	}
	page, err := r.call(unix.SYS_MMAP, 0, pageSize, unix.PROT_READ, unix.MAP_SHARED, fd, 0)
	if err != nil {
		return 0, fmt.Errorf("map its clocks: %w", err)
	}
	var name [8]byte
	if _, err := unix.PtracePeekData(r.process, uintptr(page+8*atName), name[:]); err != nil {
		return 0, fmt.Errorf("read its clocks: %w", err)
	}
	if binary.LittleEndian.Uint64(name[:]) != s.page.name() {
		return 0, fmt.Errorf("descriptor %d is not the one of its clocks", fd)
	}
	if _, err := r.call(unix.SYS_CLOSE, fd); err != nil {
		return 0, fmt.Errorf("close the descriptor of its clocks: %w", err)
	}
	return page, nil
}

// install does what patch says, by system calls that it makes the process carry out.
func (s *session) install(r *remote, base uint64) error {
	page, err := s.mapPage(r)
	if err != nil {
		return err
	}
	place, err := r.call(unix.SYS_MMAP, 0, pageSize, unix.PROT_READ|unix.PROT_EXEC,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, ^uint64(0), 0)
	if err != nil {
		return fmt.Errorf("map the code of its clocks: %w", err)
	}
	code, functions := assemble(base+s.image.original, page)
	if _, err := unix.PtracePokeData(r.process, uintptr(place), code); err != nil {
		return fmt.Errorf("write the code of its clocks: %w", err)
	}
	for at, function := range s.image.symbols {
		offset := place + uint64(functions[function]) - base // whoever adds base wraps as well
		if _, err := unix.PtracePokeData(r.process, uintptr(base+at), littleEndian(offset)); err != nil {
			return fmt.Errorf("change its vDSO: %w", err)
		}
	}
	return nil
}
