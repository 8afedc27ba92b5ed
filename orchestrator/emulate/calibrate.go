package emulate

import (
	"cmp"
	"context"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	"weft/host"
	"weft/internal/cleanup"
)

// The calibration runs have as many hosts as typical labs, and three loads, each for as long as
// steady numbers need. The same processes make all runs, because starting them takes as long as a
// run.
const (
	benchHosts = 16
	// benchLight is the first load, in packets per second and processor: any current machine
	// carries it.
	benchLight = 4_000.0
	// benchPress is the second load, as a multiple of the capacity that the first run suggests.
	benchPress = 2.5
	benchStall = 20 * time.Second
)

// benchMessage is the largest number of packets in a message of the calibration. Longer runs repeat
// the messages, because a node touches the memory of its buffers for the first time before lab time
// 0 only as far as agent.Config allows: getting and clearing a page takes longer than a packet.
const benchMessage = 256

// Length of each run in seconds of real time at the load offered.
const (
	lightSeconds = 0.2
	pressSeconds = 0.4
	fullSeconds  = 0.5
)

// Calibrate returns the capacity of this machine, measured now or earlier (see cached).
func Calibrate(ctx context.Context, p Processes) (Capacity, error) {
	return cached(ctx, p.attachment(), func() (Capacity, error) { return Measure(ctx, p) })
}

// attachment returns what the capacity of a machine depends on besides the machine: the runtime and
// how hosts are attached to the network.
func (p *Processes) attachment() string {
	runtime := cmp.Or(p.Runtime, "namespace")
	if p.Bypass {
		return runtime + " bypass"
	}
	return runtime
}

// Measure measures the capacity of this machine: the processor time of a packet, first under a
// light load, then under a load that leaves no time to wait for single packets. It also measures
// lateness at both loads and at the load that labs will use. It takes less than three seconds on an
// idle machine.
//
// Under a light load a packet takes more than twice the processor time that it takes under
// pressure, where one wake-up serves several. So the first run tells how much the second may offer
// to fill the machine. Offering far more and counting deliveries would be wrong: with everything
// late, the time goes into retransmissions.
func Measure(ctx context.Context, p Processes) (Capacity, error) {
	p.measuring(0)
	b, err := newBench(ctx, p)
	if err != nil {
		return Capacity{}, fmt.Errorf("measure the packet rate: %w", err)
	}
	c, err := b.measure(ctx, p.measuring)
	return c, cleanup.Join(err, b.close())
}

// measuring reports how many steps of the measurement are done.
func (p *Processes) measuring(done int) {
	const steps = 4 // starting the processes, and three runs
	if p.Measuring != nil {
		p.Measuring(done, steps)
	}
}

// measure makes the runs, and reports the number of finished steps after each.
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
	c := Capacity{PacketsPerSecond: max(light.capacity(), press.capacity()), Ordinary: b.unfavoured != ""}
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
	slices.SortFunc(c.Lateness, func(a, b LatenessAt) int {
		return cmp.Compare(a.PacketsPerSecond,
			b.PacketsPerSecond)
	})
	return c, nil
}

// benchOutcome is the result of one all-to-all of the calibration.
type benchOutcome struct {
	*Outcome
	dilation float64
	offered  float64 // data packets per second of real time
	drivers  int     // processes that drive several nodes; 0: each node drives itself
}

// bench holds the processes of a star that measures.
type bench struct {
	*session
	hosts  int
	more   bool // further runs follow the next
	bypass bool
}

// newBench starts the processes.
func newBench(ctx context.Context, p Processes) (*bench, error) {
	b := &bench{hosts: calibrationHosts(), more: true, bypass: p.Bypass}
	x := allToAll(b.hosts, 1, 1, 1)
	x.Processes = p
	setup, err := x.ToRun()
	if err != nil {
		return nil, err
	}
	b.session, err = open(ctx, &x, setup)
	return b, err
}

// last makes the next run the last.
func (b *bench) last() *bench {
	b.more = false
	return b
}

// run runs the all-to-all for about the given seconds of real time, at the given load in packets
// per second of real time.
func (b *bench) run(ctx context.Context, seconds, offered float64) (benchOutcome, error) {
	packets := max(1, int(seconds*offered/float64(b.hosts*(b.hosts-1))))
	repeat := (packets + benchMessage - 1) / benchMessage
	x := allToAll(b.hosts, packets/repeat, repeat, 1)
	x.Dilation = max(1, roundUp(Load(host.Demands(x.Plans))/offered))
	x.Stall = max(benchStall, x.stall())
	x.more, x.Processes.Bypass = b.more, b.bypass
	if err := b.carry(&x, nil); err != nil {
		return benchOutcome{}, err
	}
	o, err := b.session.run(ctx, nil)
	if err == nil && (o.Report == nil || slices.Contains(o.Results, nil)) {
		err = fmt.Errorf("the run ended without results: %s", strings.Join(o.Warnings, "; "))
	}
	return benchOutcome{o, x.Dilation, Load(host.Demands(x.Plans)) / x.Dilation, b.cluster.Agents()}, err
}

// late returns the lateness of the run at its load. The load is the one offered, as for labs.
func (o benchOutcome) late() LatenessAt {
	return LatenessAt{PacketsPerSecond: o.offered, P99NS: o.Fidelity.LatenessP99NS * o.dilation}
}

// capacity returns the data packets per second that would keep busy either all processors, or the
// fabric's one, or those of the processes that drive nodes.
func (o benchOutcome) capacity() float64 {
	var nodes int64
	for _, n := range o.Results {
		nodes += n.CPU
	}
	packets := float64(o.Transport.DataPackets) * 1e9
	rate := min(packets*float64(goruntime.NumCPU())/float64(o.Report.CPU+nodes), packets/float64(o.Report.CPU))
	if o.drivers > 0 {
		rate = min(rate, packets*float64(o.drivers)/float64(nodes))
	}
	return rate
}
