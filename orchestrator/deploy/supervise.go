package deploy

import (
	"context"
	"fmt"
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
	"weft/orchestrator/topology"
	"weft/realtime"
)

// supervisor owns a lab that is up.
type supervisor struct {
	deployment *Deployment
	x          *experiment.Experiment
	runtime    string // of the nodes: namespace or docker
	dir        *os.Root
	journal    *Journal
	options    Options
	root       *Root
	events     *events
	lab        *emulate.Deployment
	machines   Machines // nil: the lab is on this one
	started    *hostPrograms
	life       context.Context // cancelled to end the lab

	programs sync.WaitGroup // requests that are being served
	end      func()         // ends life

	attaching sync.Mutex // one container at a time

	mu    sync.Mutex // guards what follows
	nodes []nodeLife // by host
}

// nodeLife is the state of a node's process.
type nodeLife struct {
	paused       bool
	dead         string // why it has ended, as a sentence; empty: it is alive
	how          string // how it ended, such as "signal: killed"; empty: it is alive, or endRequested
	lost         bool   // its machine is lost
	endRequested bool   // a request killed or restarted it
	holder       Holder // the container that has its interface; zero: none
}

// Supervise is the body of the supervisor process: it deploys a lab and owns it until a client asks
// for its end, or SIGTERM arrives. Until the deployer at the other end of conn says that it keeps
// the lab, the lab ends with the deployer. The caller closes conn.
func Supervise(conn *control.Conn, path, name string, o Options) error {
	err := supervise(conn, path, name, o)
	if err != nil {
		_ = conn.SendError(err) // the deployer may be gone
	}
	return err
}

func supervise(conn *control.Conn, path, name string, o Options) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT) // meant for the deployer
	if err := control.KeepDescriptors(); err != nil {
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
	return s.serveLab(conn)
}

// serveLab deploys the lab, serves requests until its end, and takes it down.
func (s *supervisor) serveLab(conn *control.Conn) error {
	kept := make(chan error, 1)
	go func() {
		_, err := conn.Expect(kindKeep, nil)
		if err != nil {
			s.end() // the deployer is gone
		}
		kept <- err
	}()
	listener, err := s.open()
	if err != nil {
		return s.undo(err)
	}
	defer listener.Close()
	say := func(line string) { _ = conn.SendValue(kindSay, line) } // if the deployer is gone, the lab ends
	if err := s.bringUp(say); err != nil {
		return s.undo(cleanup.Join(err, s.endMachines()))
	}
	var started State
	for h := range s.nodes {
		started.Nodes = append(started.Nodes, s.nodeState(topology.NodeID(h)))
	}
	err = conn.SendValue(kindUp, up{s.deployment.Dilation, s.deployment.Why, started.failed()})
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
	_ = conn.SendValue(kindKept, nil) // an error means that the deployer is gone: the lab stays
	answer := s.serve(listener)
	err = s.takeDown()
	if answer == nil { // SIGTERM: no client removes the rest
		return s.undo(err)
	}
	answer(err)
	return err
}

// open creates the supervisor's files and socket.
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

// bringUp starts the lab. say receives what happens meanwhile.
func (s *supervisor) bringUp(say func(line string)) error {
	l, err := s.deployment.parse()
	if err != nil {
		return err
	}
	if s.machines, err = s.options.machines(&s.deployment.Request, say, s.writeAhead); err != nil {
		return err
	}
	prepared, err := orchestrate.PrepareDeployment(s.life, l, orchestrate.Options{
		Self: s.options.Node, Step: s.options.Step, Subnet: s.deployment.Subnet, Dilation: s.deployment.Dilation,
		Machines: s.machines,
	})
	if err != nil {
		return err
	}
	s.x = prepared.Experiment
	spec := prepared.Emulation
	s.runtime = spec.Processes.Runtime
	spec.Processes.Env = append(spec.Processes.Env, markVar+"="+s.deployment.ID)
	spec.Processes.Ahead = s.writeAhead
	spec.Processes.Hidden = []string{s.root.path}
	var hosts []int
	for _, p := range spec.Programs {
		hosts = append(hosts, p.Host)
	}
	s.started = newHostPrograms(hosts)
	spec.Ended = func(host int, err error) {
		s.started.ended(host, err)
		text := runtime.Succeeded
		if err != nil {
			text = err.Error()
		}
		s.events.add(Event{Event: "ended", Node: s.x.Graph.Nodes[host].Name, Text: text})
	}
	s.nodes = make([]nodeLife, s.x.Graph.Hosts)
	if s.lab, err = emulate.Deploy(s.life, spec); err != nil {
		return err
	}
	if d := prepared.Dilation; d != s.deployment.Dilation {
		s.deployment.Dilation, s.deployment.Why = d, prepared.Why
	}
	s.events.now = s.lab.Now
	go s.watch()
	s.started.settle(s.life.Done())
	return nil
}

// writeAhead writes an operation of the launch to the journal.
func (s *supervisor) writeAhead(op runtime.Op) error {
	if op.Kind == runtime.Container {
		op.Where = os.Getenv(docker.HostVar)
	}
	return s.journal.Ahead(op)
}

// watch records nodes and networks that end by themselves, until the lab ends.
func (s *supervisor) watch() {
	broken := s.lab.Broken()
	for {
		select {
		case exit, ok := <-s.lab.Exits():
			if !ok {
				return
			}
			s.recordExit(exit)
		case h := <-s.lab.Gone():
			time.AfterFunc(endingTime, func() { s.recordUnplugged(h) })
		case <-broken:
			broken = nil
			if s.life.Err() == nil {
				s.events.add(Event{Event: "broken", Text: s.lab.Why().Error()})
			}
		}
	}
}

// endingTime is the delay between the loss of a node's interface and the check whether the node
// still runs. A node that ends takes its interface with it, and the kernel reports the two in
// either order. Our own choice: it takes milliseconds.
const endingTime = time.Second

// whyCutOff returns why the network does not reach a host that runs, and what repairs that; it is
// empty if the network reaches the host.
func (s *supervisor) whyCutOff(h int, look *realtime.HostState) string {
	switch name := s.x.Graph.Nodes[h].Name; {
	case look.Gone:
		return fmt.Sprintf("its interface was deleted; weft node %s %s restart gives it a new one", s.deployment.Lab,
			name)
	case look.Down:
		return fmt.Sprintf("its interface was taken down; weft exec %s -- ip link set %s up", name, boot.Interface)
	}
	return ""
}

// recordUnplugged records that a node has lost its interface, unless the node has ended or has an
// interface again.
func (s *supervisor) recordUnplugged(h int) {
	look, err := s.lab.Look()
	if err != nil {
		return
	}
	why := s.whyCutOff(h, &look.Hosts[h])
	if why == "" {
		return
	}
	s.mu.Lock()
	ended := s.nodes[h].dead != "" || s.nodes[h].endRequested
	s.mu.Unlock()
	if !ended {
		s.events.add(Event{Event: "unplugged", Node: s.x.Graph.Nodes[h].Name, Text: why})
	}
}

// recordExit records the end of a process.
func (s *supervisor) recordExit(exit runtime.Exit) {
	h, ok := s.x.Graph.NodeNamed(exit.Name)
	if !ok || int(h) >= len(s.nodes) {
		s.events.add(Event{Event: "died", Node: exit.Name, Text: exit.Err.Error()})
		return
	}
	if is := s.lab.Cluster().Node(int(h)); is.PID != exit.PID || is.FarPID != exit.FarPID {
		return // it was restarted meanwhile
	}
	s.mu.Lock()
	n := &s.nodes[h]
	asked := n.endRequested
	n.dead, n.how, n.lost, n.paused, n.holder = exit.Err.Error(), exit.Err.How(), exit.Err.Lost, false, Holder{}
	if asked {
		n.dead = exit.Name + " was killed"
	}
	s.mu.Unlock()
	if !asked {
		s.events.add(Event{Event: "died", Node: exit.Name, Text: exit.Err.Error()})
	}
}

// takeDown ends the lab and the programs that run in it.
func (s *supervisor) takeDown() error {
	s.end()
	if s.lab == nil {
		return nil
	}
	s.options.step("before close lab")
	err := s.lab.Close()
	if err == nil {
		s.journal.Settle(runtime.Process, runtime.Container, runtime.Group)
	}
	err = cleanup.Join(err, s.endMachines())
	s.options.step("after close lab")
	s.programs.Wait()
	return err
}

// endMachines ends the agents that an engine has placed.
func (s *supervisor) endMachines() error {
	if s.machines == nil {
		return nil
	}
	err := s.machines.Close(context.Background())
	if err == nil {
		s.journal.Settle(runtime.Agents)
	}
	return err
}

// undo rolls the journal back if no deployer or client will do so. It returns err joined with its
// own errors.
func (s *supervisor) undo(err error) error {
	o := Options{Undo: s.options.Undo}
	failed := s.journal.Rollback(context.Background(), s.undoers(o))
	if failed == nil {
		failed = removeFolder(s.root, s.deployment.Lab)
	}
	return cleanup.Join(err, failed)
}

// undoers returns the undoers of the supervisor. They do not end the supervisor itself.
func (s *supervisor) undoers(o Options) map[string]undoer {
	by := o.undoers(s.dir)
	by[kindSupervisor] = func(context.Context, string, string) error { return nil }
	return by
}
