package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/orchestrator/deploy"
)

// pair is the smallest lab.
const pair = `
weft: 1
name: pair
topology: {kind: star, hosts: 2, link: {rate: 10Mbps, delay: 1ms}}
engine: {dilation: 1}
`

// Whoever is killed while a lab is being deployed or destroyed in Docker, `weft clean` removes what is left.
func TestPrivKilledInDocker(t *testing.T) {
	needDocker(t)
	began := time.Now()
	d := newDesk(t).stateful()
	d.run("deploy", d.lab("lab.yaml", pair), "--runtime", "docker").wantCode(0) // with the image made
	d.run("destroy").wantCode(0)
	whole := time.Since(began)
	const instants = 8
	for _, victim := range []string{"deploy", "supervise"} {
		for i := range instants {
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
			if what := eventually(10*time.Second, func() string {
				d.run("clean").wantCode(0)
				return containers(t, "pair")
			}); what != "" {
				t.Fatalf("%s killed after %v: %s", victim, whole*time.Duration(i)/instants, what)
			}
		}
	}
}

// supervisors are the processes that supervise labs of a state directory.
func supervisors(root string) (pids []int) {
	for _, pid := range numbers() {
		args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.HasPrefix(string(args), "weft\x00supervise\x00"+root+"\x00") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// A full disk under the state directory is an error that says so, and nothing is left.
func TestPrivDeployOnAFullDisk(t *testing.T) {
	needEmulation(t)
	for _, size := range []string{"4k", "8k"} {
		before := look(t)
		d := newDesk(t)
		disk := filepath.Join(d.temp, "disk")
		if err := os.Mkdir(disk, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := d.command("deploy", d.lab("lab.yaml", pair))
		cmd.Env = append(cmd.Env, deploy.RootVar+"="+filepath.Join(disk, "state"))
		cmd.Args = append([]string{"helper", smallDisk, size, disk, filepath.Join(d.dir, "kept"), weft}, cmd.Args[1:]...)
		cmd.Path = "/proc/self/exe"
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNS
		p, err := d.try(cmd)
		if err != nil {
			t.Skipf("no small disk can be had here: %v", err)
		}
		r := p.wait()
		if r.code == helperFailed {
			t.Skipf("no small disk can be had here: %s", r.stderr)
		}
		r.wantCode(1).wantWords("no space left on device")
		if left, _ := filepath.Glob(filepath.Join(d.dir, "kept", "*")); len(left) > 0 {
			t.Errorf("on a disk of %s %v is left", size, left)
		}
		before.nothingLeft(t, nil, wait)
	}
}
