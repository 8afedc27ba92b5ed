package poller

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/quiettest"
	"weft/internal/testenv"
)

// roleVar makes the test program run one of roles, on the processor in processorVar.
const (
	roleVar      = "TEST_ROLE"
	processorVar = "TEST_PROCESSOR"
)

// spinTime is how long a process may occupy a processor.
const spinTime = 4 * time.Second

var roles = map[string]func(){
	// spin occupies its processor until the kernel kills it.
	"spin": func() {
		if err := limitTo(spinTime); err != nil {
			fmt.Println(err)
			return
		}
		real(9)
		for n := uint64(1); n != 0; n++ { // forever
		}
	},
	// sleep needs processor time to exit.
	"sleep": func() {
		real(urgent)
		_, _ = os.Stdin.Read(make([]byte, 1))
	},
	// urgent has the priority of a fabric.
	"urgent": func() {
		granted := TakeOver(Urgent, 1<<20)
		var limit unix.Rlimit
		err := unix.Getrlimit(unix.RLIMIT_RTTIME, &limit)
		fmt.Println(granted, limit.Cur, limit.Max, err)
	},
}

func TestMain(m *testing.M) {
	if role := roles[os.Getenv(roleVar)]; role != nil {
		role()
		return
	}
	os.Exit(m.Run())
}

// limitTo bounds the harm that this process can do to others.
func limitTo(d time.Duration) error {
	if err := unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: uint64(d/time.Second) + 1,
		Max: uint64(d/time.Second) + 1}); err != nil {
		return err
	}
	return unix.Setrlimit(unix.RLIMIT_RTTIME, &unix.Rlimit{Cur: uint64(d / time.Microsecond),
		Max: uint64(d / time.Microsecond)})
}

// real moves every thread to the given processor with real-time scheduling, and reports that.
func real(priority uint32) {
	runtime.GOMAXPROCS(1)
	var only unix.CPUSet
	var n int
	_, err := fmt.Sscan(os.Getenv(processorVar), &n)
	only.Set(n)
	tids, _ := Threads(0)
	for _, tid := range tids {
		if err == nil {
			err = unix.SchedSetaffinity(tid, &only)
		}
		if err == nil {
			err = unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO,
				Priority: priority}, 0)
		}
	}
	fmt.Println(err)
}

// begin starts a role and returns its first output.
func begin(t *testing.T, role string) (cmd *exec.Cmd, said string) {
	t.Helper()
	var own unix.CPUSet
	if err := unix.SchedGetaffinity(0, &own); err != nil {
		t.Fatal(err)
	}
	last := 0
	for n := range 1024 {
		if own.IsSet(n) {
			last = n
		}
	}
	cmd = exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), roleVar+"="+role, fmt.Sprintf("%s=%d", processorVar, last), Preemption)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = DropRealTime(cmd.Process.Pid)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	said, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%s: %v", role, err)
	}
	return cmd, strings.TrimSpace(said)
}

// A killed real-time process does not end while another occupies its processor. DropRealTime lets
// it end.
func TestPrivDropRealTime(t *testing.T) {
	testenv.NeedRealTime(t)
	if runtime.NumCPU() < 2 {
		t.Skip("one processor, which this test needs itself")
	}
	victim, said := begin(t, "sleep")
	if said != "<nil>" {
		t.Fatal(said)
	}
	pidfd, err := unix.PidfdOpen(victim.Process.Pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pidfd)
	ended := func(within time.Duration) bool {
		fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
		for until := time.Now().Add(within); time.Until(until) > 0 && fds[0].Revents == 0; {
			_, _ = unix.Poll(fds, int(time.Until(until).Milliseconds())+1)
		}
		return fds[0].Revents != 0
	}
	if _, said := begin(t, "spin"); said != "<nil>" {
		t.Fatal(said)
	}
	start, load := time.Now(), quiettest.Start()
	if err := unix.PidfdSendSignal(pidfd, syscall.SIGKILL, nil, 0); err != nil {
		t.Fatal(err)
	}
	if ended(200 * time.Millisecond) {
		t.Skip("this kernel lets it end without")
	}
	if err := DropRealTime(victim.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if ended(spinTime/2) && time.Since(start) < spinTime {
		return
	}
	load.Late(t, "it does not end")
}

// No process with real-time scheduling can occupy a processor forever, whether it or another
// process set the scheduling.
func TestPrivRealTimeIsLimited(t *testing.T) {
	testenv.NeedRealTime(t)
	want := fmt.Sprintf("fifo %d %d <nil>", RealTimeLimit.Microseconds(), RealTimeLimit.Microseconds())
	_, said := begin(t, "urgent")
	if said != want {
		t.Errorf("got %s, want %s", said, want)
	}
	other, _ := begin(t, "sleep")
	if err := Favour(other.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if limit, err := realTimeLimit(other.Process.Pid); err != nil || limit != uint64(RealTimeLimit.Microseconds()) {
		t.Errorf("%d us, %v", limit, err)
	}
}

// A loop that is always busy sleeps from time to time; one that sleeps anyway does not sleep more.
func TestBusyLoopsRest(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p := newPoller(t)
	slept := func() int64 {
		var used unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_THREAD, &used); err != nil {
			t.Fatal(err)
		}
		return used.Nvcsw
	}
	const rests = 8
	before := slept()
	for range rests * restTurns {
		if err := p.Wait(0); err != nil {
			t.Fatal(err)
		}
	}
	if n := slept() - before; n < rests/2 {
		t.Errorf("slept %d times in %d turns", n, rests*restTurns)
	}
}
