package host

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weft/collectives/schedule"
	"weft/collectives/schedule/scheduletest"
	"weft/transport"
	"weft/units"
)

// Every algorithm of every collective runs over a network, with real data and without, and comes
// out right.
func TestEveryAlgorithm(t *testing.T) {
	for _, n := range []int{2, 6, 8} {
		for _, chunk := range []units.Bytes{0, 4096} {
			scheduletest.Every(n, 60*units.KB, chunk, func(s schedule.Spec) {
				for _, kind := range kinds {
					net := buildNetwork(t, n, kind, job{Spec: s, repeat: 2})
					net.run(t)
					net.verify(t, 2*n)
					if t.Failed() {
						t.Fatalf("%+v, memory %d", s, kind)
					}
				}
			})
		}
	}
}

// Any algorithm, type and reduction over any lossy network, with stragglers, several at once.
func TestAnyCollective(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const hosts = 8
		var jobs []job
		want := 0
		for range rapid.IntRange(1, 2).Draw(rt, "jobs") {
			s := scheduletest.Any(rt, scheduletest.Bounds{Ranks: hosts, Elements: 3000, Chunks: []int{0, 0, 333, 1024}})
			j := job{Spec: s, repeat: rapid.IntRange(1, 2).Draw(rt, "repeat"), previous: rapid.Bool().Draw(rt, "previous")}
			j.ranks = rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "ranks"), 0)).Perm(hosts)[:s.Ranks]
			j.compute = units.Time(rapid.IntRange(0, 5).Draw(rt, "compute")) * units.Microsecond
			j.jitter = units.Time(rapid.IntRange(0, 5).Draw(rt, "jitter")) * units.Microsecond
			jobs = append(jobs, j)
			want += s.Ranks * j.repeat
		}
		net := buildNetwork(t, hosts, rapid.IntRange(realMemory, symbolicMemory).Draw(rt, "memory"), jobs...)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "losses"), 0))
		rate := rapid.IntRange(0, 3).Draw(rt, "percent lost")
		net.lose = func(*packet) bool { return rng.IntN(100) < rate }
		net.run(t)
		dones := 0
		for _, h := range net.hosts {
			if err := h.Failed(); err != nil || h.expected != 0 {
				rt.Fatal(err, h.expected)
			}
			for _, d := range h.Dones() {
				if dones++; d.Wrong != 0 {
					rt.Fatalf("%+v: %+v", jobs, d)
				}
			}
		}
		if dones != want {
			rt.Fatalf("%d repetitions done, want %d", dones, want)
		}
	})
}

// Credits are messages, but no flows.
func TestCreditsAreNoFlows(t *testing.T) {
	net := buildNetwork(t, 8, symbolicMemory, job{Spec: windowedAllToAll(80*units.KB, 2)})
	net.run(t)
	net.verify(t, 8)
	if got := net.flows(); got != 8*7 {
		t.Errorf("%d flows, want %d", got, 8*7)
	}
	net = buildNetwork(t, 3, symbolicMemory, job{Spec: windowedAllToAll(30*units.KB, 1)})
	net.lose = func(p *packet) bool { return p.data && p.size == 4 } // no credit arrives
	net.run(t)
	failed := 0
	for _, h := range net.hosts {
		if h.Failed() == nil {
			continue
		}
		failed++
		for _, f := range h.Flows() {
			if f.Size == 4 {
				t.Errorf("a credit among the flows: %+v", f)
			}
		}
	}
	if failed == 0 {
		t.Error("nobody misses the credits")
	}
}

// A host computes before each repetition, for as long as its jitter says, the same in every run.
func TestComputeAndJitter(t *testing.T) {
	const compute, jitter, repeats = 100 * units.Microsecond, 20 * units.Microsecond, 40
	run := func() (starts []units.Time, gaps []units.Time) {
		net := buildNetwork(t, 4, symbolicMemory,
			job{Spec: ringAllReduce(4*units.KB, 0), repeat: repeats, compute: compute, jitter: jitter},
			job{Spec: ringAllReduce(4*units.KB, 0), previous: true, compute: compute})
		net.run(t)
		net.verify(t, 4*repeats+4)
		for _, h := range net.hosts {
			end := units.Time(0)
			for _, d := range h.Dones() {
				starts = append(starts, d.Start)
				gaps = append(gaps, d.Start-end)
				if d.Item == 1 && d.Start-end != compute {
					t.Errorf("the second item began %v after the first", d.Start-end)
				}
				end = d.End
			}
		}
		return starts, gaps
	}
	starts, gaps := run()
	again, _ := run()
	if !reflect.DeepEqual(starts, again) {
		t.Error("two runs differ")
	}
	var sum units.Time
	distinct := map[units.Time]bool{}
	for _, g := range gaps {
		if g < compute || g > compute+jitter {
			t.Fatalf("computed for %v", g)
		}
		sum += g - compute
		distinct[g] = true
	}
	if mean := sum / units.Time(len(gaps)); mean < jitter*4/10 || mean > jitter*6/10 || len(distinct) < len(gaps)*9/10 {
		t.Errorf("jitter is %v on average, %d different of %d", mean, len(distinct), len(gaps))
	}
}

// While it computes, a host says so, and what comes early waits.
func TestComputingHostWaits(t *testing.T) {
	net := buildNetwork(t, 2, realMemory, job{Spec: incast(80*units.KB, 1), repeat: 2})
	late := net.hosts[1]
	late.runs[0].item.Compute = units.Millisecond
	for i, h := range net.hosts {
		h.Start(0)
		net.transmit(i)
	}
	for net.now < 3*units.Microsecond {
		net.step()
	}
	if w := late.Waiting(); w != "host h1: item 0 (incast) computes until 1000.000 us" {
		t.Errorf("%q", w)
	}
	if at, ok := late.Resumes(); !ok || at != units.Millisecond || late.Awaits() != nil {
		t.Errorf("resumes at %v, %v, and awaits %v", at, ok, late.Awaits())
	}
	if _, ok := net.hosts[0].Resumes(); ok || !slices.Equal(net.hosts[0].Awaits(), []transport.HostID{1}) {
		t.Errorf("the sender resumes by itself: %v, and awaits %v", ok, net.hosts[0].Awaits())
	}
	for net.step() {
	}
	net.verify(t, 4)
	if d := late.Dones(); d[0].Start != units.Millisecond || d[1].Start != d[0].End+units.Millisecond {
		t.Errorf("%+v", d)
	}
	p := plansOf(t, 2, []job{{Spec: incast(80, 1), jitter: -1}})[0]
	if _, err := New(p, nil, nil); err == nil || !strings.Contains(err.Error(), "computes for") {
		t.Error(err)
	}
}

// The plan of any collective is data.
func TestAnyPlanIsData(t *testing.T) {
	s := schedule.Spec{
		Collective: schedule.AllReduce, Algorithm: schedule.Hierarchical, Group: 2, Type: schedule.BFloat16, Op: schedule.Max,
		Size: 1000, FarFirst: true,
	}
	for _, p := range plansOf(t, 4, []job{{Spec: s, compute: 5, jitter: 7}}) {
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var got Plan
		if err := json.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(p, got) {
			t.Errorf("%+v\nbecame\n%+v\n%v", p, got, err)
		}
	}
}
