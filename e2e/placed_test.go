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

// Clocks 10^6 s apart that drift by 190 ppm are followed: without that, packets one way would be
// too late after 14 of 30 s.
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
	share := 1.0
	for range 3 { // other programs make packets late, too
		r := c.d.startCommand(skewed(1, 0, "run", "lab.yaml", "--on", "10.213.0.2:7788,10.213.0.3:7788", "--secret",
			"secret", "--dilation", "2000", "--set", "workload.0.repeat=14", "--set", "workload.0.size=100KB", "--set",
			"workload.0.compute=1ms", "--json")).waitLong().wantCode(0)
		f := r.summaries()[0].Fidelity
		share = float64(f.LateCrossings) / float64(f.Crossings)
		t.Logf("%d of %d packets came too late; fidelity %s; %s", f.LateCrossings, f.Crossings, f.Verdict, r.stderr)
		if share < 0.02 {
			return
		}
	}
	t.Errorf("%.0f %% of the packets came too late", 100*share)
}

// An ordinary user runs a lab on machines that Slurm chooses. No job is left, whichever process is
// killed.
func TestClusterSlurmMachines(t *testing.T) {
	d, dir := slurmWorkspace(t)
	openTo(t, filepath.Dir(weft))
	d.writeLab("lab.yaml", acrossLab)
	nobody := func(args ...string) *process { return d.asNobody(d.dir, args...) }
	wantNoJob := func() {
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
	run := []string{"run", "lab.yaml", "--on", "slurm:2"}
	r := nobody(run...).wait().wantCode(0)
	r.wantPrinted("data verified")
	t.Log(r.stdout)
	wantNoJob()
	long := append(run, "--set", placedLab)
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT} {
		p := nobody(long...)
		untilRuns(t, p)
		p.signal(signal)
		p.wait()
		wantNoJob()
	}
	p := nobody(long...)
	untilRuns(t, p)
	if out, err := exec.CommandContext(t.Context(), "../.ci/slurm", "kill", dir, "2").CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	began := time.Now()
	r = p.wait().wantCode(1)
	took := time.Since(began)
	if t.Logf("m2 killed: weft ended after %.1f s", took.Seconds()); took > 15*time.Second {
		t.Errorf("weft ended %v after m2", took)
	}
	if !strings.Contains(r.stdout+r.stderr, "m2") {
		t.Errorf("no word of m2:\n%s%s", r.stdout, r.stderr)
	}
	wantNoJob()
	if out, err := exec.CommandContext(t.Context(), "../.ci/slurm", "start", dir, "2").CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
}
