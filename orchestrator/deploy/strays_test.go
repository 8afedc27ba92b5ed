package deploy

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
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
			"clean":                              func(root string) string { return cleanLost(t, root) },
			"clean with another state directory": func(string) string { return cleanLost(t, other) },
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

// impostors create something else at the path of a lab's folder or of the state directory.
var impostors = map[string]func(path string) error{
	"pipe":          func(path string) error { return syscall.Mkfifo(path, 0o600) },
	"file":          func(path string) error { return os.WriteFile(path, nil, 0o600) },
	"link":          func(path string) error { return os.Symlink("/nowhere", path) },
	"link beside":   func(path string) error { return os.Symlink("gone", path) },
	"link to other": func(path string) error { return os.Symlink(".", path) },
}

// A lab whose folder was replaced is as unreachable as one without: destroy and clean end it and
// rename the replacement, so that the lab can be deployed again.
func TestPrivLabWhoseFolderWasReplaced(t *testing.T) {
	testenv.NeedNamespaces(t)
	for what, replace := range impostors {
		t.Run(what, func(t *testing.T) {
			root := newStatePath(t)
			folder := filepath.Join(root, "lost")
			lose := func() {
				t.Helper()
				if out, err := runSelf(t, root, "", "deploy", root, "lost"); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				if err := errors.Join(os.RemoveAll(folder), replace(folder)); err != nil {
					t.Fatal(err)
				}
				if labs := Strays(); !slices.Contains(labs, "lost") {
					t.Errorf("the strays are %v", labs)
				}
			}
			ended := func() {
				t.Helper()
				if pids := processesOf(root); len(pids) > 0 {
					t.Fatalf("processes %v are left", pids)
				}
			}
			lose()
			cleanLost(t, root)
			ended()
			if _, err := os.Lstat(folder); err != nil {
				t.Errorf("clean has touched what is no lab's: %v", err)
			}
			if out, err := runSelf(t, root, "", "deploy", root, "lost"); err != nil {
				t.Errorf("deploy in its place: %v\n%s", err, out)
			}
			if found, err := Down(t.Context(), root, "lost", Options{}); err != nil || !found {
				t.Errorf("destroy: found %v, %v", found, err)
			}
			ended()
			lose()
			for _, want := range []bool{true, false} {
				if found, err := Down(t.Context(), root, "lost", Options{}); err != nil || found != want {
					t.Errorf("destroy: found %v, want %v, %v", found, want, err)
				}
				ended()
			}
			if _, err := os.Lstat(folder + damagedSuffix + "2"); err != nil {
				t.Errorf("what was in its place: %v", err)
			}
		})
	}
}

// If the state directory itself was replaced, its labs are ended all the same, and the error says
// what is wrong with the directory.
func TestPrivStateDirectoryWasReplaced(t *testing.T) {
	testenv.NeedNamespaces(t)
	for what, replace := range impostors {
		for verb, end := range map[string]func(root string) error{
			"destroy": func(root string) error {
				found, err := Down(t.Context(), root, "lost", Options{})
				if !found {
					t.Error("destroy has found nothing")
				}
				return err
			},
			"clean": func(root string) error {
				swept, err := Clean(t.Context(), root, Options{})
				if !slices.Contains(swept, Swept{"lost", "removed", "a supervisor without a folder"}) {
					t.Errorf("%+v", swept)
				}
				return err
			},
		} {
			t.Run(verb+" "+what, func(t *testing.T) {
				root := newStatePath(t)
				if out, err := runSelf(t, root, "", "deploy", root, "lost"); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				if err := errors.Join(os.RemoveAll(root), replace(root)); err != nil {
					t.Fatal(err)
				}
				out, err := runSelf(t, root, "", "deploy", root, "lost")
				if err == nil || !strings.Contains(out, "not a directory") || !strings.Contains(out, "still runs without its folder") || !strings.Contains(out, "weft destroy lost ends it") {
					t.Errorf("deploy: %v\n%s", err, out)
				}
				if err := end(root); err == nil || !strings.Contains(err.Error(), "not a directory") {
					t.Errorf("%s: %v", verb, err)
				}
				if pids := processesOf(root); len(pids) > 0 {
					t.Fatalf("processes %v are left", pids)
				}
			})
		}
	}
}

// Anything but a folder at the path of a lab is neither followed nor waited for.
func TestNonFolderIsNotALab(t *testing.T) {
	for what, make := range impostors {
		t.Run(what, func(t *testing.T) {
			root := newStatePath(t)
			r, err := OpenRoot(root)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if err := make(filepath.Join(root, "odd")); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(r, "odd"); !errors.Is(err, errNotFolder) {
				t.Errorf("a handle: %v", err)
			}
			l, err := request("odd", 2).parse()
			if err != nil {
				t.Fatal(err)
			}
			if c, err := r.plan(l, request("odd", 2)); err != nil || c.Action != ActionRepair {
				t.Errorf("a plan: %+v, %v", c, err)
			}
			if s := r.subnetOf("odd"); s != 0 {
				t.Errorf("subnet %d", s)
			}
		})
	}
}

// cleanLost checks that Clean removes the supervisor of the lab "lost", and returns that name.
func cleanLost(t *testing.T, root string) string {
	swept, err := Clean(t.Context(), root, Options{})
	if err != nil || !slices.Contains(swept, Swept{"lost", "removed", "a supervisor without a folder"}) {
		t.Errorf("%+v, %v", swept, err)
	}
	return "lost"
}

// A supervisor whose path leads to another lab's folder leaves that alone when it ends.
func TestPrivSupervisorKeepsForeignFolder(t *testing.T) {
	testenv.NeedNamespaces(t)
	r, pid := deployLab(t, "twice")
	if err := os.Rename(filepath.Join(r.Path(), "twice"), filepath.Join(r.Path(), "Kept")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(r.Path(), "twice"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := awaitEnd(pid, runtime.KillTime); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(r.Path(), "twice")); err != nil {
		t.Error(err)
	}
	if err := os.RemoveAll(filepath.Join(r.Path(), "Kept")); err != nil {
		t.Fatal(err)
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
