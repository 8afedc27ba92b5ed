package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"weft/internal/testenv"
)

// BenchmarkPrivDeployInDocker deploys a lab of 36 containers, with supervisor and journal, and
// compares it with the docker command starting as many bare containers at once. It reports the
// minimum of each, since load only slows, and their ratio, which should be at most 1.3.
func BenchmarkPrivDeployInDocker(b *testing.B) {
	testenv.NeedProgram(b, "docker") // to compare with
	useRuntime(b, "docker")
	const containers = 36 // 35 hosts and the fabric
	b.Setenv(hostsVar, fmt.Sprint(containers-1))
	deployed, bare := time.Hour, time.Hour
	for range b.N {
		root := newStatePath(b)
		began := time.Now()
		if out, err := runSelf(b, root, "", "deploy", root, "wide"); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		deployed = min(deployed, time.Since(began))
		if _, err := Down(b.Context(), root, "wide", Options{}); err != nil {
			b.Error(err)
		}
		bare = min(bare, bareContainers(b, containers))
	}
	b.ReportMetric(deployed.Seconds(), "deploy-s")
	b.ReportMetric(bare.Seconds(), "bare-s")
	b.ReportMetric(deployed.Seconds()/bare.Seconds(), "ratio")
}

// bareContainers starts n containers of the node image at once with the docker command, removes
// them, and returns how long the start took.
func bareContainers(t testing.TB, n int) time.Duration {
	t.Helper()
	images, err := exec.Command("docker", "images", "-q", "--filter", "label=weft.program").Output()
	if err != nil || len(images) == 0 {
		t.Fatalf("no image: %v", err)
	}
	image := strings.Fields(string(images))[0]
	var group errgroup.Group
	remove := []string{"rm", "-f"}
	began := time.Now()
	for i := range n {
		name := fmt.Sprintf("bare-%d-%d", os.Getpid(), i)
		remove = append(remove, name)
		group.Go(func() error {
			if out, err := exec.Command("docker", "run", "-d", "--network", "none", "--name", name, image, "node").CombinedOutput(); err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
	}
	err = group.Wait()
	took := time.Since(began)
	if out, failed := exec.Command("docker", remove...).CombinedOutput(); failed != nil {
		t.Errorf("%v: %s", failed, out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return took
}
