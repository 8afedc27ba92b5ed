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

// knownState is the size in bytes of the floating point and vector registers that kernels before
// 6.13 know: up to AVX-512 (HOST_FP_SIZE, arch/x86/um/user-offsets.c). A processor with AMX has 11
// KB. ptrace(2) refuses to set fewer bytes there, and the kernel panics over its first process:
// "ptrace set fp regs failed".
const knownState = 2696

// fitting returns a path to the kernel in a form that this machine can run: path itself, or a copy
// in memory whose calls to set registers use this machine's size. The bytes beyond those the kernel
// knows are marked unused and ignored.
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
		return path, nil // large enough, as in newer kernels, or it will report that it is not
	}
	fd, err := unix.MemfdCreate("linux.uml", unix.MFD_CLOEXEC)
	if err != nil {
		return "", os.NewSyscallError("memfd_create", err)
	}
	copied := fmt.Sprintf("/proc/self/fd/%d", fd) // valid until this process ends
	if err := os.WriteFile(copied, program, 0); err != nil {
		return "", fmt.Errorf("copy %s into memory: %w", path, err)
	}
	return copied, nil
}

// widen changes the number of bytes in the only call that sets a process's registers: iov.iov_len =
// 2696; ptrace(PTRACE_SETREGSET, ...). It reports whether it found the call exactly once. Builds of
// one release differ in its address only.
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

// stateSize returns the number of register bytes that ptrace(2) requires on this machine.
func stateSize() (int, error) {
	cmd := &exec.Cmd{Path: "/proc/self/exe", SysProcAttr: &syscall.SysProcAttr{Ptrace: true,
		Pdeathsig: syscall.SIGKILL}}
	runtime.LockOSThread() // the tracer is a thread
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("look at the registers of a process: %w", err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	var status unix.WaitStatus
	if _, err := unix.Wait4(cmd.Process.Pid, &status, 0, nil); err != nil { // stops before its first instruction
		return 0, os.NewSyscallError("wait4", err)
	}
	const xstate = 0x202 // NT_X86_XSTATE, linux/elf.h
	b := make([]byte, 1<<16)
	all := unix.Iovec{Base: &b[0], Len: uint64(len(b))}
	_, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GETREGSET, uintptr(cmd.Process.Pid), xstate,
		uintptr(unsafe.Pointer(&all)), 0, 0)
	runtime.KeepAlive(b)
	if e != 0 { // only processors before 2008
		return 0, nil
	}
	return int(all.Len), nil
}
