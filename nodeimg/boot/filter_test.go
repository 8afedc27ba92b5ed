package boot

import (
	"testing"

	"golang.org/x/sys/unix"
)

// judge runs a filter on a call as the kernel would (seccomp(2)), as far as filters of this package
// go.
func judge(t *testing.T, code []unix.SockFilter, architecture, call, argument uint32) uint32 {
	t.Helper()
	data := map[uint32]uint32{atCall: call, atArchitecture: architecture, atArgument: argument}
	var a uint32
	for pc := 0; pc < len(code); pc++ {
		i := code[pc]
		jump := func(holds bool) {
			if holds {
				pc += int(i.Jt)
			} else {
				pc += int(i.Jf)
			}
		}
		switch i.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			a = data[i.K]
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jump(a == i.K)
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			jump(a >= i.K)
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			jump(a&i.K != 0)
		case unix.BPF_RET | unix.BPF_K:
			return i.K
		default:
			t.Fatalf("instruction %d: code %#x", pc, i.Code)
		}
	}
	t.Fatal("the filter has no end")
	return 0
}

func TestCallFilter(t *testing.T) {
	const here, other = unix.AUDIT_ARCH_X86_64, unix.AUDIT_ARCH_I386
	refused := func(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }
	code := callFilter(here)
	for _, c := range []struct {
		what                         string
		architecture, call, argument uint32
		want                         uint32
	}{
		{"read", here, unix.SYS_READ, 0, unix.SECCOMP_RET_ALLOW},
		{"a call of another architecture", other, unix.SYS_READ, 0, unix.SECCOMP_RET_KILL_PROCESS},
		{"a call with 32-bit pointers", here, otherABI | unix.SYS_READ, 0, refused(unix.ENOSYS)},
		{"keys", here, unix.SYS_KEYCTL, 0, refused(unix.ENOSYS)},
		{"a program for the kernel", here, unix.SYS_BPF, 0, refused(unix.ENOSYS)},
		{"another's namespace", here, unix.SYS_SETNS, 0, refused(unix.ENOSYS)},
		{"clone3", here, unix.SYS_CLONE3, 0, refused(unix.ENOSYS)},
		{"fork", here, unix.SYS_CLONE, uint32(unix.SIGCHLD), unix.SECCOMP_RET_ALLOW},
		{"a thread", here, unix.SYS_CLONE, unix.CLONE_VM | unix.CLONE_THREAD, unix.SECCOMP_RET_ALLOW},
		{"fork into a user namespace", here, unix.SYS_CLONE, unix.CLONE_NEWUSER | uint32(unix.SIGCHLD),
			refused(unix.EPERM)},
		{"a new network", here, unix.SYS_CLONE, unix.CLONE_NEWNET, refused(unix.EPERM)},
		{"a working directory of one's own", here, unix.SYS_UNSHARE, unix.CLONE_FS, unix.SECCOMP_RET_ALLOW},
		{"a user namespace", here, unix.SYS_UNSHARE, unix.CLONE_NEWUSER, refused(unix.EPERM)},
		{"a clock of one's own", here, unix.SYS_UNSHARE, unix.CLONE_NEWTIME, refused(unix.EPERM)},
		{"UDP", here, unix.SYS_SOCKET, unix.AF_INET, unix.SECCOMP_RET_ALLOW},
		{"packets", here, unix.SYS_SOCKET, unix.AF_PACKET, unix.SECCOMP_RET_ALLOW},
		{"the hypervisor", here, unix.SYS_SOCKET, unix.AF_VSOCK, refused(unix.EAFNOSUPPORT)},
		{"the kernel's ciphers", here, unix.SYS_SOCKET, unix.AF_ALG, refused(unix.EAFNOSUPPORT)},
	} {
		if got := judge(t, code, c.architecture, c.call, c.argument); got != c.want {
			t.Errorf("%s: %#x, want %#x", c.what, got, c.want)
		}
	}
}
