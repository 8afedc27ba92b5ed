package namespace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"time"
	"weft/internal/privilege"
	"weft/internal/quiettest"
	"weft/internal/testenv"
	"weft/orchestrator/runtime"
	"weft/orchestrator/runtime/runtimetest"

	"golang.org/x/sys/unix"
)

// ordinaryUser is weft as an ordinary user runs it: outside it enters a user namespace, inside it
// launches a lab and does what its arguments say.
func ordinaryUser(args []string) int {
	if privilege.NeedsUserNS() {
		if err := privilege.CheckNamespaces(); err != nil {
			fmt.Fprintln(os.Stderr, "unavailable:", err)
			return 77
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if args[1] == "late" {
			cancel()
		}
		code, err := Enter(ctx, append([]string{"enter"}, args...))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return code
	}
	if args[1] == "early" || args[1] == "late" {
		fmt.Println("in")
		time.Sleep(time.Hour) // a child that does not handle signals yet, and is killed
	}
	spec := runtimetest.Lab(4)
	spec.NodeArgs, spec.FabricArgs = []string{"node", args[0]}, []string{"fabric", args[0]}
	start := time.Now()
	c, err := Launch(context.Background(), spec)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer c.Close()
	fmt.Printf("up in %v by %s: %s\n", time.Since(start), c.Node(0).Link.Kind, c.Node(0).Link.Why)
	fmt.Printf("report %+v\n", c.Node(0).Report)
	switch args[1] {
	case "ping":
		err := c.Exec(context.Background(), "h0", runtime.Command{Args: []string{"ping", "-c", "2", "-i", "0.01", "10.0.0.2"}, Stdout: os.Stdout, Stderr: os.Stderr})
		if err != nil {
			fmt.Println(err)
			return 1
		}
		if err := os.WriteFile(args[2], []byte("result"), 0o644); err != nil {
			fmt.Println(err)
			return 1
		}
		return 42
	case "wait":
		interrupted := make(chan os.Signal, 1)
		signal.Notify(interrupted, unix.SIGINT)
		fmt.Println("waiting")
		<-interrupted
		return 130
	}
	return 1
}

// asNobody runs the test program as an ordinary user.
func asNobody(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	testenv.NeedEmulation(t)
	cmd := exec.Command("/proc/self/exe", append([]string{"enter"}, args...)...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() == 0 {
		testenv.NeedRoot(t) // to become another user
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	return cmd
}

// An ordinary user gets the same lab, and owns the files it writes.
func TestPrivOrdinaryUser(t *testing.T) {
	before := takeTraces(t)
	dir, err := os.MkdirTemp("", "user-of-weft")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	mark := fmt.Sprintf("mark-%d-user", os.Getpid())
	file := filepath.Join(dir, "summary.json")
	cmd := asNobody(t, mark, "ping", file)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	switch code := cmd.ProcessState.ExitCode(); code {
	case 77:
		t.Skip("user namespaces cannot be had here")
	case 42:
	default:
		t.Fatalf("exit code %d (%v), want 42", code, err)
	}
	var st unix.Stat_t
	if err := unix.Stat(file, &st); err != nil {
		t.Fatal(err)
	}
	want := uint32(os.Geteuid())
	if want == 0 {
		want = 65534
	}
	if st.Uid != want {
		t.Errorf("the file belongs to user %d, want %d", st.Uid, want)
	}
	if pids := marked(mark); len(pids) > 0 {
		t.Errorf("processes %v still run", pids)
	}
	before.check(t)
}

// The two processes of an ordinary user's weft end together, whether interrupted or killed.
func TestPrivOrdinaryUserInterrupted(t *testing.T) {
	for _, s := range []struct {
		signal syscall.Signal
		code   int
	}{{unix.SIGINT, 130}, {unix.SIGKILL, -1}} {
		mark := fmt.Sprintf("mark-%d-%d", os.Getpid(), s.signal)
		cmd := asNobody(t, mark, "wait")
		var out buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer cmd.Process.Kill() // if it does not come up
		quiettest.Await(t, func() error {
			if text := out.String(); !strings.Contains(text, "waiting") && !strings.Contains(text, "unavailable") {
				return fmt.Errorf("did not come up:\n%s", text)
			}
			return nil
		})
		if strings.Contains(out.String(), "unavailable") {
			cmd.Wait()
			t.Skip(out.String())
		}
		pids := marked(mark)
		sent := time.Now()
		cmd.Process.Signal(s.signal)
		cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != s.code {
			t.Errorf("%v: exit code %d, want %d", s.signal, code, s.code)
		}
		left := pids
		for len(left) > 0 && time.Since(sent) < quiettest.Patience {
			left = marked(mark)
		}
		t.Logf("%v: %d processes gone after %v", s.signal, len(pids), time.Since(sent).Round(time.Millisecond))
		if len(left) > 0 {
			t.Errorf("%v: %d of %d processes still run", s.signal, len(left), len(pids))
		}
	}
}

// A signal that comes before Enter, or before the child handles signals, is an interruption.
func TestPrivInterruptedEarly(t *testing.T) {
	for _, c := range []struct {
		when   string
		signal syscall.Signal // 0: none
	}{{"early", unix.SIGINT}, {"early", unix.SIGTERM}, {"early", unix.SIGHUP}, {"late", 0}} {
		cmd := asNobody(t, "mark", c.when)
		var out buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer cmd.Process.Kill() // if it does not end
		if c.signal != 0 {
			quiettest.Await(t, func() error {
				if out.String() == "" {
					return errors.New("the child does not run")
				}
				return nil
			})
			cmd.Process.Signal(c.signal)
		}
		cmd.Wait()
		if strings.Contains(out.String(), "unavailable") {
			t.Skip(out.String())
		}
		if code := cmd.ProcessState.ExitCode(); code != Interrupted {
			t.Errorf("%s, %v: exit code %d, want %d: %s", c.when, c.signal, code, Interrupted, out.String())
		}
	}
}

func TestLaunchNeedsPrivileges(t *testing.T) {
	testenv.NeedOrdinaryUser(t)
	if _, err := Launch(t.Context(), runtimetest.Lab(1)); !errors.Is(err, ErrNeedsUserNS) {
		t.Errorf("got %v", err)
	}
}
