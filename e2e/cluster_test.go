package e2e

import (
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
	"weft/orchestrator/sweep/shard"
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

// manyPoints returns a lab of points. With 128MB each takes half a second of a processor.
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
func machinesOf(t *testing.T, root string) map[string]int {
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

// pointsVar is the environment variable with another number of points for the sweeps of
// TestClusterSweep and TestClusterCollector, which are short then, and for that of
// TestClusterPointOutOfMemory.
const pointsVar = "WEFT_CLUSTER_POINTS"

// pointsAsked returns the value of pointsVar; ok is false without one.
func pointsAsked() (n int, ok bool) {
	n, err := strconv.Atoi(os.Getenv(pointsVar))
	return n, err == nil && n > 1
}

// besideLocal runs a sweep of many points in one process and then with remote on the cluster, and
// logs how long both took. Each machine must have run some of the points.
func (c *cluster) besideLocal(remote func(file string, points int)) (points int) {
	c.t.Helper()
	points, size := 102, "512MB" // two seconds of processor time each
	if n, ok := pointsAsked(); ok {
		points, size = n, "1MB"
	}
	file := c.d.writeLab("lab.yaml", manyPoints(points, size))
	began := time.Now()
	c.d.startCommand(c.d.command("run", file, "--engine", "sim", "--out", "local", "-q")).waitLong().wantCode(0)
	local := time.Since(began)
	began = time.Now()
	remote(file, points)
	took := time.Since(began)
	hosts := machinesOf(c.t, filepath.Join(c.d.dir, "runs"))
	c.t.Logf("local %.1f s, cluster %.1f s: ratio %.2f; points by machine %v", local.Seconds(), took.Seconds(),
		took.Seconds()/local.Seconds(), hosts)
	if len(hosts) != 3 {
		c.t.Errorf("machines %v", hosts)
	}
	return points
}

// A hundred points over three engines leave the bytes of a local sweep, in about its time.
func TestClusterSweep(t *testing.T) {
	c := needCluster(t)
	var id string
	points := c.besideLocal(func(file string, _ int) {
		id = c.d.submit(file, "--engine", "sim", "--on", "swarm")
		c.finish(id)
	})
	wantSameRuns(t, filepath.Join(c.d.dir, "local"), filepath.Join(c.d.dir, "runs"), points)
	if left := store.EntryNames(filepath.Join(c.d.dir, "runs", "many", id, shard.Folder)); fmt.Sprint(left) !=
		"[collected notes rounds submission.json]" {
		t.Errorf("left %v", left)
	}
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
	points, ok := pointsAsked()
	if !ok {
		points = 3
	}
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

// An ordinary user's sweep on Slurm leaves the bytes of a local sweep, also if a machine dies
// meanwhile.
func TestClusterSlurm(t *testing.T) {
	const points = 60
	d, dir := slurmWorkspace(t)
	file := d.writeLab("lab.yaml", manyPoints(points, "64MB"))
	nobody := func(args ...string) *process { return d.asNobody("/tmp", args...) }
	began := time.Now()
	d.startCommand(d.command("run", file, "--engine", "sim", "--out", "local", "-q")).waitLong().wantCode(0)
	local := time.Since(began)
	for _, kill := range []bool{false, true} {
		began = time.Now()
		id := strings.TrimSpace(nobody("sweep", "submit", file, "--engine", "sim", "--on", "slurm").wait().wantCode(0).stdout)
		if kill {
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
			if out, err := exec.CommandContext(t.Context(), "../.ci/slurm", "kill", dir, "3").CombinedOutput(); err != nil {
				t.Fatal(err, string(out))
			}
		}
		nobody("sweep", "wait", id, "-q").waitLong().wantCode(0)
		nobody("sweep", "collect", id).waitLong().wantCode(0)
		remote := time.Since(began)
		t.Logf("m3 killed: %v; local %.1f s, Slurm %.1f s: ratio %.2f", kill, local.Seconds(), remote.Seconds(),
			remote.Seconds()/local.Seconds())
		wantSameRuns(t, filepath.Join(d.dir, "local"), filepath.Join(d.dir, "runs"), points)
		left := store.EntryNames(filepath.Join(d.dir, "runs", "many", id, shard.Folder))
		if fmt.Sprint(left) != "[collected notes rounds submission.json]" {
			t.Errorf("left %v", left)
		}
		if err := os.RemoveAll(filepath.Join(d.dir, "runs")); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), "squeue", "--noheader").CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("jobs are left: %s, %v", out, err)
	}
	if out, err := exec.CommandContext(t.Context(), "../.ci/slurm", "start", dir, "3").CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
}
