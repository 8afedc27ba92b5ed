package emulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"weft/clocksync/labtime"
	"weft/internal/cleanup"
	"weft/internal/clock"
	"weft/internal/control"
	"weft/internal/poller"
	"weft/nodeimg/agent"
	"weft/orchestrator/kernelpath"
	"weft/orchestrator/runtime"
	"weft/orchestrator/runtime/namespace"
	"weft/realtime"
	"weft/units"
)

// Limits in real time. Ours.
const (
	// startDelay is from the start message to lab time 0: all processes have it by then.
	startDelay = 50 * time.Millisecond
	// slowStart is startDelay for several machines, and for the kernel datapath. User Mode Linux
	// needs it, where one slow processor does everything; the machine's own kernel would need less.
	slowStart = 300 * time.Millisecond
	// farStart is added for each host on another machine. Its agent, if busy, passes the messages
	// on one after the other, and hosts that hear late begin late.
	farStart = 5 * time.Millisecond
	// collectTime is the longest time without a message while the results of the nodes, or of the
	// fabric, arrive.
	collectTime = 10 * time.Second
	rescueTime  = time.Second // collectTime after a failure or an interruption
	// collectTimes is the longest time for all results, as a multiple of collectTime.
	collectTimes = 60
	// lastWords is from a broken connection to the news that the process ended, in looks of this
	// process, and lastRounds how often as long it waits for a process that has begun to exit.
	lastWords  = 500 * time.Millisecond
	looks      = 50
	lastRounds = 20
	watchEvery = 100 * time.Millisecond
	// silence is the longest time without a message of a process; each reports every 200 ms.
	silence = 3 * time.Second
	// starving is the longest silence, as a multiple of silence, of a process that waits for a
	// processor, and arriving how long its message may then take.
	starving = 10
	arriving = time.Second
)

// Run runs an experiment and returns its outcome, and beside an error what was collected until
// then. When ctx ends, the run ends with ctx's error.
func Run(ctx context.Context, x Experiment) (*Outcome, error) {
	if err := x.check(); err != nil {
		return nil, fmt.Errorf("emulate: %w", err)
	}
	setup, err := x.ToRun()
	if err != nil {
		return nil, err
	}
	cluster, err := x.launch(ctx, setup)
	if err != nil {
		return nil, err
	}
	crew, err := lend(ctx, cluster)
	if err != nil {
		return nil, cleanup.Join(err, cluster.Close())
	}
	out, err := drive(ctx, cluster, crew, setup.Network, x)
	crew.close()
	return out, cleanup.Join(err, cluster.Close())
}

// launch returns the runtime that starts the lab.
func (p *Processes) launch() runtime.Launch {
	if p.Launch != nil {
		return p.Launch
	}
	return LaunchHere
}

// LaunchHere is the runtime.Launch that starts processes in namespaces of this machine.
func LaunchHere(ctx context.Context, spec runtime.Spec) (runtime.Cluster, error) {
	cluster, err := namespace.Launch(ctx, spec)
	if err != nil {
		return nil, err // not a nil *namespace.Cluster in an interface
	}
	return cluster, nil
}

// launch starts the lab's processes unless ctx ends first. Later the end of ctx does not end them,
// because they still have to report their results.
func launch(ctx context.Context, start runtime.Launch, spec runtime.Spec) (runtime.Cluster, error) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	over := context.AfterFunc(ctx, end)
	cluster, err := start(life, spec)
	if !over() && err == nil {
		return nil, cleanup.Join(ctx.Err(), cluster.Close())
	}
	return cluster, err
}

// drive runs an experiment on a cluster that was launched for it, with the given processes driving
// its nodes, and leaves the cluster up. network is that of the setup.
func drive(ctx context.Context, cluster runtime.Cluster, crew *crew, network *kernelpath.Network,
	x Experiment) (*Outcome, error) {
	carrier, err := x.carrier(cluster, network)
	if err != nil {
		return nil, err
	}
	defer carrier.close()
	r := &run{
		carrier: carrier,
		x:       &x, cluster: cluster, crew: crew,
		nodes:   make([]nodeState, cluster.Nodes()),
		news:    make(chan news, 4*cluster.Nodes()+64),
		outcome: newOutcome(cluster.Nodes()),
		half:    make(chan struct{}),
	}
	r.outcome.Warnings = bootNotes(cluster, carrier, len(x.Programs)+len(x.Groups) > 0)
	for i := range x.Plans {
		r.nodes[i].progress.Total = received(&x.Plans[i])
	}
	err = r.configure(ctx)
	if err == nil {
		r.favour()
		if err = r.start(); err != nil {
			err = blame(ctx, r.cluster, err)
		}
	}
	if err == nil {
		shown := r.show(ctx, network)
		err = r.accompany(ctx)
		shown()
		err = cmp.Or(err, r.collect(ctx, err))
	}
	r.stopListening()
	r.outcome.Warnings = append(r.outcome.Warnings, clockSteps(cluster)...)
	r.judge()
	return r.outcome, err
}

// showTime is how long tc may take, in real time: some milliseconds, or a second under User Mode
// Linux.
const showTime = 5 * time.Second

// show has Kernel.Shown called in the middle of the run. The function that it returns waits for the
// end of that, and prevents it if the middle has not come.
func (r *run) show(ctx context.Context, network *kernelpath.Network) (end func()) {
	k := r.x.Kernel
	if k == nil || k.Shown == nil {
		return func() {}
	}
	ended, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-r.half:
		case <-over:
			if !r.halfway {
				return
			}
		}
		ctx, cancel := context.WithTimeout(ctx, showTime)
		defer cancel()
		s := Shown{Switch: network.Switches[network.Hosts[0].Home].Name, At: r.labNow(), Dilation: r.x.Dilation}
		s.Text = kernelpath.Show(ctx, network, r.cluster, 0)
		k.Shown(s)
	}()
	return func() {
		close(over)
		<-ended
	}
}

// accompany watches the run while programs and Experiment.During run.
func (r *run) accompany(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	r.clocks = Clocks{scale: r.scale, models: r.x.oscillators()}
	defer r.clocks.Close()
	failed, wait := r.runPrograms(ctx)
	defer wait()
	groups, waitGroups := r.runGroups(ctx)
	defer waitGroups()
	defer cancel()
	r.groupsOver = groups == nil
	if r.x.During == nil {
		return r.watch(ctx, nil, failed, groups)
	}
	during := make(chan error, 1)
	go func() {
		select { // before that, nothing is carried
		case <-ctx.Done():
			during <- ctx.Err()
		case <-time.After(time.Duration(r.scale.T0 - clock.Monotonic())):
			during <- r.x.During(ctx, r.cluster)
		}
	}()
	err := r.watch(ctx, during, failed, groups)
	cancel()
	if !r.duringOver {
		<-during
	}
	return err
}

// run is the state of one run. One goroutine owns it; the others only send news.
type run struct {
	x       *Experiment
	cluster runtime.Cluster
	crew    *crew
	carrier *carrier
	nodes   []nodeState
	fabric  peerState
	news    chan news
	quit    chan struct{} // closed when no goroutine handles news any more
	scale   labtime.Scale
	outcome *Outcome

	half    chan struct{} // closed once half of the workload's bytes have arrived
	halfway bool          // half is closed

	duringOver bool   // Experiment.During has returned
	groupsOver bool   // Experiment.Groups have ended
	clocks     Clocks // of programs
	// the network when progress stopped; nil: it was not asked
	seen *realtime.State

	moved time.Time // time of the last progress
	// time of the last check for silent processes
	looked time.Time
	load   machineLoad
}

// peerState is the run's state of a process.
type peerState struct {
	lost  error     // its connection broke, or it reported a failure
	told  bool      // its results have arrived
	heard time.Time // time of its last message
	waits time.Time // when it was last seen to run, or to wait for a processor, though silent
}

// lose records why a process is lost. The first reason explains the others and is kept.
func (p *peerState) lose(why error) {
	if p.lost == nil {
		p.lost = why
	}
}

// nodeState is the run's state of a node.
type nodeState struct {
	peerState
	// its last report; before any, Total is that of its plan
	progress agent.Progress
	done     bool
	results  agent.Results // what has arrived of its results
	size     int           // bytes of their rows

	framed units.Time      // of its last frame of connections
	conns  map[uint32]bool // its connections; nil before the first frame
}

// fabricPeer marks news of the carrier among those of nodes.
const fabricPeer = -1

// configure sends every process its configuration and waits until all are ready.
func (r *run) configure(ctx context.Context) error {
	group := new(errgroup.Group)
	hurry, cancel := context.WithCancel(ctx)
	defer cancel()
	// A process that does not answer must not hold up the end of the run.
	stop := context.AfterFunc(hurry, func() { r.readDeadline(time.Now()) })
	var silent atomic.Bool
	limit := realtime.ReadyTimes * patience()
	quiet := time.AfterFunc(limit, func() {
		silent.Store(true)
		cancel()
	})
	defer quiet.Stop()
	if r.x.Kernel != nil {
		quiet.Stop() // until links are measured
	}
	do := func(peer int, f func() error) func() error {
		return func() error {
			err := f()
			switch {
			case errors.Is(err, os.ErrDeadlineExceeded) && silent.Load():
				err = fmt.Errorf("it does not answer: it is not ready %v after the others; is it stopped?", limit)
			case err != nil:
				cancel()
			default:
				quiet.Reset(limit)
			}
			return r.named(peer, err)
		}
	}
	nics, err := r.x.makeNICs(r.cluster.Agents())
	if err != nil {
		return err
	}
	defer nics.close()
	group.Go(do(fabricPeer, func() error {
		c := r.x.fabricConfig()
		c.NICs = nics.config()
		err := r.carrier.conn.SendValue(realtime.KindConfigure, c)
		if err == nil {
			err = nics.send(r.carrier.conn)
		}
		if err == nil {
			err = r.x.ready(r.carrier.conn)
		}
		if err == nil {
			err = r.capture()
		}
		if control.Gone(err) {
			err = r.carrier.cause(err)
		}
		return err
	}))
	module, ref, err := moduleFile(r.x.Module)
	if err != nil {
		return err
	}
	var fds []int
	if module != nil {
		defer module.Close()
		fds = append(fds, int(module.Fd()))
	}
	// it measures links, which needs a quiet machine, and chooses the dilation
	if r.x.Kernel != nil {
		err = group.Wait()
		group = new(errgroup.Group)
	}
	if err == nil {
		peers := r.x.peers()
		for i := range r.nodes {
			conn, config := r.crew.conns[i], r.x.nodeConfig(i, peers)
			config.Module = ref
			if nics != nil && nics.regions[i] != nil {
				config.NIC = &agent.NIC{Frame: nics.frame, Bell: nics.bell[i]}
			}
			all := slices.Concat(fds, nics.node(i))
			group.Go(do(i, func() error {
				err := conn.SendValue(agent.KindConfigure, config, all...)
				if err == nil {
					_, err = conn.Expect(agent.KindReady, nil)
				}
				return err
			}))
		}
		err = group.Wait()
	}
	stop()
	if err != nil {
		return blame(ctx, r.cluster, err)
	}
	return nil
}

// capture starts the captures.
func (r *run) capture() error {
	for _, c := range r.x.Captures {
		var did realtime.Did
		err := r.carrier.conn.SendValue(realtime.KindCapture, c.Of, c.Socket)
		if err == nil {
			_, err = r.carrier.conn.Expect(realtime.KindDid, &did)
		}
		if err == nil && did.Error != "" {
			err = errors.New(did.Error)
		}
		if err != nil {
			return fmt.Errorf("capture: %w", err)
		}
	}
	return nil
}

// favour asks for real-time scheduling of the nodes. They run for some ten microseconds at a time.
// Waiting for other programs to finish their milliseconds is most of their lateness.
func (r *run) favour() {
	if r.x.Processes.Machines != nil {
		r.outcome.favoured = true // their agents have asked
		return
	}
	for _, p := range drivers(r.cluster) {
		if err := poller.Favour(p.PID); err != nil {
			r.outcome.Warnings = append(r.outcome.Warnings, fmt.Sprintf("no real-time scheduling, so other "+
				"programs may delay nodes: %v; run as root, or with CAP_SYS_NICE", err))
			return
		}
	}
	r.outcome.favoured = true
}

func (r *run) readDeadline(t time.Time) {
	_ = r.carrier.conn.SetReadDeadline(t)
	r.crew.readDeadline(t)
}

// start begins lab time everywhere, in the fabric first, and listens.
func (r *run) start() error {
	t0 := clock.Monotonic() + int64(r.x.startDelay())
	r.scale = labtime.Scale{T0: t0, Dilation: r.x.Dilation}
	if err := r.carrier.conn.SendValue(realtime.KindStart, realtime.Start{T0: t0}); err != nil {
		return r.named(fabricPeer, r.carrier.cause(err))
	}
	for i := range r.nodes {
		if err := r.crew.conns[i].SendValue(agent.KindStart, agent.Start{T0: t0}); err != nil {
			return r.named(i, err)
		}
	}
	r.quit = make(chan struct{})
	go r.listen(fabricPeer, r.carrier.conn)
	for i := range r.nodes {
		go r.listen(i, r.crew.conns[i])
	}
	r.moved = time.Now()
	r.allHeard(r.moved)
	r.beginCPU()
	return nil
}

// startDelay returns the time from the start messages to lab time 0.
func (x *Experiment) startDelay() time.Duration {
	switch {
	case x.Processes.Machines != nil:
		return slowStart + time.Duration(len(x.Plans))*farStart
	case x.Kernel != nil:
		return slowStart
	}
	return startDelay
}

// labNow returns the present lab time; 0 before its start.
func (r *run) labNow() units.Time { return max(0, r.scale.Lab(clock.Monotonic())) }

// named adds the name of the process to err.
func (r *run) named(peer int, err error) error {
	if err == nil {
		return nil
	}
	who := r.name(peer)
	if m, ok := r.cluster.(*machines); ok && m.far && peer != fabricPeer {
		who += " on " + MachineName(m.hosts[peer].machine)
	}
	return fmt.Errorf("%s: %w", who, err)
}

func (r *run) name(peer int) string {
	if peer == fabricPeer {
		return r.carrier.name
	}
	return r.cluster.Node(peer).Name
}

// blame replaces err by its cause: the end of ctx, which explains everything, or else the death of
// a process, which explains a broken connection.
func blame(ctx context.Context, cluster runtime.Cluster, err error) error {
	if e, ok := nextExit(ctx, cluster); ok {
		return Died(cluster, e)
	}
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		return errors.Join(ctx.Err(), err)
	}
	return err
}

// nextExit returns the end of a process that explains a broken connection; ok is false if none is
// told within lastWords. Time in which this process itself did not run does not count, and a
// process that has begun to exit has longer.
func nextExit(ctx context.Context, cluster runtime.Cluster) (e runtime.Exit, ok bool) {
	for range lastRounds {
		for range looks {
			select {
			case e, ok := <-cluster.Exits():
				return e, ok
			case <-ctx.Done():
				return e, false
			case <-time.After(lastWords / looks):
			}
		}
		if !someExit(cluster) {
			break
		}
	}
	return e, false
}

// someExit reports whether a process of the cluster on this machine has begun to exit.
func someExit(cluster runtime.Cluster) bool {
	some := cluster.Fabric().Exiting()
	for i := range cluster.Agents() {
		some = some || cluster.Agent(i).Exiting()
	}
	for i := range cluster.Nodes() {
		some = some || cluster.Node(i).Exiting()
	}
	return some
}
