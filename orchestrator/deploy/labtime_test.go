package deploy

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/quiettest"
	"weft/internal/testenv"
	"weft/nodeimg/labclock"
)

// needLabTime skips a test on machines whose programs cannot read lab time.
func needLabTime(t *testing.T) {
	t.Helper()
	if err := labclock.Available(); err != nil {
		t.Skip(err)
	}
}

// A program that asks for lab time reads it, in both runtimes, as do its children, and others do
// not. Nodes agree, and a restart of a node does not change its clocks.
func TestPrivExecInLabTime(t *testing.T) {
	needLabTime(t)
	inRuntimes(t, func(t *testing.T, _ string) {
		_, h := newGuardedLab(t)
		script := func(node string, labTime bool, script string) string {
			t.Helper()
			code, out := runProgram(t, h, Exec{Node: node, Args: []string{"/bin/sh", "-c", script}, LabTime: labTime})
			if code != 0 {
				t.Errorf("%s: %q exits with %d: %s", node, script, code, out)
			}
			return out
		}
		if out := script("h0", false, "date -u +%Y"); out != fmt.Sprintf("%d\n", time.Now().UTC().Year()) {
			t.Errorf("by the machine's clock it is %q", out)
		}
		const twice = "date -u +%F; (date -u +%F)"
		for _, node := range []string{"h0", "h1"} {
			if out := script(node, true, twice); out != "2037-01-01\n2037-01-01\n" {
				t.Errorf("on %s it is %q", node, out)
			}
		}
		before := script("h1", true, "date -u +%s.%N")
		if err := h.Node(Node{Node: "h1", Action: NodeKill}); err != nil {
			t.Fatal(err)
		}
		if err := h.Node(Node{Node: "h1", Action: NodeRestart}); err != nil {
			t.Fatal(err)
		}
		if after := script("h1", true, "date -u +%s.%N"); len(after) != len(before) || after <= before {
			t.Errorf("before a restart it was %q, afterwards %q", before, after)
		}
	})
}

// A program with lab time is bounded like any other: it may exhaust its memory and its processes,
// and the lab stays.
func TestPrivLabTimeOfGreedyPrograms(t *testing.T) {
	needLabTime(t)
	_, h := newGuardedLab(t)
	for _, script := range []string{
		"perl -e 'my $x = \"a\" x 4e9; exit 3' ; test $? != 3",
		"for i in $(seq 600); do sleep 3 >/dev/null 2>&1 & done; true",
		"i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i+1)); done",
	} {
		begin := time.Now()
		code, out := runProgram(t, h, Exec{Node: "h0", Args: []string{"/bin/sh", "-c", script}, LabTime: true})
		t.Logf("%q: exit code %d after %v: %.200s", script, code, time.Since(begin), out)
	}
	if err := h.Node(Node{Node: "h0", Action: NodeKill}); err != nil {
		t.Fatal(err)
	}
	awaitDead(t, h, 0)
	if err := h.Node(Node{Node: "h0", Action: NodeRestart}); err != nil {
		t.Fatal(err)
	}
	quiettest.Await(t, func() error {
		code, out := runProgram(t, h, Exec{Node: "h0", Args: []string{"date", "-u", "+%Y"}, LabTime: true})
		if code != 0 || strings.TrimSpace(out) != "2037" {
			return fmt.Errorf("exit code %d: %s", code, out)
		}
		return nil
	})
}

// Whatever a program with lab time does to itself, the lab stays, in both runtimes: other programs
// read lab time as before, on other hosts meanwhile, and then on its own. A shell makes more than a
// thousand forks a second on a machine that has the time.
func TestPrivHostileProgramsInLabTime(t *testing.T) {
	needLabTime(t)
	testenv.NeedProgram(t, "perl")
	scripts := map[string]string{
		"forks":       `exec "/bin/sh", "-c", "i=0; while [ \$i -lt 3000 ]; do (:); i=\$((i+1)); done; echo 3000 forks"`,
		"execs":       `my ($n, $t) = (0, time); while (time - $t < 2) { system "/bin/true"; $n++ } print "$n execs in 2 s\n"`,
		"fork bomb":   `$SIG{ALRM} = sub { kill 9, -getpgrp }; alarm 2; fork while 1`,
		"descriptors": `use POSIX; POSIX::close($_) for 0..1023; exec "/bin/date"`,
		"no room":     `open my $f, "<", "/dev/null"; my @all; while (open my $g, "<&", $f) { push @all, $g; fcntl $g, 2, 0 } exec "/bin/date"`,
		"ptrace":      `syscall 101, 0, 0, 0, 0; exec "/bin/date"`,
		"attach":      `my $p = fork; unless ($p) { sleep 3; exit } syscall 101, 16, $p, 0, 0; waitpid $p, 0; syscall 101, 17, $p, 0, 0; exec "/bin/date"`,
		"memory":      `my @x; push @x, "a" x (1e7 + @x) while 1`,
		"stopped":     `my $p = $$; unless (fork) { sleep 3; kill 9, $p; exit } kill 19, $p`,
	}
	inRuntimes(t, func(t *testing.T, _ string) {
		_, h := newGuardedLab(t)
		for name, script := range scripts {
			t.Run(name, func(t *testing.T) { checkHostileProgram(t, h, script) })
		}
	})
}

// checkHostileProgram runs a script of perl on h0 with lab time, and programs that read it
// meanwhile and afterwards.
func checkHostileProgram(t *testing.T, h *Handle, script string) {
	date := func(when string, nodes ...string) {
		for _, node := range nodes {
			quiettest.Await(t, func() error {
				code, out := runProgram(t, h, Exec{Node: node, Args: []string{"date", "-u", "+%Y"}, LabTime: true})
				if code != 0 || out != "2037\n" {
					return fmt.Errorf("%s, on %s: exit code %d: %s", when, node, code, out)
				}
				return nil
			})
		}
	}
	begin, over := time.Now(), make(chan struct{})
	go func() {
		defer close(over)
		code, out := runProgram(t, h, Exec{Node: "h0", Args: []string{"timeout", "-s", "KILL", "30", "perl", "-e", script},
			LabTime: true, Whole: true, Env: []string{"PERL_HASH_SEED=0"}})
		t.Logf("exit code %d after %v: %.200s", code, time.Since(begin), out)
	}()
	for running := true; running; {
		date("meanwhile", "h1")
		select {
		case <-over:
			running = false
		case <-time.After(200 * time.Millisecond):
		}
	}
	date("afterwards", "h0", "h1")
}

// A program that calls PTRACE_TRACEME, in its first thread or another, runs and ends like any
// other, in both runtimes and with both clocks.
func TestPrivProgramTracedByItsParent(t *testing.T) {
	needLabTime(t)
	inRuntimes(t, func(t *testing.T, _ string) {
		_, h := newGuardedLab(t)
		for _, script := range []string{
			"trace(); print(os.system('true') + os.system('true'))",
			"trace(); os.kill(os.getpid(), signal.SIGCHLD); trace(); os.kill(os.getpid(), signal.SIGCHLD); print(0)",
			"t = threading.Thread(target=trace); t.start(); t.join(); print(os.system('true'))",
		} {
			for _, labTime := range []bool{false, true} {
				args := []string{"/usr/bin/python3", "-c", "import ctypes, os, signal, threading\n" +
					"trace = lambda: ctypes.CDLL(None).ptrace(0, 0, 0, 0)\n" + script}
				if code, out := runProgram(t, h, Exec{Node: "h0", Args: args, LabTime: labTime}); code != 0 || out != "0\n" {
					t.Errorf("%s, lab time %t: exit code %d: %s", script, labTime, code, out)
				}
			}
		}
	})
}

// When the keeper of lab time is killed, programs that read lab time end, and their callers and the
// lab's events say why. The next program has a keeper again; others run on.
func TestPrivKeeperKilled(t *testing.T) {
	needLabTime(t)
	inRuntimes(t, func(t *testing.T, _ string) {
		_, h := newGuardedLab(t)
		const says = "the keeper of lab time died: signal: killed; programs with lab time cannot go on without it: " +
			"start them again"
		ended := make(chan Exit, 3)
		begin := func(node string, labTime bool, script string) {
			t.Helper()
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer read.Close()
			go func() {
				defer write.Close()
				exit, err := h.Exec(t.Context(), Exec{Node: node, Args: []string{"/bin/sh", "-c", "echo up; " + script},
					LabTime: labTime}, os.Stdin, write, os.Stderr)
				if err != nil {
					t.Errorf("%s: %v", script, err)
				}
				ended <- exit
			}()
			if _, err := read.Read(make([]byte, 3)); err != nil {
				t.Fatal(err)
			}
		}
		begin("h0", true, "exec sleep 60")
		begin("h1", true, "trap '' TERM; while :; do /bin/true || exit; done")
		begin("h1", false, "exec sleep 3")
		s, err := h.State()
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(childPID(t, s.Supervisor, "weft-timekeeper"), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if exit := <-ended; exit.Code != CodeNode || exit.Ended != says {
				t.Errorf("%+v", exit)
			}
		}
		if exit := <-ended; exit.Code != 0 || exit.Ended != "" {
			t.Errorf("the program with the machine's clock: %+v", exit)
		}
		code, out := runProgram(t, h, Exec{Node: "h0", Args: []string{"date", "-u", "+%Y"}, LabTime: true})
		if code != 0 || out != "2037\n" {
			t.Errorf("afterwards: exit code %d: %s", code, out)
		}
		told := 0
		if err := h.Events(t.Context(), false, func(e Event) error {
			if e.Event == "died" && e.Text == says {
				told++
			}
			return nil
		}); err != nil || told != 1 {
			t.Errorf("%d events, %v", told, err)
		}
	})
}

// A daemon with lab time does not hold its caller's output open.
func TestPrivDaemonLetsGo(t *testing.T) {
	needLabTime(t)
	_, h := newGuardedLab(t)
	begin := quiettest.Start()
	code, out := runProgram(t, h, Exec{Node: "h0", LabTime: true,
		Args: []string{"/bin/sh", "-c", "setsid sleep 60 </dev/null >/dev/null 2>&1 & echo up"}})
	begin.AtMost(t, 30*time.Second, "a program that leaves a daemon")
	if code != 0 || out != "up\n" {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// In a deployed lab the protocol of the lab file synchronizes the hosts' clocks, in both runtimes:
// they agree much better than free clocks of the same lab, programs read them, and a host whose
// interface was down, or that was restarted, is synchronized again.
func TestPrivSynchronizedClocks(t *testing.T) {
	needLabTime(t)
	apart := func(t *testing.T, h *Handle, state string) (us float64, err error) {
		s, err := h.State()
		if err != nil {
			t.Fatal(err)
		}
		a, b := s.Nodes[0].Clock, s.Nodes[1].Clock
		if a == nil || b == nil || a.State != state || b.State != state {
			return 0, fmt.Errorf("h0 has %+v, h1 %+v", a, b)
		}
		return math.Abs(b.OffsetUS - a.OffsetUS), nil
	}
	const offset = "offset: ±5ms"
	t.Setenv(clocksVar, "{sync: none, "+offset+"}")
	_, h := newGuardedLab(t)
	free, err := apart(t, h, "free")
	if err != nil {
		t.Fatal(err)
	}
	synchronized := func(t *testing.T) {
		_, h := newGuardedLab(t)
		agree := func() {
			t.Helper()
			quiettest.Await(t, func() error {
				time.Sleep(100 * time.Millisecond) // each look takes time of the supervisor and the fabric
				us, err := apart(t, h, "locked")
				if err == nil && us > free/20 {
					err = fmt.Errorf("clocks are %.1f us apart, without synchronization %.1f", us, free)
				}
				return err
			})
		}
		agree()
		checkReadClocks(t, h)
		for _, state := range []string{"down", "up"} {
			script := "ip link set eth0 " + state + " && sleep 1" // some messages later
			if code, out := runProgram(t, h, Exec{Node: "h1", Args: []string{"sh", "-c", script}}); code != 0 {
				t.Fatal(out)
			}
		}
		for _, action := range []string{NodeKill, NodeRestart} {
			if err := h.Node(Node{Node: "h1", Action: action}); err != nil {
				t.Fatal(err)
			}
		}
		agree()
		checkReadClocks(t, h)
	}
	t.Run("ptp", func(t *testing.T) {
		t.Setenv(clocksVar, "{sync: ptp, "+offset+", ptp: {interval: 2ms}}")
		inRuntimes(t, func(t *testing.T, _ string) { synchronized(t) })
	})
	t.Run("huygens", func(t *testing.T) {
		t.Setenv(clocksVar, "{sync: huygens, "+offset+", huygens: {window: 20ms}}")
		synchronized(t)
	})
}

// checkReadClocks checks that programs of all hosts read lab time to 10 ms.
func checkReadClocks(t *testing.T, h *Handle) {
	t.Helper()
	now := func() float64 {
		s, err := h.State()
		if err != nil {
			t.Fatal(err)
		}
		return s.NowUS
	}
	for _, node := range []string{"h0", "h1"} {
		before := now()
		code, out := runProgram(t, h, Exec{Node: node, Args: []string{"date", "-u", "+%s%N"}, LabTime: true})
		after := now()
		ns, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
		const most = 1e4 // us; the reference itself is wrong by up to 5 ms
		us := float64(ns-labclock.Begin) / 1e3
		if code != 0 || err != nil || us < before-most || us > after+most {
			t.Errorf("%s reads %q, %.3f us of lab time, between %.3f and %.3f; exit code %d", node, out, us, before, after,
				code)
		}
	}
}
