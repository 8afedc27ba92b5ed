package deploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"weft/fabric"
	"weft/internal/clip"
	"weft/internal/control"
	"weft/internal/stalls"
	"weft/orchestrator/emulate"
	"weft/orchestrator/run"
	"weft/orchestrator/runtime"
	"weft/realtime"
	"weft/results/record"
	"weft/units"
)

// handle carries out a request and answers it. If it returns an error, the caller sends that as the
// answer.
func (s *supervisor) handle(conn *control.Conn, m control.Message, fds []int) error {
	files := make([]*os.File, len(fds))
	for i, fd := range fds {
		files[i] = os.NewFile(uintptr(fd), "client")
		defer files[i].Close()
	}
	switch m.Kind {
	case kindHello:
		return s.answer(conn, nil)
	case kindState:
		state, err := s.state()
		if err != nil {
			return err
		}
		return conn.SendValue(kindState, state)
	case kindExec:
		return control.With(m, func(e *Exec) error { return s.exec(conn, e, files) })
	case kindLink:
		return control.With(m, func(k *Link) error { return s.answer(conn, s.link(k)) })
	case kindNode:
		return control.With(m, func(n *Node) error { return s.answer(conn, s.node(n)) })
	case kindCapture:
		return control.With(m, func(c *Capture) error { return s.capture(conn, c, files) })
	case kindAttach:
		return control.With(m, func(a *Attach) error {
			is, err := s.attach(a, files)
			if taken := Taken(""); errors.As(err, &taken) {
				is, err = &Attached{Taken: taken}, nil
			}
			if err != nil {
				return err
			}
			return conn.SendValue(kindAttached, is)
		})
	case kindDetach:
		return control.With(m, func(d *Detach) error { return s.answer(conn, s.detach(d, files)) })
	case kindCheck:
		return control.With(m, func(c *Check) error { return s.check(conn, c) })
	case kindEvents:
		return control.With(m, func(f *Follow) error { return s.streamEvents(conn, f) })
	}
	return fmt.Errorf("unknown request %q", clip.Text(m.Kind))
}

// connected returns a context that ends with the lab, or when the client disconnects or sends
// anything else.
func (s *supervisor) connected(conn *control.Conn) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(s.life)
	go func() {
		defer cancel()
		_, _, _ = conn.Recv()
	}()
	return ctx, cancel
}

// answer sends kindDone, or returns err for the caller to send.
func (s *supervisor) answer(conn *control.Conn, err error) error {
	if err != nil {
		return err
	}
	return conn.SendValue(kindDone, Done{})
}

// exec runs a program in a node until it ends, the client disconnects, or the lab ends.
func (s *supervisor) exec(conn *control.Conn, e *Exec, files []*os.File) error {
	command := runtime.Command{Args: e.Args, Env: e.Env, TTY: e.TTY, Whole: e.Whole, Shown: e.Shown}
	switch {
	case e.TTY && len(files) == 1:
		command.Stdin, command.Stdout, command.Stderr = files[0], files[0], files[0]
	case !e.TTY && len(files) == 3:
		command.Stdin, command.Stdout, command.Stderr = files[0], files[1], files[2]
	default:
		return fmt.Errorf("a program needs 3 file descriptors, or 1 terminal; got %d", len(files))
	}
	if why, err := s.unavailable(e.Node); err != nil {
		return err
	} else if why != "" {
		return conn.SendValue(kindExit, Exit{Code: CodeNode, Ended: why})
	}
	if e.LabTime {
		if err := s.lab.SetClock(e.Node, &command); err != nil {
			return err
		}
	}
	ctx, cancel := s.connected(conn) // kindSignal ends it
	defer cancel()
	before, err := s.lab.Look()
	if err != nil {
		return conn.SendValue(kindExit, Exit{Code: CodeNode, Ended: s.noNetwork("", err)})
	}
	stopped, err := s.execWatched(ctx, e, command)
	exit, err := s.exitOf(e, err)
	if err != nil {
		return err
	}
	exit.Stood = stopped
	switch after, err := s.lab.Look(); {
	case err == nil:
		exit.Stood = cmp.Or(stood(before, after), stopped)
	case s.broken() == "": // it may answer later
		exit.Stood = s.noNetwork(" after the program", err) + "; what the program measured may not be the lab's"
	case exit.Ended == "":
		exit.Ended = fmt.Sprintf("%s; the program itself ended with exit code %d",
			s.noNetwork(" while the program ran", err), exit.Code)
		exit.Code = CodeNode
	}
	return conn.SendValue(kindExit, exit)
}

// execWatched runs a program in a node. stopped says how much of its time the program was stopped,
// if that is too much for numbers. On a terminal it is empty: jobs there stop when their user says
// so.
func (s *supervisor) execWatched(ctx context.Context, e *Exec, command runtime.Command) (stopped string, err error) {
	cluster := s.lab.Cluster()
	id, ok := s.x.Graph.NodeNamed(e.Node)
	if e.TTY || !ok || int(id) >= s.x.Graph.Hosts {
		return "", cluster.Exec(ctx, e.Node, command)
	}
	w := &runtime.Watch{Datagrams: true}
	stop := func() {}
	if s.machines != nil { // the agent on the node's machine watches
		command.Watch = w
	} else {
		command.Started, stop = emulate.Observe(cluster.Node(int(id)), w)
	}
	begun := time.Now()
	err = cluster.Exec(ctx, e.Node, command)
	ran := units.FromDuration(time.Since(begun))
	stop()
	return stoppedFor(&w.Seen, ran), err
}

// stoppedFor says how much of the real time that a program ran it was stopped, or nobody watched
// it, if that is more than an emulation may stand that is ok; else "".
func stoppedFor(seen *runtime.Seen, ran units.Time) string {
	share := func(l *stalls.Log) float64 {
		all := stalls.Union(l.Spans...)
		return float64(min(all.Cover(0, ran)+l.Rest, ran)) / float64(max(ran, 1))
	}
	stood, unseen := share(&seen.Stood), share(&seen.Unseen)
	switch {
	case stood > record.OKLateness:
		return fmt.Sprintf("the program, or one of its processes, was stopped, as by a signal or a debugger, during "+
			"%.0f %% of its time, so what it measured is not the lab's", 100*stood)
	case stood+unseen > record.OKLateness:
		return fmt.Sprintf("nobody could see during %.0f %% of the program's time whether it was stopped: the lab's "+
			"supervisor did not run", 100*unseen)
	}
	return ""
}

// noNetwork returns that the lab's network has ended, or did not answer, with the error of Look.
// when is empty or says when, after a space.
func (s *supervisor) noNetwork(when string, err error) string {
	if s.broken() == "" {
		return fmt.Sprintf("the lab's network did not answer%s: %v", when, err)
	}
	return fmt.Sprintf("the lab's network ended%s: %v; weft destroy %s takes the lab down", when, err, s.deployment.Lab)
}

// exitOf returns how a program ended that its node could run.
func (s *supervisor) exitOf(e *Exec, err error) (Exit, error) {
	var status *runtime.StatusError
	var ended *runtime.ExitError
	switch {
	case err == nil:
		return Exit{}, nil
	case s.life.Err() != nil:
		return Exit{Code: CodeNode, Ended: "the lab has been taken down"}, nil
	case errors.As(err, &ended) && ended.Name == runtime.KeeperName:
		return Exit{Code: CodeNode, Ended: ended.Error()}, nil
	case errors.As(err, &ended):
		return Exit{Code: CodeNode, Ended: s.endedText(e.Node, ended.How(), ended.Lost)}, nil
	case errors.Is(err, runtime.ErrUnreachable):
		return Exit{Code: CodeNode, Ended: err.Error()}, nil
	case errors.As(err, &status):
		return Exit{Code: status.Code, Text: status.Text}, nil
	}
	return Exit{}, err
}

// stood says how much of the time between two looks the network stood or ran late, if that is more
// than an emulation may that is ok; else "".
func stood(before, after *realtime.State) string {
	var spans []stalls.Span
	var rest units.Time
	for _, s := range after.Stalls {
		spans, rest = append(spans, s.Spans...), rest+s.Rest
	}
	for _, s := range before.Stalls {
		rest -= s.Rest
	}
	all := stalls.Union(spans...)
	ran := after.At - before.At
	behind := min(all.Cover(before.At, after.At)+max(rest, 0), ran)
	if ran <= 0 || float64(behind) <= record.OKLateness*float64(ran) {
		return ""
	}
	return fmt.Sprintf("the lab's network stood or ran late during %.0f %% of the time (%v of %v of lab time), so "+
		"what the program measured is not the lab's; expected a less busy machine, or a slower lab",
		100*float64(behind)/float64(ran), behind.Rounded(), ran.Rounded())
}

// host returns the index of the host with a name.
func (s *supervisor) host(name string) (int, error) {
	h, ok := s.x.Graph.NodeNamed(name)
	if !ok {
		return 0, fmt.Errorf("lab %s has no node %q; weft inspect lists them", s.deployment.Lab, clip.Text(name))
	}
	if int(h) >= s.x.Graph.Hosts {
		if s.switched() {
			return 0,
				fmt.Errorf("%s is a switch: switches cannot be killed or paused; weft link takes its links down", name)
		}
		return 0, fmt.Errorf("%s is a switch: it is modelled in the fabric and has no process", name)
	}
	return int(h), nil
}

// switched reports whether the machine's kernel carries the lab's packets. Its switches are nodes
// then.
func (s *supervisor) switched() bool { return s.lab.Cluster().Switches() > 0 }

// unavailable returns why a node can run nothing now: it has ended, is paused, or a container
// has its interface. why is empty if it can. A name that the lab does not have is an error.
func (s *supervisor) unavailable(name string) (why string, err error) {
	if id, ok := s.x.Graph.NodeNamed(name); ok && int(id) >= s.x.Graph.Hosts && s.switched() {
		return "", nil
	}
	h, err := s.host(name)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	is := s.nodes[h]
	s.mu.Unlock()
	switch {
	case is.dead != "":
		return s.endedText(name, is.how, is.lost), nil
	case is.paused:
		return fmt.Sprintf("%s is paused; weft node %s %s resume continues it", name, s.deployment.Lab, name), nil
	case is.holder.Container != "":
		return fmt.Sprintf("container %s has the interface of %s; weft node %s %s restart takes it back",
			is.holder.short(), name, s.deployment.Lab, name), nil
	}
	return "", nil
}

// endedText returns the message that a node has ended and how, such as "signal: killed". lost says
// that its machine is lost. The network has then broken, too, or is about to.
func (s *supervisor) endedText(name, how string, lost bool) string {
	if lost {
		select {
		case <-s.lab.Broken():
		case <-time.After(endingTime):
		}
	}
	if id, ok := s.x.Graph.NodeNamed(name); ok && int(id) < len(s.nodes) {
		s.mu.Lock()
		if s.nodes[id].endRequested {
			how = "it was killed by weft node"
		}
		s.mu.Unlock()
	}
	if why := s.broken(); why != "" {
		return fmt.Sprintf("%s has ended (%s); %s", name, how, why)
	}
	return fmt.Sprintf("%s has ended (%s); weft node %s %s restart starts it again", name, how, s.deployment.Lab, name)
}

// link changes a link.
func (s *supervisor) link(k *Link) error {
	id, ok := s.x.Graph.LinkNamed(k.Link)
	if !ok {
		return fmt.Errorf("lab %s has no link %q; weft inspect lists them", s.deployment.Lab, clip.Text(k.Link))
	}
	l := &s.x.Graph.Links[id]
	if l.Down {
		return fmt.Errorf("link %s does not exist in this lab (topology.down)", k.Link)
	}
	ports := []int{2 * int(id), 2*int(id) + 1}
	change := fabric.Change{Ports: ports, Up: k.Up}
	if k.Set != "" {
		look, err := s.lab.Look()
		if err != nil {
			return err
		}
		to, err := changed(look.Ports[ports[0]].Link, l.ReorderBy, k.Set)
		if err != nil {
			return err
		}
		if change.Link = &to; to.Disturbs() && s.x.Lab.Queues.PFC != nil {
			return fmt.Errorf("lab %s has queues.pfc, which reserves memory for packets in flight; its links cannot "+
				"duplicate, reorder or jitter packets", s.deployment.Lab)
		}
	}
	if err := s.lab.Change(change); err != nil {
		return err
	}
	s.events.add(linkEvent(l.Name, &change))
	return nil
}

// linkEvent returns the event of a changed link.
func linkEvent(name string, c *fabric.Change) Event {
	e := Event{Event: "link", Link: name}
	if c.Up != nil {
		if e.Event = "link-down"; *c.Up {
			e.Event = "link-up"
		}
	}
	if c.Link != nil {
		e.Args = map[string]any{
			"rate_bps": int64(c.Link.Rate), "delay_us": c.Link.Delay.Microseconds(), "loss": c.Link.Loss,
			"bit_errors": c.Link.BitErrors, "duplicate": c.Link.Duplicate, "reorder": c.Link.Reorder,
			"reorder_by_us": c.Link.ReorderBy.Microseconds(), "jitter_us": c.Link.Jitter.Microseconds(),
		}
	}
	return e
}

// node kills, pauses, resumes or restarts a node.
func (s *supervisor) node(n *Node) error {
	h, err := s.host(n.Node)
	if err != nil {
		return err
	}
	if why := s.broken(); why != "" {
		return errors.New(why)
	}
	s.mu.Lock()
	is := s.nodes[h]
	s.mu.Unlock()
	if is.dead != "" && n.Action != NodeRestart {
		return fmt.Errorf("%s is not running; weft node %s %s restart starts it again", n.Node, s.deployment.Lab,
			n.Node)
	}
	switch n.Action {
	case NodeKill:
		s.updateNode(h, func(l *nodeLife) { l.endRequested = true })
		err = s.lab.Kill(h)
		if err == nil {
			s.updateNode(h, func(l *nodeLife) { l.dead, l.paused, l.holder = n.Node+" was killed", false, Holder{} })
		}
	case NodePause, NodeResume:
		err = s.lab.Freeze(h, n.Action == NodePause)
		if err == nil {
			s.updateNode(h, func(l *nodeLife) { l.paused = n.Action == NodePause })
		}
	case NodeRestart:
		err = s.restart(h, is.dead == "")
	default:
		return fmt.Errorf("unknown action %q; expected kill, pause, resume or restart", clip.Text(n.Action))
	}
	if err != nil {
		return err
	}
	s.events.add(Event{Event: map[string]string{
		NodeKill: "killed", NodePause: "paused", NodeResume: "resumed", NodeRestart: "restarted",
	}[n.Action], Node: n.Node})
	return nil
}

// restart starts a node again. If it runs, it is killed first.
func (s *supervisor) restart(h int, running bool) error {
	s.updateNode(h, func(l *nodeLife) { l.endRequested = true })
	if running {
		if err := s.lab.Kill(h); err != nil {
			return err
		}
	}
	s.started.began(h)
	if err := s.lab.Restart(s.life, h); err != nil {
		s.updateNode(h, func(l *nodeLife) { l.dead, l.how, l.endRequested = err.Error(), err.Error(), false })
		return err
	}
	s.updateNode(h, func(l *nodeLife) { *l = nodeLife{} })
	return nil
}

// updateNode changes the record of a node under the lock.
func (s *supervisor) updateNode(h int, change func(*nodeLife)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.nodes[h])
}

// capture copies frames to the client's socket until the client closes it.
func (s *supervisor) capture(conn *control.Conn, c *Capture, files []*os.File) error {
	if len(files) != 1 {
		return fmt.Errorf("a capture needs 1 file descriptor; got %d", len(files))
	}
	what, err := run.CapturePoint(s.x, c.What)
	if err != nil {
		return err
	}
	what.Snap = c.Snap
	if err := s.lab.Capture(what, int(files[0].Fd())); err != nil {
		return err
	}
	files[0].Close() // the fabric has its own copy, and sees when the client closes the other end
	s.events.add(Event{Event: "capture", Text: c.What})
	is := Capturing{Lab: s.deployment.Lab, Name: c.What, Port: what.Port >= 0, Dilation: s.deployment.Dilation}
	if !is.Port {
		n := s.nodeState(s.x.Graph.Nodes[what.Host].ID)
		is.Silent = n.silent(is.Lab)
	}
	return conn.SendValue(kindCapture, is)
}

// streamEvents sends a client all events so far. If the client follows, it sends new ones until the
// client disconnects or the lab ends.
func (s *supervisor) streamEvents(conn *control.Conn, f *Follow) error {
	ctx, cancel := s.connected(conn)
	defer cancel()
	for next := 0; ; {
		some, after, fresh := s.events.since(next)
		for _, e := range some {
			if err := conn.SendValue(kindEvent, e); err != nil {
				return err
			}
		}
		next = after
		if !f.Follow {
			return conn.SendValue(kindDone, Done{})
		}
		select {
		case <-fresh:
		case <-ctx.Done():
			return conn.SendValue(kindDone, Done{})
		}
	}
}
