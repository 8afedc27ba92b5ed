package run

import (
	"errors"
	"fmt"
	"strings"

	"weft/host"
	"weft/sim"
)

// maxWaiting bounds how many hosts a stall is explained by.
const maxWaiting = 16

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
