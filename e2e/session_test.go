package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"weft/internal/testenv"
)

// The session that the documentation shows goes as it says.
func TestPrivDocumentedSession(t *testing.T) {
	testenv.NeedProgram(t, "ping")
	testenv.NeedProgram(t, "iperf3")
	text, err := os.ReadFile("../docs/life-of-a-lab.md")
	if err != nil {
		t.Fatal(err)
	}
	d := newWorkspace(t).withState()
	d.writeLab("by-hand.yaml", fencedBlock(t, string(text), "yaml"))
	var command string
	var want []string
	code := 0
	check := func() {
		if command == "" {
			return
		}
		var out string
		var got int
		eventually(patience, func() string { // a server that has gone to the background listens a moment later
			if out, got = d.shell(command); strings.Contains(out, "Connection refused") {
				return out
			}
			return ""
		})
		if got != code {
			t.Errorf("$ %s\nexit code %d, want %d:\n%s", command, got, code, out)
		}
		for _, line := range want {
			pattern := "(?m)^" + strings.ReplaceAll(regexp.QuoteMeta(line), `\.\.\.`, ".*") + "$"
			if !regexp.MustCompile(pattern).MatchString(out) {
				t.Errorf("$ %s\ndoes not print %q:\n%s", command, line, out)
			}
		}
	}
	for line := range strings.Lines(fencedBlock(t, string(text), "console")) {
		line = strings.TrimSuffix(line, "\n")
		if next, ok := strings.CutPrefix(line, "$ "); ok {
			check()
			command, want, code = next, nil, 0
		} else if n, err := fmt.Sscanf(line, "exit code %d", &code); n != 1 || err != nil {
			want = append(want, line)
		}
	}
	check()
}

// fencedBlock returns the first block of a language in a text of Markdown.
func fencedBlock(t *testing.T, text, language string) string {
	t.Helper()
	_, after, ok := strings.Cut(text, "```"+language+"\n")
	block, _, closed := strings.Cut(after, "```")
	if !ok || !closed {
		t.Fatalf("no block of %s", language)
	}
	return block
}

// shell runs a line of a session as a user would type it, and returns its output.
func (d *workspace) shell(line string) (out string, code int) {
	d.t.Helper()
	cmd := d.command()
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", line}
	cmd.Env = append(cmd.Env, "PATH="+filepath.Dir(weft)+":"+os.Getenv("PATH"))
	text, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		d.t.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// BenchmarkPrivDeploy tells what deploying and destroying the lab of the session take in both
// runtimes, the best of all rounds.
func BenchmarkPrivDeploy(b *testing.B) {
	for _, runtime := range []string{"namespace", "docker"} {
		b.Run(runtime, func(b *testing.B) {
			if runtime == "docker" {
				needDocker(b)
			}
			d := newWorkspace(b).withState()
			d.writeLab("lab.yaml", byHand)
			up, down := time.Hour, time.Hour
			for range b.N {
				up = min(up, d.run("deploy", "lab.yaml", "--runtime", runtime).wantCode(0).took)
				down = min(down, d.run("destroy").wantCode(0).took)
			}
			b.ReportMetric(up.Seconds(), "deploy-s")
			b.ReportMetric(down.Seconds(), "destroy-s")
		})
	}
}
