package control

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"weft/internal/quiettest"
)

// accept calls Accept in the background.
func accept(owner int, patience time.Duration) <-chan struct {
	conn *Conn
	err  error
} {
	got := make(chan struct {
		conn *Conn
		err  error
	}, 1)
	go func() {
		c, err := Accept(owner, patience)
		got <- struct {
			conn *Conn
			err  error
		}{c, err}
	}()
	return got
}

// Both sides accept the expected peer, and afterwards nobody listens.
func TestAcceptAndDial(t *testing.T) {
	got := accept(os.Getuid(), quiettest.Patience)
	c, err := Dial(t.Context(), os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	a := <-got
	if a.err != nil {
		t.Fatal(a.err)
	}
	defer a.conn.Close()
	if err := c.SendValue("hello", 7); err != nil {
		t.Fatal(err)
	}
	var n int
	if _, err := a.conn.Expect("hello", &n); err != nil || n != 7 {
		t.Errorf("got %d, %v", n, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Dial(ctx, os.Getpid()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("somebody still listens: %v", err)
	}
}

// A caller other than the owner is disconnected, and does not keep the owner out.
func TestAcceptRefusesStrangers(t *testing.T) {
	got := accept(os.Getuid()+1, 2*time.Second)
	c, err := Dial(t.Context(), os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, _, err := c.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
	if a := <-got; a.conn != nil || a.err == nil || !strings.Contains(a.err.Error(), "nobody took control") {
		t.Errorf("got %v", a.err)
	}
	got = accept(os.Getuid()+1, quiettest.Patience)
	for range maxStrangers {
		c, err := Dial(t.Context(), os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	if a := <-got; !errors.Is(a.err, ErrStranger) {
		t.Errorf("got %v", a.err)
	}
}

// Dial accepts only the process that was started.
func TestDialRefusesStrangers(t *testing.T) {
	l, err := net.Listen("unix", endpoint)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := Dial(t.Context(), 1); !errors.Is(err, ErrStranger) {
		t.Errorf("got %v", err)
	}
}

func TestNobodyCallsInTime(t *testing.T) {
	if _, err := Accept(os.Getuid(), time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}
