package emulate

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"weft/internal/cleanup"
	"weft/internal/clock"
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
	s, err := open(ctx, &x, setup)
	if err != nil {
		return nil, err
	}
	out, err := s.run(ctx, setup.Network)
	return out, cleanup.Join(err, s.close())
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

// run runs the experiment that s carries, and leaves its processes up. network is that of the
// setup.
func (s *session) run(ctx context.Context, network *kernelpath.Network) (*Outcome, error) {
	r := &run{
		session: s,
		nodes:   make([]nodeState, s.cluster.Nodes()),
		news:    make(chan news, 4*s.cluster.Nodes()+64),
		outcome: newOutcome(s.cluster.Nodes()),
		half:    make(chan struct{}),
	}
	r.outcome.Warnings = bootNotes(s.cluster, s.carrier, len(r.x.Programs)+len(r.x.Groups) > 0)
	for i := range r.x.Plans {
		r.nodes[i].progress.Total = received(&r.x.Plans[i])
	}
	peers := r.x.peers()
	err := r.configure(ctx, func(i int) agent.Config { return r.x.nodeConfig(i, peers) })
	if err == nil {
		if r.favour(); r.unfavoured != "" {
			r.outcome.Warnings = append(r.outcome.Warnings, r.unfavoured)
		}
		if err = r.start(true); err != nil {
			err = r.ends.blame(ctx, err)
		}
	}
	if err == nil {
		r.hear()
		shown := r.show(ctx, network)
		err = r.accompany(ctx)
		shown()
		err = cmp.Or(err, r.collect(ctx, err))
	}
	r.stopListening()
	r.outcome.Warnings = append(r.outcome.Warnings, clockSteps(s.cluster)...)
	r.judge()
	return r.outcome, err
}

// hear listens to all processes.
func (r *run) hear() {
	r.quit = make(chan struct{})
	go r.listen(fabricPeer, r.carrier.conn)
	for i := range r.nodes {
		go r.listen(i, r.crew.conns[i])
	}
	r.moved = time.Now()
	r.crew.silences.begin(r.moved)
	r.beginCPU()
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
	*session
	nodes   []nodeState
	fabric  peerState
	news    chan news
	quit    chan struct{} // closed when no goroutine handles news any more
	outcome *Outcome

	half    chan struct{} // closed once half of the workload's bytes have arrived
	halfway bool          // half is closed

	duringOver bool   // Experiment.During has returned
	groupsOver bool   // Experiment.Groups have ended
	clocks     Clocks // of programs
	// the network when progress stopped; nil: it was not asked
	seen *realtime.State

	moved time.Time // time of the last progress
	load  machineLoad
}

// peerState is the run's state of a process.
type peerState struct {
	lost error // its connection broke, or it reported a failure
	told bool  // its results have arrived
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
