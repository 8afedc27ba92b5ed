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

	"golang.org/x/sys/unix"

	"weft/internal/quiettest"
	"weft/internal/testenv"
)

// smallDisk is the first argument by which the test program knows that it is to be the helper that
// follows.
const smallDisk = "on-small-disk"

// onSmallDisk runs a program with a new file system of a given size in a folder that nobody else
// sees, and copies what the program left there to another folder. Arguments: the size, the two
// folders, the program and its arguments. It must have been started in a mount namespace of its
// own.
func onSmallDisk(args []string) (code int) {
	size, disk, keep, program := args[0], args[1], args[2], args[3:]
	fail := func(what string, err error) int {
		fmt.Fprintln(os.Stderr, what, err)
		return helperFailed
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fail("make mounts private:", err)
	}
	if err := unix.Mount("small", disk, "tmpfs", 0, "size="+size); err != nil {
		return fail("mount a small disk:", err)
	}
	cmd := exec.Command(program[0], program[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err := cmd.Run()
	if cmd.ProcessState == nil {
		return fail("run", err)
	}
	if err := os.CopyFS(keep, os.DirFS(disk)); err != nil {
		return fail("keep what was left:", err)
	}
	return cmd.ProcessState.ExitCode()
}

// runOnDisk runs weft with a folder for runs of limited size. Its contents are afterwards where the
// runs of a workspace always are.
func (d *workspace) runOnDisk(size string, args ...string) result {
	d.t.Helper()
	testenv.NeedEmulation(d.t) // the disk is mounted in a namespace
	disk := filepath.Join(d.temp, "disk")
	if err := os.Mkdir(disk, 0o755); err != nil {
		d.t.Fatal(err)
	}
	cmd := d.command(append(args, "--out", disk)...)
	cmd.Args = append([]string{"helper", smallDisk, size, disk, filepath.Join(d.dir, "runs"), weft}, cmd.Args[1:]...)
	cmd.Path = "/proc/self/exe"
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNS
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	p, err := d.tryStart(cmd)
	if err != nil {
		d.t.Skipf("no small disk can be had here: %v", err)
	}
	r := p.wait()
	if r.code == helperFailed {
		d.t.Skipf("no small disk can be had here: %s", r.stderr)
	}
	return r
}

// A disk that fills up ends the run, which says so and which file it was; what could be written is
// kept, and that it is not all of it is written too.
func TestPrivFullDisk(t *testing.T) {
	d := newWorkspace(t)
	r := d.runOnDisk("1m", "run", d.writeLab("long.yaml", long), "--engine", "sim", "--set", "topology.hosts=16",
		"--set", "measure.queues=100ns", "--set", "measure.cwnd=true")
	r.wantCode(1).wantPrinted("no space left on device", ".parquet")
	if n := strings.Count(r.stdout, "no space left on device"); n != 1 {
		t.Errorf("the summary says so %d times:\n%s", n, r.stdout)
	}
	dir, s := d.summary()
	if s.Status != "failed" || !strings.Contains(s.Error, "no space left on device") {
		t.Errorf("status %q, error %q", s.Status, s.Error)
	}
	kept := int64(0)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && strings.HasSuffix(e.Name(), ".parquet") {
			kept += info.Size()
		}
	}
	if kept < 64<<10 {
		t.Errorf("%d bytes of results were kept: %v", kept, entries)
	}
}

// A disk that is full from the start is an error before anything runs, and nothing is left.
func TestPrivNoRoomForAnything(t *testing.T) {
	for _, size := range []string{"4k", "16k", "48k"} {
		d := newWorkspace(t)
		r := d.runOnDisk(size, "run", libraryLab(t, "quickstart.yaml"), "--engine", "sim")
		r.wantCode(1).wantOnStderr("no space left on device")
		if runs := d.runs(); len(runs) > 0 {
			t.Errorf("on a disk of %s there is %v", size, runs)
		}
	}
}

// The end comes when the disk is full, not when the run would have ended.
func TestPrivFullDiskEndsALongRun(t *testing.T) {
	for _, engine := range []string{"sim", "emu"} {
		t.Run(engine, func(t *testing.T) {
			if engine == "emu" {
				testenv.NeedEmulation(t)
			}
			before := takeTraces(t)
			d := newWorkspace(t)
			began := quiettest.Start()
			r := d.runOnDisk("96k", "run", d.writeLab("long.yaml", long), "--engine", engine, "--dilation", "1000",
				"--set", "workload.0.repeat=50000", "--set", "measure.queues=1us",
				"--set", "measure.view=off") // frames would fill it first
			r.wantCode(1).wantPrinted("no space left on device", "queues.parquet")
			began.AtMost(t, 20*time.Second, "the run")
			t.Logf("ended after %v", r.took.Round(time.Millisecond))
			before.nothingLeft(t, nil, wait)
		})
	}
}

// What is asked for beside the run directory is as important: nothing may be lost in silence.
func TestFullOutputs(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	d := newWorkspace(t)
	star := libraryLab(t, "smoke/star.yaml")
	d.run("run", star, "--engine", "sim", "--junit", "/dev/full").wantCode(1).wantOnStderr("/dev/full",
		"no space left on device")
	for _, args := range [][]string{
		{"run", star, "--engine", "sim"},
		{"run", star, "--engine", "sim", "--json"},
		{"validate", star, "--json"},
		{"explain", star},
		{"schema"},
	} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		cmd := d.command(args...)
		cmd.Stdout = full
		var words output
		cmd.Stderr = &words
		_ = cmd.Run()
		full.Close()
		if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(words.String(),
			"no space left on device") {
			t.Errorf("weft %s > /dev/full: exit code %d, want 1; it said %q", strings.Join(args, " "), code,
				words.String())
		}
	}
}
