package docker

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"weft/internal/dockertest"
)

// fatTree is the number of nodes of a fat-tree of k=4: 16 hosts and 20 switches. The fabric's process models the switches, so
// that 17 containers make the lab; like is compared with like by a lab of as many containers: 35 hosts and the fabric.
const fatTree, fatTreeHosts = 36, 16

// Bringing a lab up takes little more than starting as many bare containers by hand, all at once.
func TestPrivAsFastAsDockerRun(t *testing.T) {
	usable(t)
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	if _, err := exec.LookPath("docker"); err != nil {
		t.Skip("there is no docker command to compare with")
	}
	e, err := open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer e.api.Close()
	image, err := e.nodeImage(t.Context(), node(t))
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 3 // the best of each: what else the machine does only slows
	bare, hosts, lab := time.Hour, time.Hour, time.Hour
	for range rounds {
		bare = min(bare, bareContainers(t, image, fatTree))
		hosts = min(hosts, labUp(t, fatTreeHosts))
		lab = min(lab, labUp(t, fatTree-1))
	}
	t.Logf("%d bare containers by docker run: %v", fatTree, bare.Round(time.Millisecond))
	for _, c := range []struct {
		what string
		took time.Duration
	}{
		{fmt.Sprintf("a fat-tree of %d nodes, %d containers", fatTree, fatTreeHosts+1), hosts},
		{fmt.Sprintf("a lab of %d containers", fatTree), lab},
	} {
		r := c.took.Seconds() / bare.Seconds()
		t.Logf("%s: %v, ratio %.2f", c.what, c.took.Round(time.Millisecond), r)
		if r > 1.3 {
			t.Errorf("%s takes %.2f times as long as %d bare containers; 1.3 is the bar", c.what, r, fatTree)
		}
	}
}

// bareContainers starts n containers with the docker command, side by side, and removes them.
func bareContainers(t *testing.T, image string, n int) time.Duration {
	t.Helper()
	name := func(i int) string { return fmt.Sprintf("bare-%d-%d", os.Getpid(), i) }
	defer func() {
		args := []string{"rm", "-f"}
		for i := range n {
			args = append(args, name(i))
		}
		if out, err := docker(context.Background(), args...); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}()
	var group errgroup.Group
	start := time.Now()
	for i := range n {
		group.Go(func() error {
			if out, err := docker(t.Context(), "run", "-d", "--network", "none", "--name", name(i), image, "idle"); err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return time.Since(start)
}

// docker runs the docker command on the engine of the tests.
func docker(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.Env = append(os.Environ(), "DOCKER_HOST="+dockertest.Address())
	return cmd.CombinedOutput()
}

// labUp launches a lab of n hosts and closes it.
func labUp(t *testing.T, n int) time.Duration {
	t.Helper()
	spec := lab(n)
	spec.Self = node(t)
	start := time.Now()
	c, err := Launch(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(start)
	start = time.Now()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	t.Logf("%d hosts: up in %v, down in %v", n, took.Round(time.Millisecond), time.Since(start).Round(time.Millisecond))
	return took
}
