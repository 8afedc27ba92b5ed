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

// maxWaiting is the maximum number of hosts in the error of a stall.
const maxWaiting = 16

// noProgress reports whether a run failed because a connection gave up or nothing moved any more. A
// fault of the lab may be the cause.
func noProgress(err error) bool {
	var stall *sim.StallError
	return errors.Is(err, transport.ErrFailed) || errors.Is(err, emulate.ErrStalled) || errors.As(err, &stall)
}

// addWaiting adds to the error of a stall the peers that hosts wait for. It returns other errors as
// they are.
func addWaiting(err error, hosts []*host.Host) error {
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
