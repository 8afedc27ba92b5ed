package machine

import (
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"weft/internal/control"
)

// window is the most of a stream of bytes that has been sent and not written at the other end, in
// bytes. Without it, a stream that nobody reads would fill the connection, which ends when it has
// no room for the time of silence (TCP_USER_TIMEOUT). Ours.
const window = 256 << 10

// kindTook says how much of a stream was written, and makes room for more.
const kindTook = "took"

// took is the body of kindTook.
type took struct {
	Kind  string // of the stream's messages
	Bytes int
}

// outlet sends bytes in messages of a kind. It implements io.Writer.
type outlet struct {
	conn *link
	kind string

	mu   sync.Mutex
	room int
	over bool
	news *sync.Cond // of room and over
}

func newOutlet(conn *link, kind string) *outlet {
	o := &outlet{conn: conn, kind: kind, room: window}
	o.news = sync.NewCond(&o.mu)
	return o
}

// Write sends b, which has at most window bytes, in one message. It waits until there is room.
func (o *outlet) Write(b []byte) (int, error) {
	o.mu.Lock()
	for o.room < len(b) && !o.over {
		o.news.Wait()
	}
	o.room -= len(b)
	over := o.over
	o.mu.Unlock()
	if over {
		return 0, net.ErrClosed
	}
	return len(b), o.conn.SendValue(o.kind, b)
}

// took makes room.
func (o *outlet) took(bytes int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.room = min(window, o.room+max(0, bytes))
	o.news.Broadcast()
}

// end ends a Write that waits, and all later ones.
func (o *outlet) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
	o.news.Broadcast()
}

// outlets are those of a connection.
type outlets []*outlet

// take takes a message of kindTook.
func (all outlets) take(m control.Message) error {
	var t took
	err := m.Decode(&t)
	for _, o := range all {
		if o.kind == t.Kind {
			o.took(t.Bytes)
		}
	}
	return err
}

func (all outlets) end() {
	for _, o := range all {
		o.end()
	}
}

// receive handles messages by their kind until one of the last kind comes, which it decodes into a
// value unless that is nil, or nothing has come for the time of silence.
func receive(conn *link, last string, into any, by map[string]func(control.Message) error) error {
	for {
		_ = conn.SetReadDeadline(time.Now().Add(silence))
		m, fds, err := conn.Recv()
		control.CloseAll(fds)
		switch {
		case err != nil:
			return silent(err)
		case m.Kind == kindHere:
		case by[m.Kind] != nil:
			err = by[m.Kind](m)
		default:
			return m.Is(last, into)
		}
		if err != nil {
			return err
		}
	}
}

// inlet writes the bytes of messages of a kind, while its owner reads on.
type inlet struct {
	conn *link
	kind string
	to   io.Writer // nil: discards
	// failed is called when to takes no more. What comes afterwards is discarded. It may be nil.
	failed func(error)
	done   chan struct{} // closed when all is written

	mu      sync.Mutex
	pending [][]byte
	size    int // of pending, and of what is being written
	over    bool
	news    *sync.Cond // of pending and over
}

func newInlet(conn *link, kind string, to io.Writer, failed func(error)) *inlet {
	i := &inlet{conn: conn, kind: kind, to: to, failed: failed, done: make(chan struct{})}
	i.news = sync.NewCond(&i.mu)
	go i.write()
	return i
}

// take takes the body of a message, or refuses more than was asked for.
func (i *inlet) take(m control.Message) error {
	var b []byte
	if err := m.Decode(&b); err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.size+len(b) > window || len(b) == 0 || i.over {
		return fmt.Errorf("%d bytes of %s came, with %d not written; expected at most %d in all", len(b), i.kind,
			i.size, window)
	}
	i.size += len(b)
	i.pending = append(i.pending, b)
	i.news.Broadcast()
	return nil
}

// end says that nothing more comes.
func (i *inlet) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.over = true
	i.news.Broadcast()
}

// write writes what is pending until the end.
func (i *inlet) write() {
	defer close(i.done)
	to := i.to
	for {
		i.mu.Lock()
		for len(i.pending) == 0 && !i.over {
			i.news.Wait()
		}
		if len(i.pending) == 0 {
			i.mu.Unlock()
			return
		}
		b := i.pending[0]
		i.pending = i.pending[1:]
		i.mu.Unlock()
		if to != nil {
			if _, err := to.Write(b); err != nil {
				to = nil
				if i.failed != nil {
					i.failed(err)
				}
			}
		}
		i.mu.Lock()
		i.size -= len(b)
		i.mu.Unlock()
		_ = i.conn.SendValue(kindTook, took{i.kind, len(b)}) // who reads the connection sees its end
	}
}
