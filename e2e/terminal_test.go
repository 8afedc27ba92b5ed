package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal is the user's side of a pseudo-terminal (pty(7)) that a weft runs at.
type terminal struct {
	*process
	t     testing.TB
	side  *os.File     // ours
	ours  int          // its descriptor
	shown output       // what has appeared on it
	fd    int          // of the side that weft has, to look at its settings
	was   unix.Termios // its settings before weft began
}

// startAtTerminal starts weft at a terminal of the given size.
func (d *workspace) startAtTerminal(rows, columns uint16, args ...string) *terminal {
	d.t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		d.t.Skip(err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		d.t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		d.t.Fatal(err)
	}
	theirs, err := os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { theirs.Close() })
	if err := unix.SetNonblock(fd, true); err != nil { // so that closing it ends a read
		d.t.Fatal(err)
	}
	x := &terminal{t: d.t, side: os.NewFile(uintptr(fd), "terminal"), ours: fd, fd: int(theirs.Fd())}
	x.resize(rows, columns)
	x.was = x.settings()
	cmd := d.command(args...)
	cmd.Stdin = theirs
	cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Setctty = true, true
	p := &process{t: d.t, cmd: cmd, done: make(chan struct{}), began: time.Now()}
	cmd.Stdout, cmd.Stderr = theirs, theirs
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait() // how it ended is in ProcessState
		p.took = time.Since(p.began)
		close(p.done)
	}()
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := x.side.Read(b)
			_, _ = x.shown.Write(b[:n])
			if err != nil {
				return
			}
		}
	}()
	d.t.Cleanup(func() { _ = cmd.Process.Kill(); <-p.done; x.side.Close() })
	x.process = p
	return x
}

// resize changes the size of the terminal.
func (x *terminal) resize(rows, columns uint16) {
	x.t.Helper()
	if err := unix.IoctlSetWinsize(x.ours, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns}); err != nil {
		x.t.Fatal(err)
	}
}

// typeKeys sends keys to weft.
func (x *terminal) typeKeys(keys string) {
	x.t.Helper()
	if _, err := x.side.WriteString(keys); err != nil {
		x.t.Fatal(err)
	}
}

// awaitText waits until a text has appeared, and forgets everything up to it.
func (x *terminal) awaitText(want string) {
	x.t.Helper()
	if what := eventually(patience, func() string {
		if strings.Contains(x.shown.String(), want) {
			return ""
		}
		return fmt.Sprintf("%q did not appear, but %q", want, x.shown.String())
	}); what != "" {
		x.t.Fatal(what)
	}
	x.shown.mu.Lock()
	defer x.shown.mu.Unlock()
	_, rest, _ := strings.Cut(x.shown.b.String(), want)
	x.shown.b.Reset()
	x.shown.b.WriteString(rest)
}

// settings returns the terminal's settings.
func (x *terminal) settings() unix.Termios {
	x.t.Helper()
	s, err := unix.IoctlGetTermios(x.fd, unix.TCGETS)
	if err != nil {
		x.t.Fatal(err)
	}
	return *s
}

const ctrlC = "\x03"

// A shell in a node has the terminal of whoever runs it: its size, Ctrl-C, and what is typed goes
// nowhere else. Afterwards the terminal is as it was.
func TestPrivShellInANode(t *testing.T) {
	for _, runtime := range []string{"namespace", "docker"} {
		t.Run(runtime, func(t *testing.T) {
			if runtime == "docker" {
				needDocker(t)
			}
			d := newWorkspace(t).withState()
			d.run("deploy", d.writeLab("lab.yaml", byHand), "--runtime", runtime).wantCode(0)
			x := d.startAtTerminal(33, 101, "exec", "h0", "--", "sh")
			x.typeKeys("stty size; echo PS1=$((6*7)) $(hostname)\r")
			x.awaitText("33 101")
			x.resize(20, 80)
			x.typeKeys("until test \"$(stty size)\" = '20 80'; do sleep 0.1; done; echo re''sized\r")
			x.awaitText("resized")
			x.typeKeys("sleep 100\r")
			if what := eventually(patience, func() string {
				if d.run("exec", "h0", "--", "pgrep", "-x", "sleep").code != 0 {
					return "the program does not run"
				}
				return ""
			}); what != "" {
				t.Fatal(what)
			}
			x.typeKeys(ctrlC)
			x.typeKeys("echo still $((40+2))\r")
			x.awaitText("still 42")
			x.typeKeys("exit 7\r")
			if r := x.wait(); r.code != 7 {
				t.Errorf("exit code %d", r.code)
			}
			if after := x.settings(); after != x.was {
				t.Errorf("the terminal was left as %+v, it was %+v", after, x.was)
			}
		})
	}
}

// Whoever closes the terminal ends what runs at it: a program in a node, and not the lab.
func TestPrivTerminalIsClosed(t *testing.T) {
	d := deployed(t, byHand)
	x := d.startAtTerminal(24, 80, "exec", "h0", "--", "sh")
	x.typeKeys("sleep 4321\r")
	runs := func() bool { return d.run("exec", "h0", "--", "pgrep", "-f", "sleep 4321").code == 0 }
	if what := eventually(patience, func() string {
		if !runs() {
			return "the program does not run"
		}
		return ""
	}); what != "" {
		t.Fatal(what)
	}
	x.side.Close()
	x.wait()
	if what := eventually(patience, func() string {
		if runs() {
			return "the program still runs"
		}
		return ""
	}); what != "" {
		t.Error(what)
	}
	if s := d.inspect(); s.Broken != "" {
		t.Error(s.Broken)
	}
}

// A run and a deployment whose terminal is closed leave nothing, in both runtimes.
func TestPrivTerminalOfARunIsClosed(t *testing.T) {
	for _, runtime := range []string{"namespace", "docker"} {
		t.Run(runtime, func(t *testing.T) {
			if runtime == "docker" {
				needDocker(t)
			}
			before := takeTraces(t)
			d := newWorkspace(t).withState()
			d.run("clean") // empty control groups of labs that other tests killed
			for _, args := range [][]string{
				{"run", d.writeLab("long.yaml", long), "--engine", "emu", "--dilation", "1000", "--runtime", runtime},
				{"deploy", d.writeLab("lab.yaml", byHand), "--runtime", runtime},
			} {
				for _, after := range []time.Duration{0, 100 * time.Millisecond, 700 * time.Millisecond} {
					_ = os.RemoveAll(filepath.Join(d.dir, "runs"))
					_ = os.RemoveAll(filepath.Join(d.dir, "state"))
					x := d.startAtTerminal(24, 80, args...)
					// before it makes anything the signal may end it as it ends any program
					if what := eventually(10*time.Minute, func() string {
						for _, dir := range []string{"runs", "state"} {
							if made, _ := os.ReadDir(filepath.Join(d.dir, dir)); len(made) > 0 {
								return ""
							}
						}
						return "it makes nothing"
					}); what != "" {
						t.Fatalf("%s: %s\n%s", args[0], what, x.shown.String())
					}
					<-time.After(after)
					x.side.Close()
					if r := x.wait(); r.code == 0 && args[0] == "deploy" { // it was faster
						d.run("destroy").wantCode(0)
					} else if r.code != 130 {
						t.Errorf("%s, terminal closed after %v: exit code %d (%v)", args[0], after, r.code, r.signal)
					}
					if r := d.run("clean").wantCode(0); !r.foundNothing() {
						t.Errorf("%s, terminal closed after %v: clean found %s", args[0], after, r.stdout)
					}
				}
			}
			if runtime == "docker" {
				checkNoContainers(t, "long")
				checkNoContainers(t, "by-hand")
			}
			before.nothingLeft(t, nil, wait)
		})
	}
}

// A second Ctrl-C ends weft at once; what a program in a node or a supervisor had begun ends all
// the same.
func TestPrivSecondCtrlC(t *testing.T) {
	d := deployed(t, byHand)
	p := d.start("exec", "h0", "--", "sh", "-c", `trap "" TERM INT; echo deaf; while :; do sleep 0.1; done`)
	p.awaitOutput(&p.stdout, "deaf")
	p.signal(syscall.SIGINT)
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	if r := p.wait(); r.code != 130 && r.signal != syscall.SIGINT {
		t.Errorf("exit code %d, signal %v", r.code, r.signal)
	}
	if what := eventually(patience, func() string {
		if d.run("exec", "h0", "--", "pgrep", "-f", "echo deaf").code == 0 {
			return "a program that is deaf to signals still runs"
		}
		return ""
	}); what != "" {
		t.Error(what)
	}
	d.run("destroy").wantCode(0)
	for _, after := range []time.Duration{30 * time.Millisecond, 120 * time.Millisecond, 250 * time.Millisecond} {
		p := d.start("deploy", "lab.yaml")
		<-time.After(after)
		_ = p.cmd.Process.Signal(syscall.SIGINT) // it may be up and weft have ended
		_ = p.cmd.Process.Signal(syscall.SIGINT)
		if r := p.wait(); r.code != 0 && r.code != 130 && r.signal != syscall.SIGINT {
			t.Errorf("after %v: exit code %d: %s", after, r.code, r.stderr)
		}
		d.run("destroy").wantCode(0)
		if r := d.run("clean").wantCode(0); !r.foundNothing() {
			t.Logf("after %v: clean found %s", after, r.stdout)
		}
	}
}
