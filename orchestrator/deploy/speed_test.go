package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// Deploying a lab of 36 containers, supervisor, journal and all, takes little more than starting 36 bare containers by hand,
// all at once.
func TestPrivDeployAsFastAsDockerRun(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	if _, err := exec.LookPath("docker"); err != nil {
		t.Skip("there is no docker command to compare with")
	}
	in(t, "docker")
	const containers = 36 // 35 hosts and the fabric
	t.Setenv(hostsVar, fmt.Sprint(containers-1))
	deployed, bare := time.Hour, time.Hour
	for range 3 { // the best of each: what else the machine does only slows
		root := stateRoot(t)
		began := time.Now()
		if out, err := again(t, root, "", "deploy", root, "wide"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		deployed = min(deployed, time.Since(began))
		if _, err := Down(t.Context(), root, "wide", Options{}); err != nil {
			t.Error(err)
		}
		bare = min(bare, bareContainers(t, containers))
	}
	r := deployed.Seconds() / bare.Seconds()
	t.Logf("%d containers: deployed in %v, bare in %v, ratio %.2f", containers, deployed.Round(time.Millisecond), bare.Round(time.Millisecond), r)
	if r > 1.3 {
		t.Errorf("deploying takes %.2f times as long as starting as many bare containers; 1.3 is the bar", r)
	}
}

// bareContainers starts n containers of the nodes' image with the docker command, side by side, and removes them.
func bareContainers(t *testing.T, n int) time.Duration {
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
