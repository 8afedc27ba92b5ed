package deploy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"weft/internal/cleanup"
	"weft/internal/control"
	"weft/nodeimg/boot"
	"weft/orchestrator/emulate"
	"weft/orchestrator/experiment"
	orchestrate "weft/orchestrator/run"
	"weft/orchestrator/runtime"
	"weft/orchestrator/runtime/docker"
	"weft/realtime"
)

// supervisor owns a lab that is up.
type supervisor struct {
	deployment *Deployment
	x          *experiment.Experiment
	runtime    string // what nodes live in
	dir        *os.Root
	journal    *Journal
	options    Options
	root       *Root
	events     *events
	lab        *emulate.Standing
	life       context.Context // until the lab is to end

	programs sync.WaitGroup // one for each request that is being served
	end      func()         // ends life

	mu    sync.Mutex // guards what follows
	nodes []nodeLife // by host
}

// nodeLife is what became of a node.
type nodeLife struct {
	paused bool
	dead   string // why, as a sentence; empty: it is alive
	how    string // how it ended; empty: it is alive, or its end was asked for
	asked  bool   // its end was asked for
}

// Supervise is the supervisor of a lab: it brings the lab up and owns it until somebody asks it to end it, or SIGTERM
// does. Until the deployer at the other end of conn has said that the lab is to be kept, it ends with the deployer. The
// connection is left for the caller to close.
func Supervise(conn *control.Conn, path, name string, o Options) error {
	err := supervise(conn, path, name, o)
	if err != nil {
		_ = conn.SendError(err) // if the deployer is gone nobody is left to tell
	}
	return err
}

func supervise(conn *control.Conn, path, name string, o Options) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT) // they are the deployer's
	if err := control.KeepDescriptors(); err != nil {
		return err
	}
	if err := CheckName(name); err != nil {
		return err
	}
	root, err := OpenRoot(path)
	if err != nil {
		return err
	}
	defer root.Close()
	dir, err := root.folder(name)
	if err != nil {
		return err
	}
	defer dir.Close()
	s := &supervisor{root: root, dir: dir, options: o}
	if s.deployment, err = readDeployment(dir); err != nil {
		return err
	}
	if s.journal, err = openJournal(dir, o.Step); err != nil {
		return err
	}
	defer s.journal.Close()
	s.life, s.end = context.WithCancel(ctx)
	defer s.end()
	return s.live(conn)
}

// live brings the lab up, serves until the end, and takes it down.
func (s *supervisor) live(conn *control.Conn) error {
	kept := make(chan error, 1)
	go func() {
		_, err := conn.Expect(kindKeep, nil)
		if err != nil {
			s.end() // the deployer is gone, or has thought better of it
		}
		kept <- err
	}()
	listener, err := s.open()
	if err != nil {
		return s.undo(err)
	}
	defer listener.Close()
	if err := s.bringUp(); err != nil {
		return s.undo(err)
	}
	err = conn.SendValue(kindUp, up{s.deployment.Dilation, s.deployment.Why})
	if err == nil {
		err = <-kept
	}
	if err == nil {
		err = s.journal.Commit()
	}
	if err != nil {
		return s.undo(cleanup.Join(fmt.Errorf("the deployer is gone: %w", err), s.takeDown()))
	}
	s.events.add(Event{Event: "deployed", Text: s.deployment.File})
	_ = conn.SendValue(kindKept, nil) // whoever deployed may have been killed since: the lab is kept all the same
	answer := s.serve(listener)
	err = s.takeDown()
	if answer == nil { // SIGTERM: nobody else cleans up
		return s.undo(err)
	}
	answer(err)
	return err
}

// open makes the files and the socket of the supervisor.
func (s *supervisor) open() (*listener, error) {
	err := s.journal.Do("write "+eventsFile, kindFile, eventsFile, func() (err error) {
		s.events, err = newEvents(s.dir, s.deployment.Lab)
		return err
	})
	if err != nil {
		return nil, err
	}
	var l *listener
	err = s.journal.Do("listen", kindFile, socketFile, func() (err error) {
		l, err = listen(s.dir)
		return err
	})
	return l, err
}

// bringUp starts the lab.
func (s *supervisor) bringUp() error {
	l, err := s.deployment.parse()
	if err != nil {
		return err
	}
	standing, err := orchestrate.Standing(s.life, l, orchestrate.Options{
		Self: s.options.Node, Step: s.options.Step, Subnet: s.deployment.Subnet, Dilation: s.deployment.Dilation,
	})
	if err != nil {
		return err
	}
	s.x = standing.Experiment
	spec := standing.Emulation
	s.runtime = spec.Processes.Runtime
	spec.Processes.Env = append(spec.Processes.Env, markVar+"="+s.deployment.ID)
	spec.Processes.Ahead = s.ahead
	spec.Processes.Hidden = []string{s.root.path}
	spec.Ended = func(host int, err error) {
		text := "exit status 0"
		if err != nil {
			text = err.Error()
		}
		s.events.add(Event{Event: "ended", Node: s.x.Graph.Nodes[host].Name, Text: text})
	}
	s.nodes = make([]nodeLife, s.x.Graph.Hosts)
	if s.lab, err = emulate.Stand(s.life, spec); err != nil {
		return err
	}
	if d := standing.Dilation; d != s.deployment.Dilation {
		s.deployment.Dilation, s.deployment.Why = d, standing.Why
	}
	s.events.now = s.lab.Now
	go s.attend()
	return nil
}

// ahead is told of the operations of the launch.
func (s *supervisor) ahead(op runtime.Op) (done func(error) error, err error) {
	where := ""
	if op.Kind == runtime.Container {
		where = os.Getenv(docker.HostVar)
	}
	return s.journal.Ahead(op.Do, op.Kind, op.Name, where)
}

// attend notes what ends by itself, until the lab does.
func (s *supervisor) attend() {
	broken := s.lab.Broken()
	for {
		select {
		case exit, ok := <-s.lab.Cluster().Exits():
			if !ok {
				return
			}
			s.died(exit)
		case h := <-s.lab.Gone():
			time.AfterFunc(endingTime, func() { s.unplugged(h) })
		case <-broken:
			broken = nil
			if s.life.Err() == nil {
				s.events.add(Event{Event: "broken", Text: s.lab.Why().Error()})
			}
		}
	}
}

// endingTime is how long after a node's interface is gone the node itself is looked at: one that ends takes its interface with
// it, and the kernel tells of both in no order. Ours: it takes milliseconds.
const endingTime = time.Second

// withoutInterface says why the network does not reach a host that runs, and what would have it reached again; empty: it does.
func (s *supervisor) withoutInterface(h int, look *realtime.HostState) string {
	switch name := s.x.Graph.Nodes[h].Name; {
	case look.Gone:
		return fmt.Sprintf("its interface was deleted; weft node %s %s restart gives it a new one", s.deployment.Lab, name)
	case look.Down:
		return fmt.Sprintf("its interface was taken down; weft exec %s -- ip link set %s up", name, boot.Interface)
	}
	return ""
}

// unplugged notes that a node has lost its interface, unless the node has ended as well, or has one again.
func (s *supervisor) unplugged(h int) {
	look, err := s.lab.Look()
	if err != nil {
		return
	}
	why := s.withoutInterface(h, &look.Hosts[h])
	if why == "" {
		return
	}
	s.mu.Lock()
	ended := s.nodes[h].dead != "" || s.nodes[h].asked
	s.mu.Unlock()
	if !ended {
		s.events.add(Event{Event: "unplugged", Node: s.x.Graph.Nodes[h].Name, Text: why})
	}
}

// died notes the end of a process.
func (s *supervisor) died(exit runtime.Exit) {
	h, ok := s.x.Graph.NodeNamed(exit.Name)
	if !ok || int(h) >= len(s.nodes) {
		s.events.add(Event{Event: "died", Node: exit.Name, Text: exit.Err.Error()})
		return
	}
	if s.lab.Cluster().Node(int(h)).PID != exit.PID {
		return // it was started again since
	}
	s.mu.Lock()
	n := &s.nodes[h]
	asked := n.asked
	n.dead, n.how, n.paused = exit.Err.Error(), exit.Err.How(), false
	if asked {
		n.dead = exit.Name + " was killed"
	}
	s.mu.Unlock()
	if !asked {
		s.events.add(Event{Event: "died", Node: exit.Name, Text: exit.Err.Error()})
	}
}

// takeDown ends the lab, and with it whatever runs in it.
func (s *supervisor) takeDown() error {
	s.end()
	if s.lab == nil {
		return nil
	}
	if s.options.Step != nil {
		s.options.Step("before close lab")
	}
	err := s.lab.Close()
	if err == nil {
		s.journal.Settle(runtime.Process, runtime.Container, runtime.Group)
	}
	if s.options.Step != nil {
		s.options.Step("after close lab")
	}
	s.programs.Wait()
	return err
}

// undo takes away what the supervisor itself made, where nobody else will, and returns err with whatever went wrong.
func (s *supervisor) undo(err error) error {
	o := Options{Undo: s.options.Undo}
	failed := s.journal.Rollback(context.Background(), s.undoers(o))
	if failed == nil && s.named() {
		failed = o.finish(s.root, s.deployment.Lab, s.journal.Unknown(s.undoers(o)))
	}
	return cleanup.Join(err, failed)
}

// named says whether the lab's name still leads to the folder of this supervisor: that may have been removed, and the name
// be another lab's.
func (s *supervisor) named() bool {
	ours, err := s.dir.Stat(".")
	if err != nil {
		return false
	}
	there, err := s.root.dir.Lstat(s.deployment.Lab)
	return err == nil && os.SameFile(ours, there)
}

// undoers are those of the supervisor, which does not end itself in the middle.
func (s *supervisor) undoers(o Options) map[string]undoer {
	by := o.undoers(s.dir)
	by[kindSupervisor] = func(context.Context, string, string) error { return nil }
	return by
}

// isEnd says whether an error is that the other side has gone.
func isEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) }
