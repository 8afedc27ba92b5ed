package control

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"weft/internal/testenv"
)

// This process is none of those that are refused; one with a network or, by the other way to tell,
// a PID namespace of its own is, and so are those that cannot be seen.
func TestPrivForeign(t *testing.T) {
	testenv.NeedNamespaces(t)
	if err := Foreign(os.Getpid()); err != nil {
		t.Error(err)
	}
	if err := below(os.Getpid()); err != nil {
		t.Error(err)
	}
	for _, pid := range []int{0, -1, 1 << 30} {
		if err := Foreign(pid); !errors.Is(err, ErrStranger) {
			t.Errorf("process %d: %v", pid, err)
		}
	}
	for name, c := range map[string]struct {
		flags uintptr
		check func(int) error
	}{"network": {syscall.CLONE_NEWNET, Foreign}, "PID": {syscall.CLONE_NEWPID, below}} {
		cmd := exec.Command("/bin/sleep", "60")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: c.flags, Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if err := c.check(cmd.Process.Pid); !errors.Is(err, ErrStranger) {
			t.Errorf("another %s namespace: %v", name, err)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}
