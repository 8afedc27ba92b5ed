package graph

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"weft/collectives/check"
	"weft/collectives/schedule"
	"weft/units"
)

// send and recv return ops of a message of 4 KB.
func send(to int, tag uint64, after ...int32) Op {
	return Op{Kind: Send, Peer: int32(to), Tag: tag, Size: 4096, After: after, Place: 1}
}

func recv(from int, tag uint64, after ...int32) Op {
	return Op{Kind: Recv, Peer: int32(from), Tag: tag, Size: 4096, After: after, Place: 1}
}

// Messages with the same tag match in the order of the file, and every byte has its place.
func TestCompile(t *testing.T) {
	odd := send(1, 7)
	odd.Size = 13
	oddEnd := recv(0, 7)
	oddEnd.Size = 13
	g := &Graph{Files: []string{"job"}, Ranks: [][]Op{
		{send(1, 9), odd, send(1, 7, 1), recv(2, 0, 2)},
		{oddEnd, recv(0, 7), recv(0, 9, 1)},
		{{Kind: Compute, Time: units.Microsecond}, send(0, 0, 0)},
	}}
	given, total, err := Compile(g)
	if err != nil || total != 3*4096+13 {
		t.Fatal(total, err)
	}
	programs, layouts := make([]schedule.Program, 3), make([]schedule.Layout, 3)
	for r, p := range given.Parts {
		if err := given.Check(r); err != nil {
			t.Fatal(err)
		}
		programs[r], layouts[r] = p.Program, p.Layout
	}
	if w := layouts[1].Result; len(w) != 2 || w[0].Len != 12 || w[1].Len != 2*4096 {
		t.Errorf("results of rank 1: %+v", w)
	}
	programs[2] = schedule.Program{programs[2][1]} // the proof knows messages only
	programs[2][0].After = nil
	if err := check.Execute(programs, layouts, func([]check.Step) int { return 0 }); err != nil {
		t.Error(err)
	}
}

// Ops may be listed in any order; the result waits for earlier ones only.
func TestCompileSorts(t *testing.T) {
	g := &Graph{Ranks: [][]Op{{send(1, 1, 2), send(1, 2), send(1, 3, 1)}, {recv(0, 1), recv(0, 2), recv(0, 3)}}}
	given, _, err := Compile(g)
	if err != nil {
		t.Fatal(err)
	}
	var order []uint32
	for _, op := range given.Parts[0].Program {
		order = append(order, op.Tag)
	}
	if !slices.Equal(order, []uint32{1, 2, 0}) { // numbered by tag
		t.Errorf("order of tags %v", order)
	}
}

// What cannot be executed is refused with its place.
func TestCompileRefuses(t *testing.T) {
	short := recv(0, 1)
	short.Size = 1
	call := Op{Kind: Collective}
	two := []Call{{Collective: "all-reduce", Size: 8, Members: []int32{0, 1}}}
	for _, c := range []struct {
		name  string
		ranks [][]Op
		calls []Call
		want  string
	}{
		{"one rank", [][]Op{{}}, nil, "a job of 1 rank"},
		{"no receive", [][]Op{{send(1, 1)}, {}}, nil, "f:1: rank 0 sends to rank 1 with tag 1, and no receive is left"},
		{"no send", [][]Op{{}, {recv(0, 1)}}, nil, "f:1: rank 1 receives from rank 0 with tag 1, and no send is left"},
		{"sizes", [][]Op{{send(1, 1)}, {short}}, nil, "rank 1 receives 1 bytes from rank 0 with tag 1, which sends 4096 at f:1"},
		{"itself", [][]Op{{send(0, 1)}, {}}, nil, "exchanges a message with itself"},
		{"no rank", [][]Op{{send(2, 1)}, {}}, nil, "there are 2 ranks"},
		{"a circle", [][]Op{{send(1, 1, 1), send(1, 2, 0)}, {}}, nil, "waits for itself"},
		{"a circle of ranks", [][]Op{{recv(1, 1), send(1, 2, 0)}, {recv(0, 2), send(0, 1, 0)}}, nil, "would wait for ever"},
		{"nowhere", [][]Op{{send(1, 1, 5)}, {}}, nil, "waits for operation 5 of 1"},
		{"long", [][]Op{{{Kind: Compute, Time: MaxTime + 1}}, {}}, nil, "computes for"},
		{"half a collective", [][]Op{{call}, {}}, two, "in which only 1 of them take part"},
		{"a collective twice", [][]Op{{call, call}, {call}}, two, "takes part twice"},
		{"collectives crossed", [][]Op{{call, {Kind: Collective, Call: 1, After: []int32{0}}},
			{{Kind: Collective, Call: 0, After: []int32{1}}, {Kind: Collective, Call: 1}}},
			append(two, two...), "would wait for ever"},
	} {
		_, _, err := Compile(&Graph{Files: []string{"f"}, Ranks: c.ranks, Calls: c.calls})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
	}
}

// ring returns a job of a million ops: ranks that pass messages around after computing.
func ring(ranks, each int) *Graph {
	g := &Graph{Files: []string{"ring"}, Ranks: make([][]Op, ranks)}
	for r := range g.Ranks {
		ops := make([]Op, 0, each)
		for i := int32(0); len(ops) < each; i += 3 {
			var after []int32
			if i > 0 {
				after = []int32{i - 1}
			}
			ops = append(ops, Op{Kind: Compute, Time: units.Microsecond, After: after}, send((r+1)%ranks, uint64(i), i),
				recv((r+ranks-1)%ranks, uint64(i), i))
		}
		g.Ranks[r] = ops
	}
	return g
}

func BenchmarkCompile(b *testing.B) {
	for range b.N {
		b.StopTimer()
		g := ring(16, 1_000_000/16)
		b.StartTimer()
		if _, _, err := Compile(g); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/Mops")
}

func ExampleCompile() {
	g := &Graph{Files: []string{"job.goal"}, Ranks: [][]Op{{send(1, 3)}, {recv(0, 4)}}}
	_, _, err := Compile(g)
	fmt.Println(err)
	// Output: job.goal:1: rank 0 sends to rank 1 with tag 3, and no receive is left there
}

// Attributes of the same things share a sentence, and rounding keeps sums.
func TestNotes(t *testing.T) {
	var n Notes
	n.Add("f", 1, "attribute a of nodes")
	n.Add("f", 2, "role x of nodes")
	n.Add("f", 3, "attribute b of nodes")
	n.Add("f", 4, "attribute b of links")
	want := "f:1: attributes a, b of nodes are not used (2 times, this is the first); f:2: role x of nodes is not used; f:4: attribute b of links is not used"
	if got := strings.Join(n.Texts(), "; "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	g := &Graph{Files: []string{"f"}, Ranks: [][]Op{{
		{Kind: Compute, Time: 400, Place: 1}, {Kind: Compute, Time: 400, Place: 2}, {Kind: Compute, Time: 2000, Place: 3}, {Kind: Compute, Time: 100, Stream: 1, Place: 4},
	}}}
	g.Round(1000)
	var got []units.Time
	for _, op := range g.Ranks[0] {
		got = append(got, op.Time)
	}
	if fmt.Sprint(got) != fmt.Sprint([]units.Time{0, 1000, 2000, 0}) ||
		g.Notes.Texts()[0] != "f:1: times of computations are rounded to multiples of 1ns, so that sums are kept (3 times, this is the first)" {
		t.Errorf("%v, %q", got, g.Notes.Texts())
	}
}
