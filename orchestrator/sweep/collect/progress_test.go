package collect

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"weft/orchestrator/sweep"
)

// pipes is a network of pipes to one listener, whose time is that of a test.
type pipes struct {
	came   chan net.Conn
	closed chan struct{}
	dials  int
	change func(n int, c net.Conn) net.Conn // changes the client's end of connection n, from 1; nil: none
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.came:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	p.came <- theirs
	if p.dials++; p.change != nil {
		ours = p.change(p.dials, ours)
	}
	return ours, nil
}

// overPipes runs body with a task and its collector in a bubble of time.
func overPipes(t *testing.T, p *pipes, body func(t *testing.T, s *server, r *Remote)) {
	synctest.Test(t, func(t *testing.T) {
		p.came, p.closed = make(chan net.Conn), make(chan struct{})
		own, keys, err := makeKeys(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		s, err := newServer(newDir(t), 1, func(why string) {
			if why != "" {
				t.Error(why)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		web := s.http()
		if web.TLSConfig, err = config(own); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() { ended <- web.ServeTLS(p, "", "") }()
		secure, err := config(keys)
		if err != nil {
			t.Fatal(err)
		}
		r, err := dial(t.Context(), "collector", "", filepath.Join(t.TempDir(), "work"), func(string) {}, secure, p.dial)
		if err != nil {
			t.Fatal(err)
		}
		body(t, s, r)
		if err := errors.Join(r.Close(), web.Close()); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

// sendBig sends a file of size bytes of a try, and returns how long that took.
func sendBig(t *testing.T, s *server, r *Remote, size int) time.Duration {
	id := beginTry(t, r, 0)
	file := filepath.Join(t.TempDir(), "big")
	if err := os.WriteFile(file, []byte(strings.Repeat("x", size)), 0o644); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := r.send(t.Context(), id, file, "big"); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	work, err := s.d.Work(id)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(work, "big")); err != nil || info.Size() != int64(size) {
		t.Error(info, err)
	}
	return took
}

// lossy swallows what is sent after a number of bytes, like a machine that is gone without a word.
type lossy struct {
	net.Conn
	left int
}

func (l *lossy) Write(b []byte) (int, error) {
	if l.left -= len(b); l.left < 0 {
		return len(b), nil
	}
	return l.Conn.Write(b)
}

// A request on a connection that carries nothing any more is repeated on another.
func TestSilentConnection(t *testing.T) {
	p := &pipes{change: func(n int, c net.Conn) net.Conn {
		if n == 1 {
			return &lossy{c, 1 << 20}
		}
		return c
	}}
	overPipes(t, p, func(t *testing.T, s *server, r *Remote) {
		// The collector has the try until its end of the connection has been silent as long.
		took := sendBig(t, s, r, maxPiece)
		if t.Logf("%v, %d connections", took, p.dials); took < lostTime || took > lostTime+2*maxWait {
			t.Errorf("it took %v", took)
		}
	})
}

// slow takes almost the limit for each write.
type slow struct {
	net.Conn
	on atomic.Bool
}

func (s *slow) Write(b []byte) (int, error) {
	if s.on.Load() {
		time.Sleep(lostTime - time.Second) // of the bubble
	}
	return s.Conn.Write(b)
}

// A slow request is sent once, however long it takes.
func TestSlowConnection(t *testing.T) {
	var c slow
	p := &pipes{change: func(_ int, end net.Conn) net.Conn {
		c.Conn = end
		return &c
	}}
	overPipes(t, p, func(t *testing.T, s *server, r *Remote) {
		c.on.Store(true) // after the handshake, which has a limit of its own
		took := sendBig(t, s, r, maxPiece/16)
		if t.Logf("%v, %d connections", took, p.dials); p.dials != 1 || took < 5*lostTime {
			t.Errorf("it took %v and %d connections", took, p.dials)
		}
	})
}

// A collector that checks a run for long says so, and is not asked again.
func TestLongCheck(t *testing.T) {
	p := &pipes{}
	overPipes(t, p, func(t *testing.T, s *server, r *Remote) {
		id := beginTry(t, r, 0)
		for range cap(s.placing) {
			s.placing <- struct{}{}
		}
		const long = 10 * time.Minute
		time.AfterFunc(long, func() {
			for range cap(s.placing) {
				<-s.placing
			}
		})
		began := time.Now()
		err := r.Place(t.Context(), id, sweep.Try{}, t.TempDir())
		if took := time.Since(began); took != long || p.dials != 1 || codeOf(err) != http.StatusUnprocessableEntity {
			t.Errorf("%v after %v and %d connections", err, took, p.dials)
		}
	})
}
