package inputs

import (
	"fmt"
	"strings"

	"weft/collectives/graph"
	"weft/internal/plural"
)

// maxKinds is the number of kinds of collectives up to which each has a line. Beyond it, a line has
// all sizes.
const maxKinds = 12

// Describe returns the facts of a job for people. name is that of its file.
func Describe(name, format string, f graph.Facts) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s, %s, %s\n", name, format, plural.Count(f.Ranks, "rank"), plural.Count(f.Ops, "operation"))
	computations, longest := "computations", fmt.Sprintf(", up to %v of one rank", f.LongestTime)
	if format == Flows { // a flow with a start is a computation until then, beside those of other flows, and a message
		computations, longest = "start times", ""
	}
	fmt.Fprintf(&b, "  %-14s %d%s\n", computations, f.Computations, longest)
	fmt.Fprintf(&b, "  messages       %d, %v\n", f.Messages, f.Bytes)
	for all := f.Collectives; len(all) > 0; {
		c, n := all[0], 1
		largest := c.Size
		for len(f.Collectives) > maxKinds && n < len(all) &&
			all[n].Collective == c.Collective && all[n].Ranks == c.Ranks {
			c.Count, largest = c.Count+all[n].Count, all[n].Size
			n++
		}
		size := c.Size.String()
		if n > 1 {
			size += " to " + largest.String()
		}
		fmt.Fprintf(&b, "  %-14s %d of %s in %s\n", c.Collective, c.Count, size, plural.Count(c.Ranks, "rank"))
		all = all[n:]
	}
	fmt.Fprintf(&b, "  critical path  %v of %s: no network makes the job faster\n", f.CriticalPath, computations)
	return b.String()
}
