package runtime

import (
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A process that computes waits for a processor, or has one, until it is stopped. One that sleeps
// waits for none.
func TestWaits(t *testing.T) {
	start := func(args ...string) *Proc {
		cmd := exec.Command(args[0], args[1:]...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); _ = cmd.Wait() })
		return &Proc{PID: cmd.Process.Pid}
	}
	becomes := func(p *Proc, want bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); p.Waits() != want; <-time.After(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("Waits is %t, want %t", !want, want)
			}
		}
	}
	busy := start("sh", "-c", "while :; do :; done")
	becomes(busy, true)
	if err := unix.Kill(busy.PID, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	becomes(busy, false)
	asleep := start("sleep", "1000")
	becomes(asleep, false)
	if dying(asleep.PID) || asleep.Ending() {
		t.Error("a process that sleeps has begun to exit")
	}
	if err := unix.Kill(asleep.PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if !dying(asleep.PID) {
		t.Error("a killed process is not dying at once")
	}
	for end := time.Now().Add(time.Minute); !asleep.Ending(); <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a killed process has not begun to exit")
		}
	}
	for range 100 {
		p := start("sh", "-c", "while :; do :; done")
		if err := unix.Kill(p.PID, unix.SIGKILL); err != nil || !dying(p.PID) {
			t.Fatalf("a killed process is not dying at once: %v", err)
		}
	}
	for _, p := range []*Proc{nil, {}, {PID: 1<<22 + 1}} {
		if p.Waits() {
			t.Errorf("%+v waits for a processor", p)
		}
	}
}
