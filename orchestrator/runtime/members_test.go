package runtime

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/control"
	"weft/nodeimg/boot"
)

// member is a process that ends when Kill is called.
type member struct {
	Proc
	ended chan struct{}
}

func (p *member) Ended() <-chan struct{} { return p.ended }
func (p *member) Exit() *ExitError       { return &ExitError{Name: p.Name, State: "it was told to"} }
func (p *member) Kill() error            { close(p.ended); return nil }

// newMembers returns a lab of two hosts, and a function that starts a process of it.
func newMembers(t *testing.T) (m *Members[*member], start func(name string) *member) {
	t.Helper()
	m = NewMembers[*member](&Spec{Nodes: make([]boot.NodeSpec, 2)})
	return m, func(name string) *member {
		t.Helper()
		ours, theirs, err := control.Pair()
		if err != nil {
			t.Fatal(err)
		}
		theirs.Close()
		p, err := m.Start(func() (*member, error) {
			return &member{Proc{Name: name, Conn: ours}, make(chan struct{})}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
}

// A host that is restarted is a new process: Find returns it once it was started, Named and Node
// once Set was called.
func TestMembersAfterRestart(t *testing.T) {
	m, start := newMembers(t)
	defer m.HangUp()
	first := start("h0")
	m.Set(Host, 0, first)
	if _, err := m.Dead(0); err == nil {
		t.Error("a host that is alive counts as dead")
	}
	if err := m.Kill(0); err != nil || m.Find("h0") != nil || m.Named("h0") != first {
		t.Errorf("%v; found %v, named %v", err, m.Find("h0"), m.Named("h0"))
	}
	if err := m.Kill(0); !errors.Is(err, ErrNoNode) {
		t.Errorf("killed again: %v", err)
	}
	if old, err := m.Dead(0); err != nil || old != first {
		t.Errorf("%v, %v", old, err)
	}
	second := start("h0")
	if m.Find("h0") != &second.Proc || m.Named("h0") != first {
		t.Errorf("before it is the host: found %v, named %v", m.Find("h0"), m.Named("h0"))
	}
	m.Set(Host, 0, second)
	if p, err := m.Alive(0); err != nil || p != second || m.Node(0) != &second.Proc {
		t.Errorf("%v, %v", p, err)
	}
	if m.Fabric() != nil || m.Named("h1") != nil {
		t.Error("there is what was not started")
	}
}

// A broken connection is reported as the end of its process, any other error with the process's
// name.
func TestMembersNameTheFailedProcess(t *testing.T) {
	m, start := newMembers(t)
	defer m.HangUp()
	p := start("h0")
	close(p.ended)
	for _, gone := range []error{io.EOF, unix.EPIPE, unix.ECONNRESET} {
		var exit *ExitError
		if err := m.Failed(p, gone); !errors.As(err, &exit) || exit.Name != "h0" {
			t.Errorf("%v: got %v", gone, err)
		}
	}
	if err := m.Failed(p, errors.New("no memory")); err == nil || err.Error() != "h0: no memory" {
		t.Errorf("got %v", err)
	}
	if err := m.Failed(p, nil); err != nil {
		t.Error(err)
	}
}

// An operation on a process whose namespaces are gone is reported as its end, however late that is
// known, and so are cables to a node that has ended.
func TestMembersNameTheEndedProcess(t *testing.T) {
	m, start := newMembers(t)
	defer m.HangUp()
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	dead := gone.Process.Pid // free again
	cable := []boot.Cable{{A: boot.CableEnd{Node: "h0", Interface: "a"}, B: boot.CableEnd{Node: "h1", Interface: "b"}}}
	for name, fails := range map[string]func(p *member) error{
		"do":    func(p *member) error { return m.Failed(p, p.Do(func() error { t.Error("done"); return nil })) },
		"cable": func(*member) error { return m.Plug(cable) },
		"ended before": func(p *member) error {
			<-p.ended
			return m.Plug(cable)
		},
	} {
		h0, h1 := start("h0"), start("h1")
		h0.PID, h1.PID = os.Getpid(), dead
		time.AfterFunc(50*time.Millisecond, func() { close(h1.ended) })
		var exit *ExitError
		if err := fails(h1); !errors.As(err, &exit) || exit.Name != "h1" {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// Once the lab is being closed, nothing is started, found or reported.
func TestMembersAfterHangUp(t *testing.T) {
	m, start := newMembers(t)
	p := start("h0")
	m.Set(Host, 0, p)
	m.Report(Exit{Name: "h0"})
	m.HangUp()
	m.HangUp()
	m.Report(Exit{Name: "h1"})
	if err := p.Conn.SendValue("anything", nil); err == nil {
		t.Error("its connection is open")
	}
	if _, err := m.Start(func() (*member, error) { t.Error("it is started"); return nil, nil }); !errors.Is(err, ErrClosing) {
		t.Errorf("got %v", err)
	}
	if _, err := m.Alive(0); !errors.Is(err, ErrNoNode) || m.Find("h0") != nil || m.Named("h0") != nil {
		t.Errorf("it is alive: %v", err)
	}
	m.CloseExits()
	var told []string
	for e := range m.Exits() {
		told = append(told, e.Name)
	}
	if !slices.Equal(told, []string{"h0"}) {
		t.Errorf("told %v", told)
	}
}

// A launch that fails ends the lab and returns its error, one that is cancelled the context's; and
// a lab ends with the context of its launch.
func TestMembersAreLaunched(t *testing.T) {
	cause := errors.New("no memory")
	for name, c := range map[string]struct {
		boot      error
		interrupt bool
		want      error
	}{
		"well": {}, "fails": {boot: cause, want: cause}, "interrupted": {boot: cause, interrupt: true, want: context.Canceled},
	} {
		m, _ := newMembers(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		err := m.Launch(ctx, func(*Boot) error {
			if c.interrupt {
				cancel()
			}
			return c.boot
		}, func() error { close(ended); return nil })
		cancel()
		<-ended
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
