package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// make test installs packages as root and in continuous integration. On a developer's machine it
// says what is missing; make tools installs it, and fails if it cannot.
func TestNeedInstallsWhenAsked(t *testing.T) {
	for _, c := range []struct {
		name, user, ci string
		args           []string
		sudo           string // exit code of sudo
		installs       bool
		code           int
	}{
		{"a developer", "1000", "", nil, "0", false, 0},
		{"make tools", "1000", "", []string{"--install"}, "0", true, 0},
		{"make tools without sudo", "1000", "", []string{"--install"}, "1", false, 1},
		{"a runner", "1000", "true", nil, "0", true, 0},
		{"a runner without sudo", "1000", "true", nil, "1", false, 0},
		{"root", "0", "", nil, "1", true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			bin := t.TempDir()
			for name, script := range map[string]string{
				"id":      "echo " + c.user,
				"sudo":    "[ " + c.sudo + " = 0 ] || exit 1\n[ \"$1\" != -n ] || shift\nexec \"$@\"",
				"apt-get": "echo \"$@\" >>'" + filepath.Join(bin, "asked") + "'",
			} {
				if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command("../.ci/need", append(c.args, "sh", "dash", "no shell", "weft-absent", "weft-package",
				"no test of it")...)
			cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "CI="+c.ci)
			out, _ := cmd.CombinedOutput()
			asked, _ := os.ReadFile(filepath.Join(bin, "asked"))
			if got := strings.Contains(string(asked), "weft-package"); got != c.installs ||
				strings.Contains(string(asked), "dash") {
				t.Errorf("apt-get was asked %q, want %v; it says %s", asked, c.installs, out)
			}
			if code := cmd.ProcessState.ExitCode(); code != c.code {
				t.Errorf("exit code %d, want %d; it says %s", code, c.code, out)
			}
			const lacks = "no weft-absent here. Without it there is no test of it. To have it: "
			if strings.Contains(string(out), lacks) == c.installs {
				t.Errorf("it says %s", out)
			}
		})
	}
}
