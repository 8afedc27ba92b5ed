package goal

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"slices"
	"strings"
	"testing"

	"weft/collectives/graph"
	"weft/internal/fuzztest"
	"weft/units"
)

// binaryOf returns a graph in the binary form.
func binaryOf(g *graph.Graph) []byte {
	le := binary.LittleEndian
	u32 := func(b []byte, v int) []byte { return le.AppendUint32(b, uint32(v)) }
	head := append(u32([]byte(cookie), len(g.Ranks)), 0, 0)
	at := uint64(4 + 2 + 16*len(g.Ranks))
	var body []byte
	for _, ops := range g.Ranks {
		waiting := make([][]int, len(ops))
		var roots []int
		for i := range ops {
			for _, a := range ops[i].After {
				waiting[a] = append(waiting[a], i)
			}
			if len(ops[i].After) == 0 {
				roots = append(roots, i)
			}
		}
		one := u32(u32(nil, len(ops)), len(roots))
		for _, r := range roots {
			one = u32(one, r)
		}
		edges := 0
		for i := range ops {
			op := &ops[i]
			kind, size := byte(typeCalc), uint64(op.Time/units.Nanosecond)
			switch op.Kind {
			case graph.Send:
				kind, size = typeSend, uint64(op.Size)
			case graph.Recv:
				kind, size = typeRecv, uint64(op.Size)
			}
			one = u32(append(u32(one, len(op.After)), kind), int(op.Peer))
			one = u32(le.AppendUint64(one, size), int(op.Tag))
			one = u32(u32(append(one, byte(op.Stream), 0), len(waiting[i])), edges)
			edges += len(waiting[i])
			one = u32(u32(one, 0), edges)
		}
		for _, w := range waiting {
			for _, i := range w {
				one = u32(one, i)
			}
		}
		head = le.AppendUint64(le.AppendUint64(head, at), at+uint64(len(one)))
		at += uint64(len(one))
		body = append(body, one...)
	}
	return append(head, body...)
}

// sorted sorts dependencies, whose order says nothing.
func sorted(g *graph.Graph) [][]graph.Op {
	for _, ops := range plain(g).Ranks {
		for i := range ops {
			slices.Sort(ops[i].After)
		}
	}
	return g.Ranks
}

// The binary form reads as the text does.
func TestBinary(t *testing.T) {
	text, err := Parse("x.goal", strings.NewReader(small))
	if err != nil {
		t.Fatal(err)
	}
	form := binaryOf(text)
	if !Looks(form) {
		t.Error("is not recognized")
	}
	g, err := Parse("x.bin", bytes.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	if at := g.Where(0, &g.Ranks[0][1]); at != "x.bin: byte 97" {
		t.Errorf("the second operation is at %s", at)
	}
	if got, want := sorted(g), sorted(text); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v; want %+v", got, want)
	}
}

func TestBinaryRefuses(t *testing.T) {
	text, err := Parse("x.goal", strings.NewReader(small))
	if err != nil {
		t.Fatal(err)
	}
	good := binaryOf(text)
	const rank0 = 8 + 6 + 32
	const node0 = rank0 + 12 // one first operation
	for _, c := range []struct {
		at    int
		bytes string
		want  string
	}{
		{8, "\xff\xff\xff\xff", "ranks are more than 65536"},
		{14, "\x00", "rank 0 begins at byte 8; expected 46"},
		{22, "\x00", "rank 1 begins at byte"},
		{rank0, "\xff\xff\xff\xff", "more than 16777216 operations"},
		{rank0 + 4, "\xff", "255 first operations of 3"},
		{node0, "\x09", "operation 0 of rank 0 waits for 9 operations that are not there"},
		{node0 + 4, "\x07", "an operation of type 7"},
		{node0 + 9, "\xff\xff\xff\xff\xff\xff\xff\xff", "a computation of"},
		{node0 + 39 + 5, "\x09", "rank 9; expected one of 2"},
		{node0 + 39 + 5, "\xff\xff\xff\xff", "from any rank"},
		{node0 + 39 + 17, "\xff\xff\xff\xff", "any tag"},
		{node0 + 39 + 22, "\x01", "nic 1"},
		{node0 + 23, "\xff\xff\xff\xff", "dependencies"},
		{node0 + 27, "\x05", "its dependencies begin at index 5; expected 0"},
		{node0 + 3*39, "\x00", "waits for more operations than it says"},
	} {
		bad := slices.Clone(good)
		copy(bad[c.at:], c.bytes)
		if _, err := Parse("f", bytes.NewReader(bad)); err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.HasPrefix(err.Error(), "f: byte ") {
			t.Errorf("byte %d: %v; want %q", c.at, err, c.want)
		}
	}
	for n := len(cookie); n < len(good); n++ {
		if _, err := Parse("f", bytes.NewReader(good[:n])); err == nil || !strings.Contains(err.Error(), "ends too early") {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
	if _, err := Parse("f", bytes.NewReader(append(good, 0))); err == nil || !strings.Contains(err.Error(), "continues") {
		t.Errorf("a byte more: %v", err)
	}
}

// What was read from the binary form is the same from the text that it is written as.
func FuzzBinary(f *testing.F) {
	corpus := fuzztest.New(f)
	text, err := Parse("x.goal", strings.NewReader(small))
	if err != nil {
		f.Fatal(err)
	}
	corpus.Add(binaryOf(text))
	corpus.Fuzz(func(t *testing.T, form []byte) {
		g, err := Parse("f", bytes.NewReader(append([]byte(cookie), form[min(len(form), len(cookie)):]...)))
		if err != nil || len(g.Ranks) > 1000 {
			return
		}
		var b bytes.Buffer
		if err := Write(&b, g); err != nil {
			return
		}
		again, err := Parse("f", bytes.NewReader(b.Bytes()))
		if err != nil || !reflect.DeepEqual(sorted(again), sorted(g)) {
			t.Fatalf("%x\nbecame\n%s\n%v", form, b.Bytes(), err)
		}
	})
}
