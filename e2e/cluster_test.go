package e2e

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/orchestrator/sweep"
	"weft/results/store"
)

// clusterVar is the environment variable with the directory of a cluster that .ci/cluster started:
// see make cluster-test.
const clusterVar = "WEFT_CLUSTER"

// cluster is three Docker Engines in one swarm.
type cluster struct {
	t   *testing.T
	dir string
	d   *workspace
}

// needCluster returns the cluster of the tests, whose machines all have the image of weft. Its
// manager is the engine of the test.
func needCluster(t *testing.T) *cluster {
	t.Helper()
	dir := os.Getenv(clusterVar)
	if dir == "" {
		t.Skip("no cluster: make cluster-test starts one")
	}
	c := &cluster{t: t, dir: dir, d: newWorkspace(t)}
	t.Setenv("DOCKER_HOST", c.engine(1))
	c.load(1, 2, 3)
	return c
}

// engine returns the address of the engine of a machine.
func (c *cluster) engine(n int) string { return fmt.Sprintf("unix://%s/m%d.sock", c.dir, n) }

// load loads the image of weft on machines.
func (c *cluster) load(machines ...int) {
	c.t.Helper()
	file := filepath.Join(c.d.temp, "weft.tar")
	c.d.run("image", "save", file).wantCode(0)
	for _, n := range machines {
		c.program("docker", "-H", c.engine(n), "load", "-q", "-i", file)
	}
}

// program runs a program, which must succeed, and returns what it printed.
func (c *cluster) program(args ...string) string {
	c.t.Helper()
	out, err := exec.CommandContext(c.t.Context(), args[0], args[1:]...).CombinedOutput()
	if err != nil {
		c.t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// do kills, starts, cuts or joins a machine.
func (c *cluster) do(verb string, machine int) {
	c.t.Helper()
	c.program("../.ci/cluster", verb, c.dir, fmt.Sprint(machine))
}

// wantClean fails the test unless weft clean on every machine leaves no service and no container.
func (c *cluster) wantClean() {
	c.t.Helper()
	for n := 1; n <= 3; n++ {
		c.t.Setenv("DOCKER_HOST", c.engine(n))
		c.d.run("clean").wantCode(0)
		if wrong := eventually(patience, func() string { // weft leaves alone what the engine is removing
			return c.program("docker", "-H", c.engine(n), "ps", "-aq", "--filter", "label=weft.sweep")
		}); wrong != "" {
			c.t.Errorf("machine %d has containers %s", n, wrong)
		}
	}
	c.t.Setenv("DOCKER_HOST", c.engine(1))
	if left := c.program("docker", "-H", c.engine(1), "service", "ls", "-q"); left != "" {
		c.t.Errorf("services %s are left", left)
	}
}

// manyPoints returns a lab of points. With 512MB each takes 1.5 s of a processor.
func manyPoints(points int, size string) string {
	var seeds []string
	for i := range points {
		seeds = append(seeds, fmt.Sprint(i+1))
	}
	return "weft: 1\nname: many\ntopology: {kind: star, hosts: 9, link: {rate: 100Gbps, delay: 1us}}\n" +
		"workload: [{collective: incast, ranks: 8, size: " + size + "}]\nsweep: {seed: [" + strings.Join(seeds, ", ") + "]}\n"
}

// finish waits for a sweep and collects it. It resumes the sweep if no task is left to run it.
func (c *cluster) finish(id string) {
	c.t.Helper()
	for range 5 {
		r := c.d.startCommand(c.d.command("sweep", "wait", id, "-q", "--timeout", "1h")).waitLong()
		if r.code == 0 {
			break
		}
		c.t.Logf("resumed: %s", r.stdout)
		c.d.run("sweep", "resume", id).wantCode(0)
	}
	c.d.run("sweep", "collect", id).wantCode(0)
}

// waitLong waits for a process without the limit of an ordinary run.
func (p *process) waitLong() result {
	<-p.done
	return p.wait()
}

// machinesOf returns the number of runs that each machine left.
func machinesOf(t testing.TB, root string) map[string]int {
	t.Helper()
	out := map[string]int{}
	dirs, err := store.Runs(root, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		m, err := store.ReadManifest(dir)
		if err != nil {
			t.Fatal(err)
		}
		out[m.Machine.Host]++
	}
	return out
}

// pointsVar is the environment variable with another number of points for TestClusterSweep,
// TestClusterCollector, TestClusterSlurm and TestClusterPointOutOfMemory. sizeVar is that with
// another size of the points of the first three.
const (
	pointsVar = "WEFT_CLUSTER_POINTS"
	sizeVar   = "WEFT_CLUSTER_SIZE"
)

// pointsAsked returns the value of pointsVar, or n without one.
func pointsAsked(n int) int {
	if asked, err := strconv.Atoi(os.Getenv(pointsVar)); err == nil && asked > 1 {
		return asked
	}
	return n
}

// besideLocal runs a sweep of many points in one process and then with remote on other machines,
// which returns the ID of the collected sweep, logs how long both took and compares their files.
func (d *workspace) besideLocal(remote func(file string) (id string)) {
	d.t.Helper()
	points := pointsAsked(102)
	size := cmp.Or(os.Getenv(sizeVar), "512MB") // 1.5 s of processor time each
	file := d.writeLab("lab.yaml", manyPoints(points, size))
	began := time.Now()
	d.startCommand(d.command("run", file, "--engine", "sim", "--out", "local", "-q")).waitLong().wantCode(0)
	local := time.Since(began)
	began = time.Now()
	id := remote(file)
	took := time.Since(began)
	d.t.Logf("%d points of %s: local %.1f s, there %.1f s: ratio %.2f; by machine %v", points, size, local.Seconds(),
		took.Seconds(), took.Seconds()/local.Seconds(), machinesOf(d.t, filepath.Join(d.dir, "runs")))
	d.wantRuns(id, "many", points)
}

// wantThreeMachines fails the test unless each machine ran some of the points.
func (c *cluster) wantThreeMachines() {
	c.t.Helper()
	if hosts := machinesOf(c.t, filepath.Join(c.d.dir, "runs")); len(hosts) != 3 {
		c.t.Errorf("machines %v", hosts)
	}
}

// A hundred points over three engines leave the bytes of a local sweep, in about its time.
func TestClusterSweep(t *testing.T) {
	c := needCluster(t)
	c.d.besideLocal(func(file string) (id string) {
		id = c.d.submit(file, "--engine", "sim", "--on", "swarm")
		c.finish(id)
		return id
	})
	c.wantThreeMachines()
	c.wantClean()
}

// A worker that dies, and one that is cut off for 30 s, cost only time: every point is in the
// results exactly once, with the bytes of a local sweep.
func TestClusterLosesWorkers(t *testing.T) {
	needCluster(t).lose("m3", []lost{{"killed", "kill", "start", 3}, {"cut off", "cut", "join", 3}})
}

// So does the only manager.
func TestClusterLosesManager(t *testing.T) {
	needCluster(t).lose("m1", []lost{{"killed", "kill", "start", 1}})
}

// lost is how a machine is lost and comes back.
type lost struct {
	what       string
	begin, end string // verbs of .ci/cluster
	machine    int
}

// lose runs a sweep for each loss of the machine with a name, which happens when the machine has
// finished a point and lasts 30 s.
func (c *cluster) lose(machine string, all []lost) {
	const points = 48
	t := c.t
	file := c.d.writeLab("lab.yaml", manyPoints(points, "64MB"))
	c.d.startCommand(c.d.command("run", file, "--engine", "sim", "--out", "local", "-q")).waitLong().wantCode(0)
	for _, lose := range all {
		id := c.d.submit(file, "--engine", "sim", "--on", "swarm", "--shards", "6")
		if wrong := eventually(patience, func() string {
			st := c.d.sweepStatus(id)
			for _, s := range st.Shards {
				if s.Host == machine && s.State == sweep.Running && s.Done > 0 {
					return ""
				}
			}
			return machine + " runs no shard"
		}); wrong != "" {
			t.Fatal(wrong)
		}
		c.do(lose.begin, lose.machine)
		began := time.Now()
		back := make(chan struct{})
		go func() {
			defer close(back)
			<-time.After(30 * time.Second) // how long the machine is away
			c.do(lose.end, lose.machine)
		}()
		c.finish(id)
		t.Logf("%s %s: the rest took %.1f s", machine, lose.what, time.Since(began).Seconds())
		<-back
		wantSameRuns(t, filepath.Join(c.d.dir, "local"), filepath.Join(c.d.dir, "runs"), points)
		if err := os.RemoveAll(filepath.Join(c.d.dir, "runs")); err != nil {
			t.Fatal(err)
		}
	}
	c.wantReady()
	c.wantClean()
}

// wantReady waits until all machines are ready.
func (c *cluster) wantReady() {
	c.t.Helper()
	if wrong := eventually(patience, func() string {
		if out := c.program("docker", "-H", c.engine(1), "node", "ls", "--format", "{{.Status}}"); out != "Ready\nReady\nReady\n" {
			return out
		}
		return ""
	}); wrong != "" {
		c.t.Fatal(wrong)
	}
}

// Points that need more memory than a shard has are given up after three attempts, by name, with a
// shared directory and without one. Every other point is in the results once, with the bytes of a
// local sweep.
func TestClusterPointOutOfMemory(t *testing.T) {
	c := needCluster(t)
	points := pointsAsked(3)
	seeds, hosts := []string{"1"}, []string{"2", "20000"}
	for n := 2; len(seeds) < points/100; n++ {
		seeds = append(seeds, fmt.Sprint(n))
	}
	for n := 3; len(seeds)*len(hosts) < points; n++ {
		hosts = append(hosts, fmt.Sprint(n))
	}
	points = len(seeds) * len(hosts)
	file := c.d.writeLab("lab.yaml", "weft: 1\nname: large\ntopology: {kind: star, hosts: 2}\nworkload: [{collective: "+
		"permute, size: 8KB}]\nsweep: {topology.hosts: ["+strings.Join(hosts, ", ")+"], seed: ["+strings.Join(seeds, ", ")+"]}\n")
	began := time.Now()
	c.d.startCommand(c.d.command("run", file, "--engine", "sim", "--out", "local", "-q")).waitLong().wantCode(0)
	t.Logf("%d points: local %.1f s", points, time.Since(began).Seconds())
	const says = "given up after 3 tries"
	for _, how := range [][]string{{}, {"--collect"}} {
		began := time.Now()
		id := strings.TrimSpace(c.as(append([]string{"sweep", "submit", file, "--engine", "sim", "--on", "swarm", "--memory",
			"192MiB", "--shards", fmt.Sprint(min(24, points-1))}, how...)...).wantCode(0).stdout)
		c.as("sweep", "wait", id, "-q", "--timeout", "1h").wantCode(1).wantPrinted(says)
		st := c.d.sweepStatus(id)
		if st.State != sweep.Failed || st.Done != points || len(st.Problems) != len(seeds) {
			t.Fatalf("%+v", st)
		}
		c.as("sweep", "collect", id).wantCode(1).wantOnStderr(says)
		t.Logf("%v: %.1f s; %d of %d points given up, the first on %v", how, time.Since(began).Seconds(), len(st.Problems), points,
			st.Problems[0].Hosts)
		for _, p := range st.Problems {
			if len(p.Hosts) != 3 || !strings.Contains(p.Name, "topology.hosts=20000") {
				t.Errorf("%+v", p)
			}
			_, number, _ := strings.Cut(filepath.Base(p.Run), "-")
			lost, err := filepath.Glob(filepath.Join(c.d.dir, "local", "large", "*-"+number))
			if err == nil && len(lost) == 1 {
				err = os.RemoveAll(lost[0]) // the first time
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		wantSameRuns(t, filepath.Join(c.d.dir, "local"), filepath.Join(c.d.dir, "runs"), points-len(seeds))
		if err := os.RemoveAll(filepath.Join(c.d.dir, "runs")); err != nil {
			t.Fatal(err)
		}
		c.wantNothing()
	}
}

// slurmVar is the environment variable with the directory of a Slurm cluster that .ci/slurm
// started.
const slurmVar = "WEFT_SLURM"

// openTo gives an ordinary user access to a directory.
func openTo(t *testing.T, dir string) {
	for path := dir; path != filepath.Clean(os.TempDir()) && path != "/"; path = filepath.Dir(path) {
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
}

// slurmWorkspace returns a workspace that every user may use, and the folder of the Slurm cluster.
// It skips the test where there is none.
func slurmWorkspace(t *testing.T) (d *workspace, dir string) {
	t.Helper()
	if dir = os.Getenv(slurmVar); dir == "" {
		t.Skip("no Slurm cluster: make cluster-test starts one")
	}
	t.Setenv("SLURM_CONF", filepath.Join(dir, "slurm.conf"))
	t.Setenv("DOCKER_HOST", "unix:///none")
	d = newWorkspace(t)
	openTo(t, d.dir)
	openTo(t, filepath.Dir(d.state))
	return d, dir
}

// asNobody starts weft as an ordinary user with a home directory.
func (d *workspace) asNobody(home string, args ...string) *process {
	return d.startCommand(asNobody(d.command(args...), home))
}

// asNobody makes a command run as an ordinary user with a home directory.
func asNobody(cmd *exec.Cmd, home string) *exec.Cmd {
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	cmd.Env = append(cmd.Env, "TMPDIR=/tmp", "XDG_CACHE_HOME="+home, "HOME="+home)
	return cmd
}

// An ordinary user's sweep on three machines of Slurm leaves the bytes of a local sweep, in about
// its time.
func TestClusterSlurm(t *testing.T) {
	d, _ := slurmWorkspace(t)
	d.besideLocal(func(file string) (id string) { return d.onSlurm(file, func(string) {}) })
	wantNoJob(t)
}

// So does one whose machine dies meanwhile.
func TestClusterSlurmLosesMachine(t *testing.T) {
	const points = 60
	d, dir := slurmWorkspace(t)
	file := d.writeLab("lab.yaml", manyPoints(points, "64MB"))
	d.startCommand(d.command("run", file, "--engine", "sim", "--out", "local", "-q")).waitLong().wantCode(0)
	id := d.onSlurm(file, func(id string) {
		if wrong := eventually(patience, func() string {
			for _, s := range d.sweepStatus(id).Shards {
				if s.Host == "m3" && s.State == sweep.Running {
					return ""
				}
			}
			return "m3 runs no shard"
		}); wrong != "" {
			t.Fatal(wrong)
		}
		slurm(t, "kill", dir, "3")
	})
	d.wantRuns(id, "many", points)
	wantNoJob(t)
	slurm(t, "start", dir, "3")
}

// onSlurm runs a sweep on Slurm as an ordinary user, calls lose once it is submitted, and returns
// its ID when it is collected.
func (d *workspace) onSlurm(file string, lose func(id string)) (id string) {
	d.t.Helper()
	nobody := func(args ...string) *process { return d.asNobody("/tmp", args...) }
	id = strings.TrimSpace(nobody("sweep", "submit", file, "--engine", "sim", "--on", "slurm").wait().wantCode(0).stdout)
	lose(id)
	nobody("sweep", "wait", id, "-q").waitLong().wantCode(0)
	nobody("sweep", "collect", id).waitLong().wantCode(0)
	return id
}

// slurm runs .ci/slurm.
func slurm(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "../.ci/slurm", args...).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
}
