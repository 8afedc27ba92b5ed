package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/testenv"
	"weft/results/store"
)

// placedLab is acrossLab for as long as it takes to break something.
const placedLab = "workload.0.repeat=2000"

// on returns a command of weft on machine n.
func (c *cluster) on(n int, args ...string) *exec.Cmd { return c.into(n, c.d.command(args...)) }

// into moves a command to machine n.
func (c *cluster) into(n int, cmd *exec.Cmd) *exec.Cmd {
	c.t.Helper()
	pid, err := os.ReadFile(fmt.Sprintf("%s/net%d.pid", c.dir, n))
	if err != nil {
		c.t.Fatal(err)
	}
	cmd.Args = append([]string{"nsenter", "--net=/proc/" + strings.TrimSpace(string(pid)) + "/ns/net", cmd.Path},
		cmd.Args[1:]...)
	cmd.Path = "/usr/bin/nsenter"
	return cmd
}

// untilRuns waits until a process has said that hosts do something.
func untilRuns(t *testing.T, p *process) {
	t.Helper()
	if wrong := eventually(patience, func() string {
		if text := p.stderr.String(); !strings.Contains(text, "m2 is ") {
			return "it does not run: " + text
		}
		return ""
	}); wrong != "" {
		t.Fatal(wrong)
	}
	<-time.After(3 * time.Second) // some of the workload
}

// wantNothing fails the test unless no service, secret or container is left, after weft clean on
// every machine.
func (c *cluster) wantNothing() {
	c.t.Helper()
	if wrong := eventually(patience, func() string {
		for n := 1; n <= 3; n++ {
			if left := c.program("docker", "-H", c.engine(n), "ps", "-q", "--filter", "label=weft.agents"); left != "" {
				return fmt.Sprintf("machine %d still runs %s", n, left)
			}
		}
		return ""
	}); wrong != "" {
		c.t.Error(wrong)
	}
	c.wantClean()
	if left := c.program("docker", "-H", c.engine(1), "secret", "ls", "-q"); left != "" {
		c.t.Errorf("secrets %s are left", left)
	}
}

// A lab runs on machines that a swarm chooses. Whatever is killed, the run ends by the name of the
// machine, and nothing is left.
func TestClusterMachines(t *testing.T) {
	c := needCluster(t)
	c.d.writeLab("lab.yaml", acrossLab)
	run := []string{"run", "lab.yaml", "--on", "swarm:2"}
	r := c.d.startCommand(c.on(1, run...)).wait().wantCode(0)
	r.wantPrinted("data verified", "packets between parts of the network")
	t.Log(r.stdout)
	c.wantNothing()

	c.d.startCommand(c.on(1, "run", "lab.yaml", "--on", "swarm:2", "--image", "sha256:"+strings.Repeat("12", 32))).wait().
		wantCode(1).wantPrinted("No such image")
	c.wantNothing()

	long := append(run, "--set", placedLab)
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT} {
		p := c.d.startCommand(c.on(1, long...))
		untilRuns(t, p)
		p.signal(signal)
		p.wait()
		c.wantNothing()
	}
	for _, loss := range []struct{ begin, end string }{{"cut", "join"}, {"kill", "start"}} {
		p := c.d.startCommand(c.on(1, append(long, "--set", "seed=3")...))
		untilRuns(t, p)
		host := "m2"
		if strings.Contains(p.stderr.String(), "m3") {
			host = "m3"
		}
		began := time.Now()
		c.do(loss.begin, int(host[1]-'0'))
		r := p.wait().wantCode(1)
		took := time.Since(began)
		if t.Logf("%s %s: weft ended after %.1f s", host, loss.begin, took.Seconds()); took > 8*time.Second {
			t.Errorf("weft ended %v after %s", took, host)
		}
		if !strings.Contains(r.stdout+r.stderr, "m2") {
			t.Errorf("no word of m2:\n%s%s", r.stdout, r.stderr)
		}
		c.do(loss.end, int(host[1]-'0'))
		c.wantReady()
		c.wantNothing()
	}
}

// standing is a lab that stays up on machines that an engine chooses.
type standing struct {
	*workspace
	start func(args ...string) *process
	on    []string
	left  func() // fails the test unless the engine has nothing of labs any more
}

// weft runs weft where the lab was deployed.
func (l *standing) weft(args ...string) result {
	l.t.Helper()
	return l.start(args...).waitLong()
}

func (l *standing) deploy() result { return l.weft(append([]string{"deploy", "lab.yaml"}, l.on...)...) }

// clean runs weft clean, after which nothing may be left.
func (l *standing) clean() {
	l.t.Helper()
	l.weft("clean").wantCode(0)
	if wrong := eventually(patience, func() string {
		if all := processesOf(l.t.(*testing.T), "weft supervise", l.state); len(all) > 0 {
			return fmt.Sprintf("processes %v are left", all)
		}
		return ""
	}); wrong != "" {
		l.t.Error(wrong)
	}
	if names := store.EntryNames(l.state); len(names) > 0 {
		l.t.Errorf("%v are left", names)
	}
	l.left()
}

// stays tests a lab that stays up: its verbs, its end, and what is left by a command and by a
// supervisor that are killed at any time.
func (l *standing) stays() {
	t := l.t.(*testing.T)
	l.deploy().wantCode(0).wantPrinted("is up after", "m1 is ", "m2 is ")
	l.deploy().wantCode(0).wantPrinted("is up already")
	l.weft("inspect").wantCode(0).wantPrinted("machines: m1 is ", "on m2")
	l.weft("clean").wantCode(0).wantPrinted("across: running")
	l.weft("link", "across", "h3-leaf1", "down").wantCode(0)
	l.weft("inspect").wantCode(0).wantPrinted("(changed)")
	l.weft("link", "across", "h3-leaf1", "up").wantCode(0)
	began := time.Now()
	l.weft("destroy").wantCode(0).wantPrinted("is down after")
	t.Logf("destroyed in %.1f s", time.Since(began).Seconds())
	l.left() // before any clean
	l.clean()

	took, up, down := time.Duration(0), 0, 0
	for k := 0; k < 7; k++ {
		began := time.Now()
		p := l.start(append([]string{"deploy", "lab.yaml"}, l.on...)...)
		if k == 0 { // until it is up
			<-p.done
			took = time.Since(began)
		} else {
			<-time.After(time.Duration(k) * took / 7) // an instant of the deployment, not an event
		}
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.done
		for _, pid := range processesOf(t, "weft supervise", l.state) {
			if k%2 == 1 {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
			}
		}
		if r := l.weft("clean").wantCode(0); strings.Contains(r.stdout, "across: running") {
			up++ // it was up when its command was killed, and stays
			l.weft("destroy").wantCode(0)
		} else {
			down++
		}
		l.clean()
	}
	t.Logf("killed in a deployment of %v; up %d times, down %d times", took, up, down)
}

// A lab stays up on agents that an engine places, here processes of this machine.
func TestPrivDeployOnEngine(t *testing.T) {
	testenv.NeedEmulation(t)
	d, f := newWorkspace(t), newFakeSwarm(t)
	d.writeLab("lab.yaml", acrossLab)
	l := &standing{workspace: d, start: func(args ...string) *process { return d.start(args...) },
		on: []string{"--on", "swarm:2", "--image", "sha256:" + strings.Repeat("12", 32)}, left: func() { f.wantNothing(d) }}
	d.run("deploy", "lab.yaml", "--on", "swarm:2").wantCode(1).wantPrinted("1 machine take work (m1)")
	f.nodes = 2
	d.run("deploy", "lab.yaml", "--on", "swarm:2", "--image", "weft:1").wantCode(1).wantPrinted("name it by its digest")
	l.clean()
	l.stays()
}

// withPing returns the ID of an image with weft and ping, which all machines have.
func (c *cluster) withPing() string {
	c.t.Helper()
	dir := filepath.Join(c.d.temp, "image")
	id := strings.TrimSpace(c.program("sh", "-ec", `mkdir -p "$1/tmp" && cp "$2" "$1/weft" && chmod 1777 "$1/tmp"
for f in /usr/bin/ping $(ldd /usr/bin/ping | grep -o '/[^ )]*'); do
	mkdir -p "$1$(dirname "$f")" && cp -L "$f" "$1$f"
done
tar -C "$1" -c . | docker -H "$3" import -c 'ENTRYPOINT ["/weft"]' - `, "sh", dir, weft, c.engine(1)))
	for n := 2; n <= 3; n++ {
		c.program("sh", "-ec", `docker -H "$1" save "$3" | docker -H "$2" load -q`, "sh", c.engine(1), c.engine(n), id)
	}
	return id
}

// A lab stays up on machines that a swarm chooses, and programs of an image run in it. A machine
// that is lost is named.
func TestClusterDeploy(t *testing.T) {
	c := needCluster(t)
	c.d.writeLab("lab.yaml", acrossLab)
	l := &standing{workspace: c.d, start: func(args ...string) *process { return c.d.startCommand(c.on(1, args...)) },
		on: []string{"--on", "swarm:2"}, left: c.wantNothing}
	l.stays()
	l.on = append(l.on, "--image", c.withPing())
	l.deploy().wantCode(0)
	l.weft("exec", "h0", "--", "ping", "-c", "1", "-W", "5", "h3").wantCode(0).wantPrinted("1 received")
	l.weft("destroy").wantCode(0)
	for _, loss := range []struct{ begin, end string }{{"kill", "start"}, {"cut", "join"}} {
		r := l.deploy().wantCode(0)
		host := "m2"
		if strings.Contains(r.stderr, "m2 is m3") {
			host = "m3"
		}
		c.do(loss.begin, int(host[1]-'0'))
		l.weft("exec", "h3", "--", "ping", "-c", "1", "h0").wantCode(125).wantPrinted("m2")
		if wrong := eventually(patience, func() string {
			if r := l.weft("inspect"); !strings.Contains(r.stdout, "broken: ") || !strings.Contains(r.stdout, "m2 is "+host) {
				return r.stdout + r.stderr
			}
			return ""
		}); wrong != "" {
			t.Errorf("%s %s: %s", host, loss.begin, wrong)
		}
		l.weft("destroy").wantCode(0)
		c.do(loss.end, int(host[1]-'0'))
		c.wantReady()
		l.clean()
	}
	l.deploy().wantCode(0)
	c.do("kill", 1)
	l.weft("destroy").wantCode(1).wantPrinted("Cannot connect to the Docker daemon")
	c.do("start", 1)
	c.wantReady()
	l.weft("clean").wantCode(0).wantPrinted("across: removed")
	l.clean()
}

// Clocks 10^6 s apart that drift by 190 ppm are followed for a minute: without that, packets one
// way would be too late after 14 s.
func TestClusterClocks(t *testing.T) {
	c := needCluster(t)
	program := filepath.Join(c.d.temp, "weft")
	c.program("go", "build", "-tags", "weftskew", "-o", program, "../cmd/weft")
	c.d.newSecret()
	c.d.writeLab("lab.yaml", acrossLab)
	skewed := func(n, monotonic int, args ...string) *exec.Cmd {
		cmd := c.on(n)
		cmd.Args = append(append(cmd.Args[:len(cmd.Args)-1], "unshare", "--time", "--monotonic", fmt.Sprint(monotonic),
			program), args...)
		return cmd
	}
	for n, monotonic := range map[int]int{2: 0, 3: 1_000_190} {
		agent := c.d.startCommand(skewed(n, monotonic, "machine", "--listen", fmt.Sprintf("10.213.0.%d:7788", n),
			"--secret", "secret"))
		agent.awaitOutput(&agent.stderr, "listening")
		defer agent.signal(syscall.SIGKILL)
	}
	for range 3 { // other programs make packets late, too
		r := c.d.startCommand(skewed(1, 0, "run", "lab.yaml", "--on", "10.213.0.2:7788,10.213.0.3:7788", "--secret",
			"secret", "--dilation", "2000", "--set", "workload.0.repeat=28", "--set", "workload.0.size=100KB", "--set",
			"workload.0.compute=1ms", "--json")).waitLong().wantCode(0)
		f := r.summaries()[0].Fidelity
		t.Logf("%d of %d packets came too late; fidelity %s; %s", f.LateCrossings, f.Crossings, f.Verdict, r.stderr)
		if f.LateCrossings == 0 && f.Crossings > 0 {
			return
		}
	}
	t.Error("packets came too late in each run; is the machine busy?")
}

// An ordinary user runs a lab on machines that Slurm chooses. No job is left, whichever process is
// killed.
func TestClusterSlurmMachines(t *testing.T) {
	d, dir := slurmWorkspace(t)
	openTo(t, filepath.Dir(weft))
	d.writeLab("lab.yaml", acrossLab)
	nobody := func(args ...string) *process { return d.asNobody(d.dir, args...) }
	run := []string{"run", "lab.yaml", "--on", "slurm:2"}
	r := nobody(run...).wait().wantCode(0)
	r.wantPrinted("data verified")
	t.Log(r.stdout)
	wantNoJob(t)
	long := append(run, "--set", placedLab)
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT} {
		p := nobody(long...)
		untilRuns(t, p)
		p.signal(signal)
		p.wait()
		wantNoJob(t)
	}
	p := nobody(long...)
	untilRuns(t, p)
	slurm(t, "kill", dir, "2")
	began := time.Now()
	r = p.wait().wantCode(1)
	took := time.Since(began)
	if t.Logf("m2 killed: weft ended after %.1f s", took.Seconds()); took > 15*time.Second {
		t.Errorf("weft ended %v after m2", took)
	}
	if !strings.Contains(r.stdout+r.stderr, "m2") {
		t.Errorf("no word of m2:\n%s%s", r.stdout, r.stderr)
	}
	wantNoJob(t)
	slurm(t, "start", dir, "2")
}

// An ordinary user's lab stays up on machines that Slurm chooses, with the programs that they have.
func TestClusterSlurmDeploy(t *testing.T) {
	d, _ := slurmWorkspace(t)
	openTo(t, filepath.Dir(weft))
	d.writeLab("lab.yaml", acrossLab)
	l := &standing{workspace: d, start: func(args ...string) *process { return d.asNobody(d.dir, args...) },
		on: []string{"--on", "slurm:2"}, left: func() { wantNoJob(t) }}
	l.stays()
	l.deploy().wantCode(0)
	l.weft("exec", "h0", "--", "ping", "-c", "1", "-W", "5", "h3").wantCode(0).wantPrinted("1 received")
	l.weft("destroy").wantCode(0)
	l.clean()
}

// wantNoJob fails the test unless Slurm has no job any more.
func wantNoJob(t *testing.T) {
	t.Helper()
	if wrong := eventually(patience, func() string {
		out, err := exec.CommandContext(t.Context(), "squeue", "--noheader").CombinedOutput()
		if err != nil || len(out) > 0 {
			return fmt.Sprintf("jobs are left: %s %v", out, err)
		}
		return ""
	}); wrong != "" {
		t.Error(wrong)
	}
}
