package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weft/internal/testenv"
)

// A part of the tests that fails ends none of the others, and make fails in the end.
func TestMakeRunsAllParts(t *testing.T) {
	program := testenv.NeedProgram(t, "make")[0]
	dir := t.TempDir()
	ran := filepath.Join(dir, "ran")
	run := func(args ...string) (out string, code int) {
		cmd := exec.Command(program, append([]string{"-o", "vet", "-o", "needs", "-o", "build", "-o", "labs"}, args...)...)
		cmd.Dir = ".."
		// without the settings of a make that runs this test
		cmd.Env = append(os.Environ(), "MAKEFLAGS=", "MFLAGS=", "MAKEOVERRIDES=", "RAN="+ran)
		text, _ := cmd.CombinedOutput()
		return string(text), cmd.ProcessState.ExitCode()
	}
	for _, target := range []string{"test", "test-user", "test-docker"} {
		plan, code := run("-n", "TEST=go-test-of-a-part", target)
		parts := strings.Count(plan, "go-test-of-a-part")
		if code != 0 || parts < 2 {
			t.Fatalf("make -n %s: exit code %d, %d parts:\n%s", target, code, parts, plan)
		}
		if err := os.WriteFile(ran, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		out, code := run(`TEST=sh -c 'echo part >>"$$RAN"; exit 1'`, target)
		text, err := os.ReadFile(ran)
		if got := strings.Count(string(text), "part"); err != nil || got != parts || code == 0 {
			t.Errorf("make %s: exit code %d after %d of %d parts, which all fail (%v):\n%s", target, code, got, parts, err, out)
		}
	}
}
