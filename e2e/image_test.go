package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weft/internal/dockertest"
	"weft/internal/testenv"
)

// The image of `make image` simulates the labs that it holds and those that are mounted, whoever
// the user is, and leaves runs on the mounted directory. It emulates with the flags of docs/ci.md.
func TestPrivImage(t *testing.T) {
	needDocker(t)
	testenv.NeedProgram(t, "docker")
	const tag = "weft-test:image"
	docker := func(args ...string) (string, error) {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env = append(os.Environ(), "DOCKER_HOST="+dockertest.Host(t))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := docker("../.ci/image", weft, tag); err != nil {
		t.Fatalf("make the image: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		if out, err := docker("docker", "image", "rm", "-f", tag); err != nil {
			t.Errorf("remove the image: %v\n%s", err, out)
		}
	})
	d := newWorkspace(t)
	if err := os.Chmod(d.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	d.writeLab("mine.yaml", "weft: 1\nname: mine\ntopology: {kind: star, hosts: 3}\nworkload:\n  - {collective: "+
		"all-reduce, size: 64KB}\nexpect: [verified == true]\n")
	run := func(flags, args string) {
		t.Helper()
		line := slices.Concat([]string{"docker", "run", "--rm", "--network", "none", "-v", d.dir + ":/work"},
			strings.Fields(flags), []string{tag, "run"}, strings.Fields(args))
		if out, err := docker(line...); err != nil || !strings.Contains(out, "data verified") {
			t.Errorf("%s: %v\n%s", strings.Join(line, " "), err, out)
		}
	}
	run("--user 1000:1000", "mine.yaml --engine sim") // first: runs/ is to be that user's
	run("", "/labs/quickstart.yaml --engine sim")
	for _, lab := range []string{"quickstart", "mine"} {
		if reports, err := filepath.Glob(filepath.Join(d.dir, "runs", lab, "*", "report.html")); err != nil ||
			len(reports) != 1 {
			t.Errorf("%s left the reports %v (%v)", lab, reports, err)
		}
	}
	run(emulationFlags(t), "mine.yaml --engine emu --dilation 5000 --out /tmp/runs")
}

// emulationFlags returns the flags of docs/ci.md for emulation in a container.
func emulationFlags(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if _, flags, ok := strings.Cut(line, "emulate='"); ok {
			return strings.TrimSuffix(strings.TrimSpace(flags), "'")
		}
	}
	t.Fatal("docs/ci.md has no line emulate='FLAGS'")
	return ""
}
