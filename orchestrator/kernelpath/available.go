package kernelpath

import (
	"fmt"

	"weft/tc-shaping/probe"
)

// Available tries whether this machine's kernel can be the datapath of a lab. The error says what it lacks.
func Available() error {
	kernel, err := probe.Probe()
	if err == nil {
		err = kernel.Complete()
	}
	if err != nil {
		return fmt.Errorf("datapath kernel: %w", err)
	}
	return nil
}
