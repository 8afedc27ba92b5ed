package namespace

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"weft/internal/cleanup"
	"weft/internal/control"
	"weft/internal/privilege"
	"weft/internal/thread"
	"weft/orchestrator/runtime"
)

// A spawner starts processes from one thread, which lives until stop. A parent-death signal is sent
// when the thread that started the child ends. The Go runtime may end any thread but a locked one.
type spawner struct {
	work chan func()
}

func newSpawner() *spawner {
	s := &spawner{work: make(chan func())}
	thread.Own(func() {
		for f := range s.work {
			f()
		}
	})
	return s
}

// do runs f on the thread and waits for it.
func (s *spawner) do(f func()) {
	done := make(chan struct{})
	s.work <- func() { defer close(done); f() }
	<-done
}

// stop ends the thread, and with it every process that it started and that still runs.
func (s *spawner) stop() { close(s.work) }

// proc is one process of the lab.
type proc struct {
	runtime.Proc
	cmd  *exec.Cmd
	tail *runtime.Tail
	done chan struct{} // closed when it has exited and was waited for
}

// start starts a process of the lab in new namespaces. It must be called on the spawner's thread.
func start(spec *runtime.Spec, name string, args []string, out *runtime.Lines) (*proc, error) {
	conn, theirs, err := control.Pair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	p := &proc{Proc: runtime.Proc{Name: name, Conn: conn}, tail: runtime.NewTail(name, out), done: make(chan struct{})}
	p.cmd = &exec.Cmd{
		Path:       spec.Self,
		Args:       append([]string{"weft"}, args...),
		Env:        append(runtime.Environment(), spec.Env...),
		Dir:        "/",
		Stdout:     p.tail,
		Stderr:     p.tail,
		ExtraFiles: []*os.File{theirs}, // becomes control.FD
		WaitDelay:  50 * time.Millisecond,
		SysProcAttr: &syscall.SysProcAttr{
			Cloneflags: privilege.Namespaces,
			Pdeathsig:  syscall.SIGKILL,
			Setsid:     true, // Ctrl-C is for the orchestrator, which then ends the lab in order
		},
	}
	if err := p.cmd.Start(); err != nil {
		conn.Close()
		return nil, fmt.Errorf("start: %w", err)
	}
	go func() {
		_ = p.cmd.Wait() // the result is in ProcessState
		close(p.done)
	}()
	p.PID = p.cmd.Process.Pid
	return p, nil
}

// kill kills the process. If it has exited already, that is not an error.
func (p *proc) kill() (err error) {
	held := p.cmd.Process.WithHandle(func(pidfd uintptr) { err = runtime.Kill(p.PID, int(pidfd)) })
	if errors.Is(held, os.ErrProcessDone) {
		return nil
	}
	return cleanup.Join(held, err)
}

// Kill kills the process and waits until it has exited.
func (p *proc) Kill() error {
	if err := p.kill(); err != nil {
		return err
	}
	<-p.done
	return nil
}

// Ended returns a channel that is closed when the process has exited and was waited for.
func (p *proc) Ended() <-chan struct{} { return p.done }

// Exit returns how the process ended. The process must have ended.
func (p *proc) Exit() *runtime.ExitError {
	e := &runtime.ExitError{Name: p.Name, State: "unknown", Stderr: p.tail.String()}
	if s := p.cmd.ProcessState; s != nil {
		e.State = s.String()
	}
	return e
}

// awaitExits waits until all processes have exited, at most for d. It returns those that have not.
func awaitExits(ps []*proc, d time.Duration) []*proc {
	timer := time.NewTimer(d)
	defer timer.Stop()
	late := false
	var left []*proc
	for _, p := range ps {
		if !late {
			select {
			case <-p.done:
			case <-timer.C:
				late = true
			}
		}
		select {
		case <-p.done:
		default:
			left = append(left, p)
		}
	}
	return left
}
