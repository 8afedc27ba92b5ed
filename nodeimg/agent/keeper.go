package agent

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/control"
)

// A node whose agent runs in another process, together with those of other nodes, keeps a process
// of its own. It lent the agent its sockets, opens more for it, and reports that it is alive. When
// it ends, its agent stops.

// Messages between a node's agent and its keeper. The answer has the same kind, or is
// control.KindError.
const (
	kindOpen  = "open"  // []socketSpec; the answer has as many descriptors
	kindDrops = "drops" // empty; the answer is the number of interfaceDrops
)

// lend hands the sockets of a node to the process that will drive it, and keeps the node until the
// orchestrator ends it.
func lend(conn *control.Conn, sockets []int) error {
	mine, theirs, err := control.Pair()
	if err != nil {
		return err
	}
	defer mine.Close()
	err = conn.SendValue(KindLent, nil, append([]int{int(theirs.Fd())}, sockets...)...)
	control.CloseAll(sockets)
	if err := errors.Join(err, theirs.Close()); err != nil {
		return err
	}
	over := make(chan error, 2)
	go func() {
		if err := keep(mine); err != nil { // the end of the agent does not end the node
			over <- err
		}
	}()
	go func() {
		// the orchestrator sends nothing more: this waits for its end
		_, _, err := conn.Recv()
		over <- unlessOver(err)
	}()
	alive := time.NewTicker(keeperAlive)
	defer alive.Stop()
	for {
		select {
		case err := <-over:
			return err
		case <-alive.C:
			if err := conn.SendValue(KindAlive, nil); err != nil {
				return unlessOver(err)
			}
		}
	}
}

// keeperAlive is the real time between two reports of a keeper.
const keeperAlive = 500 * time.Millisecond

// keep serves the requests of the node's agent until the agent is gone.
func keep(agent *control.Conn) error {
	for {
		m, _, err := agent.Recv()
		if err != nil {
			return unlessOver(err)
		}
		if err := answer(agent, m); err != nil {
			return err
		}
	}
}

// unlessOver returns err, or nil if the other end of the connection is gone: the lab has ended.
func unlessOver(err error) error {
	if control.Gone(err) {
		return nil
	}
	return err
}

// answer serves one request. It returns an error of the connection only.
func answer(agent *control.Conn, m control.Message) error {
	switch m.Kind {
	case kindDrops:
		return agent.SendValue(kindDrops, interfaceDrops())
	case kindOpen:
		var want []socketSpec
		if err := m.Decode(&want); err != nil {
			return err
		}
		var fds []int
		defer func() {
			control.CloseAll(fds)
		}()
		for i := range want {
			fd, err := want[i].open()
			if err != nil {
				return agent.SendError(err)
			}
			fds = append(fds, fd)
		}
		return agent.SendValue(kindOpen, nil, fds...)
	}
	return fmt.Errorf("%q was not expected", m.Kind)
}

// keeper is the agent's end of the connection to its node.
type keeper struct{ conn *control.Conn }

// open opens sockets in the node, at most control.MaxFDs.
func (k *keeper) open(want []socketSpec) ([]int, error) {
	if err := k.conn.SendValue(kindOpen, want); err != nil {
		return nil, err
	}
	fds, err := k.conn.Expect(kindOpen, nil)
	if err != nil {
		return nil, err
	}
	for _, fd := range fds {
		if err := unix.SetNonblock(fd, true); err != nil {
			return nil, err
		}
	}
	return fds, nil
}

// drops returns the number of frames that the node's interfaces dropped.
func (k *keeper) drops() (n int64) {
	if k.conn.SendValue(kindDrops, nil) != nil {
		return 0
	}
	if _, err := k.conn.Expect(kindDrops, &n); err != nil {
		return 0
	}
	return n
}
