package chakra

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"weft/collectives/graph"
	"weft/internal/fuzztest"
	"weft/internal/losttest"
	"weft/units"
)

// job returns a job with every kind of operation that Chakra has.
func job() *graph.Graph {
	us := units.Microsecond
	return &graph.Graph{
		Word: "node",
		Ranks: [][]graph.Op{
			{{Kind: graph.Compute, Time: 5 * us, Place: 1}, {Kind: graph.Compute, Time: 7 * us, Stream: 3, Place: 2},
				{Kind: graph.Send, Peer: 1, Tag: 9, Size: 4096, After: []int32{0, 1}, Place: 3},
				{Kind: graph.Collective, Call: 0, After: []int32{2}, Place: 4}, {Kind: graph.Collective, Call: 1, Place: 5}},
			{{Kind: graph.Recv, Peer: 0, Tag: 9, Size: 4096, Place: 1}, {Kind: graph.Collective, Call: 0, After: []int32{0}, Place: 2}},
			{{Kind: graph.Collective, Call: 1, Place: 1}},
		},
		Calls: []graph.Call{
			{Name: "dp", Collective: "all-gather", Type: "float32", Size: 8192, Members: []int32{0, 1}, Place: 4},
			{Name: "tp", Collective: "broadcast", Type: "float32", Size: 1000, Members: []int32{0, 2}, Root: 1, Place: 5},
		},
	}
}

// written returns the traces of a graph by their names.
func written(t testing.TB, g *graph.Graph) (names []string, files map[string][]byte) {
	files = map[string][]byte{}
	for rank := range g.Ranks {
		var b bytes.Buffer
		if err := Write(&b, g, rank); err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("job.%d.et", rank)
		names, files[name] = append(names, name), b.Bytes()
	}
	return names, files
}

func opener(files map[string][]byte) func(string) (io.ReadCloser, error) {
	return func(name string) (io.ReadCloser, error) {
		text, ok := files[name]
		if !ok {
			return nil, os.ErrNotExist
		}
		return io.NopCloser(bytes.NewReader(text)), nil
	}
}

// What is written is read as the same graph.
func TestRoundTrip(t *testing.T) {
	names, files := written(t, job())
	if !Looks(files[names[0]]) {
		t.Error("is not recognized")
	}
	g, err := Parse(names, 0, opener(files))
	if err != nil {
		t.Fatal(err)
	}
	want := job()
	want.Files = names
	if !reflect.DeepEqual(g, want) {
		t.Errorf("%+v\nbecame\n%+v", want, g)
	}
	if _, total, err := graph.Compile(g); err != nil || total != 4096 {
		t.Error(total, err)
	}
}

// One trace can be that of every rank, and groups can be given.
func TestAlikeAndGroups(t *testing.T) {
	g := &graph.Graph{Ranks: [][]graph.Op{{{Kind: graph.Collective}}, {{Kind: graph.Collective}}},
		Calls: []graph.Call{{Collective: "all-reduce", Size: 4096, Members: []int32{0, 1}}}}
	_, files := written(t, g)
	alike, err := Parse([]string{"job.0.et"}, 8, opener(files))
	if err != nil || len(alike.Ranks) != 8 || len(alike.Calls) != 1 || len(alike.Calls[0].Members) != 8 {
		t.Errorf("%+v, %v", alike, err)
	}
	names, files := written(t, job())
	files["groups.json"] = []byte(`{"dp": [1, 0]}`)
	grouped, err := Parse(append(names, "groups.json"), 0, opener(files))
	if err != nil || !reflect.DeepEqual(grouped.Calls[0].Members, []int32{1, 0}) {
		t.Errorf("%+v, %v", grouped, err)
	}
}

// trace returns a trace of nodes, after metadata.
func trace(nodes ...[]byte) []byte {
	var b []byte
	for _, m := range append([][]byte{appendBytes(nil, metaVersion, []byte("x"))}, nodes...) {
		b = append(protowire.AppendVarint(b, uint64(len(m))), m...)
	}
	return b
}

func TestRefuses(t *testing.T) {
	typed := func(id, kind uint64) []byte { return appendNumber(appendNumber(nil, nodeID, id), nodeType, kind) }
	coll := appendAttr(appendAttr(typed(4, collNode), commType, attrInt64, 9), commSize, attrInt64, 400)
	for _, c := range []struct {
		text []byte
		want string
	}{
		{nil, "a.0.et: metadata: EOF"},
		{trace([]byte{0xff}), "a.0.et: message 1: not a protobuf message"},
		{trace(typed(7, compNode))[:6], "the file ends within a message"},
		{append(trace(), 0xff, 0xff, 0xff, 0x7f), "a message of 268435455 bytes"},
		{trace(typed(7, memLoadNode)), "a.0.et: node 7 (): a MEM_LOAD_NODE: hosts have no model of their memory"},
		{trace(typed(7, 99)), "a.0.et: node 7 (): a node of type 99"},
		{trace(typed(7, compNode), typed(7, compNode)), "node 7 (): the id is used twice"},
		{trace(appendNumber(typed(7, compNode), nodeDataDeps, 3)), "a.0.et: node 7: it depends on node 3, which is not there"},
		{trace(typed(7, sendNode)), "a COMM_SEND_NODE without comm_dst"},
		{trace(coll), "comm_type 9: there is no such collective here"},
		{trace(appendNumber(typed(7, compNode), nodeDuration, 1<<60)), "a duration of"},
	} {
		_, err := Parse([]string{"a.0.et"}, 2, opener(map[string][]byte{"a.0.et": c.text}))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: %v; want %q", c.text, err, c.want)
		}
	}
	if _, err := Parse([]string{"a.1.et"}, 0, opener(nil)); err == nil || !strings.Contains(err.Error(), "the trace of rank 1") {
		t.Error(err)
	}
}

// Unused attributes give a warning with a place, and so does an error in groups.json.
func TestNotes(t *testing.T) {
	names, files := written(t, job())
	node := appendAttr(appendNumber(appendNumber(nil, nodeID, 90), nodeType, compNode), "energy", attrInt64, 5)
	node = appendAttr(node, "tid", attrInt64, 5)
	files[names[0]] = append(append(files[names[0]], byte(len(node))), node...)
	g, err := Parse(names, 0, opener(files))
	if err != nil {
		t.Fatal(err)
	}
	if got := g.Notes.Texts(); len(got) != 1 || got[0] != names[0]+": node 90: attribute energy of nodes is not used" {
		t.Errorf("%q", got)
	}
	node = appendAttr(appendNumber(appendNumber(nil, nodeID, 91), nodeType, compNode), numOps, attrInt64, 5)
	files["untimed.et"] = append(append([]byte{}, files[names[2]]...), append([]byte{byte(len(node))}, node...)...)
	if _, err := Parse([]string{"untimed.et"}, 0, opener(files)); err == nil || !strings.Contains(err.Error(), "node 91 (): a computation of 5 operations without a duration") {
		t.Error(err)
	}
	for text, want := range map[string]string{
		`{"dp": [1, 0}`:                     "groups.json: byte 13: invalid character",
		`{} x`:                              "groups.json: byte 3: invalid character",
		`{} {}`:                             "groups.json: byte 4: the file continues",
		`{"dp": [0], "tp": [1], "dp": [1]}`: "groups.json: byte 26: key dp is there twice",
		`{"dp": [1, "`:                      "groups.json: byte 12: the file ends early",
		`{"dp": ["1"]}`:                     "groups.json: byte 13: a string where another kind",
	} {
		files["groups.json"] = []byte(text)
		if _, err := Parse(append(names, "groups.json"), 0, opener(files)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v; want %s", text, err, want)
		}
	}
	files["groups.json"] = []byte(`{"dp": [-1, 0]}`)
	if g, err := Parse(append(names, "groups.json"), 0, opener(files)); err == nil {
		if _, _, err = graph.Compile(g); err == nil {
			t.Error("a group with rank -1")
		}
	}
}

func FuzzParse(f *testing.F) {
	corpus := fuzztest.New(f)
	names, files := written(f, job())
	for _, name := range names {
		corpus.Add(files[name])
	}
	corpus.Fuzz(func(t *testing.T, text []byte) {
		open := opener(map[string][]byte{"a.et": text})
		g, err := Parse([]string{"a.et"}, 2, open)
		if err != nil {
			return
		}
		if _, _, err := graph.Compile(g); err != nil {
			var at *graph.Error
			if !errors.As(err, &at) {
				t.Errorf("an error without a place: %v", err)
			}
		}
	})
}

// What a file says is never lost: with a record left out, repeated or added, the job is another
// one, the file is refused, or a note tells what was skipped.
func TestNothingIsLost(t *testing.T) {
	names, files := written(t, job())
	var records []string
	for in := files[names[0]]; len(in) > 0; {
		n, used := protowire.ConsumeVarint(in)
		records, in = append(records, string(in[:used+int(n)])), in[used+int(n):]
	}
	message := func(m []byte) string { return string(append(protowire.AppendVarint(nil, uint64(len(m))), m...)) }
	comp := func() []byte {
		return appendNumber(appendNumber(appendNumber(nil, nodeID, 77), nodeType, compNode), nodeDuration, 1)
	}
	a := appendNumber(appendBytes(nil, attrName, []byte(stream)), attrInt64, 1)
	losttest.Check(t, losttest.Sample{Records: records, At: len(records), Told: func(text string) string {
		files := map[string][]byte{names[0]: []byte(text), names[1]: files[names[1]], names[2]: files[names[2]]}
		g, err := Parse(names, 0, opener(files))
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(g.Ranks, g.Calls, g.Notes)
	}, Added: []string{message(comp()), "\x05", message(appendNumber(comp(), nodeDuration, 2))}})
	for what, m := range map[string][]byte{
		"field 99 of nodes":         appendNumber(comp(), 99, 1),
		"attribute stream is there": appendBytes(appendBytes(comp(), nodeAttr, a), nodeAttr, a),
		"attribute stream has no whole number": appendBytes(comp(), nodeAttr, appendBytes(
			appendBytes(nil, attrName, []byte(stream)), attrString, []byte("1"))),
		"field 7 is there twice": appendNumber(comp(), nodeDuration, 2),
	} {
		g, err := Parse([]string{"a.0.et"}, 0, opener(map[string][]byte{"a.0.et": trace(m)}))
		if told := fmt.Sprint(err); err == nil && !strings.Contains(fmt.Sprint(g.Notes.Texts()), what) ||
			err != nil && !strings.Contains(told, what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
