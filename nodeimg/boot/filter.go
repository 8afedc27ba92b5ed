package boot

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// families are the address families of sockets that a program in a node can open: those that its
// namespaces confine. Others, such as AF_VSOCK, which reaches the hypervisor, ignore namespaces.
var families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK, unix.AF_PACKET}

// denied are system calls that ignore namespaces (keys, the kernel's own programs and counters),
// that make sockets past the filter, or whose arguments a filter cannot read (clone3; C libraries
// then use clone).
var denied = []uint32{
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_IO_URING_SETUP, unix.SYS_BPF,
	unix.SYS_PERF_EVENT_OPEN,
	unix.SYS_USERFAULTFD, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_SETNS, unix.SYS_CLONE3,
}

// spaces are the flags of clone and unshare that make namespaces. In a user namespace of its own a
// program would have every capability, and reach parts of the kernel that are otherwise reserved
// for root. CLONE_NEWTIME, unknown to clone, shares its bits with clone's signal.
const spaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// Offsets in struct seccomp_data, linux/seccomp.h. The lower half of the first argument comes first
// on both architectures.
const (
	atCall, atArchitecture, atArgument = 0, 4, 16
	otherABI                           = 0x40000000 // __X32_SYSCALL_BIT
)

// filterCalls denies the calling thread, and its successor by exec, the system calls that lead out
// of a node. The thread must have no_new_privs set. On architectures other than Weft's nothing is
// filtered.
func filterCalls() error {
	architecture, ok := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64,
		"arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	if !ok {
		return nil
	}
	code := callFilter(architecture)
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	// Without the flag, kernels before 5.16 make processes with a filter pay for a mitigation that
	// others do not.
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW,
		uintptr(unsafe.Pointer(&program)))
	// before 4.17, or the call is itself filtered
	if errno == unix.EINVAL || errno == unix.ENOSYS || errno == unix.EPERM {
		errno, _ = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0,
			0).(unix.Errno)
	}
	if errno != 0 && errno != unix.EINVAL && errno != unix.ENOSYS { // a kernel without filters
		return fmt.Errorf("filter system calls: %w", errno)
	}
	return nil
}

// callFilter returns the filter. It kills a process that makes a call of another architecture,
// whose numbers mean other calls: a program that cannot even exit would end in some other way.
func callFilter(architecture uint32) []unix.SockFilter {
	const (
		load      = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal     = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		atOrAbove = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		any       = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		answer    = unix.BPF_RET | unix.BPF_K
	)
	refuse := func(errno unix.Errno) unix.SockFilter {
		return unix.SockFilter{Code: answer, K: unix.SECCOMP_RET_ERRNO | uint32(errno)}
	}
	allow := unix.SockFilter{Code: answer, K: unix.SECCOMP_RET_ALLOW}
	code := []unix.SockFilter{
		{Code: load, K: atArchitecture},
		{Code: equal, K: architecture, Jt: 1}, {Code: answer, K: unix.SECCOMP_RET_KILL_PROCESS},
		{Code: load, K: atCall},
		{Code: atOrAbove, K: otherABI, Jf: 1}, refuse(unix.ENOSYS),
	}
	for _, call := range denied {
		code = append(code, unix.SockFilter{Code: equal, K: call, Jf: 1}, refuse(unix.ENOSYS))
	}
	for _, call := range []struct{ number, flags uint32 }{{unix.SYS_CLONE, spaces},
		{unix.SYS_UNSHARE, spaces | unix.CLONE_NEWTIME}} {
		code = append(code, unix.SockFilter{Code: equal, K: call.number, Jf: 4},
			unix.SockFilter{Code: load, K: atArgument}, unix.SockFilter{Code: any, K: call.flags, Jf: 1},
			refuse(unix.EPERM), allow)
	}
	code = append(code, unix.SockFilter{Code: equal, K: unix.SYS_SOCKET, Jt: 1}, allow, unix.SockFilter{Code: load,
		K: atArgument})
	for _, family := range families {
		code = append(code, unix.SockFilter{Code: equal, K: family, Jf: 1}, allow)
	}
	return append(code, refuse(unix.EAFNOSUPPORT))
}
