package summary

import (
	"fmt"

	"weft/internal/plural"
	"weft/orchestrator/experiment"
	"weft/results/record"
)

// lossy is the share of data packets from which on what full queues dropped is told as a cause:
// four flows of Swift into a queue of one bandwidth-delay product lose 4 to 7 % of their packets
// and a tenth to a third of the line. Ours.
const lossy = 0.01

// overflowed returns the warning that full queues dropped packets; "" if they were few.
func overflowed(x *experiment.Experiment, o *Outcome, n *record.Network) string {
	if n.Drops == 0 || float64(n.Drops) < lossy*float64(n.DataPackets) {
		return ""
	}
	out := "a larger buffer"
	if o.Overflowed > 0 {
		out += fmt.Sprintf(" than %v", o.Overflowed)
	}
	if x.Lab.Queues.PFC == nil {
		out += ", or " + experiment.PFCOn(x.Lab)
	}
	return fmt.Sprintf("queues.buffer: full queues dropped %s of %d, and what was sent again took a share of the "+
		"links; expected %s", plural.Count(n.Drops, "packet"), n.Packets, out)
}
