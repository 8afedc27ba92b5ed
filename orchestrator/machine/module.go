package machine

import (
	"context"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"weft/internal/cleanup"
	"weft/internal/control"
	"weft/nodeimg/agent"
	"weft/orchestrator/emulate"
)

// module announces the file with the congestion control of a run, which its nodes get with their
// configuration: agent.Module describes it.
type module struct {
	Run  string
	Size int
}

// kindPiece is the kind of messages with the bytes of a module: []byte, at most pieceSize.
const (
	kindPiece = "piece"
	pieceSize = 1 << 20
)

// share sends the module to the agent, once: all nodes of a run have the same.
func (c *cluster) share(fd int) error {
	c.sharing.Do(func() { c.unshared = c.sendModule(fd) })
	return c.unshared
}

func (c *cluster) sendModule(fd int) error {
	var about unix.Stat_t
	if err := unix.Fstat(fd, &about); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	if about.Size > agent.MaxModule {
		return fmt.Errorf("a module of %d bytes; expected at most %d", about.Size, agent.MaxModule)
	}
	conn, err := dial(context.Background(), c.addr, c.config, kindModule, module{c.run, int(about.Size)})
	if err != nil {
		return err
	}
	defer conn.Close()
	b := make([]byte, pieceSize)
	for at := int64(0); at < about.Size; {
		n, err := unix.Pread(fd, b, at)
		if err == nil && n == 0 {
			err = io.ErrUnexpectedEOF
		}
		if err == nil {
			err = conn.SendValue(kindPiece, b[:n])
		}
		if err != nil {
			return fmt.Errorf("module: %w", err)
		}
		at += int64(n)
	}
	_, err = nextWithin(conn, kindUp, launchSilence)
	return err
}

// module takes the module of a run.
func (a *Agent) module(conn *link, m module) error {
	p, err := a.find(m.Run)
	if err != nil {
		return err
	}
	if m.Size <= 0 || m.Size > agent.MaxModule {
		return fmt.Errorf("a module of %d bytes; expected at most %d", m.Size, agent.MaxModule)
	}
	var all []byte // grows with what has come
	for len(all) < m.Size {
		next, err := next(conn, kindPiece)
		if err != nil {
			return err
		}
		var piece []byte
		if err := next.Decode(&piece); err != nil {
			return err
		}
		if len(piece) == 0 || len(all)+len(piece) > m.Size {
			return fmt.Errorf("a module of %d bytes came with %d", m.Size, len(all)+len(piece))
		}
		all = append(all, piece...)
	}
	f, err := emulate.Sealed("module", all)
	if err != nil {
		return err
	}
	if err := p.lend(agent.KindConfigure, f); err != nil {
		return err
	}
	return cleanup.Join(conn.SendValue(kindUp, nil), conn.Close())
}

// lend keeps what goes with messages of a kind to processes here.
func (p *part) lend(kind string, f *os.File) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lent == nil {
		f.Close()
		return errEnded
	}
	if old := p.lent[kind]; old != nil {
		old.Close() // no message took it
	}
	p.lent[kind] = f
	return nil
}

// with returns a copy of what goes with a message. It is forgotten with keep false.
func (p *part) with(m control.Message, keep bool) ([]int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.lent[m.Kind]
	if f == nil {
		return nil, nil
	}
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if !keep {
		delete(p.lent, m.Kind)
		f.Close()
	}
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return []int{fd}, nil
}
