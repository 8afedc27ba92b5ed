package goal

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"weft/collectives/graph"
	"weft/internal/fuzztest"
	"weft/internal/losttest"
	"weft/units"
)

const small = `// a comment
num_ranks 2

rank 0 {
l1: calc 1500 cpu 1
l2: send 4096b to 1 tag 7 cpu 0 nic 0
l2 requires l1
/* and
   another */
l3: calc 10
l3 irequires l2
}
rank 1 {
recv 4096b from 0 tag 7
}
`

func TestParse(t *testing.T) {
	if !Looks([]byte(small)) {
		t.Error("is not recognized")
	}
	g, err := Parse("x.goal", strings.NewReader(small))
	if err != nil {
		t.Fatal(err)
	}
	zero := g.Ranks[0]
	if len(zero) != 3 || zero[0].Time != 1500*units.Nanosecond || zero[0].Stream != 1 || zero[1].Tag != 7 ||
		zero[1].After[0] != 0 || zero[2].After[0] != 0 || g.Where(0, &zero[1]) != "x.goal:6" {
		t.Errorf("%+v", zero)
	}
	if _, total, err := graph.Compile(g); err != nil || total != 4096 {
		t.Error(total, err)
	}
}

func TestRefuses(t *testing.T) {
	rank := func(body string) string { return "num_ranks 2\nrank 0 {\n" + body + "\n}\nrank 1 {\n}\n" }
	for _, c := range []struct{ text, want string }{
		{"", "f:1: a schedule without num_ranks"},
		{"rank 0 {", `f:1: "rank" before num_ranks`},
		{"num_ranks 2\nrank 2 {", `f:2: rank is "2"; expected a whole number from 0 to 1`},
		{"num_ranks 2\nrank 0 {\nl1: calc 5", "f:3: the file ends within a rank"},
		{rank("l1: recv 8b from -1"), "f:3: a receive from any rank"},
		{rank("l1: recv 8b from 1 tag -1"), "f:3: a message with any tag"},
		{rank("l1: send 8b to 1 nic 1"), "f:3: nic 1: a host has one NIC here"},
		{rank("l1: send 8 to 1"), `f:3: size "8"; expected bytes`},
		{rank("l1: send 8b to 1 prio 1"), `f:3: "prio" is not understood`},
		{rank("l1: send 8b to 1 tag"), `f:3: "tag" without a number`},
		{rank("l1: calc 5\nl1: calc 5"), "f:4: label l1 is used twice"},
		{rank("l1: calc 5\nl1 requires l2"), "f:4: no operation before has the label l2"},
		{rank("l1: calc 5\nl2: calc 5\nl1 irequires l2\nl2 irequires l1"), "in a cycle for each other's start"},
		{rank("l1: calc 99999999999999"), "f:3: calc is"},
		{rank("l1: jump 5"), `f:3: "jump" is not understood`},
		{rank(strings.Repeat("l", 300) + ": calc 5"), "has 300 characters; expected at most 255"},
		{rank("l1: calc 5;"), "f:3: character ';'"},
		{"num_ranks 99999999\n", "f:1: num_ranks is"},
		{"num_ranks 2\n" + strings.Repeat("l", 1<<17), "f:2: a line of more than 65536 bytes"},
	} {
		if _, err := Parse("f", strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: %v; want %q", c.text, err, c.want)
		}
	}
}

// plain removes the places of ops in their file, and makes lists that are empty nil.
func plain(g *graph.Graph) *graph.Graph {
	for r, ops := range g.Ranks {
		if len(ops) == 0 {
			g.Ranks[r] = nil
		}
		for i := range ops {
			ops[i].Place = 0
			if len(ops[i].After) == 0 {
				ops[i].After = nil
			}
		}
	}
	return g
}

// Text that was read is written as text that reads as the same graph.
func FuzzParse(f *testing.F) {
	corpus := fuzztest.New(f)
	corpus.Add([]byte(small))
	corpus.Add([]byte("num_ranks 2\nrank 0 {\nl1: calc 0\n}\n"))
	corpus.Add([]byte("num_ranks 3\nrank 2 {\nx_1: send 1b to 0\nl5: recv 70000b from 1 tag 4294967294\nl5 requires x_1\n}\n"))
	corpus.Fuzz(func(t *testing.T, text []byte) {
		g, err := Parse("f", bytes.NewReader(text))
		if err != nil || len(g.Ranks) > 1000 {
			return
		}
		var b bytes.Buffer
		if err := Write(&b, g); err != nil {
			return
		}
		again, err := Parse("f", bytes.NewReader(b.Bytes()))
		if err != nil || !reflect.DeepEqual(plain(again).Ranks, plain(g).Ranks) {
			t.Fatalf("%s\nbecame\n%s\n%v", text, b.Bytes(), err)
		}
	})
}

// large returns a schedule of a million operations.
func large() []byte {
	const ranks, each = 16, 1_000_000 / 16
	var b bytes.Buffer
	fmt.Fprintf(&b, "num_ranks %d\n", ranks)
	for r := range ranks {
		fmt.Fprintf(&b, "rank %d {\n", r)
		for i := 1; i+2 <= each; i += 3 {
			fmt.Fprintf(&b, "l%d: calc 1000\nl%d: send 65536b to %d tag %d\nl%d: recv 65536b from %d tag %d\n", i, i+1,
				(r+1)%ranks, i, i+2, (r+ranks-1)%ranks, i)
			fmt.Fprintf(&b, "l%d requires l%d\nl%d requires l%d\n", i+1, i, i+2, i)
			if i > 1 {
				fmt.Fprintf(&b, "l%d requires l%d\n", i, i-1)
			}
		}
		fmt.Fprintln(&b, "}")
	}
	return b.Bytes()
}

// BenchmarkLoad reads and compiles a million operations.
func BenchmarkLoad(b *testing.B) {
	text := large()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		g, err := Parse("large.goal", bytes.NewReader(text))
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := graph.Compile(g); err != nil {
			b.Fatal(err)
		}
	}
}

// What a file says is never lost: with a record left out, repeated or added, the job is another
// one, the file is refused, or a note tells what was skipped.
func TestNothingIsLost(t *testing.T) {
	losttest.Check(t, losttest.Sample{Records: losttest.Lines(small), Told: func(text string) string {
		g, err := Parse("f", strings.NewReader(text))
		if err != nil {
			return err.Error()
		}
		for _, ops := range g.Ranks { // places tell of any line that is missing
			for i := range ops {
				ops[i].Place = 0
			}
		}
		return fmt.Sprint(g.Ranks, g.Notes)
	}, Idle: []string{"// a comment", "/* and", "   another"}, At: 4, Added: []string{"calc 5\n", "rank 1 {\n", "colour 1\n",
		"send 1b to 1 tag 1 tag 2\n", "calc 1 cpu 1 cpu 2\n", "num_ranks 2\n", "l1 requires l9\n"}})
}
