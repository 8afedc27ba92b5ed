package emulate

import (
	"fmt"
	"math"
	goruntime "runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/cleanup"
	"weft/internal/clock"
	"weft/results/record"
	"weft/units"
)

// KernelPace is what says how fast the machine's kernel can carry packets from process to process, in real nanoseconds. It takes a tenth of a
// second to measure, in this process alone.
type KernelPace struct {
	Turn float64 // for two threads to wake each other in turn, there and back
	Late float64 // p99 of how late a sleeping thread wakes
}

// What a data packet and its acknowledgement cost, in turns: at the hosts, where four times somebody is woken and something is sent, and at each
// switch, where both pass a queue, a timer and a line. Ours: three times what they were found to cost under User Mode Linux, since what is sent comes in
// bursts; docs/adr/0120.
const (
	turnsPerPacket = 16
	turnsPerSwitch = 5
)

// Dilation returns the smallest dilation, to two significant digits, at which a kernel of this pace carries load data packets per second
// of lab time over so many switches each, and is late by no more than the verdict allows for a network with the given base round trip: at
// least by a hiccup. That it is late because other programs run besides stretches a lab at most by as much as in AutoDilation.
func (k KernelPace) Dilation(load float64, switches int, baseRTT units.Time) float64 {
	each := (turnsPerPacket + turnsPerSwitch*float64(switches)) * k.Turn / 1e9
	d := roundUp(load * each / workingLoad)
	allowed := record.OKLateness * baseRTT.Nanoseconds()
	if allowed <= 0 {
		return d
	}
	d = max(d, roundUp(hiccup/allowed))
	return min(max(d, roundUp(k.Late/(latenessMargin*allowed))), roundUp(busyStretch*d))
}

// Rate is about how many data packets per second of real time such a kernel carries over so many switches.
func (k KernelPace) Rate(switches int) float64 {
	return 1e9 / ((turnsPerPacket + turnsPerSwitch*float64(switches)) * k.Turn)
}

// How much is measured: so many turns, and so many sleeps of so long.
const (
	paceTurns  = 200
	paceSleeps = 40
	paceSleep  = time.Millisecond
)

// MeasureKernel measures the machine's pace.
func MeasureKernel() (KernelPace, error) {
	var k KernelPace
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return k, fmt.Errorf("measure the kernel's pace: %w", err)
	}
	echoed := make(chan error, 1)
	go func() { // the thread ends with the goroutine
		goruntime.LockOSThread()
		echoed <- echo(fds[1])
	}()
	took, err := turns(fds[0])
	err = cleanup.Join(err, unix.Shutdown(fds[0], unix.SHUT_RDWR), <-echoed, unix.Close(fds[0]), unix.Close(fds[1]))
	if err != nil {
		return k, fmt.Errorf("measure the kernel's pace: %w", err)
	}
	slices.Sort(took)
	k.Turn = float64(took[len(took)/2])
	late := make([]int64, paceSleeps)
	for i := range late {
		began := clock.Monotonic()
		time.Sleep(paceSleep)
		late[i] = clock.Monotonic() - began - int64(paceSleep)
	}
	slices.Sort(late)
	k.Late = float64(late[int(math.Ceil(0.99*paceSleeps))-1])
	return k, nil
}

// turns has the other end of a socket answer, again and again, and returns how long each turn took, in nanoseconds.
func turns(fd int) ([]int64, error) {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	var b [1]byte
	took := make([]int64, paceTurns)
	for i := range took {
		began := clock.Monotonic()
		if _, err := unix.Write(fd, b[:]); err != nil {
			return took, err
		}
		if _, err := unix.Read(fd, b[:]); err != nil {
			return took, err
		}
		took[i] = clock.Monotonic() - began
	}
	return took, nil
}

// echo answers until the other end is shut down.
func echo(fd int) error {
	var b [1]byte
	for {
		n, err := unix.Read(fd, b[:])
		switch {
		case err == unix.EINTR:
			continue
		case err != nil || n == 0:
			return err
		}
		if _, err := unix.Write(fd, b[:]); err != nil && err != unix.EPIPE {
			return err
		}
	}
}
