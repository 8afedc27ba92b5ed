package docker

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"weft/internal/dockertest"
	"weft/orchestrator/runtime"
	"weft/orchestrator/runtime/runtimetest"
)

// The test program is also an orchestrator that is killed, and one in another PID namespace.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "launch" {
		os.Exit(orchestrate(os.Args[2], os.Args[3]))
	}
	if len(os.Args) == 3 && os.Args[1] == "open" {
		_, err := open(context.Background(), os.Args[2])
		fmt.Print(err)
		os.Exit(0)
	}
	code := m.Run()
	dockertest.Stop()
	if folder.path != "" {
		os.RemoveAll(folder.path)
	}
	os.Exit(code)
}

// orchestrate starts a lab, reports that, and waits to be killed.
func orchestrate(self, name string) int {
	spec := runtimetest.Lab(8)
	spec.Self, spec.Lab = self, name
	c, err := Launch(context.Background(), spec)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("up")
	time.Sleep(time.Minute) // until the test kills it; a minute bounds what a killed test leaves
	c.Close()
	return 0
}

// folder holds what the tests build.
var folder struct {
	sync.Once
	path string
	err  error
}

// buildNode builds the program of testdata/node, which stands in for weft, and returns its path.
func buildNode(t testing.TB) string {
	t.Helper()
	folder.Do(func() {
		if folder.path, folder.err = os.MkdirTemp("", "nodes-*"); folder.err != nil {
			return
		}
		cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", filepath.Join(folder.path, "node"), "./testdata/node")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			folder.err = fmt.Errorf("%w: %s", err, out)
		}
	})
	if folder.err != nil {
		t.Fatal(folder.err)
	}
	return filepath.Join(folder.path, "node")
}

// needEngine skips the test unless an engine is available.
func needEngine(t testing.TB) {
	t.Helper()
	host := dockertest.Host(t)
	if _, err := Probe(t.Context(), host); err != nil {
		t.Skip(err)
	}
}

// launchLab launches a lab until the end of the test, or skips the test if that is impossible.
func launchLab(t testing.TB, spec runtime.Spec) *Cluster {
	t.Helper()
	c := launchUnclosed(t, spec)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// launchUnclosed launches a lab that the test has to close.
func launchUnclosed(t testing.TB, spec runtime.Spec) *Cluster {
	t.Helper()
	needEngine(t)
	if spec.Self == "" {
		spec.Self = buildNode(t)
	}
	c, err := Launch(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return c.(*Cluster)
}
