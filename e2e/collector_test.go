package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/orchestrator/sweep"
	"weft/orchestrator/sweep/shard"
	"weft/results/store"
)

// collecting are the flags of a sweep on a fake swarm without a shared directory.
var collecting = []string{"--engine", "sim", "--on", "swarm", "--collect", "--image", "sha256:" + strings.Repeat("12", 32)}

// wantCollected collects a sweep, and fails the test unless each point is there once, with the
// bytes of a local sweep in local, and nothing else.
func (d *workspace) wantCollected(id, name string, points int) {
	d.t.Helper()
	d.run("sweep", "collect", id).wantCode(0)
	d.wantRuns(id, name, points)
}

// wantRuns fails the test unless the runs of a collected sweep are those in the directory local,
// and nothing of its shards is left.
func (d *workspace) wantRuns(id, name string, points int) {
	d.t.Helper()
	wantSameRuns(d.t.(*testing.T), filepath.Join(d.dir, "local"), filepath.Join(d.dir, "runs"), points)
	left := store.EntryNames(filepath.Join(d.dir, "runs", name, id, shard.Folder))
	if fmt.Sprint(left) != "[collected notes rounds submission.json]" {
		d.t.Errorf("left %v", left)
	}
}

// wantNothing fails the test unless a swarm has no service and no secret, and no process is left.
func (f *fakeSwarm) wantNothing(d *workspace) {
	f.t.Helper()
	if wrong := eventually(patience, func() string {
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.services)+len(f.secrets) > 0 {
			return fmt.Sprintf("services %v, secrets %d", f.services, len(f.secrets))
		}
		if left := append(processesOf(f.t, weft, d.dir), processesOf(f.t, weft, f.dir)...); len(left) > 0 {
			return fmt.Sprintf("processes %v are left", left)
		}
		return ""
	}); wrong != "" {
		f.t.Error(wrong)
	}
	all, err := filepath.Glob(filepath.Join(f.dir, "*", "weft-shard-*", "*"))
	if err != nil || len(all) > 0 {
		f.t.Logf("tasks that were killed left %v", all) // in a container they go with it
	}
}

// Shards that share no directory, their processes, their tasks and the collector are killed at
// random. Each point is in the results exactly once, with the bytes of a local sweep, and nothing
// is left.
func TestKilledCollector(t *testing.T) {
	d, f := newWorkspace(t), newFakeSwarm(t)
	file := d.writeLab("lab.yaml", sharded)
	d.run("run", file, "--engine", "sim", "--out", "local", "-q").wantCode(0)
	id := d.submit(append([]string{file, "--shards", "4"}, collecting...)...)
	random := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	kills, rounds := map[string]int{}, 1
	victims := []string{"collector", d.dir, "--points", f.dir}
	wait := d.start("sweep", "wait", id, "-q") // starts the collector again
	for over := time.Now().Add(patience); kills["collector"]+kills["--points"] < 8 && time.Now().Before(over); {
		what, where := victims[0], victims[1]
		// The instant of the kill is random, not an event.
		<-time.After(time.Duration(random.IntN(200)) * time.Millisecond)
		for _, pid := range processesOf(t, weft, where, "sweep", what) {
			if unix.Kill(pid, unix.SIGKILL) == nil {
				kills[what]++
				victims = append(victims[2:], what, where)
			}
			break
		}
		if !wait.running() {
			if wait.wait().code == 0 {
				break
			}
			d.resume(id)
			wait, rounds = d.start("sweep", "wait", id, "-q"), rounds+1
		}
	}
	for wait.wait().code != 0 {
		d.resume(id)
		wait, rounds = d.start("sweep", "wait", id, "-q"), rounds+1
	}
	t.Logf("killed %v in %d rounds", kills, rounds)
	d.wantCollected(id, "sharded", 12)
	f.wantNothing(d)
	if f.most != 1 {
		t.Errorf("%d secrets at once", f.most)
	}
}

// While the collector is away, status says so and shards wait; one that is cancelled, or that
// cannot listen, leaves nothing.
func TestCollectorAway(t *testing.T) {
	d, f := newWorkspace(t), newFakeSwarm(t)
	file := d.writeLab("lab.yaml", sharded)
	d.run("run", file, "--engine", "sim", "--out", "local", "-q").wantCode(0)
	args := append([]string{"sweep", "submit", file}, collecting...)
	d.run(append(args, "--collect=203.0.113.9:7")...).wantCode(1).wantOnStderr("cannot assign requested address")
	d.run(append(args, "--collect=7")...).wantCode(2).wantOnStderr("--collect=7")
	d.run("sweep", "submit", file, "--collect").wantCode(2).wantOnStderr("--collect is for --on swarm")
	d.run("sweep", "submit", file, "--engine", "sim", "--on", "swarm", "--image", "weft:1").wantCode(1).wantOnStderr("by its digest")
	if _, err := os.Stat(filepath.Join(d.dir, "runs")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a refused submission left a folder, %v", err)
	}
	f.wantNothing(d)
	id := d.submit(args[2:]...)
	keys := filepath.Join(d.dir, "runs", "sharded", id, shard.Folder, "collector.json")
	if info, err := os.Stat(keys); err != nil || info.Mode() != 0o600 {
		t.Error(info, err)
	}
	for _, pid := range processesOf(t, weft, d.dir, "sweep", "collector") {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	if wrong := eventually(patience, func() string {
		st := d.sweepStatus(id)
		if !st.Away || !strings.Contains(st.Say, "does not run") {
			return fmt.Sprintf("%+v", st)
		}
		return ""
	}); wrong != "" {
		t.Error(wrong)
	}
	before := d.sweepStatus(id).Done
	<-time.After(2 * time.Second) // nothing comes meanwhile
	if st := d.sweepStatus(id); st.Done != before || st.State != sweep.Running {
		t.Errorf("%+v", st)
	}
	d.run("sweep", "cancel", id).wantCode(0)
	f.wantNothing(d)
	d.run("sweep", "resume", id).wantCode(0)
	d.run("sweep", "wait", id, "-q").wantCode(0)
	d.wantCollected(id, "sharded", 12)
	f.wantNothing(d)
}

// A submitter that is killed at any instant leaves a sweep that can be resumed or cancelled, and
// nothing after that.
func TestKilledSubmitterOfCollector(t *testing.T) {
	d, f := newWorkspace(t), newFakeSwarm(t)
	file := d.writeLab("lab.yaml", "weft: 1\nname: quick\ntopology: {kind: star, hosts: 4}\nworkload: [{collective: "+
		"permute, size: 8KB}]\nsweep: {seed: [1, 2, 3]}\n")
	submit := append([]string{"sweep", "submit", file}, collecting...)
	whole := d.run(submit...).wantCode(0)
	finish := func(id string) {
		if d.run("sweep", "wait", id, "-q").code != 0 {
			d.resume(id)
			d.run("sweep", "wait", id, "-q").wantCode(0)
		}
		d.run("sweep", "collect", id).wantCode(0)
	}
	finish(strings.TrimSpace(whole.stdout))
	found := map[string]bool{}
	for tries := 0; len(found) < 4 && tries < 30; tries++ {
		p := d.start(submit...)
		<-time.After(whole.took * time.Duration(tries) / 10)
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.done
		for _, id := range d.submitted("quick") {
			if st := d.sweepStatus(id); st.Collected || st.State == sweep.Cancelled {
				continue
			}
			if len(found) == 0 {
				d.run("sweep", "cancel", id).wantCode(0)
			} else {
				finish(id)
			}
			found[id] = true
			f.wantNothing(d)
		}
	}
	runs := 0
	for _, id := range d.submitted("quick") {
		st := d.sweepStatus(id)
		if runs += st.Done; st.Done != 3 && st.State != sweep.Cancelled {
			t.Errorf("%+v", st)
		}
	}
	if t.Logf("%d submissions were written", len(found)); len(found) == 0 || len(d.runs()) != runs {
		t.Errorf("%d runs of %d", len(d.runs()), runs)
	}
}

// collectFrom is the machine of the cluster whose weft collects: the manager.
const collectFrom = 1

// as runs weft on the collecting machine of the cluster.
func (c *cluster) as(args ...string) result {
	c.t.Helper()
	return c.d.startCommand(c.on(collectFrom, args...)).waitLong()
}

// finishCollected is finish for a sweep with a collector.
func (c *cluster) finishCollected(id string) {
	c.t.Helper()
	for range 5 {
		r := c.as("sweep", "wait", id, "-q", "--timeout", "1h")
		if r.code == 0 {
			break
		}
		c.t.Logf("resumed: %s%s", r.stdout, r.stderr)
		c.as("sweep", "resume", id).wantCode(0)
	}
	c.d.run("sweep", "collect", id).wantCode(0)
}

// killOne kills a process that has all words in its command line.
func (c *cluster) killOne(words ...string) {
	c.t.Helper()
	if wrong := eventually(patience, func() string {
		for _, pid := range processesOf(c.t, words...) {
			if unix.Kill(pid, unix.SIGKILL) == nil {
				return ""
			}
		}
		return fmt.Sprintf("no process %v", words)
	}); wrong != "" {
		c.t.Fatal(wrong)
	}
}

// A sweep on three engines without a shared directory leaves the bytes of a local sweep in about
// its time.
func TestClusterCollector(t *testing.T) {
	c := needCluster(t)
	c.d.besideLocal(func(file string) (id string) {
		id = strings.TrimSpace(c.as("sweep", "submit", file, "--engine", "sim", "--on", "swarm", "--collect").wantCode(0).stdout)
		c.finishCollected(id)
		return id
	})
	c.wantThreeMachines()
	c.wantNothing()
}

// So it does if the collector is away for 30 s, and if a shard, its task, a machine, the manager's
// machine with the collector, or a cable is lost.
func TestClusterCollectorLosses(t *testing.T) {
	const points = 48
	c := needCluster(t)
	file := c.d.writeLab("lab.yaml", manyPoints(points, "64MB"))
	c.d.startCommand(c.d.command("run", file, "--engine", "sim", "--out", "local", "-q")).waitLong().wantCode(0)
	for name, lose := range map[string]func(c *cluster) (back func()){
		"collector": func(c *cluster) func() {
			c.killOne(weft, c.d.dir, "sweep", "collector")
			return nil
		},
		"shard": func(c *cluster) func() { c.killOne("sweep shard --collector", "--points"); return nil },
		"task":  func(c *cluster) func() { c.killOne("/weft sweep shard --collector"); return nil },
		"machine": func(c *cluster) func() {
			c.do("kill", 3)
			return func() { c.do("start", 3) }
		},
		"manager": func(c *cluster) func() {
			c.do("kill", collectFrom)
			c.killOne(weft, c.d.dir, "sweep", "collector")
			return func() { c.do("start", collectFrom) }
		},
		"cable": func(c *cluster) func() {
			c.do("cut", 2)
			return func() { c.do("join", 2) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := *c.d
			d.t = t
			c := &cluster{t: t, dir: c.dir, d: &d}
			id := strings.TrimSpace(c.as("sweep", "submit", file, "--engine", "sim", "--on", "swarm", "--collect", "--shards",
				"6").wantCode(0).stdout)
			if wrong := eventually(patience, func() string {
				for _, s := range c.d.sweepStatus(id).Shards {
					if (s.Host == "m2" || s.Host == "m3") && s.State == sweep.Running && s.Done > 0 {
						return ""
					}
				}
				return "no shard of another machine has a result"
			}); wrong != "" {
				t.Fatal(wrong)
			}
			back := lose(c)
			began := time.Now()
			if say := c.d.sweepStatus(id).Say; name == "manager" && !strings.Contains(say, "swarm does not answer") {
				t.Errorf("status says %q", say)
			}
			if back != nil || name == "collector" {
				<-time.After(30 * time.Second) // how long it is away
			}
			if back != nil {
				back()
			}
			c.finishCollected(id)
			c.d.wantRuns(id, "many", points)
			t.Logf("%s lost: the rest took %.1f s", name, time.Since(began).Seconds())
			if err := os.RemoveAll(filepath.Join(c.d.dir, "runs")); err != nil {
				t.Fatal(err)
			}
			c.wantReady()
			c.wantNothing()
		})
	}
}
