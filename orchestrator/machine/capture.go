package machine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/control"
	"weft/orchestrator/capture"
	"weft/realtime"
)

// Frames that a fabric process captures cross in the order of their capture, as far as the reader
// takes them: the process drops the rest and counts them, as it does without another machine.

// tap asks for the frames that the fabric process captures at the next request.
type tap struct{ Run string }

// kindRecords is the kind of messages with captured frames: []byte, records of realtime.Captured
// with their lengths before them (4 bytes, big endian).
const kindRecords = "records"

// capture connects a socket of this machine with what the fabric process of the other one captures
// at the next request. The descriptor stays the caller's.
func (c *cluster) capture(socket int) error {
	fd, err := unix.FcntlInt(uintptr(socket), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true) // so that closing it ends a read
	}
	if err != nil {
		return fmt.Errorf("capture: %w", err)
	}
	to := os.NewFile(uintptr(fd), "capture")
	conn, err := dial(context.Background(), c.addr, c.config, kindTap, tap{c.run})
	if err == nil {
		if _, err = next(conn, kindUp); err != nil {
			conn.Close()
		}
	}
	if err != nil {
		to.Close()
		return fmt.Errorf("capture on %s: %w", c.name, err)
	}
	c.captures.Go(func() { c.copyRecords(conn, to) })
	return nil
}

// copyRecords writes captured frames to a socket until either end closes. If the connection is lost
// its machine is: the socket then stays open until the session has ended and says so.
func (c *cluster) copyRecords(conn *link, to *os.File) {
	defer to.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go heartbeats(ctx, conn)
	go func() {
		_, _ = to.Read(make([]byte, 1)) // nothing comes: it waits for the end of the reader
		cancel()
		conn.Close()
	}()
	all := &records{to: to}
	go func() {
		select {
		case <-c.ended:
			all.hurry()
		case <-ctx.Done():
		}
	}()
	defer context.AfterFunc(c.whole, func() { conn.Close() })()
	in := newInlet(conn, kindRecords, all, func(error) { conn.Close() })
	err := receive(conn, kindEnded, nil, map[string]func(control.Message) error{kindRecords: in.take})
	in.end()
	if err == nil {
		<-in.done
	} else if ctx.Err() == nil {
		select {
		case <-c.ended:
		case <-c.whole.Done():
		case <-time.After(silence):
		}
	}
	conn.Close()
}

// records writes each of several records to a socket. It implements io.Writer.
type records struct {
	to *os.File

	mu    sync.Mutex
	since time.Time // of the last Write to the socket
	ends  bool      // see hurry
}

// hurry is called when the lab ends. A reader that takes no record for the time of silence is not
// waited for any longer.
func (r *records) hurry() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ends = true
	_ = r.to.SetWriteDeadline(r.since.Add(silence))
}

// next notes that a record is about to be written.
func (r *records) next() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.since = time.Now(); r.ends {
		_ = r.to.SetWriteDeadline(r.since.Add(silence))
	}
}

func (r *records) Write(b []byte) (n int, err error) {
	for len(b) > 0 && err == nil {
		size := 0
		if len(b) >= 4 {
			size = int(binary.BigEndian.Uint32(b))
		}
		if size == 0 || size > min(len(b)-4, capture.MaxRecord) {
			return n, errors.New("captured frames are cut short")
		}
		r.next()
		_, err = r.to.Write(b[4 : 4+size])
		n, b = n+4+size, b[4+size:]
	}
	return n, err
}

// tap sends what the fabric process captures at the next request, until that ends or the connection
// does.
func (a *Agent) tap(ctx context.Context, conn *link, t tap) error {
	p, err := a.find(t.Run)
	if err != nil {
		return err
	}
	ours, theirs, err := capture.Messages()
	if err != nil {
		return err
	}
	defer ours.Close()
	if err := p.lend(realtime.KindCapture, theirs); err != nil {
		return err
	}
	if err := conn.SendValue(kindUp, nil); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go heartbeats(ctx, conn)
	out, gone := newOutlet(conn, kindRecords), make(chan struct{})
	go func() {
		defer close(gone)
		_ = receive(conn, "", nil, map[string]func(control.Message) error{kindTook: outlets{out}.take})
		out.end()
		ours.Close() // the fabric process stops copying
	}()
	raw, err := ours.SyscallConn()
	if err != nil {
		return err
	}
	for b, over := make([]byte, window), false; !over; {
		n := 0
		if n, over, err = readRecords(raw, b); err != nil {
			return err
		}
		if n > 0 {
			if _, err := out.Write(b[:n]); err != nil {
				return err
			}
		}
	}
	err = conn.SendValue(kindEnded, nil)
	<-gone // a connection that is closed with unread messages may lose what was sent
	return errors.Join(err, conn.Close())
}

// readRecords waits for a record and reads it with those that are there, each with its length
// before it, as far as b has room. over says that no more come.
func readRecords(raw syscall.RawConn, b []byte) (n int, over bool, err error) {
	failed := raw.Read(func(fd uintptr) bool {
		for !over && len(b)-n >= 4+capture.MaxRecord {
			size, err := unix.Read(int(fd), b[n+4:n+4+capture.MaxRecord])
			switch {
			case errors.Is(err, unix.EINTR):
			case errors.Is(err, unix.EAGAIN):
				return n > 0
			case err != nil || size == 0:
				over = true
			default:
				binary.BigEndian.PutUint32(b[n:], uint32(size))
				n += 4 + size
			}
		}
		return true
	})
	return n, over, failed
}
