package emulate

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"

	"weft/internal/clock"
	"weft/internal/poller"
)

// cpuTimes are the machine's processor times since boot, in clock ticks.
type cpuTimes struct{ busy, total int64 }

// readCPU reads the processor times. They cover everything on the machine: a build beside the lab
// disturbs it as much as the lab's own processes do.
func readCPU() (cpuTimes, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return cpuTimes{}, err
	}
	return parseCPU(b)
}

// parseCPU reads the first line of /proc/stat: cpu user nice system idle iowait irq softirq steal
// ... (proc(5)).
func parseCPU(b []byte) (t cpuTimes, err error) {
	line, _, _ := bytes.Cut(b, []byte("\n"))
	fields := bytes.Fields(line)
	if len(fields) < 5 || string(fields[0]) != "cpu" {
		return t, fmt.Errorf("/proc/stat begins with %q", line)
	}
	const idle, iowait, steal = 3, 4, 7
	for i, f := range fields[1:] {
		if i > steal {
			// user time includes guest time
			break
		}
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return t, fmt.Errorf("/proc/stat: %w", err)
		}
		t.total += n
		if i != idle && i != iowait {
			t.busy += n
		}
	}
	return t, nil
}

// share returns how busy the processors were since an earlier reading, in [0, 1].
func (t cpuTimes) share(since cpuTimes) float64 {
	if t.total <= since.total {
		return 0
	}
	return float64(t.busy-since.busy) / float64(t.total-since.total)
}

// machineLoad is the load of the machine during a run.
type machineLoad struct {
	begin, last cpuTimes // at the start, and at the last full second
	beginAt     int64    // CLOCK_MONOTONIC of the start
	lastAt      int64
	end         cpuTimes
	endAt       int64
	// processor time of this process until the start, then during the run
	self int64
}

// beginCPU records the processor times at the start of the run.
func (r *run) beginCPU() {
	t, err := readCPU()
	if err != nil {
		return
	}
	now := clock.Monotonic()
	r.load = machineLoad{begin: t, last: t, beginAt: now, lastAt: now, self: poller.CPU()}
}

// sampleCPU records how busy the machine was in each full second.
func (r *run) sampleCPU() {
	now := clock.Monotonic()
	if r.load.begin.total == 0 || now-r.load.lastAt < int64(time.Second) {
		return
	}
	if t, err := readCPU(); err == nil {
		r.outcome.Fidelity.CPUMax = max(r.outcome.Fidelity.CPUMax, t.share(r.load.last))
		r.load.last, r.load.lastAt = t, now
	}
}

// endCPU records the processor times at the end of the run.
func (r *run) endCPU() {
	if t, err := readCPU(); err == nil {
		r.load.end, r.load.endAt = t, clock.Monotonic()
		r.load.self = poller.CPU() - r.load.self
	}
}

// shareCPU computes the run's own share of the machine's load from the processor times that its
// processes reported. A run of less than a second has no full second, so its share covers all of
// it, and is at least what the processes report, whose clocks are finer than the machine's.
func (r *run) shareCPU() {
	l := &r.load
	span := float64(l.endAt-l.beginAt) * float64(runtime.NumCPU())
	if l.begin.total == 0 || span <= 0 {
		return
	}
	ours := l.self
	if r.outcome.Report != nil {
		ours += r.outcome.Report.CPU
	}
	for _, n := range r.outcome.Results {
		if n != nil {
			ours += n.CPU
		}
	}
	mine, all := min(1, float64(ours)/span), l.end.share(l.begin)
	r.outcome.Foreign = max(0, all-mine)
	if l.last == l.begin {
		r.outcome.Fidelity.CPUMax = max(all, mine)
	}
}
