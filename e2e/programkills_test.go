package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"weft/internal/sample"
)

// Whichever process of a run with programs is killed, at whichever instant, nothing is left: weft,
// what it starts, programs in lab time, their children and the daemons among them. WEFT_KILLS and
// WEFT_KILL_SEED are as for make killtest, which runs this too; make test-all kills 60 times.
func TestPrivProgramsKilledAtRandom(t *testing.T) {
	needLabTime(t)
	kills := 3
	if sample.All() {
		kills = 60
	}
	kills = sample.Number(t, "WEFT_KILLS", kills)
	seed := sample.Rand(t).Uint64()
	if n, err := strconv.ParseUint(os.Getenv("WEFT_KILL_SEED"), 10, 64); err == nil {
		seed = n
	}
	d := newWorkspace(t)
	name := d.writeLab("lab.yaml", `
weft: 1
name: killed
topology: {kind: star, hosts: 3, link: {rate: 1Gbps, delay: 10us}}
workload:
  - program: [sh, -c, "setsid sleep 1000 & (setsid sleep 1000 &) ; while :; do /bin/true; done"]
  - {collective: all-reduce, size: 100MB}
engine: {kind: emu, dilation: 10}
`)
	const longest = time.Second // in which everything has started, on a quiet machine
	struck := map[string]int{}
	for i := range uint64(kills) {
		r := rand.New(rand.NewPCG(seed+i, 0))
		at, whole, late := time.Duration(r.Float64()*float64(longest)), r.IntN(5) == 0, r.IntN(2) == 0
		before := takeTraces(t)
		p := d.start("run", name, "-q", "--out", strconv.FormatUint(i, 10))
		var family []member
		if late { // when programs run
			if what := eventually(patience, func() string {
				family = p.family()
				if p.running() && !slices.ContainsFunc(family, func(m member) bool { return m.name == "sleep" }) {
					return fmt.Sprintf("no program runs, of %v", family)
				}
				return ""
			}); what != "" {
				t.Fatal(what)
			}
		}
		<-time.After(at)
		family = p.family()
		victim := member{pid: p.cmd.Process.Pid, name: "weft"}
		if len(family) > 0 && !whole {
			victim = family[r.IntN(len(family))]
		}
		_ = syscall.Kill(victim.pid, syscall.SIGKILL) // an error means that it has ended
		struck[victim.name]++
		select {
		case <-p.done:
		case <-time.After(time.Second): // a daemon that nobody waits for
			_ = p.cmd.Process.Signal(syscall.SIGTERM) // an error means that it has ended
		}
		res := p.wait()
		d.run("clean").wantCode(0)
		before.nothingLeft(t, family, wait)
		if t.Failed() {
			t.Fatalf("WEFT_KILL_SEED=%d: %s (%d of %d processes) killed after %v; weft said:\n%s%s", seed+i, victim.name,
				victim.pid, len(family), at, res.stdout, res.stderr)
		}
	}
	t.Logf("WEFT_KILL_SEED=%d: killed %v", seed, struck)
}
