package labclock

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"weft/internal/quiettest"
)

// waitsOf are ways to wait until an instant of a clock, given in nanoseconds.
var waitsOf = map[string]func(until int64) error{
	"futex-mono": func(until int64) error { return futexUntil(until, futexWaitBitset|futexPrivate) },
	"futex-real": func(until int64) error { return futexUntil(until, futexWaitBitset|futexPrivate|futexRealtime) },
	"sleep-mono": func(until int64) error {
		ts := unix.NsecToTimespec(until)
		return unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &ts, nil)
	},
	"timer-real": func(until int64) error {
		fd, err := unix.TimerfdCreate(unix.CLOCK_REALTIME, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		spec := unix.ItimerSpec{Value: unix.NsecToTimespec(until)}
		if err := unix.TimerfdSettime(fd, unix.TFD_TIMER_ABSTIME, &spec, nil); err != nil {
			return err
		}
		_, err = unix.Read(fd, make([]byte, 8))
		return err
	},
}

// futexUntil waits for a futex that nobody wakes.
func futexUntil(until int64, op uintptr) error {
	var word uint32
	ts := unix.NsecToTimespec(until)
	_, _, errno := unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&word)), op, 0, uintptr(unsafe.Pointer(&ts)),
		0, ^uintptr(0))
	if errno != unix.ETIMEDOUT {
		return fmt.Errorf("futex: %w", errno)
	}
	return nil
}

// reportWait waits a fifth of a second until an instant, and then until one that has passed.
func reportWait(what string) error {
	runtime.LockOSThread()
	now := readGo()
	from := now.Mono
	if strings.HasSuffix(what, "-real") {
		from = now.Real
	}
	if err := waitsOf[what](from + int64(waitTime)); err != nil {
		return err
	}
	return waitsOf[what](from - int64(time.Second))
}

const waitTime = 200 * time.Millisecond

// A wait until an instant takes as many real seconds as the instant lies ahead, by the program's
// clock.
func TestWaitsUntilAnInstant(t *testing.T) {
	b := newBench(t, 1000)
	for what := range waitsOf {
		cmd := b.command(t, []string{reportVar + "=" + what}, self(t))
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		begin, watch := time.Now(), quiettest.Start()
		if err := cmd.Run(); err != nil {
			t.Errorf("%s: %v: %s", what, err, &out)
		}
		took := time.Since(begin)
		t.Logf("%s: %v", what, took)
		if took < waitTime {
			t.Errorf("%s: waiting for %v took %v", what, waitTime, took)
		}
		watch.AtMost(t, 10*waitTime, what)
	}
}

// Python's locks wait until an instant, and threads wake them.
func TestWaitsOfPython(t *testing.T) {
	b := newBench(t, 1000)
	const script = `
import threading, time
lock = threading.Lock(); lock.acquire()
for _ in range(3): assert not lock.acquire(timeout=0.1)
assert not threading.Event().wait(0.1)
threads = [threading.Thread(target=lambda: lock.acquire(timeout=0.2)) for _ in range(20)]
for t in threads: t.start()
for t in threads: t.join()
event = threading.Event()
threading.Thread(target=lambda: (time.sleep(0.1), event.set())).start()
assert event.wait(100)
assert time.time() < 2114380810
`
	begin, watch := time.Now(), quiettest.Start()
	b.run(t, nil, "/usr/bin/python3", "-c", script)
	if took := time.Since(begin); took < 700*time.Millisecond {
		t.Errorf("waits of 0.7 s took %v", took)
	}
	watch.AtMost(t, 20*time.Second, "waits of 0.7 s")
}

// A debugger's program is refused by name, and a program that traces itself without exec runs.
func TestTracedProgramsAreRefused(t *testing.T) {
	b := newBench(t, 1000)
	cmd := b.command(t, nil, "strace", "-o", "/dev/null", "true")
	read, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	socket, err := b.keeper.Attach(b.page, w)
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	cmd.ExtraFiles = []*os.File{socket}
	defer socket.Close()
	if err := cmd.Run(); err == nil {
		t.Error("a traced program ran")
	}
	said := make([]byte, 1000)
	n, _ := read.Read(said)
	if text := string(said[:n]); !strings.Contains(text, "strace: a process that another one traces") {
		t.Errorf("it says %q", text)
	}
	if gdb, err := exec.LookPath("gdb"); err == nil {
		// a program may be traced once it runs
		out := b.run(t, nil, "sh", "-c", "sleep 100 & "+gdb+" -batch -p $! -ex detach 2>&1; kill $!")
		if !strings.Contains(out, "detached") {
			t.Errorf("gdb says %q", out)
		}
	}
}
