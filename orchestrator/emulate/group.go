package emulate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	oscillator "weft/clocksync/clock"
	"weft/internal/clock"
	"weft/nodeimg/labclock"
	"weft/orchestrator/launcher"
	"weft/orchestrator/runtime"
	"weft/orchestrator/together"
	"weft/results/record"
	"weft/units"
)

// Group is a program that some hosts run together. The run waits for it, and fails with it.
type Group struct {
	Name    string // for messages
	Hosts   []int  // in the order of ranks
	Image   string // see runtime.Command
	Args    []string
	Env     []string
	Launch  *launcher.Kind
	LabTime bool
	Start   units.Time
	Timeout time.Duration // real time after which it is ended; 0: none
	Folder  string        // of the machine, which its programs see at /lab; "": none

	// Line receives each line of output at an instant of lab time, from one goroutine at a time for
	// the group. It may keep nothing of the line.
	Line func(rank int, errors bool, line []byte, at units.Time)
}

// GroupEnd is how a group ended, by rank.
type GroupEnd struct {
	Hosts []HostEnd
	tcp   []connections // by rank

	behind []behind // when programs stood
}

// Carrier returns what carried the packets of the groups' programs: "tcp cubic", or
// record.Programs if that is not known.
func (o *Outcome) Carrier() string {
	var all []connections
	for i := range o.Groups {
		all = append(all, o.Groups[i].tcp...)
	}
	return carriedBy(all)
}

// HostEnd is how the program of a host ended, and what its tasks needed.
type HostEnd struct {
	together.Ending
	Begin, End units.Time // lab time
	// processor time of its tasks, and the real time in which the host's network was in use and in
	// which some task waited for a processor meanwhile, at most
	CPU, Busy, Waited time.Duration
}

// lookEvery is the real time between two looks at the tasks of programs. Our own choice.
const lookEvery = 50 * time.Millisecond

// runGroups runs all groups. over receives nil when all have ended well, or the first failure.
func (r *run) runGroups(ctx context.Context) (over <-chan error, wait func()) {
	if len(r.x.Groups) == 0 {
		return nil, func() {}
	}
	r.outcome.Groups = make([]GroupEnd, len(r.x.Groups))
	ended := make(chan error, 1)
	var all sync.WaitGroup
	var first sync.Once
	for i := range r.x.Groups {
		all.Go(func() {
			err := r.runGroup(ctx, &r.x.Groups[i], &r.outcome.Groups[i])
			if err != nil {
				first.Do(func() { ended <- err })
			}
		})
	}
	done := make(chan struct{})
	go func() {
		all.Wait()
		first.Do(func() { ended <- nil })
		close(done)
	}()
	return ended, func() { <-done }
}

// oscillators returns those of the hosts, with no Grid where the clock is exact.
func (x *Experiment) oscillators() []oscillator.Config {
	all := make([]oscillator.Config, len(x.Plans))
	for i := range x.Plans {
		if c := x.Plans[i].Clock; c != nil {
			all[i] = c.Clock
		}
	}
	return all
}

// runGroup runs a group.
func (r *run) runGroup(ctx context.Context, g *Group, end *GroupEnd) error {
	start := r.scale.T0 + int64(float64(g.Start.Duration())*r.x.Dilation)
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(start - clock.Monotonic())):
	}
	end.Hosts = make([]HostEnd, len(g.Hosts))
	names := make([]string, len(g.Hosts))
	pages := make([]*labclock.Page, len(g.Hosts))
	watch := &groupWatch{tasks: make([]tasks, len(g.Hosts))}
	for i, h := range g.Hosts {
		node := r.cluster.Node(h)
		names[i] = node.Name
		watch.tasks[i].node, watch.tasks[i].udp = node.PID, !speaksUDP(&r.x.Plans[h])
		watch.tasks[i].tcp = openConnections(node)
		if g.LabTime {
			var err error
			if pages[i], err = r.clocks.Page(node.Name, h); err != nil {
				return fmt.Errorf("%s: %s: %w", g.Name, node.Name, err)
			}
		}
	}
	job := together.Job{Hosts: names, Args: g.Args, Env: g.Env, Launch: g.Launch, Timeout: g.Timeout,
		Line: func(rank int, errors bool, line []byte) { g.Line(rank, errors, line, r.scale.Lab(clock.Monotonic())) }}
	stop := watch.begin()
	endings, first := job.Run(ctx, func(ctx context.Context, p together.Program, in, out, errs *os.File) (together.Exit,
		error) {
		command := runtime.Command{Image: g.Image, Args: p.Args, Env: p.Env, Stdin: in, Stdout: out, Stderr: errs,
			Clock: pages[p.Rank], Whole: true, Shown: g.Args[0], Lab: g.Folder}
		if r.x.Processes.Machines == nil {
			return r.execOne(ctx, names[p.Rank], command, watch, p.Rank)
		}
		t := &watch.tasks[p.Rank]
		command.Watch = &runtime.Watch{Datagrams: t.udp}
		if c := r.x.Plans[g.Hosts[p.Rank]].Clock; c != nil {
			command.Model = &c.Clock
		}
		begun := time.Now()
		end, err := r.execOne(ctx, names[p.Rank], command, watch, p.Rank)
		watch.used(t, command.Watch, begun)
		return end, err
	})
	stop()
	for i := range endings {
		t := &watch.tasks[i]
		t.tcp.close()
		end.tcp = append(end.tcp, t.tcp)
		for _, s := range append(t.far, t.seen) {
			end.behind = append(end.behind, r.stood(g.Name+" on "+names[i], &s)...)
		}
		end.Hosts[i] = HostEnd{Ending: endings[i], CPU: t.ran, Busy: t.busy, Waited: t.waited,
			Begin: r.labAt(endings[i].Began), End: r.labAt(endings[i].Over)}
	}
	if first < 0 {
		return nil
	}
	var hows, with []string
	of := map[string][]string{} // hosts by how their program ended
	for i := range endings {
		switch e := &endings[i]; {
		case e.With != "":
			with = append(with, e.Host)
		case e.Failed():
			how := e.How()
			if of[how] == nil {
				hows = append(hows, how)
			}
			of[how] = append(of[how], e.Host)
		}
	}
	for i, how := range hows {
		hows[i] = firstNames(of[how]) + ": " + how
	}
	text := strings.Join(hows, "; ")
	if len(with) > 0 {
		text += fmt.Sprintf("; so %s ended too", firstNames(with))
	}
	if hint := job.Hint(endings); hint != "" {
		text += "; " + hint
	}
	return fmt.Errorf("%s: %s", g.Name, text)
}

// labAt returns the lab time at an instant of this process's clock.
func (r *run) labAt(t time.Time) units.Time {
	if t.IsZero() {
		return 0
	}
	return max(0, r.scale.Lab(clock.Monotonic()-int64(time.Since(t))))
}

// Exec runs a program in a host as a group does, and measures what its tasks need if command.Watch
// says so.
func Exec(ctx context.Context, cluster runtime.Cluster, host int, command runtime.Command) error {
	node := cluster.Node(host)
	watch := &groupWatch{tasks: make([]tasks, 1)}
	if command.Watch != nil {
		var stop func()
		watch, stop = observe(node, command.Watch)
		defer stop()
	}
	return execTree(ctx, cluster, node.Name, command, watch, 0)
}

// Observe measures what the tasks of a program on a node need, until stop, which stores it in w.
// The caller calls started with the program's process.
func Observe(node *runtime.Proc, w *runtime.Watch) (started func(pid int), stop func()) {
	watch, stop := observe(node, w)
	return func(pid int) { watch.add(0, pid) }, stop
}

func observe(node *runtime.Proc, w *runtime.Watch) (watch *groupWatch, stop func()) {
	watch = &groupWatch{tasks: []tasks{{node: node.PID, udp: w.Datagrams}}}
	end := watch.begin()
	return watch, func() {
		end()
		t := &watch.tasks[0]
		w.CPU, w.Busy, w.Waited, w.Seen = t.ran, t.busy, t.waited, t.seen.Seen
	}
}

// execOne runs a program in a host, and leaves nothing of it when ctx has ended.
func (r *run) execOne(ctx context.Context, name string, command runtime.Command, watch *groupWatch,
	rank int) (together.Exit, error) {
	err := execTree(ctx, r.cluster, name, command, watch, rank)
	var status *runtime.StatusError
	var ended *runtime.ExitError
	switch {
	case errors.As(err, &status):
		return together.Exit{Code: status.Code, Signal: status.Signal, Text: status.Text,
			OutOfMemory: status.OutOfMemory}, nil
	case errors.As(err, &ended):
		return together.Exit{Code: hostEnded, Ended: ended.Error()}, nil
	}
	return together.Exit{}, err
}

// execTree is execOne with the errors of runtime.Cluster.
func execTree(ctx context.Context, cluster runtime.Cluster, name string, command runtime.Command, watch *groupWatch,
	rank int) error {
	var process int
	command.Started = func(pid int) {
		process = pid
		watch.add(rank, pid)
	}
	var left []int
	var once sync.Mutex
	stop := context.AfterFunc(ctx, func() { // while the tree hangs together
		once.Lock()
		defer once.Unlock()
		if pid := watch.process(rank); pid != 0 {
			left = treeOf(pid)
		}
	})
	err := cluster.Exec(ctx, name, command)
	if !stop() {
		once.Lock()
		endTree(left)
		once.Unlock()
	}
	if process != 0 {
		watch.remove(rank, process)
	}
	return err
}

// hostEnded is the exit code of a program whose host has ended.
const hostEnded = 125

// groupWatch looks at the tasks of a group while it runs.
type groupWatch struct {
	mu    sync.Mutex
	tasks []tasks // by rank
}

func (w *groupWatch) add(rank, pid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tasks[rank].roots = append(w.tasks[rank].roots, pid)
}

// process returns the last program of a rank; 0: none runs.
func (w *groupWatch) process(rank int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	roots := w.tasks[rank].roots
	if len(roots) == 0 {
		return 0
	}
	return roots[len(roots)-1]
}

func (w *groupWatch) remove(rank, pid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := &w.tasks[rank]
	for i, p := range t.roots {
		if p == pid {
			t.roots = append(t.roots[:i:i], t.roots[i+1:]...)
			return
		}
	}
}

// used adds what another machine has measured since an instant.
func (w *groupWatch) used(t *tasks, u *runtime.Watch, begun time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t.ran += u.CPU
	t.busy, t.waited = max(t.busy, u.Busy), max(t.waited, u.Waited) // programs of a host share its network
	t.far = append(t.far, sightings{begun, u.Seen})
}

// begin looks at the tasks from time to time, until stop.
func (w *groupWatch) begin() (stop func()) {
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			own := ownTime()
			w.mu.Lock()
			for i := range w.tasks {
				w.tasks[i].look(time.Now(), own)
			}
			w.mu.Unlock()
			select {
			case <-over:
				return
			case <-tick.C:
			}
		}
	}()
	return func() {
		close(over)
		<-done
	}
}

// waits returns the share of the time in which tasks of programs waited for a processor, of the
// host with the largest, and who that is. ok is false if no network was in use for long enough.
func (o *Outcome) waits(groups []Group) (share float64, who string, ok bool) {
	for i := range o.Groups {
		for k := range o.Groups[i].Hosts {
			h := &o.Groups[i].Hosts[k]
			if h.Busy.Seconds() < record.MinBusyS {
				continue
			}
			s := float64(h.Waited) / float64(h.Busy)
			if !ok || s > share {
				share, who, ok = s, groups[i].Name+" on "+h.Host, true
			}
		}
	}
	return share, who, ok
}
