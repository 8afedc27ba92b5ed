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
	"weft/orchestrator/uml"
	"weft/results/record"
	"weft/units"
)

// KernelPace says how fast the machine's kernel carries packets between processes, in real
// nanoseconds. Measuring it takes a tenth of a second, in this process alone.
type KernelPace struct {
	// time for two threads to wake each other in turn, there and back
	Turn float64
	Late float64 // p99 lateness of a thread that wakes from sleep
	UML  bool    // it is that of User Mode Linux
}

// The cost of a data packet and its acknowledgement in turns: at the hosts, with four wake-ups and
// sends, and at each switch, where both pass a queue, a timer and a link. Ours: three times the
// cost measured under User Mode Linux, since traffic is bursty; docs/adr/0120.
const (
	umlTurnsPerPacket = 16
	umlTurnsPerSwitch = 5
)

// The same on a kernel itself, where switches are a part of the sender's system call. Ours:
// quickstart is ok on two cores with 5.3 turns for a packet over up to five switches, and these are
// twice as many; docs/adr/0124.
const (
	turnsPerPacket = 5
	turnsPerSwitch = 1.2
)

// turns returns the cost of a data packet over the given number of switches.
func (k KernelPace) turns(switches int) float64 {
	if k.UML {
		return umlTurnsPerPacket + umlTurnsPerSwitch*float64(switches)
	}
	return turnsPerPacket + turnsPerSwitch*float64(switches)
}

// Dilation returns the smallest dilation, to two significant digits, at which a kernel of this pace
// carries load data packets per second of lab time over the given number of switches each, and is
// late by no more than the verdict allows for a network with the given base round trip. It
// tolerates at least a hiccup. Lateness from other programs stretches a lab by no more than in
// AutoDilation.
func (k KernelPace) Dilation(load float64, switches int, baseRTT units.Time) float64 {
	each := k.turns(switches) * k.Turn / 1e9
	d := roundUp(load * each / workingLoad)
	allowed := record.OKLateness * baseRTT.Nanoseconds()
	if allowed <= 0 {
		return d
	}
	d = max(d, roundUp(hiccup/allowed))
	return min(max(d, roundUp(k.Late/(latenessMargin*allowed))), roundUp(busyStretch*d))
}

// Rate returns the approximate number of data packets per second of real time over the given number
// of switches.
func (k KernelPace) Rate(switches int) float64 {
	return 1e9 / (k.turns(switches) * k.Turn)
}

// The numbers of pairs of threads, of their turns, and of sleeps that are measured, and the length
// of a sleep.
const (
	pacePairs  = 5
	paceTurns  = 200
	paceSleeps = 40
	paceSleep  = time.Millisecond
)

// MeasureKernel measures the machine's pace. Two threads on one processor wake each other five
// times as fast as on two; where the kernel puts them is chance, so the fastest of some pairs
// counts.
func MeasureKernel() (KernelPace, error) {
	k := KernelPace{UML: uml.Inside() != "", Turn: math.Inf(1)}
	for range pacePairs {
		turn, err := measureTurn()
		if err != nil {
			return k, fmt.Errorf("measure the kernel's pace: %w", err)
		}
		k.Turn = min(k.Turn, turn)
	}
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

// measureTurn returns the median time in which two new threads wake each other, there and back.
func measureTurn() (ns float64, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	echoed := make(chan error, 1)
	go func() { // the thread ends with the goroutine
		goruntime.LockOSThread()
		echoed <- echo(fds[1])
	}()
	took, err := turns(fds[0])
	err = cleanup.Join(err, unix.Shutdown(fds[0], unix.SHUT_RDWR), <-echoed, unix.Close(fds[0]), unix.Close(fds[1]))
	slices.Sort(took)
	return float64(took[len(took)/2]), err
}

// turns exchanges messages with the other end of a socket and returns the duration of each turn in
// nanoseconds.
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
