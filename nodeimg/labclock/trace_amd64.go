package labclock

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// seize begins to trace a thread, without stopping it. The caller's thread must be locked to its
// goroutine, and trace no other.
func seize(thread, options int) error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(thread), 0, uintptr(options), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// detach lets a stopped thread run untraced, and delivers a signal if it is not 0. If the thread
// was killed, detach waits for its end: its parent is not told before.
func detach(thread int, signal unix.Signal) {
	for {
		_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(thread), 0, uintptr(signal), 0, 0)
		if errno == 0 {
			return
		}
		s, ok := await()
		if !ok {
			return
		}
		thread, signal = s.thread, s.signal
	}
}

// A stop is why a traced thread stands still.
type stop struct {
	thread int
	event  int         // PTRACE_EVENT_...; 0: a system call or a signal
	call   bool        // it enters or leaves a system call
	signal unix.Signal // to be delivered, unless event or call
}

// await waits until the traced thread of this thread stops. ok is false if it has ended.
func await() (s stop, ok bool) {
	for {
		var status unix.WaitStatus
		thread, err := unix.Wait4(-1, &status, unix.WALL|unix.WNOTHREAD, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return s, false
		case status.Stopped():
			s = stop{thread: thread, event: int(status) >> 16}
			switch sig := status.StopSignal(); {
			case sig == unix.SIGTRAP|0x80:
				s.call = true
			case s.event == 0:
				s.signal = sig
			}
			return s, true
		}
		// It has ended, or is a thread that ended since another one of its process called execve:
		// if there is another, it is still traced.
	}
}

// A remote is a process that is stopped before its next instruction and made to carry out system
// calls.
type remote struct {
	process int
	saved   unix.PtraceRegs
	mask    uint64 // of blocked signals
	at      uint64 // address of a syscall instruction
	stopped bool   // a SIGSTOP came meanwhile
}

// maskSize is the size of a mask of signals in bytes.
const maskSize = 8

// borrow takes a stopped process over. No signal but SIGKILL and SIGSTOP reaches it until giveBack.
func borrow(process int, at uint64) (*remote, error) {
	r := &remote{process: process, at: at}
	if err := unix.PtraceGetRegs(process, &r.saved); err != nil {
		return nil, errKilled
	}
	if err := r.signals(unix.PTRACE_GETSIGMASK, &r.mask); err != nil {
		return nil, err
	}
	all := ^uint64(0)
	return r, r.signals(unix.PTRACE_SETSIGMASK, &all)
}

func (r *remote) signals(request uintptr, mask *uint64) error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, request, uintptr(r.process), maskSize,
		uintptr(unsafe.Pointer(mask)), 0, 0)
	if errno != 0 {
		return errKilled
	}
	return nil
}

// giveBack restores the registers and signals.
func (r *remote) giveBack() error {
	if err := unix.PtraceSetRegs(r.process, &r.saved); err != nil {
		return errKilled
	}
	if err := r.signals(unix.PTRACE_SETSIGMASK, &r.mask); err != nil {
		return err
	}
	if r.stopped {
		return unix.Kill(r.process, unix.SIGSTOP)
	}
	return nil
}

// call makes the process carry out a system call.
func (r *remote) call(number uint64, args ...uint64) (uint64, error) {
	var a [6]uint64
	copy(a[:], args)
	regs := r.saved
	regs.Rip, regs.Rax = r.at, number
	regs.Orig_rax = ^uint64(0) // it is in no system call, which would be restarted
	regs.Rdi, regs.Rsi, regs.Rdx, regs.R10, regs.R8, regs.R9 = a[0], a[1], a[2], a[3], a[4], a[5]
	if err := unix.PtraceSetRegs(r.process, &regs); err != nil {
		return 0, errKilled
	}
	for range 2 { // until it enters the call, and until it leaves it
		if err := r.toCall(); err != nil {
			return 0, err
		}
	}
	if err := unix.PtraceGetRegs(r.process, &regs); err != nil {
		return 0, errKilled
	}
	const maxErrno = 4095
	if e := -int64(regs.Rax); e > 0 && e <= maxErrno {
		return 0, unix.Errno(e)
	}
	return regs.Rax, nil
}

// toCall lets the process run until it enters or leaves a system call.
func (r *remote) toCall() error {
	for {
		if err := unix.PtraceSyscall(r.process, 0); err != nil {
			return errKilled
		}
		s, ok := await()
		switch {
		case !ok:
			return errKilled
		case s.call:
			return nil
		case s.signal == unix.SIGSTOP:
			r.stopped = true
		case s.signal != 0 && s.signal != unix.SIGTRAP:
			return fmt.Errorf("signal %d came while all are blocked", s.signal)
		}
	}
}

// littleEndian returns a word as it is in memory.
func littleEndian(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }
