package e2e

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"weft/internal/control"
	"weft/internal/quiettest"
	"weft/internal/sample"
	"weft/internal/testenv"
	"weft/nodeimg/agent"
	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	"weft/orchestrator/machine"
	orchestrate "weft/orchestrator/run"
	"weft/orchestrator/runtime"
	"weft/realtime"
)

// Roles of the test program: weft run and weft machine, so that a test can stop the first at any
// step.
const (
	partsLauncher = "parts-launcher"
	partsAgent    = "parts-agent"
)

const partsSecret = "00112233445566778899aabbccddeeff"

// Phases of a run on other machines, by what the second machine does.
const (
	phaseConnect = "connect" // before it is connected
	phasePrepare = "prepare" // its processes are up
	phaseReady   = "ready"   // its fabric process has its configuration
	phaseStart   = "start"   // its fabric process knows when lab time begins
	phaseRun     = "run"     // its first host has reported progress
	phaseResults = "results" // its first host is about to be asked for results
	phaseEnd     = "end"     // its processes are about to be ended
)

var phases = []string{phaseConnect, phasePrepare, phaseReady, phaseStart, phaseRun, phaseResults, phaseEnd}

// serveParts is the agent at args[0], with the weft args[1] for its processes.
func serveParts(args []string) (code int) {
	l, err := machine.Listen(args[0])
	if err == nil {
		fmt.Fprintln(os.Stderr, "listening")
		a := machine.Agent{Secret: partsSecret, Build: "this", Self: args[1], Say: func(string) {}}
		err = a.Serve(context.Background(), l)
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// launchParts runs a lab file, args[0], on the agents at args[2] and args[3]. In the phase args[1]
// it says so on its standard output, and waits for a line on its standard input.
func launchParts(args []string) (code int) {
	text, err := os.ReadFile(args[0])
	var all []*lab.Lab
	if err == nil {
		all, err = lab.Parse(args[0], text, lab.Options{})
	}
	var x *experiment.Experiment
	if err == nil {
		x, err = experiment.Build(all[0])
	}
	if err == nil {
		stop := sync.OnceFunc(func() {
			fmt.Println(args[1])
			_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // the test may have gone
		})
		_, err = orchestrate.Run(context.Background(), x, orchestrate.Options{
			Engine: "emu", Root: "runs", LabText: text,
			Machines: &stopping{
				Group: machine.Group{Addrs: args[2:], Secret: partsSecret, Build: "this"},
				at: func(phase string) {
					if phase == args[1] {
						stop()
					}
				},
			},
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// stopping is machines whose run calls at in each phase of the second.
type stopping struct {
	machine.Group
	at func(phase string)
}

func (s *stopping) Launches(ctx context.Context) ([]runtime.Launch, error) {
	all, err := s.Group.Launches(ctx)
	if err != nil {
		return nil, err
	}
	inner := all[1]
	all[1] = func(ctx context.Context, spec runtime.Spec) (runtime.Cluster, error) {
		s.at(phaseConnect)
		c, err := inner(ctx, spec)
		if err != nil {
			return nil, err
		}
		s.at(phasePrepare)
		w := &watched{Cluster: c, at: s.at}
		if w.fabric, err = watchMessages(c.Fabric(), func(kind string, sent bool) {
			switch {
			case sent && kind == realtime.KindConfigure:
				s.at(phaseReady)
			case sent && kind == realtime.KindStart:
				s.at(phaseStart)
			}
		}); err != nil {
			return nil, errors.Join(err, c.Close())
		}
		if w.first, err = watchMessages(c.Node(0), func(kind string, sent bool) {
			switch {
			case sent && kind == agent.KindProgress:
				s.at(phaseRun)
			case !sent && kind == agent.KindStop:
				s.at(phaseResults)
			}
		}); err != nil {
			return nil, errors.Join(err, c.Close())
		}
		return w, nil
	}
	return all, nil
}

// watched is a cluster of whose fabric process and first host the messages are seen.
type watched struct {
	runtime.Cluster
	fabric, first *runtime.Proc
	at            func(phase string)
}

func (w *watched) Fabric() *runtime.Proc { return w.fabric }

func (w *watched) Node(i int) *runtime.Proc {
	if i == 0 {
		return w.first
	}
	return w.Cluster.Node(i)
}

func (w *watched) Close() error {
	w.at(phaseEnd)
	return w.Cluster.Close()
}

// watchMessages returns a process whose connection calls see with the kind of each message, before
// the message is forwarded and again after it was sent.
func watchMessages(p *runtime.Proc, see func(kind string, sent bool)) (*runtime.Proc, error) {
	ours, near, err := control.Connected()
	if err != nil {
		return nil, err
	}
	pass := func(to, from *control.Conn) {
		for {
			m, _, err := from.Recv()
			if err == nil {
				see(m.Kind, false)
				err = to.Send(m)
			}
			if err != nil {
				to.Close()
				from.Close()
				return
			}
			see(m.Kind, true)
		}
	}
	go pass(p.Conn, near)
	go pass(near, p.Conn)
	return &runtime.Proc{Name: p.Name, Conn: ours, Report: p.Report}, nil
}

// site is two machines, each a network namespace with an agent, with a cable to the machine of the
// test and one to each other.
type site struct {
	d      *workspace
	holds  [2]*exec.Cmd // keep the namespaces
	agents [2]*process
}

func siteAddr(k int) string { return fmt.Sprintf("192.0.2.%d", 10+k) }

// newSite returns a site. Its cables are ports of two bridges: when one is cut, neither end gets an
// error or a closed connection.
func newSite(d *workspace) *site {
	d.t.Helper()
	testenv.NeedNamespaces(d.t)
	for _, c := range []string{"link add ctl type bridge", "link add data type bridge", "addr add 192.0.2.1/24 dev ctl",
		"link set ctl up", "link set data up"} {
		d.ip(c)
	}
	d.t.Cleanup(func() {
		d.ip("link del ctl")
		d.ip("link del data")
	})
	s := &site{d: d}
	for k := range s.holds {
		s.holds[k] = d.newNamespace()
		pid := fmt.Sprint(s.holds[k].Process.Pid)
		for _, name := range []string{"ctl", "data"} {
			d.ip(fmt.Sprintf("link add %s%d type veth peer name %s netns %s", name, k, name, pid))
			d.ip(fmt.Sprintf("link set %s%d master %s up", name, k, name))
			d.t.Cleanup(func() { _ = exec.Command("ip", "link", "del", fmt.Sprint(name, k)).Run() })
		}
		for _, c := range []string{"link set lo up", "addr add " + siteAddr(k) + "/24 dev ctl", "link set ctl up",
			"link set data up", "route add " + siteAddr(1-k) + "/32 dev data src " + siteAddr(k)} {
			d.ipIn(s.holds[k], c)
		}
		s.start(k)
	}
	return s
}

// start starts the agent of machine k.
func (s *site) start(k int) {
	s.d.t.Helper()
	self := testProgram(s.d.t)
	cmd := s.d.command()
	cmd.Path = "/usr/bin/nsenter"
	cmd.Args = []string{"nsenter", "-t", fmt.Sprint(s.holds[k].Process.Pid), "-n", self, partsAgent, siteAddr(k) + ":7788",
		weft}
	s.agents[k] = s.d.startCommand(cmd)
	s.agents[k].awaitOutput(&s.agents[k].stderr, "listening")
}

// plug plugs in a cable of the second machine, or pulls it.
func (s *site) plug(name string, in bool) {
	if in {
		s.d.ip("link set " + name + "1 master " + name)
	} else {
		s.d.ip("link set " + name + "1 nomaster")
	}
}

// mute has all be lost that a machine, nil this one, sends to an address, or not any longer. What
// the other sends still arrives.
func (s *site) mute(from *exec.Cmd, dev, to string, mute bool) {
	line := "neigh del " + to + " dev " + dev
	if mute {
		line = "neigh replace " + to + " lladdr 02:00:00:00:00:99 nud permanent dev " + dev
	}
	if from == nil {
		s.d.ip(line)
	} else {
		s.d.ipIn(from, line)
	}
}

// A loss is somebody or something that a run loses, in some phases.
type loss struct {
	what   string
	phases []string
	lose   func(s *site, launcher *process, theirs []string) // theirs are the second machine's processes, its fabric first
	mend   func(s *site)
	named  []string // the error has one of these
}

var losses = []loss{
	{
		"weft run", phases, func(_ *site, launcher *process, _ []string) { launcher.signal(syscall.SIGKILL) },
		func(*site) {}, []string{""},
	},
	{
		"the agent", phases, func(s *site, _ *process, _ []string) { s.agents[1].signal(syscall.SIGKILL) },
		func(s *site) { s.start(1) }, []string{"m2"},
	},
	{
		"the machine, which stands still", phases[:5],
		func(s *site, _ *process, _ []string) { s.agents[1].signal(syscall.SIGSTOP) },
		func(s *site) { s.agents[1].signal(syscall.SIGCONT) }, []string{"m2"},
	},
	{
		"its fabric process", phases[1:6],
		func(s *site, _ *process, theirs []string) { s.d.program("kill", "-KILL", theirs[0]) },
		func(*site) {}, []string{"m2"},
	},
	{
		"a process of its hosts", phases[1:5],
		func(s *site, _ *process, theirs []string) { s.d.program("kill", "-KILL", theirs[1]) },
		func(*site) {}, []string{"m2", "h2", "h3"},
	},
	{
		"the cable to weft run", phases, func(s *site, _ *process, _ []string) { s.plug("ctl", false) },
		func(s *site) { s.plug("ctl", true) }, []string{"m2"},
	},
	{
		"its fabric process, which stands still", phases[3:5],
		func(s *site, _ *process, theirs []string) { s.d.program("kill", "-STOP", theirs[0]) },
		func(*site) {}, []string{"m2"},
	},
	{
		"a process of its hosts, which stands still", phases[3:5],
		func(s *site, _ *process, theirs []string) { s.d.program("kill", "-STOP", theirs[1]) },
		func(*site) {}, []string{"m2", "h2", "h3"},
	},
	{
		"the cable to the other machine", phases[:5], func(s *site, _ *process, _ []string) { s.plug("data", false) },
		func(s *site) { s.plug("data", true) }, []string{"m1", "m2"},
	},
	{
		"what weft run sends", phases,
		func(s *site, _ *process, _ []string) { s.mute(nil, "ctl", siteAddr(1), true) },
		func(s *site) { s.mute(nil, "ctl", siteAddr(1), false) }, []string{"m2"},
	},
	{
		"what the machine sends to weft run", phases,
		func(s *site, _ *process, _ []string) { s.mute(s.holds[1], "ctl", "192.0.2.1", true) },
		func(s *site) { s.mute(s.holds[1], "ctl", "192.0.2.1", false) }, []string{"m2"},
	},
	{
		"what the machine sends to the other", phases[:5],
		func(s *site, _ *process, _ []string) { s.mute(s.holds[1], "data", siteAddr(0), true) },
		func(s *site) { s.mute(s.holds[1], "data", siteAddr(0), false) }, []string{"m1", "m2"},
	},
}

// endTime is the longest time that a run may take to end by the name of what it has lost.
const endTime = 5 * time.Second

// Whatever a run on other machines loses in whatever phase, it ends soon by the name of that, and
// nothing is left on any machine. make killtest loses everything in each phase.
func TestPrivLossInEachPhase(t *testing.T) {
	testenv.NeedEmulation(t)
	d := newWorkspace(t)
	s := newSite(d)
	short := strings.Replace(acrossLab, "engine: {", "engine: {kind: emu, machines: 2, ", 1)
	d.writeLab("short.yaml", short)
	d.writeLab("long.yaml", strings.Replace(short, "size: 1MB", "size: 1MB, repeat: 2000", 1))
	type lossCase struct {
		loss
		phase string
	}
	var all []lossCase
	for _, l := range losses {
		for _, phase := range l.phases {
			all = append(all, lossCase{l, phase})
		}
	}
	for _, c := range sample.Of(t, 5, all...) {
		t.Run(c.what+"/"+c.phase, func(t *testing.T) {
			file := "long.yaml"
			if c.phase == phaseResults || c.phase == phaseEnd {
				file = "short.yaml"
			}
			s.lose(t, &c.loss, c.phase, file)
		})
	}
}

// orderOf is lower for a fabric process than for those of hosts.
func orderOf(pid string) int {
	if name, _ := os.ReadFile("/proc/" + pid + "/comm"); string(name) == "weft-fabric\n" { // it may have ended
		return 0
	}
	return 1
}

// lose loses something in a phase of a run of a lab file.
func (s *site) lose(t *testing.T, l *loss, phase, file string) {
	d := *s.d // agents outlive t
	d.t = t
	self := testProgram(t)
	cmd := d.command()
	cmd.Path, cmd.Args = self, []string{self, partsLauncher, file, phase, siteAddr(0) + ":7788", siteAddr(1) + ":7788"}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p := d.startCommand(cmd)
	if wrong := eventually(patience, func() string {
		if p.running() && !strings.Contains(p.stdout.String(), phase) {
			return "not yet in phase " + phase
		}
		return ""
	}); wrong != "" || !p.running() {
		t.Fatal(wrong, p.stdout.String(), p.stderr.String())
	}
	theirs := childrenOf(s.agents[1].cmd.Process.Pid)
	slices.SortStableFunc(theirs, func(a, b string) int { return cmp.Compare(orderOf(a), orderOf(b)) })
	all := slices.Concat(theirs, childrenOf(s.agents[0].cmd.Process.Pid))
	began, watch := time.Now(), quiettest.Start()
	l.lose(s, p, theirs)
	if _, err := in.Write([]byte("\n")); err != nil && !errors.Is(err, syscall.EPIPE) {
		t.Error(err)
	}
	r := p.wait()
	took := time.Since(began)
	words := strings.TrimSpace(r.stderr)
	t.Logf("ended with %d after %.1f s: %s", r.code, took.Seconds(), words)
	if why := watch.Disturbed(); took > endTime && (why == nil || took > 3*endTime) {
		t.Errorf("it ended after %v; other programs: %v", took, why)
	}
	named := slices.ContainsFunc(l.named, func(n string) bool { return strings.Contains(words, n) })
	if phase != phaseEnd && (r.code == 0 || !named) {
		t.Errorf("exit code %d, and no word of %s", r.code, strings.Join(l.named, " or "))
	}
	left := func(of []string) func() string {
		return func() string {
			for _, pid := range of {
				if _, err := os.Stat("/proc/" + pid); err == nil {
					return "process " + pid + " is left"
				}
			}
			return ""
		}
	}
	if what := eventually(endTime, left(slices.DeleteFunc(all, func(pid string) bool { return slices.Contains(theirs, pid) }))); what != "" {
		t.Errorf("m1: %s", what)
	}
	l.mend(s)
	if what := eventually(endTime, left(theirs)); what != "" {
		t.Errorf("m2: %s", what)
	}
	for k, a := range s.agents {
		if what := eventually(endTime, func() string { return strings.Join(childrenOf(a.cmd.Process.Pid), " ") }); what != "" {
			t.Errorf("machine %d still runs %s", k+1, what)
		}
	}
}
