package emulate

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/clocksync/labtime"
	"weft/internal/clock"
	"weft/internal/quiettest"
	"weft/internal/stalls"
	"weft/orchestrator/runtime"
	"weft/results/record"
	"weft/units"
)

// What a host sends to itself is no use of the lab's network: a run of one host is not judged by
// how long its tasks waited for a processor.
func TestLoopbackIsNoUseOfTheNetwork(t *testing.T) {
	const dev = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 918230    5012    0    0    0     0          0         0   918230    5012    0    0    0     0       0          0
  eth0:   4284      17    0    0    0     0          0         0     8568      25    0    0    0     0       0          0
`
	if n := linkPackets(dev); n != 42 {
		t.Errorf("%d packets, want 17 received and 25 sent", n)
	}
}

// A look finds a process of a program that was stopped, also a child, and that this process
// itself was.
func TestLooksFindStoppedPrograms(t *testing.T) {
	cmd := exec.Command("sh", "-c", "sleep 1000 & echo $!; wait")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var child int
	if _, err := fmt.Fscan(out, &child); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = unix.Kill(child, unix.SIGKILL)
		_ = cmd.Wait()
	})
	begin := time.Now()
	looks := tasks{roots: []int{cmd.Process.Pid}}
	look := func(after, own time.Duration) { looks.look(begin.Add(after), own) }
	signal := func(s unix.Signal, stopped bool) {
		t.Helper()
		if err := unix.Kill(child, s); err != nil {
			t.Fatal(err)
		}
		quiettest.Await(t, func() error {
			if runtime.Stopped(child) != stopped {
				return fmt.Errorf("after %v it is stopped: %t", s, !stopped)
			}
			return nil
		})
	}
	look(0, 0)
	look(lookEvery, 0)
	signal(unix.SIGSTOP, true)
	look(2*lookEvery, 0)
	look(3*lookEvery, 0)
	signal(unix.SIGCONT, false)
	look(4*lookEvery, 0)
	look(20*lookEvery, 5*lookEvery)
	look(30*lookEvery, 15*lookEvery) // it waited for a processor, as programs may
	lab := func(from, to time.Duration) []stalls.Span {
		return []stalls.Span{{From: units.FromDuration(from), To: units.FromDuration(to)}}
	}
	if got, want := looks.seen.Stood.Spans, lab(lookEvery, 3*lookEvery); !slices.Equal(got, want) {
		t.Errorf("stood %v, want %v", got, want)
	}
	if got, want := looks.seen.Unseen.Spans, lab(10*lookEvery, 20*lookEvery); !slices.Equal(got, want) {
		t.Errorf("unseen %v, want %v", got, want)
	}
}

// A program that a debugger or the freezer stops stood as well. One in the freezer of cgroup v1 is
// as one that waits for a disk: what tells is that it stays.
func TestLooksFindHeldPrograms(t *testing.T) {
	freezer := filepath.Join("/sys/fs/cgroup/freezer", fmt.Sprintf("weft-test-%d", os.Getpid()))
	freeze := func(t *testing.T, state string) {
		if err := os.WriteFile(filepath.Join(freezer, "freezer.state"), []byte(state), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, hold := range map[string]func(t *testing.T, pid int) (release func()){
		"debugger": func(t *testing.T, pid int) func() {
			err := unix.PtraceSeize(pid)
			if err == nil {
				err = unix.PtraceInterrupt(pid)
			}
			if errors.Is(err, unix.EPERM) {
				t.Skip("this user may trace no process")
			}
			if err != nil {
				t.Fatal(err)
			}
			var status unix.WaitStatus
			if _, err := unix.Wait4(pid, &status, unix.WALL, nil); err != nil {
				t.Fatal(err)
			}
			return func() {
				if err := unix.PtraceDetach(pid); err != nil {
					t.Error(err)
				}
			}
		},
		"freezer": func(t *testing.T, pid int) func() {
			if err := os.Mkdir(freezer, 0o700); err != nil {
				t.Skipf("no freezer of cgroup v1: %v", err)
			}
			err := os.WriteFile(filepath.Join(freezer, "cgroup.procs"), fmt.Append(nil, pid), 0o600)
			if err != nil {
				_ = os.Remove(freezer)
				t.Fatal(err)
			}
			freeze(t, "FROZEN")
			return func() { freeze(t, "THAWED") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			goruntime.LockOSThread() // a tracer is a thread, and each subtest a goroutine
			defer goruntime.UnlockOSThread()
			cmd := exec.Command("sleep", "1000")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			pid := cmd.Process.Pid
			defer func() {
				_ = unix.Kill(pid, unix.SIGKILL)
				_ = cmd.Wait()
				_ = os.Remove(freezer)
			}()
			begin := time.Now()
			looks := tasks{roots: []int{pid}}
			release := hold(t, pid)
			quiettest.Await(t, func() error {
				if !runtime.Stopped(pid) && !runtime.Uninterruptible(pid) {
					return errors.New("it is not held")
				}
				return nil
			})
			for i := range time.Duration(4) {
				looks.look(begin.Add(i*lookEvery), 0)
			}
			release()
			quiettest.Await(t, func() error {
				if runtime.Stopped(pid) || runtime.Uninterruptible(pid) {
					return errors.New("it is held")
				}
				return nil
			})
			looks.look(begin.Add(4*lookEvery), 0)
			want := []stalls.Span{{From: 0, To: units.FromDuration(3 * lookEvery)}}
			if got := looks.seen.Stood.Spans; !slices.Equal(got, want) {
				t.Errorf("stood %v, want %v", got, want)
			}
		})
	}
}

// A program that stood, here or on another machine, makes a run not ok, by name, in lab time.
func TestStoppedProgramsCount(t *testing.T) {
	const dilation = 1000
	begun := time.Now()
	r := &run{session: &session{x: &Experiment{Dilation: dilation, BaseRTT: 10 * units.Microsecond}}, outcome: &Outcome{}}
	r.scale = labtime.Scale{T0: clock.Monotonic() - int64(time.Since(begun)), Dilation: dilation}
	s := sightings{begun: begun}
	s.Stood.Least, s.Unseen.Least = 1, 1
	s.Stood.Record(units.FromDuration(time.Second), units.FromDuration(2*time.Second))
	s.Unseen.Record(units.FromDuration(5*time.Second), units.FromDuration(6*time.Second))
	all := r.stood("sleep on h0", &s)
	e := evidence{baseRTT: r.x.BaseRTT, dilation: dilation, behind: all,
		work: []work{{what: "sleep", spans: []stalls.Span{{To: 10 * units.Millisecond}}}}}
	f := judge(e)
	text := strings.Join(f.Reasons, "; ")
	if f.Verdict == record.OK || math.Abs(f.Stalled-0.2) > 0.001 || len(f.Stalls) != 2 ||
		!strings.Contains(text, "sleep on h0 stood or ran late for 1 s from 1 s after the start") &&
			!strings.Contains(text, "weft, which watches programs, stood or ran late for 1 s from 5 s after") {
		t.Errorf("%+v", f)
	}
}
