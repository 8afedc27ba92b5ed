package flows

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"weft/collectives/graph"
	"weft/internal/fuzztest"
	"weft/internal/losttest"
	"weft/units"
)

const chain = `# three flows, one after the other
Nodes 4
Connections 3
Triggers 2
0->1 id 1 start 2000000 size 2000 send_done_trigger 1
0->2 id 2 trigger 1 size 3000 recv_done_trigger 2
2->0 id 3 trigger 2 size 4001
trigger id 1 oneshot
trigger id 2 barrier count 1
`

// A connection matrix becomes a send and a receive for each connection, after what triggers it.
func TestMatrix(t *testing.T) {
	l, err := Parse("x.cm", strings.NewReader(chain))
	if err != nil {
		t.Fatal(err)
	}
	want := []Flow{
		{ID: "1", From: 0, To: 1, Size: 2000, At: 2 * units.Microsecond, Line: 5},
		{ID: "2", From: 0, To: 2, Size: 3000, Line: 6, After: []After{{0, false}}},
		{ID: "3", From: 2, To: 0, Size: 4001, Line: 7, After: []After{{1, true}}},
	}
	if got := fmt.Sprint(l.Flows); got != fmt.Sprint(want) || l.Nodes != 4 {
		t.Errorf("%d nodes, flows\n%s\nwant\n%v", l.Nodes, got, want)
	}
	g, err := l.Graph()
	if err != nil {
		t.Fatal(err)
	}
	if ops := g.Ranks[0]; len(ops) != 4 || ops[0].Kind != graph.Compute || ops[2].Kind != graph.Send || ops[2].After[0] != 1 {
		t.Errorf("rank 0: %+v", ops)
	}
	if _, total, err := graph.Compile(g); err != nil || total != 9001 {
		t.Error(total, err)
	}
}

// A flow list of ns-3 has starts in seconds.
func TestFlowTxt(t *testing.T) {
	l, err := Parse("flow.txt", strings.NewReader("2\n0 3 3 100 200000 2\n\n1 3 3 101 70 0.000001\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(l.Flows); got != fmt.Sprint([]Flow{{From: 0, To: 3, Size: 200000, At: 2 * units.Second, Line: 2},
		{From: 1, To: 3, Size: 70, At: units.Microsecond, Line: 4}}) {
		t.Error(got)
	}
}

// An ignored port column gives one warning, however many flows have it.
func TestPort(t *testing.T) {
	l, err := Parse("f", strings.NewReader("2\n0 1 3 100 5 0\n0 1 3 101 5 0\n"))
	want := "[f:2: the port of flows, which have connections of their own, is not used (2 times, this is the first)]"
	if err != nil || fmt.Sprint(l.Notes.Texts()) != want {
		t.Error(l.Notes.Texts(), err)
	}
	l, err = Parse("flow.txt", strings.NewReader("1\n0 3 3 0 200000 2\n1 3 3 0 70 0.000001\n"))
	if got := l.Notes.Texts(); err != nil || len(got) != 1 || !strings.HasPrefix(got[0], "flow.txt:3: a flow beyond the number of flows") {
		t.Error(got, err)
	}
}

// What is not understood is an error with its line.
func TestRefuses(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "f:1: an empty file"},
		{"Nodes 2\nConnections 1\n", "f:2: 0 connections; the header says 1"},
		{"Nodes 2\n0->1 start 0 size 5 prio 3\n", "f:2: prio"},
		{"Nodes 2\n0->1 start 0 size 5 color 3\n", `f:2: "color" is not understood`},
		{"Nodes 2\n0->1 start 0 size\n", "f:2: size without a value"},
		{"Nodes 2\n0->1 start 0 size 0\n", "f:2: a connection without a size"},
		{"Nodes 2\n0->1 size 5\n", "f:2: a connection starts at an instant or by a trigger"},
		{"Nodes 2\n0->4 start 0 size 5\n", "a connection of node 4; the header says there are 2 nodes"},
		{"Nodes 2\n1->1 start 0 size 5\n", "f:2: a flow from node 1 to node 1"},
		{"Nodes 2\nFailures 1\n", "f:2: failures of links belong to the lab's faults"},
		{"Nodes 2\n0->1 id 1 trigger 3 size 5\n", "f:2: trigger 3 is nowhere"},
		{"Nodes 2\ntrigger id 3 multishot\n", "f:2: multishot"},
		{"Nodes 3\n0->1 id 1 start 0 size 5 send_done_trigger 1\n2->1 id 2 trigger 1 size 5\ntrigger id 1 oneshot\n",
			"f:3: the flow from 2 to 1 starts after one from 0 to 1: node 2 cannot know when that is acknowledged"},
		{"Nodes 2\n0->1 id 1 trigger 1 size 5 send_done_trigger 1\ntrigger id 1 oneshot\n", "f:2: the flow from 0 to 1 waits for itself"},
		{"2\n0 1 3 100 5 0\n", "f:2: 1 flows; the first line says 2"},
		{"1\n0 1 3 100 5\n", "f:2: 5 fields"},
		{"1\n0 1 3 100 5 -1\n", `f:2: the start is "-1"`},
		{"2\n0 1 3 100 5 0\n0 1 4 100 5 0\n", "f:3: priority group 4 after flows of group 3"},
		{"Nodes 2\n" + strings.Repeat("x", 1<<17), "f:2: a line of more than 65536 bytes"},
		{"1\n0 1 3 100 0 0\n", "f:2: a flow of 0 bytes"},
		{"1\n0 1 3 http 5 0\n", `f:2: the port is "http"`},
	} {
		l, err := Parse("f", strings.NewReader(c.text))
		if err == nil {
			_, err = l.Graph()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: %v; want %q", c.text, err, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	corpus := fuzztest.New(f)
	corpus.Add([]byte(chain))
	corpus.Add([]byte("1\n0 1 3 100 500 2.0\n"))
	corpus.Add([]byte("Nodes 2\n0->1 id 1 msg start 0 size 5\n0->1 id 1 msg 2 start 0 size 5\n"))
	corpus.Fuzz(func(t *testing.T, text []byte) {
		l, err := Parse("f", bytes.NewReader(text))
		if err != nil {
			return
		}
		g, err := l.Graph()
		if err != nil || len(g.Ranks) < 2 {
			return
		}
		if _, _, err := graph.Compile(g); err != nil {
			t.Errorf("%q becomes a graph that cannot run: %v", text, err)
		}
	})
}

// What a file says is never lost: with a record left out, repeated or added, the job is another
// one, the file is refused, or a note tells what was skipped.
func TestNothingIsLost(t *testing.T) {
	told := func(text string) string {
		l, err := Parse("f", strings.NewReader(text))
		if err != nil {
			return err.Error()
		}
		for i := range l.Flows { // places tell of any line that is missing
			l.Flows[i].Line = 0
		}
		return fmt.Sprint(l.Nodes, l.Flows, l.Notes)
	}
	matrix := losttest.Lines(chain)
	losttest.Check(t, losttest.Sample{Records: matrix, Told: told, At: len(matrix), Idle: []string{"# three flows"},
		// Counts of what the file has anyway: a file may have none of them, and 4 nodes have a flow
		// or none.
		Default: []string{"Connections 3\n", "Triggers 2\n"},
		Added:   []string{"0->1 id 4 start 0 size 1\n", "trigger id 7 oneshot\n", "Colour 1\n", "Nodes 9\n"}})
	losttest.Check(t, losttest.Sample{Records: losttest.Lines("2\n0 3 3 0 200000 2\n1 3 3 0 70 0.000001\n"), Told: told, At: 3,
		Added: []string{"1 2 3 0 70 0\n", "1 2 3\n", "a flow of six words here\n"}})
	for old, now := range map[string]string{"size 2000": "size 2000 size 3", "trigger 1\n": "trigger 8\n",
		"Triggers 2": "Triggers 3", "id 1 oneshot": "id 1 oneshot count 2", "count 1": "count 1 count 1"} {
		if text := strings.Replace(chain, old, now, 1); told(text) == told(chain) {
			t.Errorf("nothing tells %s instead of %s", now, old)
		}
	}
}
