package labclock

import (
	"golang.org/x/sys/unix"
)

// takeFile is the number of a system call that does not exist. The keeper lets a program make it,
// once at each exec, and answers it with a descriptor of the node's Page. It is below the numbers
// of the x32 ABI and far above the kernel's.
const takeFile = 0x00570ef7

// Operations of futex(2) that wait until an instant. The kernel calls all others' timeouts
// durations.
const (
	futexLockPI        = 6
	futexWaitBitset    = 9
	futexWaitRequeuePI = 11
	futexLockPI2       = 13

	futexPrivate  = 128
	futexRealtime = 256
)

// Options of sockets by which the kernel stamps packets with its own clock, and ioctl requests for
// the last stamp.
var (
	stampOptions = []uint32{unix.SO_TIMESTAMP_OLD, unix.SO_TIMESTAMPNS_OLD, unix.SO_TIMESTAMPING_OLD,
		unix.SO_TIMESTAMP_NEW, unix.SO_TIMESTAMPNS_NEW, unix.SO_TIMESTAMPING_NEW}
	stampRequests = []uint32{0x8906, 0x8907, 0x80108906, 0x80108907} // SIOCGSTAMP and SIOCGSTAMPNS, old and new
)

// A filter collects the instructions of a BPF program. Each rule ends with a verdict or falls
// through to the next.
type filter []unix.SockFilter

// atCall and atArgument are offsets in struct seccomp_data. The lower half of an argument comes
// first.
const atCall, atArgument, argumentSize, half = 0, 16, 8, 4

// load loads a 32-bit word.
func (f *filter) load(at uint32) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at})
}

// argument loads the lower half of argument i.
func (f *filter) argument(i uint32) { f.load(atArgument + argumentSize*i) }

// equal skips then instructions if the loaded word is k, and otherwise else instructions.
func (f *filter) equal(k uint32, then, otherwise uint8) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: then, Jf: otherwise, K: k})
}

// set skips like equal if the loaded word has a bit of k.
func (f *filter) set(k uint32, then, otherwise uint8) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, Jt: then, Jf: otherwise, K: k})
}

// mask clears all bits of the loaded word but those of k.
func (f *filter) mask(k uint32) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: k})
}

func (f *filter) verdict(k uint32) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k})
}

const (
	allow  = unix.SECCOMP_RET_ALLOW
	notify = unix.SECCOMP_RET_USER_NOTIF
	refuse = unix.SECCOMP_RET_ERRNO
)

// rule appends the rule of a system call. Unless body decides, the call is allowed.
func (f *filter) rule(call uint32, body func(*filter)) {
	var b filter
	body(&b)
	b.verdict(allow)
	f.equal(call, 0, uint8(len(b)))
	*f = append(*f, b...)
}

// ifAny appends a verdict for the case that the loaded word is one of ks.
func (f *filter) ifAny(ks []uint32, verdict uint32) {
	for _, k := range ks {
		f.equal(k, 0, 1)
		f.verdict(verdict)
	}
}

// ifPointer appends the verdict notify for the case that argument i is not NULL.
func (f *filter) ifPointer(i uint32) {
	f.argument(i)
	f.equal(0, 0, 2)
	f.load(atArgument + argumentSize*i + half)
	f.equal(0, 1, 0)
	f.verdict(notify)
}

// calls returns the filter. It does not look at the architecture: the filter of package boot
// refuses all calls but this one's.
func calls() []unix.SockFilter {
	var f filter
	f.load(atCall)
	// The clock comes first: with a clock source that the vDSO cannot read, each reading is a call.
	f.rule(unix.SYS_CLOCK_GETTIME, func(f *filter) {
		f.argument(0)
		for id := uint32(0); id <= lastClock; id++ {
			if (monoClocks|realClocks)>>id&1 != 0 {
				f.ifAny([]uint32{id}, notify)
			}
		}
	})
	f.rule(unix.SYS_FUTEX, func(f *filter) {
		f.argument(1)
		f.mask(^uint32(futexPrivate | futexRealtime))
		f.equal(futexWaitBitset, 4, 0)
		f.equal(futexLockPI, 3, 0)
		f.equal(futexWaitRequeuePI, 2, 0)
		f.equal(futexLockPI2, 1, 0)
		f.verdict(allow)
		f.ifPointer(3)
	})
	for _, call := range []uint32{unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_GETTIMEOFDAY, unix.SYS_TIME,
		unix.SYS_RESTART_SYSCALL, takeFile} {
		f.rule(call, func(f *filter) { f.verdict(notify) })
	}
	for _, w := range []struct{ call, flags uint32 }{ // whose second argument says whether they wait until an instant
		{unix.SYS_CLOCK_NANOSLEEP, unix.TIMER_ABSTIME}, {unix.SYS_TIMERFD_SETTIME, unix.TFD_TIMER_ABSTIME},
		{unix.SYS_TIMER_SETTIME, unix.TIMER_ABSTIME}} {
		f.rule(w.call, func(f *filter) {
			f.argument(1)
			f.set(w.flags, 0, 1)
			f.verdict(notify)
		})
	}
	for _, w := range []struct{ call, timeout uint32 }{{unix.SYS_MQ_TIMEDSEND, 4}, {unix.SYS_MQ_TIMEDRECEIVE, 4},
		{unix.SYS_FUTEX_WAITV, 3}, {unix.SYS_FUTEX_WAIT, 4}} {
		f.rule(w.call, func(f *filter) { f.ifPointer(w.timeout) })
	}
	f.rule(unix.SYS_SETSOCKOPT, func(f *filter) {
		f.argument(1)
		f.equal(unix.SOL_SOCKET, 1, 0)
		f.verdict(allow)
		f.argument(2)
		f.ifAny(stampOptions, refuse|uint32(unix.ENOPROTOOPT))
	})
	f.rule(unix.SYS_IOCTL, func(f *filter) {
		f.argument(1)
		f.ifAny(stampRequests, refuse|uint32(unix.ENOTTY))
	})
	for _, call := range []uint32{unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME} { // show the machine's clock
		f.rule(call, func(f *filter) { f.verdict(refuse | uint32(unix.EPERM)) })
	}
	f.verdict(allow)
	return f
}
