package docker

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"weft/internal/control"
	"weft/nodeimg/boot"
	"weft/orchestrator/runtime"
)

// start creates and starts the container of one process, unless the cluster is being closed. spec
// is nil for the fabric.
func (c *Cluster) start(name string, spec *boot.NodeSpec) (*proc, error) {
	c.slots <- struct{}{}
	defer func() { <-c.slots }()
	if c.Closing() {
		return nil, runtime.ErrClosing
	}
	p := &proc{
		Proc: runtime.Proc{Name: name}, spec: spec, pidfd: -1, tail: runtime.NewTail(name, c.out),
		begun: make(chan struct{}), read: make(chan struct{}), died: make(chan struct{}), gone: make(chan struct{}),
	}
	var err error
	if p.container, p.Report.Notes, err = c.create(c.life, name, spec); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if _, err = c.Start(func() (*proc, error) { return p, nil }); err != nil {
		return nil, err // Close removes it
	}
	pid, pidfd, err := c.startContainer(c.life, p.container)
	p.PID, p.pidfd = pid, pidfd
	close(p.begun)
	if errors.Is(err, errEnded) {
		err = &runtime.EndedError{Proc: &p.Proc, Err: err}
	}
	if err != nil {
		return nil, c.Failed(p, err)
	}
	return p, nil
}

// takeControl wires a process if it is a node, connects to it if dial was not called before, and
// sends its spec with the pipe for its output and the sockets that were opened for it.
func (c *Cluster) takeControl(p *proc, spec any, nice int) error {
	fds := make([]int, 1, 2)
	err := p.Do(func() error {
		if p.spec != nil {
			var sockets []int
			err := c.spec.Around("wire "+p.Name, func() (err error) {
				p.Link, sockets, p.Report.Lacks, err = boot.Wire(p.spec)
				return err
			})
			if err != nil {
				return err
			}
			fds = append(fds, sockets...)
		}
		return c.dial(p)
	})
	defer func() {
		for _, fd := range fds[1:] {
			unix.Close(fd)
		}
	}()
	if err != nil {
		return p.orEnded(err)
	}
	allowRealTime(p.PID)
	if err := boot.Renice(p.PID, nice); err != nil {
		return err
	}
	theirs, err := p.listen()
	if err != nil {
		return err
	}
	defer theirs.Close()
	fds[0] = int(theirs.Fd())
	return c.spec.Around("boot "+p.Name, func() error { return p.Conn.SendValue(boot.KindBoot, spec, fds...) })
}

// orEnded returns err as an *EndedError if the process has exited.
func (p *proc) orEnded(err error) error {
	var gone *runtime.EndedError
	if err != nil && !errors.As(err, &gone) && len(runtime.AwaitExit([]int{p.pidfd}, exitTime)) == 0 {
		return &runtime.EndedError{Proc: &p.Proc, Err: err}
	}
	return err
}

// dial connects to a process unless that was done before. The calling thread is in the process's
// network namespace.
func (c *Cluster) dial(p *proc) error {
	if p.Conn != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.life, bootTime)
	defer cancel()
	go func() { // a process that has ended will never listen
		select {
		case <-p.died:
			cancel()
		case <-ctx.Done():
		}
	}()
	return c.spec.Around("dial "+p.Name, func() error {
		conn, err := control.Dial(ctx, p.PID)
		if err != nil {
			return err
		}
		return c.Connect(p, conn)
	})
}

// listen returns the write end of a pipe that p.tail reads until all copies are closed.
func (p *proc) listen() (theirs *os.File, err error) {
	ours, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	go func() {
		defer close(p.read)
		defer ours.Close()
		_, _ = ours.WriteTo(p.tail) // the pipe ends with the process
	}()
	return theirs, nil
}
