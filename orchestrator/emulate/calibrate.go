package emulate

import (
	"context"
	"fmt"
	"time"

	"weft/units"
)

// The calibration runs: as many hosts as the labs that this is for, and for as long as makes the numbers steady.
const (
	benchHosts   = 16
	benchPackets = 60_000 // of each run, in all
	benchRepeat  = 5      // of the all-to-all in each run, so that memory is touched for the first time in a fifth only
	overload     = 1e6    // packets of real time per second that no machine of today carries
	benchStall   = 20 * time.Second
)

// Calibrate measures what this machine can carry, or returns what it measured before: see Cached.
func Calibrate(ctx context.Context, p Processes) (Capacity, error) {
	return cached(ctx, func() (Capacity, error) { return Measure(ctx, p) })
}

// Measure measures what this machine can carry: how fast it is when asked for more than it can do, then how
// late it is at the load it will be asked for. It takes a few seconds.
func Measure(ctx context.Context, p Processes) (Capacity, error) {
	var c Capacity
	rate, _, err := bench(ctx, p, overload)
	if err != nil {
		return c, fmt.Errorf("measure the packet rate: %w", err)
	}
	c.PacketsPerSecond = rate
	_, out, err := bench(ctx, p, workingLoad*rate)
	if err != nil {
		return c, fmt.Errorf("measure the lateness: %w", err)
	}
	c.LatenessNS = out.Fidelity.LatenessP99NS * out.dilation
	return c, nil
}

// bench runs the all-to-all with so many data packets offered per second of real time, and returns how many
// were carried.
func bench(ctx context.Context, p Processes, offered float64) (rate float64, out benchOutcome, err error) {
	x := allToAll(benchHosts, benchPackets/(benchHosts*(benchHosts-1)*benchRepeat), benchRepeat, 1)
	x.Dilation = max(1, roundUp(Load(x.Plans)/offered))
	x.Stall = benchStall
	x.Processes = p
	o, err := Run(ctx, x)
	if err != nil {
		return 0, out, err
	}
	if o.Elapsed <= 0 {
		return 0, out, fmt.Errorf("the run took %d ps", o.Elapsed)
	}
	seconds := float64(o.Elapsed) / float64(units.Second) * x.Dilation
	delivered := float64(o.Transport.DataPackets - o.Transport.Retransmits)
	return delivered / seconds, benchOutcome{o, x.Dilation}, nil
}

// benchOutcome is an outcome and the dilation it came about at.
type benchOutcome struct {
	*Outcome
	dilation float64
}
