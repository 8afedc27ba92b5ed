package agent

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"weft/collectives/buffer"
	"weft/internal/control"
)

// adopted is a node that its own process has lent to this one.
type adopted struct {
	name    string
	conn    *control.Conn // to the orchestrator
	keeper  *keeper
	sockets []int
}

// adopt reads a node from the message that hands it over. The descriptors are a control connection,
// one to the node's process, and its sockets.
func adopt(m control.Message, fds []int) (a adopted, left int, err error) {
	var how Adopt
	if err := m.Is(KindAdopt, &how); err != nil {
		return a, 0, err
	}
	a.name, a.sockets, a.keeper = how.Name, fds[2:], new(keeper)
	if a.conn, err = control.Of(os.NewFile(uintptr(fds[0]), "control")); err == nil {
		a.keeper.conn, err = control.Of(os.NewFile(uintptr(fds[1]), "keeper"))
	}
	return a, how.Left, err
}

// driveAdopted runs a process that drives several nodes, from the arrival of the first.
func driveAdopted(conn *control.Conn, m control.Message, fds []int, takeOver func(room int64) string) error {
	var lent []adopted
	for {
		a, left, err := adopt(m, fds)
		if err != nil {
			return err
		}
		lent = append(lent, a)
		if left == 0 {
			break
		}
		if m, fds, err = conn.Recv(); err != nil {
			return err
		}
	}
	failed, more, err := 0, true, error(nil)
	for more && err == nil {
		failed, more, err = configure(lent, takeOver)
	}
	if err == nil {
		awaitHangUp(conn)
		return nil
	}
	_ = lent[failed].conn.SendError(err)
	// the orchestrator reports the end here before it closes the nodes' connections, and then ends
	// this process
	awaitHangUp(conn)
	return fmt.Errorf("%s: %w", lent[failed].name, err)
}

// configure makes the nodes and drives them for one experiment. more reports that another one
// follows. On error, failed is the index of the node.
func configure(lent []adopted, takeOver func(room int64) string) (failed int, more bool, err error) {
	nodes, t, shelf, bells := make([]*node, len(lent)), new(tray), new(buffer.Shelf), bells{}
	defer bells.close()
	maxOpen, err := SocketsFor(len(lent))
	if err != nil {
		return 0, false, err
	}
	for i, a := range lent {
		var cfg Config
		fds, err := a.conn.Expect(KindConfigure, &cfg)
		var nic *bypassNIC
		if err == nil {
			nic, err = cfg.open(fds, bells)
		}
		if err != nil {
			return i, false, err
		}
		if nodes[i], err = newNode(cfg, a.conn, a.sockets, nic, a.keeper, maxOpen, t, shelf); err != nil {
			return i, false, err
		}
	}
	failed, err = driveAll(nodes, bells, takeOver)
	return failed, nodes[0].more, err
}

// SocketsFor returns the number of sockets that each of n nodes in a process with this one's limits
// may send from.
func SocketsFor(n int) (int, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("limit of descriptors: %w", err)
	}
	const others = 8 // a generous bound on a node's other descriptors
	share := int(min(limit.Cur, 1<<30))/(n+1) - others
	if share < 1 {
		return 0, fmt.Errorf("%d nodes in a process that may have %d descriptors", n, limit.Cur)
	}
	return min(maxSockets, share), nil
}
