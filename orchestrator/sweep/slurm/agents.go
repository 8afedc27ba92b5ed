package slurm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"weft/internal/cleanup"
	"weft/internal/clip"
	"weft/internal/thread"
	"weft/orchestrator/machine"
	"weft/orchestrator/runtime"
)

// Agents starts the agents of one lab with srun, which is a child of this process and ends with it.
type Agents struct {
	mu    sync.Mutex
	steps map[string]*step // by the name of the placement
}

// step is a running srun.
type step struct {
	cmd   *exec.Cmd
	said  *runtime.Tail // by srun and the agents
	ended chan struct{}
	err   error // valid once ended is closed
}

// Name implements machine.Engine.
func (*Agents) Name() string { return "slurm" }

// Where implements machine.Engine.
func (*Agents) Where() string { return os.Getenv(confVar) }

// Hosts implements machine.Engine.
func (*Agents) Hosts(ctx context.Context) ([]machine.Host, error) {
	all, err := nodes(ctx)
	if err != nil {
		return nil, err
	}
	text, err := ask(ctx, "sinfo", "--noheader", "--Node", "--format=%N|%o")
	if err != nil {
		return nil, err
	}
	var out []machine.Host
	for line := range strings.Lines(text) {
		name, addr, _ := strings.Cut(strings.TrimSpace(line), "|")
		if all[name] > 0 {
			out = append(out, machine.Host{Name: name, Addr: addr})
			delete(all, name) // a node in several partitions is listed for each
		}
	}
	return out, nil
}

// srun returns the command of a placement. The secret is in the environment, which Slurm passes on:
// a command line would show it to all users.
func srun(p *machine.Placement, self string) []string {
	return append([]string{
		"srun", "--label", "--job-name=" + p.Name, "--comment=" + p.Owner.String(),
		fmt.Sprintf("--nodes=%d", p.Count), fmt.Sprintf("--ntasks=%d", p.Count), "--ntasks-per-node=1", "--exclusive",
		"--export=ALL", "--chdir=/", "--kill-on-bad-exit=1", "--input=none", self,
	}, p.Args()...)
}

// Place implements machine.Engine.
func (a *Agents) Place(_ context.Context, p *machine.Placement) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args := srun(p, self)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), machine.SecretVar+"="+p.Secret)
	// srun ends its job on SIGTERM, also one that waits.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true}
	s := &step{cmd: cmd, said: runtime.NewTail("srun", nil), ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = s.said, s.said
	began := make(chan error)
	thread.Own(func() { // the kernel sends Pdeathsig when this thread ends
		err := cmd.Start()
		began <- err
		if err != nil {
			return
		}
		s.err = cmd.Wait()
		close(s.ended)
	})
	if err := <-began; errors.Is(err, exec.ErrNotFound) {
		return errNoSlurm(err)
	} else if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.steps == nil {
		a.steps = map[string]*step{}
	}
	a.steps[p.Name] = s
	return nil
}

// of returns the step of a placement; nil: this process has none.
func (a *Agents) of(name string) *step {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.steps[name]
}

// Look implements machine.Engine.
func (a *Agents) Look(_ context.Context, p *machine.Placement) error {
	s := a.of(p.Name)
	if s == nil {
		return nil // Place has failed
	}
	select {
	case <-s.ended:
		return fmt.Errorf("the agents ended: %v: %s", s.err, clip.Line(s.said.String()))
	default:
		return nil // it waits in the queue, as long as that takes
	}
}

// Remove implements machine.Engine. Agents end with their meeting, and srun with them.
func (a *Agents) Remove(ctx context.Context, where, name string) error {
	s := a.of(name)
	if s == nil {
		return cancel(ctx, where, name)
	}
	select {
	case <-s.ended:
		return nil
	case <-time.After(agentTime):
	}
	if _, err := ask(ctx, "scancel", "--quiet", "--name="+name); err != nil {
		return err
	}
	select {
	case <-s.ended:
	case <-time.After(agentTime): // it waits for a machine that is gone, and the controller knows what to do
		_ = s.cmd.Process.Kill() // it may have ended
		<-s.ended
	}
	return nil
}

// cancel cancels a job of the cluster that a configuration names, and waits until it has ended.
func cancel(ctx context.Context, conf, name string) error {
	if _, err := askAt(ctx, conf, "scancel", "--quiet", "--name="+name); err != nil {
		return err
	}
	for over := time.Now().Add(endTime); ; {
		left, err := askAt(ctx, conf, "squeue", "--me", "--noheader", "--name="+name)
		if err != nil || left == "" {
			return err
		}
		if time.Now().After(over) {
			return fmt.Errorf("job %s has not ended in %v: squeue --name=%[1]s", name, endTime)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pollTime):
		}
	}
}

// agentTime is for agents to end their processes, and for srun to notice. Ours.
const agentTime = 3 * time.Second

// CleanAgents cancels jobs of agents whose weft run, on this machine, has ended, and returns their
// names. Those that run end by themselves; one that waits would not before it has run. unseen is
// why it could not look for jobs; without Slurm's commands there are none.
func CleanAgents(ctx context.Context) (cancelled []string, unseen, err error) {
	text, err := ask(ctx, "squeue", "--me", "--noheader", "--format=%j|%k")
	if errors.Is(err, exec.ErrNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, err, nil
	}
	var all cleanup.Errors
	for line := range strings.Lines(text) {
		name, comment, _ := strings.Cut(strings.TrimSpace(line), "|")
		owner, ok := runtime.ParseOwner(comment)
		if !ok || !strings.HasPrefix(name, machine.Prefix) || !owner.Gone() {
			continue
		}
		if _, err := ask(ctx, "scancel", "--quiet", "--name="+name); err != nil {
			all.Add(fmt.Errorf("job %s: %w", clip.Line(name), err))
			continue
		}
		cancelled = append(cancelled, clip.Line(name))
	}
	return cancelled, nil, all.Err()
}
