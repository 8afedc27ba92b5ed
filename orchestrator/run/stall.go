package run

import (
	"errors"
	"fmt"
	"strings"

	"weft/host"
	"weft/orchestrator/emulate"
	"weft/sim"
	"weft/transport"
)

// maxWaiting bounds how many hosts a stall is explained by.
const maxWaiting = 16

// stuck says that a run failed because a connection gave up, or because nothing moved any more: a fault of the lab may be why.
func stuck(err error) bool {
	var stall *sim.StallError
	return errors.Is(err, transport.ErrFailed) || errors.Is(err, emulate.ErrStalled) || errors.As(err, &stall)
}

// explain adds to a stall who waits for whom.
func explain(err error, hosts []*host.Host) error {
	var stall *sim.StallError
	if !errors.As(err, &stall) {
		return err
	}
	var lines []string
	for _, h := range hosts {
		if w := h.Waiting(); w != "" && len(lines) < maxWaiting {
			lines = append(lines, "  "+w)
		}
	}
	return fmt.Errorf("%w\n%s", err, strings.Join(lines, "\n"))
}
