package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/shell"
	"weft/orchestrator/sweep"
	"weft/orchestrator/sweep/shard"
	"weft/results/store"
)

// sharded is a lab of a dozen points of some hundred milliseconds.
const sharded = `
weft: 1
name: sharded
topology: {kind: star, hosts: 9, link: {rate: 100Gbps, delay: 1us}}
workload: [{collective: incast, ranks: 2, size: 2MB}]
sweep: {workload.0.ranks: [2, 4, 8], seed: [1, 2, 3, 4]}
expect: ["drops == 0"]
`

// processesOf returns the processes whose command line has all words.
func processesOf(t *testing.T, words ...string) (pids []int) {
	t.Helper()
	for _, name := range store.EntryNames("/proc") {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join("/proc", name, "cmdline"))
		line := strings.ReplaceAll(string(text), "\x00", " ")
		all := err == nil && line != ""
		for _, w := range words {
			all = all && strings.Contains(line, w)
		}
		if all {
			pids = append(pids, pid)
		}
	}
	return pids
}

// sweepStatus returns the status of a sweep.
func (d *workspace) sweepStatus(id string) (st sweep.Status) {
	d.t.Helper()
	r := d.run("sweep", "status", id, "--json").wantCode(0)
	if err := json.Unmarshal([]byte(r.stdout), &st); err != nil {
		d.t.Fatal(err, r.stdout)
	}
	return st
}

// submit submits a lab and returns the ID of the sweep.
func (d *workspace) submit(args ...string) string {
	d.t.Helper()
	return strings.TrimSpace(d.run(append([]string{"sweep", "submit"}, args...)...).wantCode(0).stdout)
}

// submitted returns the sweeps of a lab whose submission was written. The others have no status.
func (d *workspace) submitted(lab string) (ids []string) {
	d.t.Helper()
	all, err := filepath.Glob(filepath.Join(d.dir, "runs", lab, "sweep-*"))
	if err != nil {
		d.t.Fatal(err)
	}
	for _, dir := range all {
		id := filepath.Base(dir)
		if isFile(filepath.Join(dir, shard.Folder, "submission.json")) {
			ids = append(ids, id)
		} else {
			d.run("sweep", "status", id).wantCode(2)
		}
	}
	return ids
}

// resume resumes a sweep that had points left when its status was asked for. A shard that was being
// ended may have finished the last of them since.
func (d *workspace) resume(id string) {
	d.t.Helper()
	if r := d.run("sweep", "resume", id); r.code != 1 || !strings.Contains(r.stderr, "every point has a result") {
		r.wantCode(0)
	}
}

// wantSameRuns fails the test unless two roots have the same runs of a lab: the same numbers, and
// in each the same bytes of all that does not depend on the time.
func wantSameRuns(t *testing.T, local, remote string, points int) {
	t.Helper()
	number := func(root string) map[string]string {
		out := map[string]string{}
		dirs, err := store.Runs(root, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range dirs {
			_, n, _ := strings.Cut(filepath.Base(dir), "-")
			if out[n] != "" {
				t.Errorf("point %s is in %s and %s", n, out[n], dir)
			}
			out[n] = dir
		}
		return out
	}
	a, b := number(local), number(remote)
	if len(a) != points || len(b) != points {
		t.Fatalf("%d local runs and %d others, want %d", len(a), len(b), points)
	}
	files := 0
	for n, dir := range a {
		want, err := shard.PrintOf(dir)
		if err != nil {
			t.Fatal(err)
		}
		got, err := shard.PrintOf(b[n])
		if err != nil {
			t.Fatal(err)
		}
		// The list of settings says where each value came from; the same values are what counts.
		if files += len(want); !maps.Equal(got, want) {
			for name := range want {
				if got[name] != want[name] {
					t.Errorf("point %s: %s differs in %s and %s", n, name, dir, b[n])
				}
			}
		}
	}
	t.Logf("%d files of %d points have the same bytes", files, points)
}

// Shards and the process that keeps them are killed at random until a dozen were. Resumed, each
// point is in the results exactly once, with the bytes of a local sweep, and nothing else is left.
func TestKilledShards(t *testing.T) {
	d := newWorkspace(t)
	file := d.writeLab("lab.yaml", sharded)
	d.run("run", file, "--engine", "sim", "--out", "local", "-q").wantCode(0)
	id := d.submit(file, "--engine", "sim", "--shards", "4")
	random := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	kills, rounds := 0, 1
	for kills < 12 {
		what := "--points"
		if random.IntN(4) == 0 {
			what = "drive"
		}
		// The instant of the kill is random, not an event.
		<-time.After(time.Duration(random.IntN(150)) * time.Millisecond)
		for _, pid := range processesOf(t, weft, d.dir, "sweep", what) {
			if unix.Kill(pid, unix.SIGKILL) == nil {
				kills++
			}
			break
		}
		if st := d.sweepStatus(id); st.State == sweep.Stopped || st.State == sweep.Failed {
			d.resume(id)
			rounds++
		} else if st.State == sweep.Done {
			break
		}
	}
	for {
		r := d.run("sweep", "wait", id, "-q")
		if r.code == 0 {
			break
		}
		if rounds++; rounds > 40 {
			t.Fatal(r.stdout, r.stderr)
		}
		d.resume(id)
	}
	t.Logf("%d processes were killed in %d rounds", kills, rounds)
	d.run("sweep", "collect", id).wantCode(0).wantPrinted("drops")
	wantSameRuns(t, filepath.Join(d.dir, "local"), filepath.Join(d.dir, "runs"), 12)
	left := store.EntryNames(filepath.Join(d.dir, "runs", "sharded", id, shard.Folder))
	if fmt.Sprint(left) != "[collected notes rounds submission.json]" {
		t.Errorf("left %v", left)
	}
	if left := processesOf(t, weft, d.dir); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
	d.run("sweep", "collect", id).wantCode(0)
	d.run("sweep", "resume", id).wantCode(1).wantOnStderr("every point has a result")
}

// A point that needs more memory than there is ends its process each time. It is tried three times
// and given up by name; the other points of its shard have results.
func TestShardOutOfMemory(t *testing.T) {
	d := newWorkspace(t)
	file := d.writeLab("lab.yaml", "weft: 1\nname: large\ntopology: {kind: star, hosts: 2}\nworkload: [{collective: "+
		"permute, size: 8KB}]\nsweep: {topology.hosts: [20000, 2, 3]}\n")
	cmd := d.command("sweep", "submit", file, "--shards", "1", "--engine", "sim")
	p := d.startCommand(limited(cmd, 320<<20))
	id := strings.TrimSpace(p.wait().wantCode(0).stdout)
	d.run("sweep", "wait", id, "-q").wantCode(1).wantPrinted("topology.hosts=20000: given up after 3 tries")
	st := d.sweepStatus(id)
	if st.Done != 3 || len(st.Problems) != 1 || len(st.Problems[0].Hosts) != 3 || st.State != sweep.Failed {
		t.Errorf("%+v", st)
	}
	d.run("sweep", "collect", id).wantCode(1).wantOnStderr("given up after 3 tries", "all points: ")
	if runs := d.runs(); len(runs) != 2 {
		t.Errorf("runs %v", runs)
	}
	d.run("sweep", "resume", id).wantCode(0) // without the limit
	d.run("sweep", "wait", id, "-q").wantCode(0)
	d.run("sweep", "collect", id).wantCode(0)
	if runs := d.runs(); len(runs) != 3 {
		t.Errorf("runs %v", runs)
	}
}

// Cancelled shards end at once and leave nothing. Finished points stay, and the rest can be
// resumed.
func TestCancelledSweep(t *testing.T) {
	d := newWorkspace(t)
	file := d.writeLab("long.yaml", long)
	id := d.submit(file, "--engine", "sim", "--set", "sweep.seed=[1,2,3]")
	if wrong := eventually(patience, func() string {
		if len(processesOf(t, weft, d.dir, "--points")) == 0 {
			return "no shard has started"
		}
		return ""
	}); wrong != "" {
		t.Fatal(wrong)
	}
	wait := d.start("sweep", "wait", id)
	<-time.After(time.Second) // it waits
	wait.signal(syscall.SIGINT)
	wait.wait().wantCode(130).wantOnStderr("the sweep continues, with 0 of 3 points done: weft sweep wait " + id)
	d.run("sweep", "wait", id, "--timeout", "1ms").wantCode(1).wantOnStderr("not over after 1ms; the sweep continues")
	d.run("sweep", "status").wantCode(0).wantPrinted(id, "0 of 3", "running")
	d.run("sweep", "cancel", id).wantCode(0)
	d.run("sweep", "cancel", id).wantCode(0)
	if st := d.sweepStatus(id); st.State != sweep.Cancelled {
		t.Errorf("%+v", st)
	}
	if left := processesOf(t, weft, d.dir); len(left) > 0 || len(d.runs()) > 0 {
		t.Errorf("processes %v and runs %v are left", left, d.runs())
	}
	d.run("sweep", "collect", id).wantCode(1).wantOnStderr("3 of 3 points have no result")
	d.run("sweep", "wait", id).wantCode(1).wantPrinted("cancelled")
	d.run("sweep", "status", "sweep-x").wantCode(2).wantOnStderr("no submitted sweep sweep-x")
	d.run("sweep", "submit", file, "--engine", "both").wantCode(2)
	d.run("sweep", "submit", file, "--on", "swarm:3").wantCode(2).wantOnStderr("expected --on swarm, or weft run --on swarm:3")
	other := filepath.Join(d.dir, "other")
	quoted, _, _ := strings.Cut(shell.Quote(other+"/long/sweep-"), "sweep-'") // the sweep's ID follows
	d.run("sweep", "submit", file, "--engine", "sim", "--out", other).wantCode(0).wantOnStderr("weft sweep wait " + quoted)
	elsewhere := d.run("sweep", "status", "--results", other, "--json").wantCode(0).stdout
	d.run("sweep", "cancel", shard.List(other)[0].Path).wantCode(0).wantOnStderr("weft sweep resume " + quoted)
	if !strings.Contains(elsewhere, `"on":"local"`) {
		t.Error(elsewhere)
	}
	d.run("sweep", "submit", file, "--on", "moon").wantCode(2).wantOnStderr("expected local")
	d.run("sweep", "submit", file, "--memory", "2GiB").wantCode(2).wantOnStderr("no limit")
	d.run("sweep", "submit", file, "--image", "weft@sha256:12").wantCode(2).wantOnStderr("--image is for --on swarm")
	d.run("sweep", "wait", id, "--timeout", "-5s").wantCode(2).wantOnStderr("expected a positive time")
}

// Submitters at the same time do not take each other's names.
func TestSubmittersAtOnce(t *testing.T) {
	d := newWorkspace(t)
	file := d.writeLab("lab.yaml", "weft: 1\nname: quick\ntopology: {kind: star, hosts: 4}\nworkload: [{collective: "+
		"permute, size: 8KB}]\nsweep: {seed: [1, 2, 3]}\n")
	const submitters = 5
	var all []*process
	for range submitters {
		all = append(all, d.start("sweep", "submit", file, "--engine", "sim", "--shards", "1"))
	}
	stamps := map[string]bool{}
	for _, p := range all {
		id := strings.TrimSpace(p.wait().wantCode(0).stdout)
		stamps[strings.Split(id, "-")[1]] = true
		d.run("sweep", "wait", id, "-q").wantCode(0)
		d.run("sweep", "collect", id).wantCode(0)
	}
	if len(stamps) != submitters || len(d.runs()) != 3*submitters {
		t.Errorf("starts %v, %d runs", stamps, len(d.runs()))
	}
}

// limited returns a command that runs with at most bytes of memory of its own.
func limited(cmd *exec.Cmd, bytes int) *exec.Cmd {
	cmd.Args = append([]string{"prlimit", fmt.Sprintf("--data=%d", bytes), cmd.Path}, cmd.Args[1:]...)
	cmd.Path, cmd.Err = exec.LookPath("prlimit")
	return cmd
}

// A submitter that is killed at any instant leaves a sweep that can be resumed, or none.
func TestKilledSubmitter(t *testing.T) {
	d := newWorkspace(t)
	file := d.writeLab("lab.yaml", "weft: 1\nname: quick\ntopology: {kind: star, hosts: 4}\nworkload: [{collective: "+
		"permute, size: 8KB}]\nsweep: {seed: [1, 2, 3]}\n")
	whole := d.run("sweep", "submit", file, "--engine", "sim").wantCode(0)
	id := strings.TrimSpace(whole.stdout)
	d.run("sweep", "wait", id, "-q").wantCode(0)
	d.run("sweep", "collect", id).wantCode(0)
	found, tries := 0, 0
	for ; found < 4 && tries < 30; tries++ { // later each time, until submissions are written before the kill
		p := d.start("sweep", "submit", file, "--engine", "sim")
		<-time.After(whole.took * time.Duration(tries) / 10)
		_ = p.cmd.Process.Kill() // an error means that it has ended
		<-p.done
		for _, id := range d.submitted("quick") {
			if d.sweepStatus(id).Collected {
				continue
			}
			found++
			if d.run("sweep", "wait", id, "-q").code != 0 {
				d.resume(id)
				d.run("sweep", "wait", id, "-q").wantCode(0)
			}
			d.run("sweep", "collect", id).wantCode(0)
		}
		if len(d.runs()) != 3*(1+found) {
			t.Fatalf("%d sweeps left runs %v", 1+found, d.runs())
		}
	}
	if left := processesOf(t, weft, d.dir); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
	if t.Logf("%d of %d submissions were written before their submitter was killed", found, tries); found == 0 {
		t.Error("no submission was ever written")
	}
}
