package msccl

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"weft/internal/fuzztest"
	"weft/internal/losttest"
	"weft/units"
)

// ring returns a ring all-reduce of n GPUs in place.
func ring(n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<algo name=\"ring\" proto=\"Simple\" nchannels=\"1\" nchunksperloop=\"%d\" ngpus=\"%d\" coll=\"allreduce\" inplace=\"1\">\n", n, n)
	for r := range n {
		fmt.Fprintf(&b, "<gpu id=\"%d\" i_chunks=\"%d\" o_chunks=\"%d\" s_chunks=\"0\">\n<tb id=\"0\" send=\"%d\" recv=\"%d\" chan=\"0\">\n", r, n, n, (r+1)%n, (r+n-1)%n)
		s := 0
		step := func(kind string, chunk int) {
			chunk = (chunk%n + n) % n
			fmt.Fprintf(&b, "<step s=\"%d\" type=\"%s\" srcbuf=\"i\" srcoff=\"%d\" dstbuf=\"o\" dstoff=\"%d\" cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>\n", s, kind, chunk, chunk)
			s++
		}
		step("s", r)
		for k := 1; k < n; k++ {
			step("rrcs", r-k)
		}
		for k := range n - 2 {
			step("rcs", r-k)
		}
		step("r", r+2)
		b.WriteString("</tb>\n</gpu>\n")
	}
	b.WriteString("</algo>\n")
	return b.String()
}

// allToAll returns an all-to-all of 2 GPUs with an output of its own.
const allToAll = `<algo name="a2a" nchunksperloop="2" ngpus="2" coll="alltoall" inplace="0">
<gpu id="0"><tb id="0" send="1" recv="1" chan="0">
<step s="0" type="s" srcbuf="i" srcoff="1" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
<step s="1" type="r" srcbuf="i" srcoff="0" dstbuf="o" dstoff="1" cnt="1" depid="1" deps="0" hasdep="0"/>
</tb><tb id="1" send="-1" recv="-1" chan="0">
<step s="0" type="cpy" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="1"/>
</tb></gpu>
<gpu id="1"><tb id="0" send="0" recv="0" chan="0">
<step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
<step s="1" type="r" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
</tb></gpu>
</algo>
`

func TestAlgorithms(t *testing.T) {
	for _, text := range []string{ring(2), ring(5), ring(8), allToAll} {
		a, err := Parse("x.xml", strings.NewReader(text))
		if err != nil {
			t.Error(err)
			continue
		}
		g, err := a.Compile(4800*8, "float32")
		if err != nil {
			t.Error(err)
			continue
		}
		for rank := range g.Parts {
			if err := g.Check(rank); err != nil {
				t.Errorf("%s: rank %d: %v", a.Name, rank, err)
			}
		}
	}
}

// What is wrong is found, with the GPU, the step and the chunk.
func TestMutations(t *testing.T) {
	text := ring(4)
	mutated := func(gpu, step int, old, text2 string) string {
		lines := strings.Split(text, "\n")
		at := -1
		for i, line := range lines {
			if strings.HasPrefix(line, fmt.Sprintf("<gpu id=\"%d\"", gpu)) {
				at = i + 2 + step
			}
		}
		lines[at] = strings.Replace(lines[at], old, text2, 1)
		return strings.Join(lines, "\n")
	}
	for _, c := range []struct{ text, want string }{
		{mutated(2, 1, "rrcs", "rcs"), "x.xml:7: GPU 0, thread block 0, step 3 (rrcs), chunk 1: what it leaves is the reduction of"},
		{mutated(1, 3, `srcoff="2" dstbuf="o" dstoff="2"`, `srcoff="3" dstbuf="o" dstoff="3"`), "GPU 0, thread block 0, step 6 (r), chunk 2: what it leaves is the reduction of"},
		{mutated(0, 1, `srcoff="3"`, `srcoff="2"`), "x.xml:5: GPU 0, thread block 0, step 1 (rrcs): chunk 2 of buffer i is reduced into chunk 3 of buffer o"},
		{mutated(1, 6, `type="r"`, `type="nop"`), "GPU 0, thread block 0, step 5 (rcs): GPU 1 does not receive it"},
		{mutated(0, 0, `type="s"`, `type="nop"`), "GPU 1, thread block 0, step 6 (r): GPU 0 sends nothing for it"},
		{mutated(0, 0, `type="s"`, `type="re"`), "x.xml:4: type re: programs here do not reduce"},
		{mutated(0, 0, `cnt="1"`, `cnt="2"`), "receives 1 chunks; GPU 0 sends 2"},
		{mutated(0, 1, `depid="-1" deps="-1"`, `depid="3" deps="0"`), "GPU 0, thread block 0, step 1 (rrcs) waits for step 0 of thread block 3"},
		{mutated(0, 1, `depid="-1" deps="-1"`, `depid="0" deps="5"`), "wait for each other in a cycle"},
		{mutated(3, 2, `dstoff="1"`, `dstoff="9"`), "chunks 9 to 9 of buffer o of 4"},
		{strings.Replace(text, "allreduce", "custom", 1), `x.xml:1: collective "custom"`},
		{strings.Replace(text, `ngpus="4"`, `ngpus="5"`, 1), "4 GPUs; expected 5"},
		{strings.Replace(text, "<tb", "<tc", 1), "x.xml:3: <tc> is not understood"},
		{strings.Replace(text, `s_chunks="0"`, `s_chunks="many"`, 1), `x.xml:2: s_chunks is "many"`},
		{mutated(0, 6, `dstbuf="o" dstoff="2"`, `dstbuf="s" dstoff="0"`), "chunks 0 to 0 of buffer s of 0"},
		{text[:300], "XML syntax error"},
		{strings.Replace(ring(4), `i_chunks="4"`, `i_chunks="3"`, 1), "chunks 3 to 3 of buffer i of 3"},
		{strings.Replace(ring(4), `o_chunks="4"`, `o_chunks="many"`, 1), `x.xml:2: o_chunks is "many"`},
		{"<x/>", "<x> is not understood"},
	} {
		a, err := Parse("x.xml", strings.NewReader(c.text))
		if err == nil {
			_, err = a.Compile(1600, "float32")
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v; want %q", err, c.want)
		}
	}
}

func TestNotes(t *testing.T) {
	a, err := Parse("x.xml", strings.NewReader(strings.Replace(ring(2), `chan="0"`, `chan="0" zork="1"`, 2)))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(a.Notes.Texts()); got != "[x.xml:3: attribute zork of tb is not used (2 times, this is the first)]" {
		t.Error(got)
	}
}

func TestSizes(t *testing.T) {
	a, err := Parse("x.xml", strings.NewReader(ring(3)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Compile(100, "float32"); err == nil || !strings.Contains(err.Error(), "expected one such as 96B") {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	corpus := fuzztest.New(f)
	corpus.Add([]byte(ring(2)))
	corpus.Add([]byte(allToAll))
	corpus.Fuzz(func(t *testing.T, text []byte) {
		a, err := Parse("f", bytes.NewReader(text))
		if err != nil || a.chunks > 64 || a.Ranks > 16 {
			return
		}
		if g, err := a.Compile(units.Bytes(4*64*a.chunks), "float32"); err == nil {
			for rank := range g.Parts {
				if err := g.Check(rank); err != nil {
					t.Errorf("%q: %v", text, err)
				}
			}
		}
	})
}

// What a file says is never lost: with a record left out, repeated or added, the job is another
// one, the file is refused, or a note tells what was skipped.
func TestNothingIsLost(t *testing.T) {
	lines := losttest.Lines(ring(2))
	losttest.Check(t, losttest.Sample{Records: lines, Told: func(text string) string {
		a, err := Parse("f", strings.NewReader(text))
		if err != nil {
			return err.Error()
		}
		for _, blocks := range a.gpus { // places tell of any line that is missing
			for _, b := range blocks {
				for i := range b.steps {
					b.steps[i].line = 0
				}
			}
		}
		return fmt.Sprint(a.Ranks, a.gpus, a.scratch, a.declared, a.Notes)
	}, At: 3, Added: []string{"text\n", "<colour/>\n", `<step s="0" s="1"/>`, `<tb id="1" send="-1" recv="-1" chan="0"/>`,
		`<tb id="1" send="-1" recv="-1" chan="0" cnt="3"/>`}})
}
