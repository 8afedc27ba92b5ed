package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/sample"
	"weft/internal/testenv"
	"weft/orchestrator/deploy"
)

// pair is the smallest lab.
const pair = `
weft: 1
name: pair
topology: {kind: star, hosts: 2, link: {rate: 10Mbps, delay: 1ms}}
engine: {dilation: 1}
`

// Whoever is killed while a lab is being deployed or destroyed in Docker, `weft clean` removes what
// is left.
func TestPrivKilledInDocker(t *testing.T) {
	needDocker(t)
	began := time.Now()
	d := newWorkspace(t).withState()
	d.run("deploy", d.writeLab("lab.yaml", pair), "--runtime", "docker").wantCode(0) // with the image made
	d.run("destroy").wantCode(0)
	whole := time.Since(began)
	const instants = 8 // of which make test takes two
	for _, victim := range []string{"deploy", "supervise"} {
		for _, i := range sample.Of(t, 2, 0, 1, 2, 3, 4, 5, 6, 7) {
			p := d.start("deploy", "lab.yaml", "--runtime", "docker")
			<-time.After(whole * time.Duration(i) / instants)
			pids := []int{p.cmd.Process.Pid}
			if victim == "supervise" {
				pids = supervisors(filepath.Join(d.dir, "state"))
			}
			for _, pid := range pids {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			p.wait()
			d.run("clean").wantCode(0)
			d.run("destroy").wantCode(0) // what was up before the blow fell
			if what := eventually(patience, func() string {
				d.run("clean").wantCode(0)
				return describeContainers(t, "pair")
			}); what != "" {
				t.Fatalf("%s killed after %v: %s", victim, whole*time.Duration(i)/instants, what)
			}
		}
	}
}

// supervisors lists the processes that supervise labs of a state directory.
func supervisors(root string) (pids []int) {
	for _, pid := range allPIDs() {
		args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.HasPrefix(string(args), "weft\x00supervise\x00"+root+"\x00") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// A full disk under the state directory is an error that says so, and nothing is left.
func TestPrivDeployOnAFullDisk(t *testing.T) {
	testenv.NeedNamespaces(t)
	for _, size := range []string{"4k", "8k"} {
		before := takeTraces(t)
		d := newWorkspace(t)
		disk := filepath.Join(d.temp, "disk")
		if err := os.Mkdir(disk, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := d.command("deploy", d.writeLab("lab.yaml", pair))
		cmd.Env = append(cmd.Env, deploy.RootVar+"="+filepath.Join(disk, "state"))
		cmd.Args = append([]string{"helper", smallDisk, size, disk, filepath.Join(d.dir, "kept"), weft},
			cmd.Args[1:]...)
		cmd.Path = "/proc/self/exe"
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNS
		p, err := d.tryStart(cmd)
		if err != nil {
			t.Skipf("no small disk can be had here: %v", err)
		}
		r := p.wait()
		if r.code == helperFailed {
			t.Skipf("no small disk can be had here: %s", r.stderr)
		}
		r.wantCode(1).wantOnStderr("no space left on device")
		if left, _ := filepath.Glob(filepath.Join(d.dir, "kept", "*")); len(left) > 0 {
			t.Errorf("on a disk of %s %v is left", size, left)
		}
		before.nothingLeft(t, nil, wait)
	}
}

// A lab is destroyed on the engine on which it was deployed, whatever engine is usual by then, also
// after a crash.
func TestPrivDestroyKnowsTheEngine(t *testing.T) {
	needDocker(t)
	d := newWorkspace(t).withState()
	d.writeLab("lab.yaml", pair)
	for _, crash := range []bool{false, true} {
		began := time.Now()
		d.run("deploy", "lab.yaml", "--runtime", "docker").wantCode(0)
		up := time.Since(began)
		if crash {
			for _, pid := range supervisors(filepath.Join(d.dir, "state")) {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
		}
		cmd := d.command("destroy", "pair")
		cmd.Env = append(cmd.Env, "DOCKER_HOST=")
		began = time.Now()
		d.startCommand(cmd).wait().wantCode(0)
		t.Logf("up after %v, down after %v", up.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
		checkNoContainers(t, "pair")
	}
}

// An ordinary user deploys and destroys as root does, in a user namespace that the supervisor
// keeps.
func TestPrivOrdinaryUserDeploys(t *testing.T) {
	d, uid := userWorkspace(t)
	state := filepath.Join(d.temp, "state")
	d.writeLab("lab.yaml", pair)
	t.Setenv(deploy.RootVar, state)
	before := takeTraces(t)
	d.startAs(uid, "deploy", "lab.yaml").wait().wantCode(0)
	as := func(args ...string) result {
		cmd := d.command(args...)
		if uid != uint32(os.Geteuid()) {
			cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: uid}
		}
		return d.startCommand(cmd).wait()
	}
	as("exec", "h0", "--", "ping", "-c1", "h1").wantCode(0)
	as("node", "pair", "h1", "kill").wantCode(0)
	as("node", "pair", "h1", "restart").wantCode(0)
	as("exec", "h1", "--", "ping", "-c1", "h0").wantCode(0)
	if uid != uint32(os.Geteuid()) {
		d.run("inspect", "pair").wantCode(1).wantOnStderr("belongs to user") // not even root is served by mistake
	}
	pids := supervisors(state)
	if len(pids) != 1 {
		t.Fatalf("supervisors: %v", pids)
	}
	if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	as("clean").wantCode(0)
	if _, err := os.Lstat(state); err == nil {
		t.Error("the state directory is left")
	}
	// A lab whose folder was removed is ended before another takes its name, and by destroy.
	d.startAs(uid, "deploy", "lab.yaml").wait().wantCode(0)
	for _, verb := range []string{"deploy", "destroy"} {
		if err := os.RemoveAll(state); err != nil {
			t.Fatal(err)
		}
		if verb == "deploy" {
			d.startAs(uid, "deploy", "lab.yaml").wait().wantCode(0).wantOnStderr("pair: removed (a supervisor without a folder)")
		} else {
			as("destroy", "pair").wantCode(0)
		}
		if pids := supervisors(state); len(pids) != map[string]int{"deploy": 1, "destroy": 0}[verb] {
			t.Fatalf("after %s: supervisors %v", verb, pids)
		}
	}
	before.nothingLeft(t, nil, wait)
}
