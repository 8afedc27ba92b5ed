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

	"weft/orchestrator/runtime"
)

// A lab whose state directory was removed is found by its mark and ended, by every verb that would otherwise say that there is
// nothing, also from another state directory; one that is up and whose directory is there is not touched.
func TestPrivLabThatLostItsFolder(t *testing.T) {
	for _, where := range []string{"namespace", "docker"} {
		t.Run(where, func(t *testing.T) {
			well, h := upLab(t)
			if where != "namespace" {
				in(t, where)
			}
			before := look(t)
			other := stateRoot(t)
			for verb, end := range map[string]func(root string) (said string){
				"destroy": func(root string) (said string) {
					found, err := Down(t.Context(), root, "lost", Options{Say: func(line string) { said = line }})
					if err != nil || !found {
						t.Errorf("destroy: found %v, %v", found, err)
					}
					return said
				},
				"clean":                              func(root string) string { return removed(t, root) },
				"clean with another state directory": func(string) string { return removed(t, other) },
				"deploy": func(root string) string {
					out, err := again(t, root, "", "deploy", root, "lost")
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
				root := stateRoot(t)
				if out, err := again(t, root, "", "deploy", root, "lost"); err != nil {
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
				if said := end(root); !strings.Contains(said, "lost") && verb != "deploy" {
					t.Errorf("%s says %q", verb, said)
				}
				before.nothingLeft(t, root)
				if pids := supervisors("lost"); len(pids) > 0 {
					t.Fatalf("after %s: %+v", verb, pids)
				}
			}
			if _, err := h.State(); err != nil {
				t.Errorf("the lab in %s, which is up: %v", well, err)
			}
		})
	}
}

// foreigners make what may have the name of a lab's folder, or of the state directory, in its place.
var foreigners = map[string]func(path string) error{
	"pipe":          func(path string) error { return syscall.Mkfifo(path, 0o600) },
	"file":          func(path string) error { return os.WriteFile(path, nil, 0o600) },
	"link":          func(path string) error { return os.Symlink("/nowhere", path) },
	"link beside":   func(path string) error { return os.Symlink("gone", path) },
	"link to other": func(path string) error { return os.Symlink(".", path) },
}

// A lab whose folder was replaced by something else is as lost as one without: destroy and clean end it, and what has its name
// is put aside, so that the lab can be deployed again.
func TestPrivLabWhoseFolderWasReplaced(t *testing.T) {
	privileged(t)
	for what, replace := range foreigners {
		t.Run(what, func(t *testing.T) {
			root := stateRoot(t)
			folder := filepath.Join(root, "lost")
			lose := func() {
				t.Helper()
				if out, err := again(t, root, "", "deploy", root, "lost"); err != nil {
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
			removed(t, root)
			ended()
			if _, err := os.Lstat(folder); err != nil {
				t.Errorf("clean has touched what is no lab's: %v", err)
			}
			if out, err := again(t, root, "", "deploy", root, "lost"); err != nil {
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

// Where the state directory itself was replaced, its labs are ended all the same, and the error says what is wrong with it.
func TestPrivStateDirectoryWasReplaced(t *testing.T) {
	privileged(t)
	for what, replace := range foreigners {
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
				root := stateRoot(t)
				if out, err := again(t, root, "", "deploy", root, "lost"); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				if err := errors.Join(os.RemoveAll(root), replace(root)); err != nil {
					t.Fatal(err)
				}
				out, err := again(t, root, "", "deploy", root, "lost")
				if err == nil || !strings.Contains(out, "not a directory") || !strings.Contains(out, "runs on without its folder") || !strings.Contains(out, "weft destroy lost ends it") {
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

// What has a lab's name and is no folder is neither followed nor waited for by whoever asks for the lab.
func TestWhatIsNoFolderIsNoLab(t *testing.T) {
	for what, make := range foreigners {
		t.Run(what, func(t *testing.T) {
			root := stateRoot(t)
			r, err := OpenRoot(root)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if err := make(filepath.Join(root, "odd")); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(r, "odd"); !errors.Is(err, errForeign) {
				t.Errorf("a handle: %v", err)
			}
			if c, err := Plan(r, request("odd", 2)); err != nil || c.Action != ActionRepair {
				t.Errorf("a plan: %+v, %v", c, err)
			}
			if s := r.subnetOf("odd"); s != 0 {
				t.Errorf("subnet %d", s)
			}
		})
	}
}

// removed has Clean remove the lab that is lost.
func removed(t *testing.T, root string) string {
	swept, err := Clean(t.Context(), root, Options{})
	if err != nil || !slices.Contains(swept, Swept{"lost", "removed", "a supervisor without a folder"}) {
		t.Errorf("%+v, %v", swept, err)
	}
	return "lost"
}

// A supervisor whose folder is another lab's by now leaves that alone when it ends.
func TestPrivSupervisorLeavesAnothersFolder(t *testing.T) {
	privileged(t)
	r, pid := standing(t, "twice")
	if err := os.Rename(filepath.Join(r.Path(), "twice"), filepath.Join(r.Path(), "Kept")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(r.Path(), "twice"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := awaitEnd(pid, killTime); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(r.Path(), "twice")); err != nil {
		t.Error(err)
	}
	if err := os.RemoveAll(filepath.Join(r.Path(), "Kept")); err != nil {
		t.Fatal(err)
	}
}

// Processes of a lab that have lost whoever launched them are ended; others are not.
func TestPrivProcessesWithoutALauncher(t *testing.T) {
	privileged(t)
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
	go func() { // as whoever takes in orphans does
		_ = orphan.Wait()
		close(ended)
	}()
	stay := []*exec.Cmd{begin(alive, "fabric"), begin(dead, "node", "h0")}
	swept, err := Clean(t.Context(), stateRoot(t), Options{})
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
