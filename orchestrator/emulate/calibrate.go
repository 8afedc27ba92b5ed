package emulate

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"weft/units"
)

// The calibration runs: as many hosts as the labs that this is for, and as many packets as make the numbers steady.
const (
	benchHosts  = 16
	benchRepeat = 4       // of the all-to-all in each run, so that memory is touched for the first time in a quarter only
	benchShort  = 20_000  // packets of the first run
	benchLong   = 50_000  // and of the second
	benchLight  = 8_000.0 // packets per second and processor offered in the first: any machine of today carries them
	benchTries  = 3       // of the second, while the machine looks busy
	benchStall  = 20 * time.Second
)

// Calibrate measures what this machine can carry, or returns what it measured before: see cached.
func Calibrate(ctx context.Context, p Processes) (Capacity, error) {
	return cached(ctx, func() (Capacity, error) { return Measure(ctx, p) })
}

// Measure measures what this machine can carry: how much processor time a packet takes, first under a light
// load, then under that which the machine will be asked for; and how late it is then. It takes a few seconds.
//
// Offering more than the machine can do and counting what comes through would be simpler, and wrong: when
// everything is late, time runs out in retransmissions and half of the packets come to nothing.
func Measure(ctx context.Context, p Processes) (Capacity, error) {
	light := benchLight * float64(runtime.NumCPU())
	out, err := bench(ctx, p, benchShort, light)
	if err != nil {
		return Capacity{}, fmt.Errorf("measure the packet rate: %w", err)
	}
	best := Capacity{PacketsPerSecond: out.capacity()}
	for try := range benchTries {
		out, err = bench(ctx, p, benchLong, workingLoad*best.PacketsPerSecond)
		if err != nil {
			return Capacity{}, fmt.Errorf("measure the lateness: %w", err)
		}
		c := Capacity{PacketsPerSecond: out.capacity(), LatenessNS: out.Fidelity.LatenessP99NS * out.dilation}
		if try == 0 || c.LatenessNS < best.LatenessNS {
			best = c
		}
		if !best.busy() {
			break
		}
	}
	return best, nil
}

// benchOutcome is what an all-to-all of the calibration came to.
type benchOutcome struct {
	*Outcome
	dilation float64
}

// bench runs the all-to-all of so many packets with so many of them offered per second of real time.
func bench(ctx context.Context, p Processes, packets int, offered float64) (benchOutcome, error) {
	x := allToAll(benchHosts, max(1, packets/(benchHosts*(benchHosts-1)*benchRepeat)), benchRepeat, 1)
	x.Dilation = max(1, roundUp(Load(x.Plans)/offered))
	x.Stall = benchStall
	x.Processes = p
	o, err := Run(ctx, x)
	if err == nil && (o.Report == nil || slices.Contains(o.Results, nil)) {
		err = fmt.Errorf("the run ended without results: %s", strings.Join(o.Warnings, "; "))
	}
	return benchOutcome{o, x.Dilation}, err
}

// rate is how many data packets came through per second of real time.
func (o benchOutcome) rate() float64 {
	seconds := float64(o.Elapsed) / float64(units.Second) * o.dilation
	return float64(o.Transport.DataPackets-o.Transport.Retransmits) / seconds
}

// capacity is how many data packets per second would keep all processors busy, or the fabric its one.
func (o benchOutcome) capacity() float64 {
	all := o.Report.CPU
	for _, n := range o.Results {
		all += n.CPU
	}
	packets := float64(o.Transport.DataPackets) * 1e9
	return min(packets*float64(runtime.NumCPU())/float64(all), packets/float64(o.Report.CPU))
}
