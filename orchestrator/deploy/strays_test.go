package deploy

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"weft/internal/testenv"
	"weft/orchestrator/runtime"
)

// A lab whose state directory was removed is found by its mark and ended by every command, also one
// with another state directory. A lab whose directory exists is not touched.
func TestPrivLabWithoutItsFolder(t *testing.T) {
	inRuntimes(t, func(t *testing.T, where string) {
		t.Setenv(runtimeVar, "namespace") // reapers of its containers would count as left
		well, h := newGuardedLab(t)
		t.Setenv(runtimeVar, where)
		before := takeSnapshot(t)
		other := newStatePath(t)
		for verb, end := range map[string]func(root string) (said string){
			"destroy": func(root string) (said string) {
				found, err := Down(t.Context(), root, "lost", Options{Say: func(line string) { said = line }})
				if err != nil || !found {
					t.Errorf("destroy: found %v, %v", found, err)
				}
				return said
			},
			"clean":                              func(root string) string { cleanStray(t, root, "lost"); return "lost" },
			"clean with another state directory": func(string) string { cleanStray(t, other, "lost"); return "lost" },
			"deploy": func(root string) string {
				out, err := runSelf(t, root, "", "deploy", root, "lost")
				if err != nil {
					t.Errorf("deploy: %v\n%s", err, out)
				}
				if n := len(supervisors("lost")); n != 1 {
					t.Errorf("%d supervisors", n)
				}
				if _, err := Down(t.Context(), root, "lost", Options{}); err != nil {
					t.Error(err)
				}
				return out
			},
		} {
			if where != "namespace" && verb != "destroy" && verb != "clean" {
				continue // the same, and slower
			}
			root := newStatePath(t)
			if out, err := runSelf(t, root, "", "deploy", root, "lost"); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if labs := Strays(); slices.Contains(labs, "lost") {
				t.Errorf("a lab that is up is a stray: %v", labs)
			}
			if err := os.RemoveAll(root); err != nil {
				t.Fatal(err)
			}
			if labs := Strays(); !slices.Contains(labs, "lost") || slices.Contains(labs, "guarded") {
				t.Errorf("the strays are %v", labs)
			}
			for _, lab := range []string{"", "lost"} {
				if err := Unreachable(lab); err == nil || !strings.Contains(err.Error(), "lab lost: it still runs") {
					t.Errorf("of lab %q: %v", lab, err)
				}
			}
			if err := Unreachable("guarded"); !errors.Is(err, ErrNotDeployed) {
				t.Errorf("of another lab: %v", err)
			}
			if said := end(root); !strings.Contains(said, "lost") && verb != "deploy" {
				t.Errorf("%s says %q", verb, said)
			}
			before.checkUnchanged(t, root)
			if pids := supervisors("lost"); len(pids) > 0 {
				t.Fatalf("after %s: %+v", verb, pids)
			}
		}
		if _, err := h.State(); err != nil {
			t.Errorf("the lab in %s, which is up: %v", well, err)
		}
	})
}

// cleanStray checks that Clean ends the supervisor of a lab without a folder.
func cleanStray(t *testing.T, root, lab string) {
	t.Helper()
	swept, err := Clean(t.Context(), root, Options{})
	if err != nil || !slices.Contains(swept, Swept{lab, "removed", "a supervisor without a folder"}) {
		t.Errorf("%+v, %v", swept, err)
	}
}

// If something else is in the place of the state directory, its labs are ended all the same, and
// the error says what is wrong with it.
func TestPrivStateDirectoryWasReplaced(t *testing.T) {
	testenv.NeedNamespaces(t)
	root := newStatePath(t)
	if out, err := runSelf(t, root, "", "deploy", root, "lost"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := errors.Join(os.RemoveAll(root), os.WriteFile(root, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if out, err := runSelf(t, root, "", "deploy", root, "lost"); err == nil || !strings.Contains(out, "not a directory") {
		t.Errorf("deploy: %v\n%s", err, out)
	}
	if found, err := Down(t.Context(), root, "lost", Options{}); !found || err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("destroy: found %v, %v", found, err)
	}
	if pids := processesOf(root); len(pids) > 0 {
		t.Fatalf("processes %v are left", pids)
	}
}

// Processes of a lab whose launcher is gone are ended; others are not.
func TestPrivProcessesWithoutLauncher(t *testing.T) {
	testenv.NeedNamespaces(t)
	alive, err := runtime.Self()
	if err != nil {
		t.Fatal(err)
	}
	dead := alive
	dead.Start++
	begin := func(o runtime.Owner, args ...string) *exec.Cmd {
		t.Helper()
		cmd := &exec.Cmd{Path: "/proc/self/exe", Args: append([]string{"weft"}, args...), Env: []string{"WEFT_LAUNCHER=" + o.String(), idleVar + "=1"}}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	orphan := begin(dead, "node")
	ended := make(chan struct{})
	go func() { // as the reaper of orphans does
		_ = orphan.Wait()
		close(ended)
	}()
	stay := []*exec.Cmd{begin(alive, "fabric"), begin(dead, "node", "h0")}
	swept, err := Clean(t.Context(), newStatePath(t), Options{})
	if err != nil || !slices.ContainsFunc(swept, func(s Swept) bool { return s.Why == "a process whose launcher is gone" }) {
		t.Errorf("%+v, %v", swept, err)
	}
	<-ended
	for _, cmd := range stay {
		if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("%v: %v", cmd.Args, err)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}
