package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"weft/internal/dockertest"
)

// The program under test, and what all tests share.
var (
	weft  string // path of the binary; every user may run it
	cache string // where weft keeps what it measured of the machine, so that it measures once
)

// The lab files, seen from this package.
const labs = "../labs"

// helperFailed is the exit code of a helper when it is not weft's.
const helperFailed = 99

// TestMain builds weft. The test program is also run again as a helper, which runs weft under
// certain conditions.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case smallDisk:
			os.Exit(onSmallDisk(os.Args[2:]))
		case roundTrip:
			os.Exit(measureRoundTrip(os.Args[2:]))
		case printClock:
			os.Exit(printClocks())
		case tellClock:
			os.Exit(tellClocks(os.Args[2:]))
		case partsAgent:
			os.Exit(serveParts(os.Args[2:]))
		case partsLauncher:
			os.Exit(launchParts(os.Args[2:]))
		case powerless:
			os.Exit(withoutCapabilities(os.Args[2:]))
		}
	}
	code, err := buildAndTest(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	dockertest.Stop()
	os.Exit(code)
}

// buildAndTest builds weft and runs the tests with it.
func buildAndTest(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "e2e-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		return 0, err
	}
	weft, cache = filepath.Join(dir, "weft"), filepath.Join(dir, "cache")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-ldflags", "-s -w", "-o", weft, "./cmd/weft")
	cmd.Dir, cmd.Env = "..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build weft: %w\n%s", err, out)
	}
	if err := os.Chmod(weft, 0o755); err != nil { // whatever the umask
		return 0, err
	}
	return m.Run(), nil
}

// testProgram returns the path of this test program, which labs and tests run as a helper.
func testProgram(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
