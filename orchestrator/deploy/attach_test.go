package deploy

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"weft/orchestrator/uml/umltest"
)

// A container is attached to a host whose network is Linux itself, and its frames take the shaped
// links: a round trip over two links of 20 ms takes at least 80 ms.
func TestUMLAttachOnTheKernelDatapath(t *testing.T) {
	if umltest.Outside(t) {
		return
	}
	t.Setenv(datapathVar, "kernel")
	root := newStatePath(t)
	retryMeasured(t, func() error {
		_, err := Up(t.Context(), root, request("attached", 2), Options{})
		return err
	})
	defer func() {
		if _, err := Down(context.WithoutCancel(t.Context()), root, "attached", Options{}); err != nil {
			t.Error(err)
		}
	}()
	r, err := OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	h, err := Open(r, "attached")
	if err != nil {
		t.Fatal(err)
	}
	container := exec.Command("sleep", "600")
	container.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if err := container.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = container.Process.Kill()
		_ = container.Wait()
	}()
	netns := fmt.Sprintf("/proc/%d/ns/net", container.Process.Pid)
	within := func(args ...string) (string, error) {
		out, err := exec.Command("nsenter", append([]string{"--net=" + netns}, args...)...).CombinedOutput()
		return string(out), err
	}
	holder := Holder{Network: "net", Container: "aaaa", Interface: "lab0"}
	if _, err := h.Attach(Attach{Holder: holder, Host: "h0"}, netns); err != nil {
		t.Fatal(err)
	}
	s, err := stateOf(r, "attached")
	if err != nil {
		t.Fatal(err)
	}
	for name, ping := range map[string]func() (string, error){
		"out": func() (string, error) {
			return within("ping", "-c1", "-W20", s.Nodes[1].Address)
		},
		"in": func() (string, error) {
			code, out := runProgram(t, h, Exec{Node: "h1", Args: []string{"ping", "-c1", "-W20", "h0"}})
			if code != 0 {
				return out, fmt.Errorf("exit code %d", code)
			}
			return out, nil
		},
	} {
		out, err := ping()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		var took float64
		_, last, _ := strings.Cut(out, "rtt min/avg/max/mdev = ")
		if _, err := fmt.Sscanf(last, "%f/", &took); err != nil || took < 80 {
			t.Errorf("%s: a round trip took %g ms, %v:\n%s", name, took, err, out)
		}
	}
	if err := h.Detach(Detach{holder}, netns); err != nil {
		t.Fatal(err)
	}
	if out, err := within("ip", "-o", "link", "show", "lab0"); err == nil {
		t.Errorf("it still has %s", out)
	}
}
