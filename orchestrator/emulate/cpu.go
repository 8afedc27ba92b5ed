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

// readCPU reads them. It counts whatever runs on the machine: a build beside the lab disturbs it as much as
// the lab's own processes.
func readCPU() (cpuTimes, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return cpuTimes{}, err
	}
	return parseCPU(b)
}

// parseCPU reads the first line of /proc/stat: cpu user nice system idle iowait irq softirq steal ... (proc(5)).
func parseCPU(b []byte) (t cpuTimes, err error) {
	line, _, _ := bytes.Cut(b, []byte("\n"))
	fields := bytes.Fields(line)
	if len(fields) < 5 || string(fields[0]) != "cpu" {
		return t, fmt.Errorf("/proc/stat begins with %q", line)
	}
	const idle, iowait, steal = 3, 4, 7
	for i, f := range fields[1:] {
		if i > steal {
			break // guest time is in user time already
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

// share is how busy the processors were between two readings, in [0, 1].
func (t cpuTimes) share(since cpuTimes) float64 {
	if t.total <= since.total {
		return 0
	}
	return float64(t.busy-since.busy) / float64(t.total-since.total)
}

// machineLoad is how busy the machine was during a run.
type machineLoad struct {
	begin, last cpuTimes // at the start, and at the last full second
	beginAt     int64    // CLOCK_MONOTONIC of the start
	lastAt      int64
	end         cpuTimes
	endAt       int64
	self        int64 // processor time that this process used until the start, then during the run
}

// beginCPU notes how much the machine had done when the run began.
func (r *run) beginCPU() {
	t, err := readCPU()
	if err != nil {
		return
	}
	now := clock.Monotonic()
	r.load = machineLoad{begin: t, last: t, beginAt: now, lastAt: now, self: poller.CPU()}
}

// sampleCPU notes how busy the machine was in each full second.
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

// endCPU notes how much the machine has done when the run ends.
func (r *run) endCPU() {
	if t, err := readCPU(); err == nil {
		r.load.end, r.load.endAt = t, clock.Monotonic()
		r.load.self = poller.CPU() - r.load.self
	}
}

// shareCPU tells what was the run's own of all that the machine did, when the processes have said what they used. Of
// a run that took less than a second there is no full one: the share is over all of it, and no less than the
// processes say, whose clocks are finer than the machine's.
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
