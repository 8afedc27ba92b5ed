package deploy

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	goruntime "runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/poller"
	"weft/internal/quiettest"
	"weft/orchestrator/runtime"
)

// spinTime is the longest time that a test keeps a processor busy.
const spinTime = 10 * time.Second

// spinRole keeps the processor with the given number busy, with real-time scheduling, until it is
// killed.
func spinRole(args []string) error {
	seconds := uint64(spinTime / time.Second)
	for resource, most := range map[int]uint64{unix.RLIMIT_CPU: seconds, unix.RLIMIT_RTTIME: seconds * 1e6} {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return err
		}
	}
	goruntime.GOMAXPROCS(1)
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	goruntime.LockOSThread()
	if err := pin(unix.Gettid(), n); err != nil {
		return err
	}
	fmt.Println(unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 50}, 0))
	for n := uint64(1); n != 0; n++ { // forever
	}
	return nil
}

// pin restricts a thread to one processor.
func pin(tid, processor int) error {
	var only unix.CPUSet
	only.Set(processor)
	return unix.SchedSetaffinity(tid, &only)
}

// A killed fabric process cannot exit while another process with real-time scheduling keeps its
// processor busy. Clean makes it an ordinary process, which exits; and every process with real-time
// scheduling has a limit of it.
func TestPrivKilledUnderRealTimeLoad(t *testing.T) {
	if goruntime.NumCPU() < 2 {
		t.Skip("one processor, which this test needs itself")
	}
	inRuntimes(t, func(t *testing.T, _ string) {
		before := takeSnapshot(t)
		root := newStatePath(t)
		if out, err := runSelf(t, root, "", "deploy", root, "starved"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		r, err := OpenRoot(root)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		state, err := stateOf(r, "starved")
		if err != nil {
			t.Fatal(err)
		}
		fabric := realTimeFabric(t, state.Deployment)
		processor := goruntime.NumCPU() - 1
		threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", fabric))
		for _, thread := range threads {
			if tid, err := strconv.Atoi(thread.Name()); err == nil {
				if err := pin(tid, processor); err != nil {
					t.Fatal(err)
				}
			}
		}
		load := quiettest.Start()
		spin := exec.Command("/proc/self/exe", "spin", fmt.Sprint(processor))
		spin.Env = append(os.Environ(), poller.Preemption)
		out, err := spin.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := spin.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		defer func() { _ = spin.Process.Kill(); <-ended }()
		said, _ := bufio.NewReader(out).ReadString('\n')
		go func() { _ = spin.Wait(); close(ended) }()
		if said != "<nil>\n" {
			t.Skipf("no real-time scheduling: %s", said)
		}
		if err := syscall.Kill(state.Supervisor, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if err := awaitEnd(state.Supervisor, runtime.KillTime); err != nil {
			t.Fatal(err)
		}
		gone := make(chan bool, 1)
		go func() {
			_ = awaitEnd(fabric, 2*spinTime)
			select {
			case <-ended:
				gone <- false
			default:
				gone <- true
			}
		}()
		began := time.Now()
		swept, err := Clean(t.Context(), root, Options{})
		if err != nil {
			t.Errorf("clean: %v", err)
		}
		t.Logf("clean %s", describeSwept(swept, time.Since(began)))
		if !<-gone {
			load.Late(t, "the fabric waited for the load to end")
		}
		_ = spin.Process.Kill()
		before.checkUnchanged(t, root)
	})
}

// realTimeFabric returns the PID of a deployment's fabric. It skips the test if the fabric has no
// real-time scheduling, and checks the limit of it.
func realTimeFabric(t *testing.T, deployment string) int {
	t.Helper()
	pid := fabricOf(t, deployment)
	attr, err := unix.SchedGetAttr(pid, 0)
	if err != nil || attr.Policy != unix.SCHED_FIFO {
		t.Skipf("the fabric has no real-time scheduling: %+v, %v", attr, err)
	}
	want := fmt.Sprintf("%-25s %-20d %-20d us", "Max realtime timeout", poller.RealTimeLimit.Microseconds(), poller.RealTimeLimit.Microseconds())
	if limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid)); err != nil || !strings.Contains(string(limits), want) {
		t.Errorf("the fabric's limits lack %q: %v\n%s", want, err, limits)
	}
	return pid
}

// fabricOf returns the PID of a deployment's fabric.
func fabricOf(t *testing.T, deployment string) int {
	t.Helper()
	pids := marked(deployment)
	for _, pid := range pids {
		if args := runtime.Arguments(pid); len(args) == 2 && args[1] == "fabric" {
			return pid
		}
	}
	t.Fatalf("no fabric among %v", pids)
	return 0
}
