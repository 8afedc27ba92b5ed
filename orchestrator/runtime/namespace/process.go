package namespace

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"weft/internal/thread"
	"weft/nodeimg/control"
	"weft/orchestrator/runtime"
)

// self is this program, however its file was renamed, replaced or deleted since it was started.
const self = "/proc/self/exe"

// A spawner starts processes from one thread, which lives until stop. A parent-death signal is tied to the
// thread that started the child, and the Go runtime ends threads as it likes, but not one that is locked.
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

// stop ends the thread, and with it every process it started that still runs.
func (s *spawner) stop() { close(s.work) }

// running is a started process.
type running struct {
	name string
	cmd  *exec.Cmd
	tail *runtime.Tail
	done chan struct{} // closed when it has ended and was waited for
}

// start starts a process of the lab in new namespaces. It must be called on the spawner's thread.
func start(spec *runtime.Spec, name string, args []string, out *runtime.Lines) (*running, *control.Conn, error) {
	conn, theirs, err := control.Pair()
	if err != nil {
		return nil, nil, err
	}
	defer theirs.Close()
	r := &running{name: name, tail: runtime.NewTail(name, out), done: make(chan struct{})}
	path := spec.Self
	if path == "" {
		path = self
	}
	r.cmd = &exec.Cmd{
		Path:       path,
		Args:       append([]string{"weft"}, args...),
		Env:        append(runtime.Environment(), spec.Env...),
		Dir:        "/",
		Stdout:     r.tail,
		Stderr:     r.tail,
		ExtraFiles: []*os.File{theirs}, // becomes control.FD
		WaitDelay:  50 * time.Millisecond,
		SysProcAttr: &syscall.SysProcAttr{
			Cloneflags: namespaces,
			Pdeathsig:  syscall.SIGKILL,
			Setsid:     true, // Ctrl-C is for the orchestrator, which then ends the lab in order
		},
	}
	if err := r.cmd.Start(); err != nil {
		conn.Close()
		return nil, nil, fmt.Errorf("start: %w", err)
	}
	go func() {
		_ = r.cmd.Wait() // the result is in ProcessState
		close(r.done)
	}()
	return r, conn, nil
}

// exit returns how the process ended. It must have.
func (r *running) exit() *runtime.ExitError {
	e := &runtime.ExitError{Name: r.name, State: "unknown", Stderr: r.tail.String()}
	if s := r.cmd.ProcessState; s != nil {
		e.State = s.String()
	}
	return e
}

// ended waits until all have ended, but no longer than d, and returns those that have not.
func ended(rs []*running, d time.Duration) []*running {
	timer := time.NewTimer(d)
	defer timer.Stop()
	late := false
	var left []*running
	for _, r := range rs {
		if !late {
			select {
			case <-r.done:
			case <-timer.C:
				late = true
			}
		}
		select {
		case <-r.done:
		default:
			left = append(left, r)
		}
	}
	return left
}
