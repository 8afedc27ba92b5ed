package labclock

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// timespecSize is the size of struct timespec and struct timeval.
const timespecSize = 16

const second = 1_000_000_000 // in nanoseconds

// readTimes reads n instants or durations of a program, in nanoseconds. It returns an error if they
// cannot be read, and 0 for values that the kernel does not accept.
func readTimes(pid uint32, address uint64, n int) ([]int64, error) {
	b := make([]byte, n*timespecSize)
	local := []unix.Iovec{{Base: &b[0], Len: uint64(len(b))}}
	got, err := unix.ProcessVMReadv(int(pid), local, []unix.RemoteIovec{{Base: uintptr(address), Len: len(b)}}, 0)
	if err == nil && got != len(b) {
		err = unix.EFAULT
	}
	if err != nil {
		return nil, err
	}
	times := make([]int64, n)
	for i := range times {
		s := int64(binary.LittleEndian.Uint64(b[i*timespecSize:]))
		ns := int64(binary.LittleEndian.Uint64(b[i*timespecSize+8:]))
		const most = math.MaxInt64/second - 1
		if times[i] = -1; s >= 0 && s < most && ns >= 0 && ns < second {
			times[i] = s*second + ns
		}
	}
	return times, nil
}

// write writes words to a program.
func write(pid uint32, address uint64, words ...uint64) unix.Errno {
	var b []byte
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	local := []unix.Iovec{{Base: &b[0], Len: uint64(len(b))}}
	n, err := unix.ProcessVMWritev(int(pid), local, []unix.RemoteIovec{{Base: uintptr(address), Len: len(b)}}, 0)
	if err != nil || n != len(b) {
		return unix.EFAULT
	}
	return 0
}

// answerClock answers a clock that was read by a system call.
func (s *session) answerClock(n *notification) {
	if s.fromVDSO(n) {
		_ = s.proceed(n) // our own code reads the machine's clock
		return
	}
	now := monotonic()
	real := uint64(s.page.Real(now))
	var errno unix.Errno
	value := int64(0)
	switch n.call {
	case unix.SYS_CLOCK_GETTIME:
		shown := real
		if monoClocks>>(n.args[0]&63)&1 != 0 {
			shown = uint64(s.page.Mono(now))
		}
		errno = write(n.pid, n.args[1], shown/second, shown%second)
	case unix.SYS_GETTIMEOFDAY:
		if n.args[0] != 0 {
			errno = write(n.pid, n.args[0], real/second, real%second/1000)
		}
		if n.args[1] != 0 && errno == 0 {
			errno = write(n.pid, n.args[1], 0)
		}
	case unix.SYS_TIME:
		value = int64(real / second)
		if n.args[0] != 0 {
			errno = write(n.pid, n.args[0], real/second)
		}
	}
	if errno != 0 {
		s.fail(n, errno)
		return
	}
	s.succeed(n, value)
}

// fromVDSO reports whether the vDSO of a program made a call: it does where the machine's clock
// source cannot be read otherwise.
func (s *session) fromVDSO(n *notification) bool {
	base, err := vdsoAt(strconv.Itoa(int(n.pid)))
	return err == nil && base != 0 && n.ip >= base && n.ip < base+s.image.size
}

// setTimer carries out a timerfd_settime(2) until an instant, as one for the duration until then.
func (s *session) setTimer(n *notification) {
	errno := s.setTimerOf(n)
	if errno == 0 {
		s.succeed(n, 0)
		return
	}
	s.fail(n, errno)
}

// setTimerOf sets the timer and returns the error for its caller.
func (s *session) setTimerOf(n *notification) unix.Errno {
	times, err := readTimes(n.pid, n.args[2], 2) // struct itimerspec: interval, value
	if err != nil {
		return unix.EFAULT
	}
	if times[0] < 0 || times[1] < 0 {
		return unix.EINVAL
	}
	fd, realtime, errno := timerOf(n.pid, int32(n.args[0]))
	if errno != 0 {
		return errno
	}
	defer unix.Close(fd)
	spec := unix.ItimerSpec{Interval: unix.NsecToTimespec(times[0])}
	if times[1] != 0 {
		now := s.page.Mono(monotonic())
		if realtime {
			now = s.page.Real(monotonic())
		}
		spec.Value = unix.NsecToTimespec(max(1, times[1]-now)) // 0 would stop it
	}
	var old unix.ItimerSpec
	if err := unix.TimerfdSettime(fd, 0, &spec, &old); err != nil {
		return err.(unix.Errno)
	}
	if n.args[3] == 0 {
		return 0
	}
	return write(n.pid, n.args[3], uint64(old.Interval.Sec), uint64(old.Interval.Nsec), uint64(old.Value.Sec),
		uint64(old.Value.Nsec))
}

// timerOf returns a copy of a program's descriptor of a timer, and whether the timer is one of
// CLOCK_REALTIME.
func timerOf(thread uint32, target int32) (fd int, realtime bool, errno unix.Errno) {
	group, err := groupOf(thread)
	if err != nil {
		return -1, false, unix.ESRCH
	}
	pidfd, err := unix.PidfdOpen(group, 0)
	if err != nil {
		return -1, false, err.(unix.Errno)
	}
	defer unix.Close(pidfd)
	fd, err = unix.PidfdGetfd(pidfd, int(target), 0)
	if err != nil {
		return -1, false, err.(unix.Errno)
	}
	// timerfd_create(2): "clockid: 0"
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
	if err != nil || !strings.Contains(string(text), "clockid:") {
		unix.Close(fd)
		return -1, false, unix.EINVAL
	}
	return fd, strings.Contains(string(text), "clockid: 0\n") || strings.Contains(string(text), "clockid: 8\n"), 0
}

// groupOf returns the process of a thread.
func groupOf(thread uint32) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", thread))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), "\nTgid:")
	line, _, _ := strings.Cut(rest, "\n")
	return strconv.Atoi(strings.TrimSpace(line))
}
