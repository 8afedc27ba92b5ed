package e2e

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"weft/internal/quiettest"
	"weft/internal/sample"
	"weft/internal/testenv"
)

// The pipelines for GitHub and GitLab are run as they are written, line by line, in a fresh clone.
// What installs Go, keeps files or publishes them is left out; anything else that is not run is an
// error here. Each commit's sample has one of the two repositories that a service may run them in,
// and emulates in Weft's own.

// cloneOfTree returns a clone of this working tree, with uncommitted changes, on the branch main.
func cloneOfTree(t *testing.T) string {
	t.Helper()
	testenv.NeedProgram(t, "git", "make", "tar")
	if _, err := os.Stat("../.git"); err != nil {
		t.Skip("not a clone of a repository")
	}
	dir := t.TempDir()
	runShell(t, "..", nil, `git ls-files -z --cached --others --exclude-standard | tar --null -T - --ignore-failed-read -cf - 2>/dev/null | tar -C "`+dir+`" -xf -`)
	runShell(t, dir, nil, "git init -q -b main; git add -A; git commit -qm clone")
	return dir
}

// runShell runs lines as both CI services do, and returns what they print.
func runShell(t *testing.T, dir string, env []string, lines string) string {
	t.Helper()
	out, err := tryShell(t, dir, env, lines)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// tryShell runs lines as both CI services do, and returns what they print, and an error with it if
// one fails.
func tryShell(t *testing.T, dir string, env []string, lines string) (string, error) {
	t.Helper()
	out, err := inShell(t, dir, env, lines).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", lines, err, out)
	}
	return string(out), nil
}

// inShell returns a command that runs lines as both CI services do.
func inShell(t *testing.T, dir string, env []string, lines string) *exec.Cmd {
	t.Helper()
	kept, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output() // below XDG_CACHE_HOME, otherwise
	if err != nil {
		t.Fatal(err)
	}
	dirs := strings.Split(string(kept), "\n")
	cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", lines)
	cmd.Dir = dir
	cmd.Env = slices.Concat(os.Environ(), []string{
		// of weft, which measures the machine once
		"GOCACHE=" + dirs[0], "GOMODCACHE=" + dirs[1], "WEFT_OUT=", "MAKEFLAGS=", "XDG_CACHE_HOME=" + cache,
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
		"GIT_AUTHOR_NAME=x", "GIT_AUTHOR_EMAIL=x@x", "GIT_COMMITTER_NAME=x", "GIT_COMMITTER_EMAIL=x@x",
	}, env)
	return cmd
}

// readYAML reads a YAML file of a clone.
func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// workflow is the part of a GitHub workflow that is tested.
type workflow struct {
	Env  map[string]string
	Jobs map[string]struct {
		Steps []struct{ If, Uses, Run string }
	}
}

// unrun are the actions that do not run here: a clone is there, Go is, and nothing is kept or
// published.
var unrun = []string{"actions/checkout@v4", "actions/setup-go@v5", "actions/cache/restore@v4", "actions/cache/save@v4",
	"actions/upload-artifact@v4"}

var expression = regexp.MustCompile(`\$\{\{(.*?)\}\}`)

// evaluate replaces expressions of words, inputs, && and || in a text.
func evaluate(t *testing.T, text string, inputs map[string]string) string {
	t.Helper()
	return expression.ReplaceAllStringFunc(text, func(e string) string {
		for either := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(e, "${{"), "}}"), "||") {
			value := ""
			for both := range strings.SplitSeq(either, "&&") {
				term := strings.TrimSpace(both)
				name, isInput := strings.CutPrefix(term, "inputs.")
				switch {
				case isInput:
					value = inputs[name]
				case strings.HasPrefix(term, "'"):
					value = strings.Trim(term, "'")
				default:
					t.Fatalf("%s: this test knows inputs and words alone", e)
				}
				if value == "" {
					break
				}
			}
			if value != "" {
				return value
			}
		}
		return ""
	})
}

// gitHubSteps returns the shell lines of the steps of a job, and its environment.
func gitHubSteps(t *testing.T, w *workflow, job string, inputs map[string]string) (steps, env []string) {
	t.Helper()
	for name, value := range w.Env {
		env = append(env, name+"="+evaluate(t, value, inputs))
	}
	for _, step := range w.Jobs[job].Steps {
		switch {
		case step.Run == "" && slices.Contains(unrun, step.Uses):
		case step.Run == "" || expression.MatchString(step.Run):
			t.Fatalf("job %s: step %+v is not known to this test", job, step)
		case step.If == "" || evaluate(t, "${{"+step.If+"}}", inputs) != "":
			steps = append(steps, step.Run)
		}
	}
	return steps, env
}

// runGitHubJob runs the shell lines of a job in a clone, and returns what they print.
func runGitHubJob(t *testing.T, dir string, w *workflow, job string, inputs map[string]string, env ...string) string {
	t.Helper()
	steps, own := gitHubSteps(t, w, job, inputs)
	out := ""
	for _, step := range steps {
		out += runShell(t, dir, slices.Concat(own, env), step)
	}
	if out == "" {
		t.Fatalf("job %s ran nothing", job)
	}
	return out
}

// pathWithSudo returns a PATH with a sudo, which GitHub's machines have.
func pathWithSudo(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "sudo"), []byte("#!/bin/sh\nexec \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return "PATH=" + bin + ":" + os.Getenv("PATH")
}

// checkArtifacts checks the files that a job leaves: a test report without failures, and a summary
// without problems.
func checkArtifacts(t *testing.T, dir, summary string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "junit.xml"))
	var junit struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
	}
	if err == nil {
		err = xml.Unmarshal(text, &junit)
	}
	if err != nil || junit.Tests == 0 || junit.Failures > 0 {
		t.Errorf("%v: %s", err, text)
	}
	if text, err := os.ReadFile(summary); err != nil || !bytes.Contains(text, []byte("| ✅ ok |")) ||
		bytes.Contains(text, []byte("❌")) {
		t.Errorf("%v: %s", err, text)
	}
}

// repositoryOfLabs returns a repository with a lab of its own, which uses weft from a clone.
func repositoryOfLabs(t *testing.T, clone string) string {
	t.Helper()
	dir := t.TempDir()
	runShell(t, dir, nil, `mkdir -p labs; cp "`+clone+`"/labs/quickstart.yaml labs/first.yaml; git init -q -b main; git add -A; git commit -qm labs`)
	return dir
}

func TestPrivPipelinesOfGitHub(t *testing.T) {
	clone := cloneOfTree(t)
	var labs workflow
	readYAML(t, filepath.Join(clone, ".github/workflows/labs.yml"), &labs)
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	type repository struct {
		name, dir string
		inputs    map[string]string
	}
	for _, c := range sample.Of(t, 1,
		repository{"Weft itself", clone, nil},
		repository{"labs of its own", repositoryOfLabs(t, clone), map[string]string{"labs": "labs/*.yaml",
			"emulated": "labs/first.yaml", "weft": "here"}},
	) {
		t.Run(c.name, func(t *testing.T) {
			if c.inputs != nil {
				runShell(t, c.dir, nil, `git clone -q "`+clone+`" .weft`) // its second checkout
			}
			summary := filepath.Join(t.TempDir(), "summary.md")
			env := []string{"GITHUB_OUTPUT=" + filepath.Join(t.TempDir(), "output"), "GITHUB_STEP_SUMMARY=" + summary,
				"USER=" + me.Username, pathWithSudo(t)}
			runGitHubJob(t, c.dir, &labs, "simulate", c.inputs, env...)
			checkArtifacts(t, c.dir, summary)
			if again := runGitHubJob(t, c.dir, &labs, "simulate", c.inputs, env...); !strings.Contains(again,
				"runs were finished before") {
				t.Errorf("--resume makes runs again: %s", again)
			}
			if c.inputs == nil || sample.All() { // the same program and the same lab
				os.Remove(summary)
				runGitHubJob(t, c.dir, &labs, "emulate", c.inputs, env...)
				if text, err := os.ReadFile(summary); err != nil || !bytes.Contains(text, []byte("| emu |")) {
					t.Errorf("%v: %s", err, text)
				}
			}
		})
	}
	if jobs := len(labs.Jobs); jobs != 2 {
		t.Errorf("%d jobs; this test runs two", jobs)
	}
}

// gitLabJob is the part of a GitLab job that is tested.
type gitLabJob struct {
	Variables map[string]string
	Before    []string `yaml:"before_script"`
	Script    []string
}

// gitLabLabs is the part of .ci/gitlab-labs.yml that is tested.
type gitLabLabs struct {
	Variables         map[string]string
	Weft              gitLabJob `yaml:".weft"`
	Simulate, Emulate gitLabJob
}

// env returns the environment of the jobs in a clone.
func (all *gitLabLabs) env(dir string) []string {
	env := []string{"CI_PROJECT_DIR=" + dir}
	for _, variables := range []map[string]string{all.Variables, all.Weft.Variables} {
		for name, value := range variables {
			if name != "GOCACHE" && name != "GOMODCACHE" { // what is there is not built again
				env = append(env, name+"="+value)
			}
		}
	}
	return env
}

// lines returns the shell lines of a job.
func (all *gitLabLabs) lines(t *testing.T, j gitLabJob) string {
	t.Helper()
	if len(j.Script) == 0 {
		t.Fatal("a job runs nothing")
	}
	return strings.Join(slices.Concat(all.Weft.Before, j.Before, j.Script), "\n")
}

func TestPrivPipelinesOfGitLab(t *testing.T) {
	clone := cloneOfTree(t)
	var all gitLabLabs
	readYAML(t, filepath.Join(clone, ".ci/gitlab-labs.yml"), &all)
	type repository struct {
		name, dir string
		env       []string
	}
	for _, c := range sample.Of(t, 1,
		repository{"Weft itself", clone, nil},
		repository{"labs of its own", repositoryOfLabs(t, clone), []string{"WEFT_URL=file://" + clone,
			"LABS=labs/*.yaml", "EMULATED=labs/first.yaml"}},
	) {
		t.Run(c.name, func(t *testing.T) {
			env := append(all.env(c.dir), c.env...)
			run := func(j gitLabJob) error {
				t.Helper()
				os.RemoveAll(filepath.Join(c.dir, ".weft")) // each job has a clone of its own
				_, err := tryShell(t, c.dir, env, all.lines(t, j))
				return err
			}
			if err := run(all.Simulate); err != nil {
				t.Fatal(err)
			}
			checkArtifacts(t, c.dir, filepath.Join(c.dir, "summary.md"))
			if c.env == nil || sample.All() {
				quiettest.Check(t, 1, func() error { // it runs weft with --strict, which takes a quiet machine
					err := run(all.Emulate)
					if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 4) {
						t.Fatal(err)
					}
					return err
				})
			}
		})
	}
}

// What the pipelines of Weft itself run is what its other tests are: .ci/run, and a release.
func TestPrivPipelinesOfWeft(t *testing.T) {
	clone := cloneOfTree(t)
	var w workflow
	readYAML(t, filepath.Join(clone, ".github/workflows/weft.yml"), &w)
	var lines []string
	for _, name := range []string{"test", "release"} {
		for _, step := range w.Jobs[name].Steps {
			if step.Run != "" {
				lines = append(lines, step.Run)
			} else if !slices.Contains(unrun, step.Uses) {
				t.Errorf("step %+v is not known to this test", step)
			}
		}
	}
	if len(lines) != 3 || lines[0] != ".ci/run" || !strings.HasPrefix(lines[2], "gh release create ") {
		t.Fatalf("its jobs run %q", lines)
	}
	var lab struct {
		Test, Release struct{ Script []string }
	}
	readYAML(t, filepath.Join(clone, ".gitlab-ci.yml"), &lab)
	if len(lab.Test.Script) != 1 || lab.Test.Script[0] != lines[0] || len(lab.Release.Script) != 1 ||
		strings.Replace(lab.Release.Script[0], "CI_COMMIT_TAG", "GITHUB_REF_NAME", 1) != lines[1] {
		t.Fatalf("GitLab runs %q and %q", lab.Test.Script, lab.Release.Script)
	}
	if info, err := os.Stat(filepath.Join(clone, ".ci/run")); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("%v: .ci/run cannot be run", err)
	}
	if !sample.All() {
		t.Log("a release is built twice by make test-all alone")
		return
	}
	sums := func() []byte {
		runShell(t, clone, []string{"GITHUB_REF_NAME=v1.2.3"}, lines[1])
		text, err := os.ReadFile(filepath.Join(clone, "dist/SHA256SUMS"))
		if err != nil || bytes.Count(text, []byte("\n")) != 2 {
			t.Fatalf("%v: %s", err, text)
		}
		return text
	}
	if first, second := sums(), sums(); !bytes.Equal(first, second) {
		t.Errorf("two releases of a commit differ:\n%s%s", first, second)
	}
}
