package kernelpath

import (
	"fmt"

	"weft/tc-shaping/probe"
	"weft/tc-shaping/qdisc"
)

// Available finds out by trials whether this machine's kernel can carry the packets of a lab, and
// returns what it can do. The error lists what it lacks.
func Available() (qdisc.Capabilities, error) {
	kernel, err := probe.Probe()
	if err == nil {
		err = kernel.Complete()
	}
	if err != nil {
		return kernel, fmt.Errorf("datapath kernel: %w", err)
	}
	return kernel, nil
}
