package emulate

import (
	"cmp"
	"context"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	"weft/internal/cleanup"
	"weft/orchestrator/runtime"
)

// The calibration runs: as many hosts as the labs that this is for, each of three loads for about as long as makes
// the numbers steady. All are made by the same processes: starting some takes as long as a run.
const (
	benchHosts = 16
	benchLight = 4_000.0 // packets per second and processor offered in the first: any machine of today carries them
	benchPress = 2.5     // times what the first suggests is offered in the second
	benchStall = 20 * time.Second
)

// How long each run is, in seconds of real time at the load offered.
const (
	lightSeconds = 0.2
	pressSeconds = 0.4
	fullSeconds  = 0.5
)

// Calibrate measures what this machine can carry, or returns what it measured before: see cached.
func Calibrate(ctx context.Context, p Processes) (Capacity, error) {
	return cached(ctx, p.Runtime, func() (Capacity, error) { return Measure(ctx, p) })
}

// Measure measures what this machine can carry: how much processor time a packet takes, first under a light
// load, then under so many packets that nobody has time to wait for single ones; and how late it is at either, and under
// the load that the machine will be asked for. It takes less than three seconds on a machine that does nothing else.
//
// A packet under a light load takes more than twice the processor time that it takes under pressure, where one wake-up
// serves several. So the first load tells how much may be offered to learn what fills the machine. Offering much more
// and counting what comes through would be wrong: when everything is late, time runs out in retransmissions.
func Measure(ctx context.Context, p Processes) (Capacity, error) {
	p.measuring(0)
	b, err := newBench(ctx, p)
	if err != nil {
		return Capacity{}, fmt.Errorf("measure the packet rate: %w", err)
	}
	c, err := b.measure(ctx, p.measuring)
	return c, cleanup.Join(err, b.close())
}

// measuring tells how many of the steps of measuring are done.
func (p *Processes) measuring(done int) {
	const steps = 4 // starting the processes, and three runs
	if p.Measuring != nil {
		p.Measuring(done, steps)
	}
}

// measure makes the runs, and tells after each step how many are done.
func (b *bench) measure(ctx context.Context, tell func(done int)) (Capacity, error) {
	tell(1)
	light, err := b.run(ctx, lightSeconds, light())
	if err != nil {
		return Capacity{}, fmt.Errorf("measure the packet rate: %w", err)
	}
	tell(2)
	press, err := b.run(ctx, pressSeconds, benchPress*light.capacity())
	if err != nil {
		return Capacity{}, fmt.Errorf("measure the packet rate under pressure: %w", err)
	}
	c := Capacity{PacketsPerSecond: max(light.capacity(), press.capacity()), Ordinary: !light.favoured}
	tell(3)
	full, err := b.last().run(ctx, fullSeconds, c.working()*c.PacketsPerSecond)
	if err != nil {
		return Capacity{}, fmt.Errorf("measure the lateness: %w", err)
	}
	tell(4)
	for _, out := range []benchOutcome{light, press, full} {
		c.Lateness = append(c.Lateness, out.late())
		c.Foreign = max(c.Foreign, out.Foreign)
	}
	slices.SortFunc(c.Lateness, func(a, b LatenessAt) int { return cmp.Compare(a.PacketsPerSecond, b.PacketsPerSecond) })
	return c, nil
}

// benchOutcome is what an all-to-all of the calibration came to.
type benchOutcome struct {
	*Outcome
	dilation float64
	offered  float64 // data packets per second of real time
	drivers  int     // processes that drive several nodes; 0: each drives itself
}

// bench is what measures: the processes of a star.
type bench struct {
	hosts   int
	more    bool // runs after the next
	cluster runtime.Cluster
	crew    *crew
}

// newBench starts the processes.
func newBench(ctx context.Context, p Processes) (*bench, error) {
	b := &bench{hosts: calibrationHosts(), more: true}
	x := allToAll(b.hosts, 1, 1, 1)
	x.Processes = p
	setup, err := x.ToRun()
	if err != nil {
		return nil, err
	}
	if b.cluster, err = launch(ctx, p.launch(), setup.Spec); err != nil {
		return nil, err
	}
	if b.crew, err = lend(ctx, b.cluster); err != nil {
		return nil, cleanup.Join(err, b.cluster.Close())
	}
	return b, nil
}

// last makes the next run the last.
func (b *bench) last() *bench {
	b.more = false
	return b
}

func (b *bench) close() error {
	b.crew.close()
	return b.cluster.Close()
}

// run runs the all-to-all for about so many seconds, with so many packets offered per second of real time.
func (b *bench) run(ctx context.Context, seconds, offered float64) (benchOutcome, error) {
	messages := float64(b.hosts * (b.hosts - 1))
	x := allToAll(b.hosts, max(1, int(seconds*offered/messages)), 1, 1)
	x.Dilation = max(1, roundUp(Load(x.Plans)/offered))
	x.Stall = max(benchStall, x.stall())
	x.more = b.more
	o, err := drive(ctx, b.cluster, b.crew, nil, x)
	if err == nil && (o.Report == nil || slices.Contains(o.Results, nil)) {
		err = fmt.Errorf("the run ended without results: %s", strings.Join(o.Warnings, "; "))
	}
	return benchOutcome{o, x.Dilation, Load(x.Plans) / x.Dilation, b.cluster.Agents()}, err
}

// late is how late the machine was, and at which load: as offered, which is how labs are counted too.
func (o benchOutcome) late() LatenessAt {
	return LatenessAt{PacketsPerSecond: o.offered, P99NS: o.Fidelity.LatenessP99NS * o.dilation}
}

// capacity is how many data packets per second would keep all processors busy, or the fabric its one, or those that drive nodes
// theirs.
func (o benchOutcome) capacity() float64 {
	var nodes int64
	for _, n := range o.Results {
		nodes += n.CPU
	}
	packets := float64(o.Transport.DataPackets) * 1e9
	most := min(packets*float64(goruntime.NumCPU())/float64(o.Report.CPU+nodes), packets/float64(o.Report.CPU))
	if o.drivers > 0 {
		most = min(most, packets*float64(o.drivers)/float64(nodes))
	}
	return most
}
