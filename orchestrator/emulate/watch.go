package emulate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weft/clocksync"
	"weft/collectives/schedule"
	"weft/host"
	"weft/internal/clip"
	"weft/internal/control"
	"weft/nodeimg/agent"
	"weft/orchestrator/runtime"
	"weft/realtime"
	"weft/results/frames"
	"weft/transport"
	"weft/units"
)

// hostError is the failure of a host, in its own words.
type hostError struct {
	text   string
	gaveUp bool // a connection gave up
}

func (e *hostError) Error() string { return e.text }

// Is reports whether a connection of the host gave up, for transport.ErrFailed.
func (e *hostError) Is(target error) bool { return e.gaveUp && target == transport.ErrFailed }

// nodeError is a failure of a node, with its name, that the network has noticed.
type nodeError struct{ error }

// news is a message of a process, or the end of its connection.
type news struct {
	peer    int
	message control.Message
	err     error
}

// listen passes on the messages of a process until its connection ends.
func (r *run) listen(peer int, conn *control.Conn) {
	for {
		m, _, err := conn.Recv()
		select {
		case r.news <- news{peer, m, err}:
		case <-r.quit:
			return
		}
		if err != nil || m.Kind == agent.KindResults || m.Kind == realtime.KindReport {
			return // no message follows
		}
	}
}

// stopListening ends the listeners, which Close of the cluster wakes.
func (r *run) stopListening() {
	if r.quit != nil {
		close(r.quit)
	}
}

// watch waits until every host is done and during and groups, if not nil, have sent a value. It
// fails when a process or a program fails, when a process ends or does not answer, when nothing
// moves any more, and when ctx ends.
func (r *run) watch(ctx context.Context, during, failed, groups <-chan error) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	r.duringOver = during == nil
	for !r.done() || !r.duringOver || !r.groupsOver {
		select {
		case err := <-during:
			r.duringOver = true
			if err != nil {
				return err
			}
		case err := <-failed:
			return err
		case err := <-groups:
			r.groupsOver, r.outcome.Elapsed = true, r.labNow()
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		case e, ok := <-r.ends.out:
			if !ok {
				return errors.New("the cluster was closed")
			}
			return r.at(e)
		case n := <-r.news:
			if err := r.take(n); err != nil {
				return r.whatDied(err)
			}
		case <-tick.C:
			r.sampleCPU()
			now := time.Now() // the tick may have waited
			if err := r.hung(now); err != nil {
				return err
			}
			if err := r.getsOn(now); err != nil {
				return err
			}
		}
	}
	return nil
}

// errSilent is part of the error of a run that ends because a process is silent.
var errSilent = errors.New("does not answer")

// hung returns an errSilent if a process has been silent for too long: it is stopped, or stuck.
func (r *run) hung(now time.Time) error {
	process, quiet, found := r.crew.silences.look(now, func(i int) bool { return r.process(i).Waits() })
	if !found {
		return nil
	}
	peer := r.crew.peer(process)
	who := "node " + r.name(peer)
	if peer == fabricPeer {
		who = r.carrier.who
	}
	err := fmt.Errorf("%s %w: it has sent nothing for %.1f s; is it stopped?", who, errSilent, quiet.Seconds())
	if peer != fabricPeer && r.doing(peer) != "" {
		err = fmt.Errorf("%w It was at %s", err, r.doing(peer))
	}
	r.state(peer).lose(err)
	return err
}

// process returns a process by its number in crew.silences.
func (r *run) process(i int) *runtime.Proc {
	peer := r.crew.peer(i)
	switch {
	case peer == fabricPeer:
		return r.cluster.Fabric()
	case i < firstKeeper(r.cluster.Nodes()) && r.cluster.Agents() > 0:
		k, _ := driver(r.cluster, peer)
		return r.cluster.Agent(k)
	}
	return r.cluster.Node(peer)
}

// whatDied returns how a process ended, if one did, since that says more than a broken connection.
func (r *run) whatDied(err error) error {
	var said *control.RemoteError
	var host *hostError // the node is alive
	if errors.As(err, &said) || errors.As(err, &host) {
		return err
	}
	if e, ok := r.ends.first(context.Background(), anyEnd); ok {
		return r.at(e)
	}
	return err
}

// at returns the error of a node that died, with what it last reported to be doing, or its first
// item.
func (r *run) at(e runtime.Exit) error {
	for i := range r.nodes {
		if r.name(i) != e.Name {
			continue
		}
		if doing := r.doing(i); doing != "" {
			return fmt.Errorf("%w; it was at %s", e.Err, doing)
		}
	}
	return Died(r.cluster, e)
}

// doing says what a node is working on. It is empty for a node without a part in the workload, and
// for one that is done.
func (r *run) doing(i int) string {
	n := &r.nodes[i]
	items := r.x.Plans[i].Items
	switch {
	case n.progress.Doing != "" || n.done || len(items) == 0:
		return n.progress.Doing
	case items[0].Name != "":
		return fmt.Sprintf("%s (%s by %s), rank %d", items[0].Name, items[0].Collective, items[0].Algorithm,
			items[0].Rank)
	}
	return fmt.Sprintf("item %d (%s by %s), rank %d", items[0].Index, items[0].Collective, items[0].Algorithm,
		items[0].Rank)
}

// take handles one piece of news. An error ends the run.
func (r *run) take(n news) error {
	r.crew.silences.hear(n.peer-fabricPeer, time.Now())
	if n.err != nil {
		if n.peer == fabricPeer {
			n.err = r.carrier.cause(n.err)
		}
		r.state(n.peer).lose(n.err)
		return r.named(n.peer, fmt.Errorf("its connection ended: %w", n.err))
	}
	if n.message.Kind == control.KindError {
		var text string
		if err := n.message.Decode(&text); err != nil {
			text = err.Error()
		}
		err := &control.RemoteError{Text: text}
		r.state(n.peer).lose(err)
		return r.named(n.peer, err)
	}
	if n.peer == fabricPeer {
		err := r.takeFabric(n.message)
		var node *nodeError
		if errors.As(err, &node) {
			return node.error // names the node
		}
		return r.named(n.peer, err)
	}
	err := r.takeNode(n.peer, n.message)
	var failed *hostError
	if errors.As(err, &failed) {
		return err // the error names the process
	}
	return r.named(n.peer, err)
}

func (r *run) takeFabric(m control.Message) error {
	switch m.Kind {
	case realtime.KindAlive:
		return nil
	case realtime.KindGone:
		var g realtime.Gone
		if err := m.Decode(&g); err != nil || g.Why == "" {
			return err // a fault that ends a node is the orchestrator's own
		}
		return r.shutOut(g)
	case realtime.KindSamples:
		keep := func(s []realtime.Sample) { r.outcome.Samples = append(r.outcome.Samples, s...) }
		if r.x.Samples != nil {
			keep = r.x.Samples
		}
		return passOn(m, keep)
	case realtime.KindFrames:
		return passOn(m, r.x.Frames)
	case realtime.KindSteps:
		return passOn(m, r.x.Steps)
	case realtime.KindState:
		r.seen = new(realtime.State)
		return m.Decode(r.seen)
	case realtime.KindReport:
		r.fabric.told = true
		r.outcome.Report = new(realtime.Report)
		return m.Decode(r.outcome.Report)
	}
	return fmt.Errorf("%q was not expected", m.Kind)
}

// passOn calls f, unless it is nil, with the body of a message.
func passOn[T any](m control.Message, f func(T)) error {
	return control.With(m, func(body *T) error {
		if f != nil {
			f(*body)
		}
		return nil
	})
}

// shutOut handles that the network has shut out a host: its node is lost, and the error says why.
func (r *run) shutOut(g realtime.Gone) error {
	if g.Host < 0 || g.Host >= len(r.nodes) {
		return fmt.Errorf("host %d of %d is gone", g.Host, len(r.nodes))
	}
	err := fmt.Errorf("its bypass NIC was taken away: it %s", g.Why)
	r.nodes[g.Host].lose(err)
	return &nodeError{r.named(g.Host, err)}
}

func (r *run) takeNode(i int, m control.Message) error {
	n := &r.nodes[i]
	switch m.Kind {
	case agent.KindProgress, agent.KindDone:
		var p agent.Progress
		if err := m.Decode(&p); err != nil {
			return err
		}
		p.Doing, p.Failed = clip.Line(p.Doing), clip.Lines(p.Failed)
		if p.Done != n.progress.Done || m.Kind == agent.KindDone {
			r.moved = time.Now()
		}
		if m.Kind == agent.KindDone {
			r.outcome.Elapsed = r.labNow() // the last host to be done counts
		}
		n.progress = p
		n.done = n.done || m.Kind == agent.KindDone
		r.tellProgress()
		if p.Failed != "" {
			return &hostError{p.Failed, p.GaveUp}
		}
		return nil
	case agent.KindCorrection:
		return control.With(m, func(c *clocksync.Correction) error { return r.clocks.Correct(i, *c) })
	case agent.KindConns:
		var f []frames.Frame
		err := m.Decode(&f)
		if err == nil {
			err = n.checkConns(&r.x.Plans[i], r.labNow(), f)
		}
		if err != nil {
			n.lose(err)
			return err
		}
		if r.x.Conns != nil {
			r.x.Conns(f)
		}
		return nil
	case agent.KindRows:
		err := n.addRows(m)
		if err != nil {
			n.lose(err)
		}
		return err
	case agent.KindResults:
		n.told = true
		last := new(agent.Results)
		err := m.Decode(last)
		if err == nil {
			err = n.results.Complete(last)
		}
		if err == nil {
			err = checkResults(&r.x.Plans[i], len(r.x.Plans), &n.results)
		}
		if err != nil {
			n.lose(err)
			return err
		}
		r.outcome.Results[i] = &n.results
		return nil
	}
	return fmt.Errorf("%q was not expected", m.Kind)
}

// checkConns returns an error if frames of a node's connections are not in order, are of the future
// or of other hosts' connections, or have numbers that cannot be.
func (n *nodeState) checkConns(p *host.Plan, now units.Time, all []frames.Frame) error {
	if n.conns == nil {
		n.conns = make(map[uint32]bool, len(p.Conns))
		for i := range p.Conns {
			n.conns[uint32(p.Conns[i].ID)] = true
		}
	}
	for i := range all {
		f := &all[i]
		if f.At <= n.framed || f.At > now+units.Second || len(f.Ports) > 0 {
			return fmt.Errorf("its connections at %v, after %v, were not expected", f.At, n.framed)
		}
		n.framed = f.At
		for k, c := range f.Conns {
			if !n.conns[c.Conn] || c.Arrived < 0 || c.Window < 0 || k > 0 && c.Conn < f.Conns[k-1].Conn {
				return fmt.Errorf("its connection %d with %v arrived and a window of %v was not expected", c.Conn,
					c.Arrived, c.Window)
			}
		}
	}
	return nil
}

// addRows adds a part of the node's results.
func (n *nodeState) addRows(m control.Message) error {
	if n.size += len(m.Body); n.size > agent.MaxResults {
		return fmt.Errorf("its results have more than %d MiB; record less: a longer clocks.sample, or a shorter run",
			agent.MaxResults>>20)
	}
	var rows agent.Rows
	if err := m.Decode(&rows); err != nil {
		return err
	}
	return n.results.Append(&rows)
}

func (r *run) state(peer int) *peerState {
	if peer == fabricPeer {
		return &r.fabric
	}
	return &r.nodes[peer].peerState
}

// received returns the number of bytes that a host receives in all repetitions of its items. A node
// rejects an item that cannot be laid out, so such an item counts nothing here.
func received(p *host.Plan) (total units.Bytes) {
	for i := range p.Items {
		if v, err := schedule.Volume(p.Items[i].Spec(), p.Items[i].Rank); err == nil {
			total += v.Received * units.Bytes(p.Items[i].Repeat)
		}
	}
	return total
}

// tellProgress reports the share of the whole lab, and closes half once it is a half. The total
// covers nodes that have not said anything yet, so it does not grow.
func (r *run) tellProgress() {
	p := Progress{At: r.labNow()}
	for i := range r.nodes {
		p.Done += r.nodes[i].progress.Done
		p.Total += r.nodes[i].progress.Total
	}
	if !r.halfway && p.Total > 0 && p.Done >= p.Total/2 {
		r.halfway = true
		close(r.half)
	}
	if r.x.Progress != nil {
		r.x.Progress(p)
	}
}

func (r *run) done() bool {
	for i := range r.nodes {
		if !r.nodes[i].done {
			return false
		}
	}
	return true
}
