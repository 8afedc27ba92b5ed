package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/dockertest"
	"weft/internal/quiettest"
	"weft/internal/sample"
	"weft/internal/testenv"
	"weft/orchestrator/kernelpath"
	"weft/orchestrator/runtime/docker"
	"weft/results/record"
)

// needDocker skips a test where labs cannot be run in Docker.
func needDocker(t testing.TB) {
	t.Helper()
	testenv.NeedEmulation(t)
	if _, err := docker.Probe(t.Context(), dockertest.Host(t)); err != nil {
		t.Skip(err)
	}
}

// describeContainers describes the containers of a lab that are left; "" if there are none, or no
// Docker.
func describeContainers(t testing.TB, lab string) string {
	t.Helper()
	if _, err := exec.LookPath("docker"); err != nil {
		return ""
	}
	cmd := exec.Command("docker", "ps", "-aq", "--filter", "label=weft.lab="+lab)
	cmd.Env = append(os.Environ(), "DOCKER_HOST="+dockertest.Address())
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		return fmt.Sprintf("containers are left: %s (%v)", out, err)
	}
	return ""
}

// checkNoContainers fails the test unless no container of a lab is left.
func checkNoContainers(t testing.TB, lab string) {
	t.Helper()
	if what := describeContainers(t, lab); what != "" {
		t.Error(what)
	}
}

// What the workload is depends neither on where nodes live nor on what they send through.
func TestPrivQuickstartInDocker(t *testing.T) {
	needDocker(t)
	var first *record.Summary
	for _, c := range []struct{ runtime, nic string }{{"namespace", "socket"}, {"docker", "socket"}, {"docker", "bypass"}} {
		d := newWorkspace(t)
		d.run("run", libraryLab(t, "quickstart.yaml"), "--runtime", c.runtime, "--set", "engine.nic="+c.nic,
			"--json").wantCode(0)
		_, got := d.summary()
		wantDone(t, got)
		if got.Runtime != c.runtime || got.Engine != "emu" {
			t.Errorf("ran in %s, not %s", got.Runtime, c.runtime)
		}
		t.Logf("%+v: dilation %g, %.1f s, %+v, flows %+v", c, got.Dilation, got.WallS, *got.Fidelity, got.Flows)
		if first == nil {
			first = got
		}
		if first.Flows.Count != got.Flows.Count || first.Flows.Bytes != got.Flows.Bytes ||
			len(first.Collectives) != len(got.Collectives) {
			t.Errorf("%+v: %d flows of %d bytes, and %d of %d in namespaces", c, got.Flows.Count, got.Flows.Bytes,
				first.Flows.Count, first.Flows.Bytes)
		}
	}
	checkNoContainers(t, "quickstart")
}

// switchedLab returns a lab of four hosts on two switches that are nodes, with the given delay.
func switchedLab(delay string) string {
	return `weft: 1
name: switched
topology: {kind: dumbbell, hosts: 2, link: {rate: 100Gbps, delay: ` + delay + `}, mtu: 4096}
queues: {ecn: {kmin: 40KB, kmax: 160KB, pmax: 0.2, mark: ingress}}
workload: [{collective: all-to-all, size: 64kB}]
expect: [verified == true, unfinished == 0]
engine: {datapath: kernel, dilation: 2000}
`
}

// Containers are switches of the kernel datapath: a run's, whose delays and marks are measured and
// which are gone after it, and a deployed lab's, which programs run in.
func TestPrivKernelInDocker(t *testing.T) {
	needDocker(t)
	kernel, err := kernelpath.Available()
	if err != nil {
		t.Skip(err)
	}
	d := newWorkspace(t)
	file := d.writeLab("switched.yaml", switchedLab("1us"))
	d.run("run", file, "--runtime", "docker", "--json").wantCode(0)
	dir, got := d.summary()
	wantDone(t, got)
	if got.Runtime != "docker" || got.Engine != "emu" {
		t.Errorf("ran in %s", got.Runtime)
	}
	links, err := os.ReadFile(filepath.Join(dir, "links.txt"))
	if err != nil {
		t.Fatal(err)
	}
	wantMeasured(t, string(links))
	checkNoContainers(t, "switched")
	if !kernel.Delays() {
		if r := d.run("deploy", file, "--runtime", "docker").wantCode(1); !strings.Contains(r.stderr, "netem") {
			t.Errorf("said %q", r.stderr)
		}
		return
	}
	d.run("deploy", file, "--runtime", "docker").wantCode(0)
	t.Cleanup(func() { d.run("destroy", "switched") })
	if r := d.run("exec", "--lab", "switched", "switch0", "--", "ip", "route").wantCode(0); !strings.Contains(r.stdout, "nhid") {
		t.Errorf("routes of switch0:\n%s", r.stdout)
	}
	d.run("exec", "--lab", "switched", "h0", "--", "ping", "-c", "1", "-W", "5", "h3").wantCode(0)
	d.run("destroy", "switched").wantCode(0)
	checkNoContainers(t, "switched")
}

// wantMeasured checks that links.txt has measured delays, rates and marks of both directions
// between the switches of switchedLab. The run itself fails if one misses its contract, so the
// bounds here tell only a measured number from a missing one.
func wantMeasured(t *testing.T, links string) {
	t.Helper()
	for _, direction := range []string{"switch0 > switch1", "switch1 > switch0"} {
		for _, want := range []string{
			`delay and one packet +\S+ +[1-9][\d.]*(µs|ms)`,
			`rate +50Mbps +(4[89]|5[01])\.?\d*Mbps`,
			`marks +from 40KB, all from 160KB +from [1-9][\d.]*KB; 0 too early, 0 missing`,
		} {
			if !regexp.MustCompile(`(?m)^` + direction + ` +` + want).MatchString(links) {
				t.Errorf("no %s of %s was measured:\n%s", strings.Fields(want)[0], direction, links)
			}
		}
	}
}

// Where there is no engine, or not the image, the run fails with a way out; it is not simulated
// instead.
func TestDockerThatIsNotThere(t *testing.T) {
	testenv.NeedEmulation(t)
	d := newWorkspace(t)
	cmd := d.command("run", libraryLab(t, "quickstart.yaml"), "--runtime", "docker")
	cmd.Env = append(cmd.Env, "DOCKER_HOST=unix://"+filepath.Join(d.temp, "absent"))
	r := d.startCommand(cmd).wait().wantCode(1)
	for _, want := range []string{"there is no engine", "systemctl start docker", "--runtime namespace"} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("said %q, expected %q", r.stderr, want)
		}
	}
	file := d.writeLab("sim.yaml", labWithPrograms("image: \"weft-absent:1\""))
	if r := d.run("run", file, "--runtime", "namespace").wantCode(2); !strings.Contains(r.stderr, "sim.yaml:6:") ||
		!strings.Contains(r.stderr, "--runtime docker") {
		t.Errorf("said %q", r.stderr)
	}
	if r := d.run("run", file, "--engine", "sim").wantCode(2); !strings.Contains(r.stderr, "--engine emu") {
		t.Errorf("said %q", r.stderr)
	}
}

// labWithPrograms returns a lab of two hosts. more is added to the keys of the first.
func labWithPrograms(more string) string {
	return `weft: 1
name: programs
topology:
  kind: custom
  nodes:
    - {name: h0, ` + more + `}
    - {name: h1}
    - {name: s0, switch: true}
  links: [{between: [h0, s0]}, {between: [h1, s0]}]
workload: [{collective: all-reduce, size: 1MB}]
expect: [verified == true]
`
}

// importImage makes an image of some files, and removes it after the test.
func importImage(t *testing.T, name string, files ...string) {
	t.Helper()
	args := []string{"-cf", "-"}
	for _, f := range files {
		args = append(args, "-C", filepath.Dir(f), filepath.Base(f))
	}
	tar := exec.Command("tar", args...)
	load := exec.Command("docker", "import", "-", name)
	load.Env = append(os.Environ(), "DOCKER_HOST="+dockertest.Address())
	var err error
	if load.Stdin, err = tar.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := tar.Start(); err != nil {
		t.Skip(err)
	}
	if out, err := load.CombinedOutput(); err != nil {
		t.Skipf("%v: %s", err, out)
	}
	if err := tar.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		remove := exec.Command("docker", "rmi", name)
		remove.Env = load.Env
		if out, err := remove.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
}

// A program of the workload may be one of an image. It reads lab time and files of the lab, and
// nothing is left of its containers and volumes.
func TestPrivProgramOfTheWorkloadInAnImage(t *testing.T) {
	needDocker(t)
	needLabTime(t)
	self := testProgram(t)
	const name = "weft-e2e/clock:1"
	importImage(t, name, self)
	own := "/" + filepath.Base(self)
	d := newWorkspace(t)
	lab := d.writeLab("clock.yaml", fmt.Sprintf(`
weft: 1
name: image-clock
topology: {kind: star, hosts: 2, link: {rate: 1Gbps, delay: 10us}}
workload: [{program: [%s, %s], image: "%s", metrics: '(?P<clock_ns>-?\d+) ns', files: [clock.yaml]}]
expect: [metric.clock_ns.count == 200, metric.clock_ns.0 > 0s, metric.clock_ns.0 < 1s]
engine: {dilation: 100}
`, own, printClock, name))
	d.run("run", lab).wantCode(0)
	_, s := d.summary()
	for _, h := range s.Programs[0].Hosts {
		if h.Failed() || h.Lines != 100 {
			t.Errorf("%+v", h)
		}
	}
	if s.Runtime != "docker" || s.Transport != "programs" || len(s.Expect) != 3 {
		t.Errorf("%+v", s)
	}
	d.run("run", lab, "--runtime", "namespace").wantCode(2).wantPrinted("clock.yaml:5:", "--runtime docker")
	d.run("run", lab, "--set", "workload.0.program=[/absent]").wantCode(1).wantPrinted("no such file")
	checkNoContainers(t, "image-clock")
}

// In a deployed lab a host's program of an image reads lab time with clock: lab beside it.
func TestPrivClockOfAHostsImage(t *testing.T) {
	needDocker(t)
	needLabTime(t)
	self := testProgram(t)
	const name = "weft-e2e/tell:1"
	importImage(t, name, self)
	checkHostsClocks(t, "docker", fmt.Sprintf("image: \"%s\", run: [/%s, %s", name, filepath.Base(self), tellClock))
	checkNoContainers(t, "hosts-clocks")
}

// A host's program of an image runs beside the workload, in a container of its own.
func TestPrivProgramOfAnImageInALab(t *testing.T) {
	needDocker(t)
	d := newWorkspace(t)
	d.run("run", d.writeLab("a.yaml", labWithPrograms(`image: "weft-absent:1"`))).wantCode(1).wantPrinted("docker pull weft-absent:1")
	const name = "weft-e2e/user:1"
	importImage(t, name, weft)
	own := "/" + filepath.Base(weft)
	lab := labWithPrograms(`image: "` + name + `", run: [` + own + `, version]`)
	// The run takes some seconds and then ends the program, on a busy machine before it has begun.
	quiettest.Check(t, 3, func() error {
		d := newWorkspace(t)
		d.run("run", d.writeLab("b.yaml", lab), "--dilation", slow, "--set", "workload.0.size=8MB").wantCode(0)
		dir, s := d.summary()
		wantDone(t, s)
		text, err := os.ReadFile(filepath.Join(dir, "output.log"))
		if err != nil || !strings.HasPrefix(string(text), "h0: weft ") || s.Runtime != "docker" {
			return fmt.Errorf("wrote %q, %v, in %s", text, err, s.Runtime)
		}
		return nil
	})
	checkNoContainers(t, "programs")
}

// Ctrl-C in any phase of a run ends it in order: the exit code is that of an interruption, and no
// container is left when the program has ended. After Ctrl-C twice, which ends it at once, one weft
// clean leaves none.
func TestPrivInterruptedInDocker(t *testing.T) {
	needDocker(t)
	type interrupt struct {
		phase        string
		after, again time.Duration // again: 0 for a single signal
	}
	once := sample.Of(t, 1,
		interrupt{"at the beginning", 100 * time.Millisecond, 0},
		interrupt{"while it starts", 600 * time.Millisecond, 0},
		interrupt{"while it runs", 2 * time.Second, 0})
	twice := sample.Of(t, 1,
		interrupt{"twice while it starts", 600 * time.Millisecond, 100 * time.Millisecond},
		interrupt{"twice while it runs", 2 * time.Second, 100 * time.Millisecond},
		interrupt{"twice at once", 2 * time.Second, time.Millisecond})
	for _, c := range append(once, twice...) {
		t.Run(c.phase, func(t *testing.T) {
			d := newWorkspace(t)
			d.run("clean") // empty control groups of labs that other tests killed
			p := d.start("run", libraryLab(t, "quickstart.yaml"), "--runtime", "docker", "--dilation", slow)
			// before it says anything the signal may end it as it ends any program
			if what := eventually(patience, func() string {
				if p.stderr.String() == "" && len(d.runs()) == 0 && p.running() {
					return "it says nothing"
				}
				return ""
			}); what != "" {
				t.Fatal(what)
			}
			<-time.After(c.after)
			p.signal(syscall.SIGINT)
			if c.again > 0 {
				<-time.After(c.again)
				_ = p.cmd.Process.Signal(syscall.SIGINT) // it may have ended
			}
			r := p.wait()
			if c.again == 0 {
				r.wantCode(130)
			} else if r.code != 130 && r.code != -1 { // the second ends it as any signal ends a program
				t.Errorf("exit code %d", r.code)
			}
			if strings.Contains(r.stderr, "without results") || strings.Contains(r.stderr, "measure what") {
				t.Errorf("said %q", r.stderr)
			}
			if c.again > 0 {
				d.run("clean").wantCode(0)
			}
			checkNoContainers(t, "quickstart")
			if r := d.run("clean").wantCode(0); !r.foundNothing() {
				t.Errorf("clean found something: %s", r.stdout)
			}
		})
	}
}
