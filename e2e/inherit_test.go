package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"weft/internal/testenv"
)

// inheritable returns an open directory, and the descriptor number under which weft would inherit
// it.
func (d *workspace) inheritable() (dir *os.File, extra []*os.File, number string) {
	d.t.Helper()
	dir, err := os.Open(d.t.TempDir())
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { dir.Close() })
	return dir, []*os.File{nil, nil, nil, nil, nil, nil, dir}, "9" // exec.Cmd.ExtraFiles begin at 3
}

// What the shell has open that starts weft, no node gets hold of: not the supervisor's, not a
// program's.
func TestPrivNodesInheritNothing(t *testing.T) {
	d := newWorkspace(t).withState()
	dir, extra, number := d.inheritable()
	deploy := d.command("deploy", d.writeLab("lab.yaml", "weft: 1\nname: star\ntopology: {kind: star, hosts: 2, "+
		"link: {rate: 20Mbps, delay: 1ms}}\nengine: {dilation: 1}\n"))
	deploy.ExtraFiles = extra
	d.startCommand(deploy).wait().wantCode(0)
	exec := d.command("exec", "h0", "--", "/bin/sh", "-c",
		"ls -l /proc/self/fd; touch /proc/self/fd/"+number+"/escaped")
	exec.ExtraFiles = extra
	if r := d.startCommand(exec).wait(); r.code == 0 {
		t.Errorf("a program reached the directory:\n%s", r.stdout)
	}
	if _, err := os.Lstat(filepath.Join(dir.Name(), "escaped")); err == nil {
		t.Error("a file was made outside of the node")
	}
	for _, pid := range append([]int{d.inspect().Supervisor}, d.inspect().Nodes[0].PID) {
		links, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "fd", "*"))
		for _, l := range links {
			if to, _ := os.Readlink(l); to == dir.Name() {
				t.Errorf("process %d of the lab has %s open as %s", pid, to, l)
			}
		}
	}
}

// Nor do the processes of weft run, nor the programs of a lab.
func TestPrivRunInheritsNothing(t *testing.T) {
	testenv.NeedEmulation(t)
	d := newWorkspace(t)
	dir, extra, number := d.inheritable()
	run := d.command("run", d.writeLab("lab.yaml",
		labWithPrograms("run: [/bin/sh, -c, 'touch /proc/self/fd/"+number+"/escaped; true']")), "--runtime",
		"namespace")
	run.ExtraFiles = extra
	d.startCommand(run).wait().wantCode(0)
	if _, err := os.Lstat(filepath.Join(dir.Name(), "escaped")); err == nil {
		t.Error("a program made a file outside of its node")
	}
}
