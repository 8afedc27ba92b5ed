package quiettest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/thread"
)

const (
	// busy is the number of processors that other programs may use on a quiet machine. A real-time
	// test process waits for at most one other program, so what matters is whether there is always
	// one.
	busy = 0.2

	// window is the averaging time of processor use: long enough for /proc/stat, which counts in
	// hundredths of a second.
	window = 250 * time.Millisecond

	// nap is how long a watching thread sleeps: long enough not to disturb.
	nap = 5 * time.Millisecond
)

// epoch is the origin of this package's times.
var epoch = time.Now()

// outerVar names the file by which the machine outside a virtual one reports its disturbances: see
// Tell.
const outerVar = "TEST_DISTURBED"

// Gap is the lateness of a watching thread that only a stopped machine explains. On an idle virtual
// machine one wake-up in a thousand is 0.3 ms late. User Mode Linux is an ordinary process, which
// also waits for others.
var Gap = func() time.Duration {
	if os.Getenv(outerVar) != "" {
		return 20 * time.Millisecond
	}
	return 5 * time.Millisecond
}()

// mark is the start of a measurement.
type mark struct {
	at    time.Time
	first int // sample taken at that time
	told  int // bytes reported by the machine outside
}

// state has the observations of the machine.
var state struct {
	sync.Mutex
	once    sync.Once
	samples []sample
	gaps    []gap
}

// sample is the processor time used up to an instant.
type sample struct {
	at        time.Time
	all, mine time.Duration
}

// gap is a time in which a processor did not run.
type gap struct {
	end    time.Time
	length time.Duration
}

// begin returns a mark. The first call starts watching the machine until the process ends.
func begin() mark {
	state.once.Do(func() {
		var own unix.CPUSet
		if unix.SchedGetaffinity(0, &own) != nil {
			return
		}
		// Threads returning from system calls wait for one of GOMAXPROCS slots of the Go scheduler,
		// so add slots for the watchers.
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + own.Count())
		for n := range 1024 {
			if own.IsSet(n) {
				thread.Own(func() { watch(n) })
			}
		}
		go func() {
			for range time.Tick(window) {
				take()
			}
		}()
	})
	return mark{time.Now(), take(), len(told())}
}

// Tell reports disturbances outside to measurements in a virtual machine, through a shared file at
// path, until stop is called. The processes inside need env in their environment.
func Tell(path string) (env string, stop func(), err error) {
	f, err := os.Create(path)
	if err != nil {
		return "", nil, err
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		defer f.Close()
		for m := begin(); ; m = begin() {
			select {
			case <-quit:
				return
			case <-time.After(window):
			}
			if why := m.disturbed(); why != nil {
				fmt.Fprintln(f, "outside,", why)
			}
		}
	}()
	return outerVar + "=" + path, func() { close(quit); <-done }, nil
}

// told returns the reports of the machine outside, if there is one.
func told() []byte {
	text, _ := os.ReadFile(os.Getenv(outerVar))
	return text
}

// disturbed returns what disturbed the machine since m, or nil.
func (m mark) disturbed() error {
	if Race {
		return fmt.Errorf("%w: the race detector is on", ErrDisturbed)
	}
	if os.Getenv(outerVar) != "" {
		time.Sleep(2 * window) // reports from outside arrive a window later
		if more := told(); len(more) > m.told {
			return fmt.Errorf("%w: %s", ErrDisturbed, bytes.TrimSpace(more[m.told:]))
		}
	}
	take()
	state.Lock()
	defer state.Unlock()
	first := m.first // a measurement shorter than a window is judged together with the time before it
	for first > 0 && time.Since(state.samples[first].at) < window {
		first--
	}
	if used := others(state.samples[first:]); used >= busy {
		return fmt.Errorf("%w: others used %.2f processors", ErrDisturbed, used)
	}
	for _, g := range state.gaps {
		if g.end.After(m.at) {
			return fmt.Errorf("%w: the machine did not run for %v", ErrDisturbed, g.length.Round(time.Millisecond))
		}
	}
	return nil
}

// others returns how many processors other programs used, averaged over the window in which they
// used most.
func others(samples []sample) (most float64) {
	for len(samples) > 1 {
		// From the first sample to the one a window later; all samples if they span less than a
		// window.
		n := 1
		for n < len(samples)-1 && (samples[n].at.Sub(samples[0].at) < window*9/10 ||
			samples[len(samples)-1].at.Sub(samples[n].at) < window*9/10) {
			n++
		}
		a, b := samples[0], samples[n]
		samples = samples[n:]
		// A process that ends during sampling may be counted in the next window.
		if d := b.at.Sub(a.at); d > 0 && b.mine >= a.mine {
			most = max(most, float64(b.all-a.all-(b.mine-a.mine))/float64(d))
		}
	}
	return most
}

// take records a sample of the processor time and returns its index.
func take() int {
	state.Lock()
	defer state.Unlock()
	at := time.Now()
	if idle, processors, err := idle(); err == nil {
		all := time.Duration(processors)*at.Sub(epoch) - idle
		state.samples = append(state.samples, sample{at, all, mine()})
	}
	return max(0, len(state.samples)-1)
}

// watch records when processor n does not run, by a thread on it that sleeps and wakes up late.
func watch(n int) {
	var only unix.CPUSet
	only.Set(n)
	_ = unix.SchedSetaffinity(0, &only)
	_ = ahead() // before the test's own real-time processes, which are no gaps; an ordinary user may not do this
	var due unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &due)
	for {
		due = unix.NsecToTimespec(due.Nano() + nap.Nanoseconds())
		for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &due, nil) == unix.EINTR {
		}
		var now unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
		if late := time.Duration(now.Nano() - due.Nano()); late > Gap {
			state.Lock()
			state.gaps = append(state.gaps, gap{time.Now(), late})
			state.Unlock()
		}
		due = now
	}
}

// ahead lets the calling thread run before all others on its processor.
func ahead() error {
	return unix.SchedSetAttr(0, &unix.SchedAttr{
		Size: unix.SizeofSchedAttr, Flags: unix.SCHED_FLAG_RESET_ON_FORK, Policy: unix.SCHED_FIFO, Priority: 99,
	}, 0)
}

// tick is the unit of times in /proc.
const tick = time.Second / 100

// idle returns the idle time of all processors since boot (proc_stat(5)).
func idle() (d time.Duration, processors int, err error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line) // cpu user nice system idle iowait irq softirq steal guest guest_nice
		if len(fields) < 6 || !strings.HasPrefix(fields[0], "cpu") {
			continue
		}
		if fields[0] != "cpu" {
			processors++
			continue
		}
		for _, f := range fields[4:6] {
			n, err := strconv.ParseInt(f, 10, 64)
			if err != nil {
				return 0, 0, err
			}
			d += time.Duration(n) * tick
		}
	}
	return d, processors, nil
}

// mine returns the processor time of this process and its descendants, including those that have
// ended. In a PID namespace of its own (.ci/isolate) it counts every process there, including
// orphans.
func mine() (used time.Duration) {
	self := os.Getpid()
	type process struct {
		parent int
		ended  time.Duration // children
	}
	all := map[int]process{}
	paths, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range paths {
		pid, _ := strconv.Atoi(filepath.Base(path))
		text, err := os.ReadFile(path + "/stat")
		_, after, ok := bytes.Cut(text, []byte(") "))
		fields := strings.Fields(string(after)) // fields from the third on: state ppid ...
		if err != nil || !ok || len(fields) < 15 {
			continue
		}
		parent, _ := strconv.Atoi(fields[1])
		user, _ := strconv.ParseInt(fields[13], 10, 64)
		system, _ := strconv.ParseInt(fields[14], 10, 64)
		all[pid] = process{parent, time.Duration(user+system) * tick}
	}
	isolated := os.Getppid() <= 1
	own := func(pid int) bool {
		for n := 0; n < len(all) && pid > 1; n++ {
			if pid == self {
				return true
			}
			pid = all[pid].parent
		}
		return isolated
	}
	for pid, p := range all {
		var now unix.Timespec
		if own(pid) && unix.ClockGettime(int32(^pid<<3|2), &now) == nil { // clock_getcpuclockid(3)
			used += time.Duration(now.Nano()) + p.ended
		}
	}
	return used
}
