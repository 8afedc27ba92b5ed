package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"weft/internal/quiettest"
)

// The regression gate of both pipelines works with what an interrupted job has kept of its sweep:
// it fails for a regression, with the exit code of weft, and passes without one. A single run that
// a job reuses is compared, and not a newer one of other settings, nor the runs of a lab that is
// gone. Labs that the target branch lacks are new.
func TestPrivPipelinesGate(t *testing.T) {
	clone := cloneOfTree(t)
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	var gitHub workflow
	readYAML(t, filepath.Join(clone, ".github/workflows/labs.yml"), &gitHub)
	steps, env := gitHubSteps(t, &gitHub, "simulate", map[string]string{"labs": "labs/*.yaml", "weft": "here",
		"gate": "--tolerance 2%"})
	var gitLab gitLabLabs
	readYAML(t, filepath.Join(clone, ".ci/gitlab-labs.yml"), &gitLab)
	for _, service := range []struct {
		name, before, lines string // before: what the service's own steps do
		env                 func(dir string) []string
	}{
		{"GitHub", `rm -rf .base; git clone -q "$(git remote get-url origin)" .base; test -e .weft || git clone -q "` + clone + `" .weft`,
			strings.Join(steps, "\n"), func(string) []string {
				return append(env, "GITHUB_OUTPUT="+filepath.Join(t.TempDir(), "output"), "USER="+me.Username,
					"GITHUB_STEP_SUMMARY="+filepath.Join(t.TempDir(), "summary.md"))
			}},
		{"GitLab", "rm -rf .weft", gitLab.lines(t, gitLab.Simulate), func(dir string) []string {
			return append(gitLab.env(dir), "WEFT_URL=file://"+clone, "LABS=labs/*.yaml", "GATE=--tolerance 2%",
				"CI_DEFAULT_BRANCH=main")
		}},
	} {
		t.Run(service.name, func(t *testing.T) {
			origin, dir := t.TempDir(), filepath.Join(t.TempDir(), "branch")
			lab := func(name, delay, rest string) string {
				return "weft: 1\nname: " + name + "\ntopology: {kind: star, hosts: 4, link: {delay: " + delay + "}}\n" +
					"workload: [{collective: permute, size: 64KB, jitter: 5us}]\n" + rest
			}
			const sweep = "sweep: {seed: [1, 2, 3, 4, 5], workload.0.size: [32KB, 64KB, 96KB, 128KB, 160KB, 192KB]}\n"
			put := func(root, delay, single string) {
				t.Helper()
				for name, text := range map[string]string{"s": lab("s", delay, sweep), "one": lab("one", single, "")} {
					file := filepath.Join(root, "labs", name+".yaml")
					err := os.MkdirAll(filepath.Dir(file), 0o755)
					if err == nil {
						err = os.WriteFile(file, []byte(text), 0o644)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			put(origin, "1us", "1us")
			runShell(t, origin, nil, "git init -q -b main; git add -A; git commit -qm labs")
			runShell(t, origin, nil, `git clone -q . "`+dir+`"`)
			env := service.env(dir)
			job := func() (string, error) {
				t.Helper()
				runShell(t, dir, nil, service.before)
				return tryShell(t, dir, env, service.lines)
			}
			fails := func(what, says string) {
				t.Helper()
				_, err := job()
				if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 3 ||
					!strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "were finished before") {
					t.Errorf("%s: %v", what, err)
				}
			}

			put(dir, "1300ns", "1us")
			runShell(t, dir, nil, service.before)
			interruptSweep(t, dir, env, service.lines)
			fails("a regression of a resumed sweep", "worse by more than 2%")

			put(dir, "1us", "1us")
			if err := os.RemoveAll(filepath.Join(dir, "runs")); err != nil { // base has the same runs
				t.Fatal(err)
			}
			runShell(t, dir, nil, service.before)
			interruptSweep(t, dir, env, service.lines)
			if out, err := job(); err != nil || !strings.Contains(out, "were finished before") {
				t.Errorf("a resumed sweep without a regression: %v%s", err, out)
			}

			put(dir, "1us", "1300ns")
			fails("a regression of a single run", "worse by more than 2%")
			put(dir, "1us", "1us")
			if out, err := job(); err != nil { // with the runs of both settings
				t.Errorf("a single run that is reused, of main's settings: %v%s", err, out)
			}
			put(dir, "1us", "1300ns")
			fails("a regression of a single run that is reused", "worse by more than 2%")

			put(dir, "1us", "1us")
			single := filepath.Join(dir, "labs", "one.yaml")
			if err := os.Rename(single, filepath.Join(dir, "labs", "added.yaml")); err != nil {
				t.Fatal(err)
			}
			runShell(t, dir, nil, `sed -i 's/name: one/name: added/' labs/added.yaml`)
			fails("a lab is gone whose runs are kept", "not compared: NEW lacks one: not run")

			env = append(env, "LABS=labs/s.yaml labs/added.yaml", "GATE=--tolerance 2% --partial")
			if out, err := job(); err != nil || !strings.Contains(out, "skipped: labs/added.yaml does not exist here") ||
				!strings.Contains(out, "not compared: BASE lacks added: not run") {
				t.Errorf("a lab is added by its name: %v%s", err, out)
			}
			runShell(t, origin, nil, "git rm -qr labs; git commit --allow-empty -qm none")
			if out, err := job(); err != nil || !strings.Contains(out, "not compared: BASE lacks added: not run") {
				t.Errorf("the target branch has no lab: %v%s", err, out)
			}
		})
	}
}

// interruptSweep runs lines until they have made some runs of the sweep s, and interrupts them.
func interruptSweep(t *testing.T, dir string, env []string, lines string) {
	t.Helper()
	made := func() int {
		all, _ := filepath.Glob(filepath.Join(dir, "runs/s/2*"))
		return len(all)
	}
	cmd := inShell(t, dir, env, lines)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	before := made()
	quiettest.Await(t, func() error {
		if n := made() - before; n < 4 {
			return fmt.Errorf("%d runs of the sweep began", n)
		}
		return nil
	})
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) // as Ctrl-C does; it may have ended
	err := cmd.Wait()
	if n := made(); err == nil || n < 4 || n > 29 {
		t.Fatalf("%d runs of 30 were made before the interruption: %v\n%s", n, err, out.String())
	}
}
