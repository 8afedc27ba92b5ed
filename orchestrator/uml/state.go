package uml

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// knownState is the size of a process's floating point and vector registers, in bytes, that kernels before 6.13 know: up to
// AVX-512 (HOST_FP_SIZE, arch/x86/um/user-offsets.c). A processor with AMX has 11 KB. There ptrace(2) refuses to set less, and
// the kernel panics over its first process: "ptrace set fp regs failed".
const knownState = 2696

// fitting returns the program of the kernel as this machine can run it: at path, or a copy in memory whose calls to set registers
// name the size of this machine's. What they set beyond those that the kernel knows is not marked as in use, and ignored.
func fitting(path string) (string, error) {
	if runtime.GOARCH != "amd64" {
		return path, nil
	}
	size, err := stateSize()
	if err != nil || size <= knownState {
		return path, err
	}
	program, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if !widen(program, size) {
		return path, nil // it has room for what there is, as newer kernels do, or will say that it has not
	}
	fd, err := unix.MemfdCreate("linux.uml", unix.MFD_CLOEXEC)
	if err != nil {
		return "", os.NewSyscallError("memfd_create", err)
	}
	copied := fmt.Sprintf("/proc/self/fd/%d", fd) // until this process ends
	if err := os.WriteFile(copied, program, 0); err != nil {
		return "", fmt.Errorf("copy %s into memory: %w", path, err)
	}
	return copied, nil
}

// widen has the one place of a program that sets a process's registers set so many bytes, and reports whether it found it:
// iov.iov_len = 2696; ptrace(PTRACE_SETREGSET, ...). Packages of one release differ in where it is, not in what it is.
func widen(program []byte, size int) bool {
	length := binary.LittleEndian.AppendUint32(nil, knownState)
	set := append(append(length, 0xbf), 5, 0x42, 0, 0) // mov $PTRACE_SETREGSET, %edi
	at := bytes.Index(program, set)
	if at < 0 || bytes.Contains(program[at+1:], set) {
		return false
	}
	binary.LittleEndian.PutUint32(program[at:], uint32(size))
	return true
}

// stateSize is how many bytes of registers ptrace(2) sets of a process of this machine: all at once or none.
func stateSize() (int, error) {
	cmd := &exec.Cmd{Path: "/proc/self/exe", SysProcAttr: &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL}}
	runtime.LockOSThread() // which is the tracer
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("look at the registers of a process: %w", err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	var status unix.WaitStatus
	if _, err := unix.Wait4(cmd.Process.Pid, &status, 0, nil); err != nil { // it stops before its first instruction
		return 0, os.NewSyscallError("wait4", err)
	}
	const xstate = 0x202 // NT_X86_XSTATE, linux/elf.h
	b := make([]byte, 1<<16)
	all := unix.Iovec{Base: &b[0], Len: uint64(len(b))}
	_, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GETREGSET, uintptr(cmd.Process.Pid), xstate, uintptr(unsafe.Pointer(&all)), 0, 0)
	runtime.KeepAlive(b)
	if e != 0 { // no processor since 2008
		return 0, nil
	}
	return int(all.Len), nil
}
