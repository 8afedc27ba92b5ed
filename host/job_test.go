package host

import (
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weft/collectives/schedule"
	"weft/units"
)

// givenJob returns a job of two ranks: rank 0 computes in two streams, sends, and both take part in
// collective 0 and then, rank 0 after another computation, in collective 1.
func givenJob() *schedule.Given {
	const size = 10 * units.KB
	us := units.Microsecond
	zero := schedule.Program{
		schedule.Computation(10*us, 0, nil),
		schedule.Computation(5*us, 0, nil), // waits for the stream
		schedule.Computation(7*us, 1, nil), // does not
		{Kind: schedule.Send, Peer: 1, Len: size, After: []int32{2}},
		{Kind: schedule.Call, Tag: 0, After: []int32{1, 3}},
		schedule.Computation(0, 2, []int32{4}),
		{Kind: schedule.Call, Tag: 1, After: []int32{5}},
	}
	one := schedule.Program{
		{Kind: schedule.Call, Tag: 0},
		{Kind: schedule.Recv, Buf: schedule.Out, Final: true, Len: size},
		{Kind: schedule.Call, Tag: 1, After: []int32{0, 1}},
	}
	return &schedule.Given{Tags: 1, Parts: []*schedule.Part{
		schedule.NewPart(zero, schedule.Layout{In: size}),
		schedule.NewPart(one, schedule.Layout{Out: size, Result: []schedule.Want{{Len: size}}}),
	}}
}

func jobOf(g *schedule.Given) schedule.Spec {
	return schedule.Spec{Collective: schedule.Graph, Algorithm: schedule.GivenPrograms, Size: 1, Given: g}
}

// A job computes in streams, calls collectives, and repeats; the item after it waits for it.
func TestJob(t *testing.T) {
	for kind := noMemory; kind <= symbolicMemory; kind++ {
		net := buildNetwork(t, 2, kind, job{Spec: jobOf(givenJob()), repeat: 3},
			job{Spec: ringAllReduce(30*units.KB, 0), repeat: 3, called: true},
			job{Spec: allToAll(30*units.KB, 0), repeat: 3, called: true},
			job{Spec: ringAllReduce(5*units.KB, 0), previous: true})
		net.run(t)
		net.verify(t, 2*(3+3+3+1))
		dones := net.hosts[0].Dones()
		at := func(item, repeat int) Done {
			for _, d := range dones {
				if d.Item == item && d.Repeat == repeat {
					return d
				}
			}
			t.Fatalf("item %d, repetition %d is not done", item, repeat)
			return Done{}
		}
		first := at(0, 0)
		if start := at(1, 0).Start - first.Start; start != 15*units.Microsecond {
			t.Errorf("the collective began after %v; expected after the two computations of 15us", start)
		}
		if at(2, 0).Start != at(1, 0).End {
			t.Error("the second collective does not follow the first")
		}
		if again := at(0, 1); again.Start != first.End || at(1, 1).Start-again.Start != 15*units.Microsecond {
			t.Errorf("the second repetition: %+v after %+v", again, first)
		}
		if at(3, 0).Start < at(0, 2).End {
			t.Error("the item after the job began before its end")
		}
	}
}

// A job that calls what the plan does not have fails by name.
func TestJobWithoutCollective(t *testing.T) {
	net := buildNetwork(t, 2, symbolicMemory, job{Spec: jobOf(givenJob())})
	net.run(t)
	if err := net.hosts[1].Failed(); err == nil || !strings.Contains(err.Error(), errNoCall.Error()) {
		t.Error(err)
	}
}

// A program whose ops wait for later ones is refused.
func TestJobIsChecked(t *testing.T) {
	g := givenJob()
	g.Parts[0].Program[0].After = []int32{3}
	if _, err := New(plansOf(t, 2, []job{{Spec: jobOf(g)}})[0], nil, nil); err == nil {
		t.Error("no error")
	}
}

// Any job of messages, computations and dependencies over a lossy network arrives in full.
func TestAnyJob(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const ranks = 4
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		programs, layouts := make([]schedule.Program, ranks), make([]schedule.Layout, ranks)
		tags := [ranks][ranks]uint32{}
		after := func(rank int) (all []int32) {
			for range rng.IntN(3) {
				if n := len(programs[rank]); n > 0 {
					all = append(all, int32(rng.IntN(n)))
				}
			}
			return all
		}
		for range 60 {
			src, dst := rng.IntN(ranks), rng.IntN(ranks)
			if src == dst {
				d := units.Time(rng.IntN(9)) * units.Microsecond
				programs[src] = append(programs[src], schedule.Computation(d, int32(rng.IntN(3)), after(src)))
				continue
			}
			op := schedule.Op{Kind: schedule.Send, Peer: dst, Tag: tags[src][dst], Len: units.Bytes(1 + rng.IntN(20_000)),
				Flow: int32(rng.IntN(2)), Off: layouts[src].In, After: after(src)}
			programs[src] = append(programs[src], op)
			op.Kind, op.Buf, op.Peer, op.Off, op.Final, op.After = schedule.Recv, schedule.Out, src, layouts[dst].Out, true,
				after(dst)
			programs[dst] = append(programs[dst], op)
			layouts[dst].Result = append(layouts[dst].Result,
				schedule.Want{Off: op.Off, Len: op.Len / 4 * 4, Rank: src, From: layouts[src].In})
			padded := (op.Len + 3) / 4 * 4
			layouts[src].In += padded
			layouts[dst].Out += padded
			tags[src][dst]++
		}
		g := &schedule.Given{Tags: 60}
		for r := range ranks {
			g.Parts = append(g.Parts, schedule.NewPart(programs[r], layouts[r]))
		}
		s := jobOf(g)
		s.Flows = 2
		net := buildNetwork(t, ranks, rapid.IntRange(realMemory, symbolicMemory).Draw(rt, "memory"),
			job{Spec: s, repeat: 2})
		rate := rapid.IntRange(0, 3).Draw(rt, "percent lost")
		net.lose = func(*packet) bool { return rng.IntN(100) < rate }
		net.run(t)
		net.verify(t, 2*ranks)
	})
}
