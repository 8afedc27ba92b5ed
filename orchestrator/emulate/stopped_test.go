package emulate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"weft/internal/sample"
	"weft/internal/stalls"
	"weft/internal/testenv"
	"weft/orchestrator/kernelpath"
	"weft/orchestrator/runtime"
	"weft/params"
	"weft/results/record"
	"weft/transport"
	"weft/units"
)

// stoppedLabs are the labs of TestPrivStopped: kinds of NIC, short collectives, and incasts of
// transports that answer to delays, marks, telemetry and rates.
func stoppedLabs(t *testing.T) []stoppedLab {
	bypass := func(x *Experiment) { x.Processes.Bypass = true }
	tap := func(*Experiment) {}
	mesh := func() Experiment { return allToAll(6, 10, 8, 4000) }
	labs := []stoppedLab{
		{name: "all-to-all, bypass", setUp: bypass, make: mesh},
		{name: "all-to-all, TAP", setUp: tap, make: mesh},
		{name: "all-to-all, veth", setUp: func(x *Experiment) { x.Processes.Veth = true }, make: mesh},
		{name: "many small ones", setUp: bypass, make: func() Experiment { return allToAll(4, 1, 60, 8000) }},
		{name: "parts of a network", parts: true, setUp: func(x *Experiment) { makeRacks(t, x) }, make: mesh},
		{name: "incast, DCQCN", setUp: tap, make: func() Experiment { return twoToOne("roce", 500, 8000) }},
		{name: "incast, HPCC", setUp: bypass, make: func() Experiment { return twoToOne("hpcc", 500, 8000) }},
	}
	if _, err := kernelpath.Available(); err == nil {
		labs = append(labs, stoppedLab{name: "all-to-all, Linux", setUp: func(x *Experiment) { *x = onKernel(*x) }, make: mesh})
	}
	for i, kind := range []string{"pc4", "strack", "swift", "ccm"} {
		labs = append(labs, stoppedLab{name: "incast, " + kind, setUp: []func(*Experiment){bypass, tap}[i%2],
			make: func() Experiment { return incastOf(kind, 500, 8000) }})
	}
	return labs
}

// incastOf is twoToOne over any transport with its defaults.
func incastOf(kind string, packets int, dilation float64) Experiment {
	x := twoToOne("roce", packets, dilation)
	section, _, _ := transport.SectionOf(kind)
	params.SetDefaults(section)
	if ccm, ok := section.(*transport.CCM); ok {
		params.SetDefaults(&ccm.RoCE)
	}
	for h := range x.Plans {
		for i := range x.Plans[h].Conns {
			c := &x.Plans[h].Conns[i]
			c.Kind, c.NetRTT = kind, x.BaseRTT
			section.Set(c)
		}
	}
	return x
}

// Whatever is stopped, when, for how long and how often: either the mean and the median of flows
// and collectives and the end of the run are within 5 % of undisturbed runs, or the verdict is not
// ok. Undisturbed runs are the reference, and not the simulator, from which they differ by a
// per cent or two: what matters is that results compare. A run may also end since a process is
// silent, and say so.
func TestPrivStopped(t *testing.T) {
	testenv.NeedNamespaces(t)
	checkStopped(t, Processes{})
}

// The same for containers.
func TestPrivStoppedDocker(t *testing.T) { checkStopped(t, containers(t)) }

// The same where the kernel's bridge and queues carry the packets, which stop with nobody.
func TestUMLKernelStopped(t *testing.T) {
	if !underUML(t) {
		return
	}
	lab := stoppedLab{setUp: func(x *Experiment) { *x = onKernel(*x) },
		make: func() Experiment { return allToAll(3, 10, 8, 40_000) }}
	rounds, each := 1, 1 // measuring links takes several seconds
	if sample.All() {
		rounds, each = 18, 3
	}
	lab.check(t, rounds, each)
}

// checkStopped runs labs whose processes are stopped at random. Parts of a network are in
// namespaces whatever the runtime: agents start them.
func checkStopped(t *testing.T, p Processes) {
	labs := slices.DeleteFunc(stoppedLabs(t), func(l stoppedLab) bool { return l.parts && p.Launch != nil })
	const all, some, each = 200, 3, 3
	rounds := 1
	if sample.All() {
		rounds = all / len(labs)
	} else {
		labs = sample.Of(t, 1, labs...)
		rounds = some
	}
	for _, lab := range labs {
		lab.processes = p
		t.Run(lab.name, func(t *testing.T) { lab.check(t, rounds, each) })
	}
}

// check compares each of several runs whose processes are stopped with undisturbed runs.
func (l *stoppedLab) check(t *testing.T, rounds, each int) {
	var base []map[string]float64
	for tries := 0; len(base) < each; tries++ {
		if tries == 4*each {
			t.Skip("undisturbed runs are not ok: the machine is busy")
		}
		if o, err := l.run(t, nil); err != nil {
			if !linksMissed(err) {
				t.Fatal(err)
			}
		} else if o.Fidelity.Verdict == record.OK {
			base = append(base, numbersOf(o))
		}
	}
	rng := sample.Rand(t)
	caught := 0
	for i := range rounds {
		s := randomStop(rng, time.Duration(base[0]["the end"]*l.make().Dilation)*time.Microsecond)
		o, err := l.run(t, s)
		if errors.Is(err, errSilent) || linksMissed(err) { // beside others the shell, too, may be late to continue what it has stopped
			t.Logf("%d: %v: %v", i, s, err)
			caught++
			continue
		} else if err != nil {
			t.Fatalf("%v: %v", s, err)
		}
		f := &o.Fidelity
		key, off := farthest(numbersOf(o), base)
		t.Logf("%d: %v: %s, %.1f %% of %s; %s is off by %.1f %%", i, s, f.Verdict, 100*f.Stalled, f.StalledWork,
			key, 100*off)
		if f.Verdict != record.OK {
			caught++
		} else if math.Abs(off) > 0.05 {
			t.Errorf("%v: ok, and %s is off by %.1f %%", s, key, 100*off)
		}
	}
	t.Logf("%d of %d are not ok", caught, rounds)
}

// stoppedLab is a lab for TestPrivStopped.
type stoppedLab struct {
	name  string
	parts bool // of several machines
	setUp func(*Experiment)
	make  func() Experiment

	processes Processes // of the runtime
}

// run runs the lab with a stop; nil: undisturbed.
func (l *stoppedLab) run(t *testing.T, s *stop) (*Outcome, error) {
	x := l.make()
	x.Processes = l.processes
	l.setUp(&x)
	if s != nil {
		x.During = s.during
	}
	return runChecked(t, x)
}

// stop stops processes of a run some times.
type stop struct {
	who   string
	after time.Duration // from lab time 0
	times int
	long  time.Duration // and as long between two
}

func (s *stop) String() string {
	return fmt.Sprintf("%s stopped %d times for %v after %v", s.who, s.times, s.long.Round(time.Millisecond),
		s.after.Round(time.Millisecond))
}

// randomStop returns a stop during a run of a length.
func randomStop(rng *rand.Rand, length time.Duration) *stop {
	s := &stop{who: []string{"the fabric", "an agent", "the nodes", "all", "a machine", "weft"}[rng.IntN(6)], times: 1,
		after: time.Duration(rng.Float64() * float64(length)),
		long:  time.Duration(math.Pow(10, 3*rng.Float64()) * float64(time.Millisecond))}
	if rng.IntN(3) == 0 {
		s.times = 1 + rng.IntN(1+int(length/(2*s.long)))
	}
	return s
}

// during stops the processes by a shell, which is not stopped with them.
func (s *stop) during(ctx context.Context, c runtime.Cluster) error {
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(s.after):
	}
	var pids []string
	add := func(p *runtime.Proc) { pids = append(pids, strconv.Itoa(p.PID)) }
	parts := []runtime.Cluster{c}
	if m, ok := c.(*machines); ok {
		parts = m.all
	}
	if s.who == "a machine" { // all of it that takes part
		c, parts = parts[len(parts)-1], parts[len(parts)-1:]
	}
	everybody := s.who == "all" || s.who == "a machine"
	for i, part := range parts {
		if f := part.Fabric(); f != nil && (s.who == "the fabric" && i == 0 || everybody) { // nil: the kernel
			add(f)
		}
	}
	for _, p := range drivers(c) {
		if s.who == "an agent" && len(pids) == 0 || s.who == "the nodes" || everybody {
			add(p)
		}
	}
	for i := range c.Nodes() {
		if s.who == "the nodes" || everybody {
			add(c.Node(i))
		}
	}
	if s.who == "weft" {
		pids = append(pids, strconv.Itoa(os.Getpid()))
	}
	who, long := strings.Join(pids, " "), s.long.Seconds()
	script := fmt.Sprintf("for i in $(seq %d); do kill -STOP %s; sleep %.4f; kill -CONT %s; sleep %.4f; done 2>/dev/null",
		s.times, who, long, who, long)
	_ = exec.Command("sh", "-c", script).Run() // processes that have ended cannot be stopped
	return nil
}

// numbersOf returns what the verdict vouches for, in microseconds.
func numbersOf(o *Outcome) map[string]float64 {
	n := map[string]float64{}
	add := func(what string, spans []stalls.Span) {
		var sum units.Time
		each := make([]units.Time, len(spans))
		for i, s := range spans {
			each[i] = s.Len()
			sum += s.Len()
		}
		slices.Sort(each)
		n["the mean of "+what] = sum.Microseconds() / float64(len(spans))
		n["the median of "+what] = each[len(each)/2].Microseconds()
	}
	var flows, collectives []stalls.Span
	var end units.Time
	for _, f := range o.Flows {
		flows, end = append(flows, stalls.Span{From: f.Start, To: f.Acked}), max(end, f.Acked)
	}
	repeats := map[int]stalls.Span{}
	for _, d := range o.Dones {
		s, ok := repeats[d.Repeat]
		if !ok {
			s.From = units.Never
		}
		repeats[d.Repeat] = stalls.Span{From: min(s.From, d.Start), To: max(s.To, d.End)}
	}
	for _, s := range repeats {
		collectives = append(collectives, s)
	}
	add("flows", flows)
	add("collectives", collectives)
	n["the end"] = end.Microseconds()
	return n
}

// farthest returns the number that is farthest outside of those of undisturbed runs, and by how
// much.
func farthest(n map[string]float64, base []map[string]float64) (key string, off float64) {
	for k, v := range n {
		least, most := math.Inf(1), 0.0
		for _, b := range base {
			least, most = min(least, b[k]), max(most, b[k])
		}
		by := max(0, v/most-1) + min(0, v/least-1)
		if math.Abs(by) >= math.Abs(off) {
			key, off = k, by
		}
	}
	return key, off
}
