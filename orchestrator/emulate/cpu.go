package emulate

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
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
