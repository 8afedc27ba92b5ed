//go:build weftskew

package clock

import (
	"fmt"
	"os"
)

// rate is that of CLOCK_MONOTONIC in a program with the tag weftskew. The last three digits of the
// seconds by which the clock of its time namespace is ahead (time_namespaces(7), unshare
// --monotonic) are the parts per million by which it is faster.
var rate = func() float64 {
	text, _ := os.ReadFile("/proc/self/timens_offsets") // without: 1
	var seconds int64
	_, _ = fmt.Sscanf(string(text), "monotonic %d", &seconds)
	return 1 + float64(seconds%1000)/1e6
}()

func skewed(ns int64) int64 { return int64(float64(ns) * rate) }

// Kernel returns the instant of this machine's CLOCK_MONOTONIC for one that Now returns.
func Kernel(ns int64) int64 { return int64(float64(ns) / rate) }
