package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/bypass"
	"weft/internal/poller"
	"weft/internal/sockbuf"
	"weft/internal/thread"
	"weft/nodeimg/labclock"
	"weft/units"
)

// timing returns the tests of what determines the fidelity of an emulation.
func timing(o Options) []test {
	tests := []test{
		{name: "real-time scheduling", try: scheduling, grade: Degraded,
			cost: "other programs delay the fabric: expect a larger dilation or a degraded fidelity",
			fix:  "run as root, or allow it: ulimit -r 1 (limits.conf: rtprio 1)"},
		{name: "epoll_pwait2", try: pwait2, grade: Missing,
			cost: "no emulation: no other call waits for packets and deadlines precisely enough",
			fix:  "a kernel of 5.11 or later"},
		{name: "receive timestamps", try: timestamps, grade: Degraded,
			cost: "packets are stamped when read, not on arrival: round-trip times include the wait",
			fix:  "a kernel with SO_TIMESTAMPNS"},
		{name: "socket buffers", try: buffers, grade: Degraded,
			cost: "bursts may overflow a socket, which is an unordered drop",
			fix:  "run as root, or: sysctl net.core.rmem_max=16777216 net.core.wmem_max=16777216"},
		{name: "shared memory", try: sharedMemory, grade: Missing,
			cost: "no engine.nic: bypass; engine.nic: socket runs the same labs, slower",
			fix:  "a kernel with memfd_create and eventfd, and a system call filter that allows them"},
		{name: "lab time", try: labTime, grade: Degraded,
			cost: "programs read the machine's clock: weft exec --clock lab and clock: lab are refused, and only " +
				"weft inspect shows what PTP or Huygens does in a deployed lab",
			fix: "an amd64 machine with Linux 5.19 or later, and a system call filter that allows seccomp"},
	}
	for _, rate := range []struct {
		name    string
		measure func(context.Context) (float64, error)
	}{{"packet rate", o.PacketRate}, {"packet rate, bypass", o.BypassRate}} {
		if rate.measure == nil {
			continue
		}
		tests = append(tests, test{name: rate.name, grade: Degraded,
			try: func(ctx context.Context) (string, error) {
				perSecond, err := rate.measure(ctx)
				return fmt.Sprintf("%.0f packets/s through the fabric", perSecond), err
			},
			cost: "choose the dilation by hand: --dilation",
			fix:  "see why the measurement failed"})
	}
	return tests
}

// sharedMemory makes what a bypass NIC needs.
func sharedMemory(context.Context) (string, error) {
	f, err := bypass.Create("weft-doctor", os.Getpagesize())
	if err != nil {
		return "", err
	}
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	b, err := bypass.Map(fd, os.Getpagesize())
	if err != nil {
		return "", err
	}
	bypass.Unmap(b)
	bell, err := bypass.NewBell()
	if err != nil {
		return "", err
	}
	for _, f := range bell {
		f.Close()
	}
	return "sealed, with eventfds", nil
}

// labTime asks whether programs of nodes can read lab time.
func labTime(context.Context) (string, error) {
	return "programs can read it, with the clock of their host as PTP or Huygens corrects it", labclock.Available()
}

// scheduling tries on a thread that ends with the trial.
func scheduling(context.Context) (string, error) {
	result := make(chan error)
	thread.Own(func() {
		attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
		err := unix.SchedSetAttr(0, &attr, 0)
		switch {
		case err == nil:
		case unix.Setpriority(unix.PRIO_PROCESS, 0, -20) == nil:
			err = fmt.Errorf("SCHED_FIFO: %w; nice -20 instead", err)
		default:
			err = fmt.Errorf("SCHED_FIFO and nice -20: %w", err)
		}
		result <- err
	})
	return "SCHED_FIFO", <-result
}

func pwait2(context.Context) (string, error) {
	p, err := poller.New(1)
	if err != nil {
		return "", err
	}
	defer p.Close()
	return "waits in nanoseconds", p.Wait(time.Microsecond)
}

// timestamps sends a datagram to itself over loopback, since a kernel may accept the option and
// stamp nothing.
func timestamps(context.Context) (string, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return "", err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return "", fmt.Errorf("not tried: loopback: %w", err)
	}
	self, err := unix.Getsockname(fd)
	if err == nil {
		err = unix.Sendto(fd, []byte("weft"), 0, self)
	}
	if err == nil { // where loopback is down nothing arrives
		err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000})
	}
	if err != nil {
		return "", fmt.Errorf("not tried: loopback: %w", err)
	}
	control := make([]byte, 128)
	_, n, _, _, err := unix.Recvmsg(fd, make([]byte, 16), control, 0)
	if err != nil {
		return "", fmt.Errorf("not tried: nothing arrives over loopback: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil {
		return "", err
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPNS {
			return "SO_TIMESTAMPNS, received one", nil
		}
	}
	return "", errors.New("a datagram arrived without one")
}

// enough is the size of a receive buffer that holds the window of a long path several times. Our
// own value.
const enough = 4 * units.MiB

func buffers(context.Context) (string, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	if err := sockbuf.Receive(fd, int(enough)); err != nil {
		return "", err
	}
	got, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	if err != nil {
		return "", err
	}
	got /= 2 // the kernel doubles the requested size: socket(7)
	detail := fmt.Sprintf("%d kB", got/int(units.KB))
	if got < int(enough) {
		return "", errors.New("at most " + detail)
	}
	return detail + " and more", nil
}
