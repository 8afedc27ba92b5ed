package emulate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"weft/clocksync/labtime"
	"weft/internal/cleanup"
	"weft/internal/clock"
	"weft/internal/poller"
	"weft/nodeimg/agent"
	"weft/orchestrator/kernelpath"
	"weft/orchestrator/runtime"
	"weft/orchestrator/runtime/namespace"
	"weft/realtime"
	"weft/units"
)

// How long things may take, in real time. Ours.
const (
	startDelay  = 50 * time.Millisecond  // from the start message to lab time 0: all have it by then
	slowStart   = 300 * time.Millisecond // likewise, where one processor does everything slowly: User Mode Linux
	collectTime = 10 * time.Second       // for the results of the nodes, and of the fabric, to come
	rescueTime  = time.Second            // likewise, after a failure or an interruption
	lastWords   = 500 * time.Millisecond // from a broken connection to the news that the process ended
	watchEvery  = 100 * time.Millisecond
	silence     = 3 * time.Second // without a word of a process: they say something every 200 ms
)

// Run runs an experiment and returns what it brought back; also, as far as it goes, beside an error. When ctx
// ends the run ends with ctx's error.
func Run(ctx context.Context, x Experiment) (*Outcome, error) {
	if err := x.check(); err != nil {
		return nil, fmt.Errorf("emulate: %w", err)
	}
	setup, err := x.ToRun()
	if err != nil {
		return nil, err
	}
	cluster, err := launch(ctx, x.Processes.launch(), setup.Spec)
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

// launch is the runtime to start a lab with.
func (p *Processes) launch() runtime.Launch {
	if p.Launch != nil {
		return p.Launch
	}
	return func(ctx context.Context, spec runtime.Spec) (runtime.Cluster, error) {
		cluster, err := namespace.Launch(ctx, spec)
		if err != nil {
			return nil, err // not a nil *namespace.Cluster in an interface
		}
		return cluster, nil
	}
}

// launch starts the lab's processes unless ctx ends first. Later the end of ctx does not end them: they still
// have to say what they know.
func launch(ctx context.Context, start runtime.Launch, spec runtime.Spec) (runtime.Cluster, error) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	over := context.AfterFunc(ctx, end)
	cluster, err := start(life, spec)
	if !over() && err == nil {
		return nil, cleanup.Join(ctx.Err(), cluster.Close())
	}
	return cluster, err
}

// drive runs an experiment on a cluster that was launched for it, by those who drive the nodes, and leaves the cluster up. The network is
// that of the setup.
func drive(ctx context.Context, cluster runtime.Cluster, crew *crew, network *kernelpath.Network, x Experiment) (*Outcome, error) {
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
	}
	r.outcome.Warnings = bootNotes(cluster, carrier)
	for i := range x.Plans {
		r.nodes[i].progress.Total = received(&x.Plans[i])
	}
	err = r.configure(ctx)
	if err == nil {
		r.favour()
		err = r.start()
	}
	if err == nil {
		err = r.accompany(ctx)
		r.collect(err)
	}
	r.stopListening()
	r.judge()
	return r.outcome, err
}

// accompany watches the run while programs run and Experiment.During does what it does.
func (r *run) accompany(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	failed, wait := r.runPrograms(ctx)
	defer wait()
	defer cancel()
	if r.x.During == nil {
		return r.watch(ctx, nil, failed)
	}
	during := make(chan error, 1)
	go func() {
		select { // before, nothing is carried
		case <-ctx.Done():
			during <- ctx.Err()
		case <-time.After(time.Duration(r.scale.T0 - clock.Monotonic())):
			during <- r.x.During(ctx, r.cluster)
		}
	}()
	err := r.watch(ctx, during, failed)
	cancel()
	if !r.duringOver {
		<-during
	}
	return err
}

// run is one run under way. One goroutine owns it; the others only send news.
type run struct {
	x       *Experiment
	cluster runtime.Cluster
	crew    *crew
	carrier *carrier
	nodes   []nodeState
	fabric  peerState
	news    chan news
	quit    chan struct{} // closed when nobody takes news any more
	scale   labtime.Scale
	outcome *Outcome

	duringOver bool            // Experiment.During has returned
	seen       *realtime.State // what the network was like when nothing moved; nil: it was not asked

	moved  time.Time // when progress was made last
	looked time.Time // when it was seen to last who answers
	load   machineLoad
}

// peerState is what is known of a process.
type peerState struct {
	lost  error     // its connection broke, or it said that it failed
	told  bool      // its results have come
	heard time.Time // when it said something last
}

// lose notes why nothing more is to be had of a process; the first reason explains the others.
func (p *peerState) lose(why error) {
	if p.lost == nil {
		p.lost = why
	}
}

// nodeState is what is known of a node.
type nodeState struct {
	peerState
	progress agent.Progress // the last one that it sent; before any, Total is that of its plan
	done     bool
}

// fabricPeer marks news of what carries packets among those of nodes.
const fabricPeer = -1

// configure gives every process its part and waits until all are ready.
func (r *run) configure(ctx context.Context) error {
	group := new(errgroup.Group)
	hurry, cancel := context.WithCancel(ctx)
	defer cancel()
	// A process that does not answer must not hold up the end of the run.
	stop := context.AfterFunc(hurry, func() { r.readDeadline(time.Now()) })
	do := func(peer int, f func() error) func() error {
		return func() error {
			err := f()
			if err != nil {
				cancel()
			}
			return r.named(peer, err)
		}
	}
	group.Go(do(fabricPeer, func() error {
		err := r.carrier.conn.SendValue(realtime.KindConfigure, r.x.fabricConfig())
		if err == nil {
			err = r.x.ready(r.carrier.conn)
		}
		if err == nil {
			err = r.capture()
		}
		return err
	}))
	var err error
	if r.x.Kernel != nil { // measures links, which takes a quiet machine; and only then is it known how slow lab time is
		err = group.Wait()
		group = new(errgroup.Group)
	}
	if err == nil {
		peers := r.x.peers()
		for i := range r.nodes {
			conn, config := r.crew.conns[i], r.x.nodeConfig(i, peers)
			group.Go(do(i, func() error {
				err := conn.SendValue(agent.KindConfigure, config)
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

// capture has the captures begin.
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

// favour asks for the nodes to run before whatever else the machine does. They run for some ten microseconds at a
// time; waiting for others to finish their milliseconds is most of what makes them late.
func (r *run) favour() {
	for _, p := range drivers(r.cluster) {
		if err := poller.Favour(p.PID); err != nil {
			r.outcome.Warnings = append(r.outcome.Warnings, fmt.Sprintf("nodes wait for other programs: %v", err))
			return
		}
	}
	r.outcome.favoured = true
}

func (r *run) readDeadline(t time.Time) {
	_ = r.carrier.conn.SetReadDeadline(t)
	r.crew.readDeadline(t)
}

// start begins lab time everywhere, the fabric's first, and listens.
func (r *run) start() error {
	t0 := clock.Monotonic() + int64(r.x.startDelay())
	r.scale = labtime.Scale{T0: t0, Dilation: r.x.Dilation}
	if err := r.carrier.conn.SendValue(realtime.KindStart, realtime.Start{T0: t0}); err != nil {
		return r.named(fabricPeer, err)
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

// startDelay is how long before lab time 0 all are told of it.
func (x *Experiment) startDelay() time.Duration {
	if x.Kernel != nil {
		return slowStart
	}
	return startDelay
}

// labNow returns the present lab time; 0 before its start.
func (r *run) labNow() units.Time { return max(0, r.scale.Lab(clock.Monotonic())) }

// named says which process err is about.
func (r *run) named(peer int, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", r.name(peer), err)
}

func (r *run) name(peer int) string {
	if peer == fabricPeer {
		return r.carrier.name
	}
	return r.cluster.Node(peer).Name
}

// blame prefers the news that a process died, which explains a broken connection, and the caller's wish to
// end, which explains everything.
func blame(ctx context.Context, cluster runtime.Cluster, err error) error {
	select {
	case e, ok := <-cluster.Exits():
		if ok {
			return e.Err
		}
	case <-ctx.Done():
	case <-time.After(lastWords):
	}
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		return errors.Join(ctx.Err(), err)
	}
	return err
}
