package deploy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/quiettest"
	"weft/internal/stalls"
	"weft/internal/testenv"
	"weft/orchestrator/runtime"
	"weft/realtime"
	"weft/units"
)

// What a program measured is doubted if the network stood for more of its time than an emulation
// may that is ok, by the spans within that time, of all parts of the network.
func TestProgramsOfANetworkThatStood(t *testing.T) {
	const us = units.Microsecond
	look := func(at units.Time, rest units.Time, spans ...stalls.Span) *realtime.State {
		return &realtime.State{At: at, Stalls: []realtime.Stalls{{Log: stalls.Log{Spans: spans, Rest: rest}}}}
	}
	early, inside := stalls.Span{From: 10 * us, To: 90 * us}, stalls.Span{From: 120 * us, To: 130 * us}
	for _, c := range []struct {
		name          string
		before, after *realtime.State
		want          string
	}{
		{"nothing", look(100*us, 0), look(200*us, 0), ""},
		{"before it", look(100*us, 0, early), look(200*us, 0, early), ""},
		{"a tenth", look(100*us, 0, early), look(200*us, 0, early, inside), "during 10 % of the time (10us of 100us of lab time)"},
		{"a fortieth", look(100*us, 0), look(500*us, 0, inside), ""},
		{"in part", look(125*us, 0), look(135*us, 0, inside), "during 50 %"},
		{"unknown instants", look(100*us, 7*us), look(200*us, 27*us), "during 20 %"},
		{"the kernel's datapath keeps none", &realtime.State{At: 100 * us}, &realtime.State{At: 200 * us}, ""},
		{"no time", look(100*us, 0), look(100*us, 0, inside), ""},
	} {
		if got := stood(c.before, c.after); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	two := look(200*us, 0, inside)
	two.Stalls = append(two.Stalls, realtime.Stalls{Log: stalls.Log{Spans: []stalls.Span{{From: 125 * us, To: 150 * us}}}})
	if got := stood(look(100*us, 0), two); !strings.Contains(got, "during 30 %") {
		t.Errorf("two parts: %q", got)
	}
}

// An exec doubts what a program measured while the network was stopped, and only then. It fails if
// the network ends meanwhile, whatever the program's own exit code, does not answer, or has ended
// before.
func TestPrivExecWhoseNetworkStoodOrEnded(t *testing.T) {
	testenv.NeedProgram(t, "ping")
	_, h := newGuardedLab(t)
	s, err := h.State()
	if err != nil {
		t.Fatal(err)
	}
	fabric := fabricOf(t, s.Deployment)
	signal := func(n syscall.Signal) {
		if err := syscall.Kill(fabric, n); err != nil {
			t.Error(err)
		}
	}
	ping := func(meanwhile func()) Exit { // it is called after the second reply
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer read.Close()
		go func() {
			lines, replies := bufio.NewScanner(read), 0
			for lines.Scan() && replies < 2 {
				if strings.Contains(lines.Text(), "bytes from") {
					replies++
				}
			}
			meanwhile()
			_, _ = io.Copy(io.Discard, read)
		}()
		exit, err := h.Exec(t.Context(), Exec{Node: "h0", Args: []string{"ping", "-n", "-i", "0.1", "-c", "20", s.Nodes[1].Address}}, write, write, write)
		write.Close()
		if err != nil {
			t.Fatal(err)
		}
		return exit
	}
	quiettest.Check(t, 3, func() error {
		if exit := ping(func() {}); exit != (Exit{}) {
			return fmt.Errorf("an undisturbed network: %+v", exit)
		}
		return nil
	})
	for range 3 {
		exit := ping(func() {
			signal(syscall.SIGSTOP)
			time.Sleep(time.Second) // the length of the stop, a third of the ping's time
			signal(syscall.SIGCONT)
		})
		if exit.Code != 0 || !strings.HasPrefix(exit.Stood, "the lab's network stood or ran late during ") {
			t.Errorf("stopped for a second of two: %+v", exit)
		}
	}
	stop(t, fabric)
	if exit := ping(func() {}); exit.Code != CodeNode || !strings.Contains(exit.Ended, "did not answer: fabric does not answer: is it stopped?") {
		t.Errorf("stopped before: %+v", exit)
	}
	signal(syscall.SIGCONT)
	const why = ": the fabric process is gone: fabric died: signal: killed; weft destroy guarded takes the lab down"
	if exit := ping(func() { signal(syscall.SIGKILL) }); exit.Code != CodeNode ||
		exit.Ended != "the lab's network ended while the program ran"+why+"; the program itself ended with exit code 0" {
		t.Errorf("killed meanwhile: %+v", exit)
	}
	if exit := ping(func() {}); exit.Code != CodeNode || exit.Ended != "the lab's network ended"+why {
		t.Errorf("killed before: %+v", exit)
	}
}

// What a program measured is doubted if it was stopped itself for more of its time than an
// emulation may stand that is ok, or if nobody could see it.
func TestProgramsThatWereStopped(t *testing.T) {
	const ms = units.Millisecond
	log := func(from, to, rest units.Time) stalls.Log {
		return stalls.Log{Spans: []stalls.Span{{From: from, To: to}}, Rest: rest}
	}
	for _, c := range []struct {
		stood, unseen stalls.Log
		want          string
	}{
		{stalls.Log{}, stalls.Log{}, ""},
		{log(0, 50*ms, 0), stalls.Log{}, ""},
		{log(0, 51*ms, 0), stalls.Log{}, "was stopped, as by a signal or a debugger, during 5 % of its time"},
		{log(0, 30*ms, 30*ms), stalls.Log{}, "during 6 % of its time"},
		{log(900*ms, 2000*ms, 0), stalls.Log{}, "during 10 % of its time"},
		{stalls.Log{}, log(0, 400*ms, 0), "nobody could see during 40 % of the program's time"},
		{log(0, 30*ms, 0), log(500*ms, 530*ms, 0), "nobody could see during 3 %"},
		{stalls.Log{}, log(0, 40*ms, 0), ""},
	} {
		if got := stoppedFor(&runtime.Seen{Stood: c.stood, Unseen: c.unseen}, 1000*ms); (got == "") != (c.want == "") ||
			!strings.Contains(got, c.want) {
			t.Errorf("%+v, %+v: %q, want %q", c.stood, c.unseen, got, c.want)
		}
	}
}

// An exec doubts what a program measured that was stopped itself.
func TestPrivExecOfAProgramThatWasStopped(t *testing.T) {
	testenv.NeedNamespaces(t)
	_, h := newGuardedLab(t)
	null := openNull(t)
	run := func(script string) string {
		exit, err := h.Exec(t.Context(), Exec{Node: "h0", Args: []string{"sh", "-c", script}}, null, null, null)
		if err != nil || exit.Code != 0 {
			t.Fatalf("%+v, %v", exit, err)
		}
		return exit.Stood
	}
	quiettest.Check(t, 3, func() error {
		if stood := run("sleep 1"); stood != "" {
			return errors.New(stood)
		}
		return nil
	})
	for name, script := range map[string]string{
		"itself":  "(sleep 1; kill -CONT $$) & kill -STOP $$; wait",
		"a child": "sleep 2 & kill -STOP $!; sleep 1; kill -CONT $!; wait",
	} {
		if stood := run(script); !strings.HasPrefix(stood, "the program, or one of its processes, was stopped") {
			t.Errorf("%s: %q", name, stood)
		}
	}
}

// Who asks for the state of a lab whose network is stopped learns that, and not that the supervisor
// does not answer.
func TestPrivStateOfAStoppedNetwork(t *testing.T) {
	testenv.NeedNamespaces(t)
	_, h := newGuardedLab(t)
	s, err := h.State()
	if err != nil {
		t.Fatal(err)
	}
	fabric := fabricOf(t, s.Deployment)
	stop(t, fabric)
	const why = "fabric does not answer: is it stopped?"
	if _, err := h.State(); err == nil || err.Error() != why {
		t.Errorf("%v, want %s", err, why)
	}
	q := request(h.Name(), 2)
	l, err := q.parse()
	if err != nil {
		t.Fatal(err)
	}
	if c, err := h.root.plan(l, q); err != nil || c.Why != "it is broken: "+why {
		t.Errorf("deploy does it since %+v, %v", c, err)
	}
	if err := syscall.Kill(fabric, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if _, err := h.State(); err != nil {
		t.Error(err)
	}
}
