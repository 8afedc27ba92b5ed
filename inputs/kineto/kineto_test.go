package kineto

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"weft/collectives/graph"
	"weft/internal/fuzztest"
	"weft/internal/losttest"
	"weft/units"
)

// profileOf returns the profile of a rank: two kernels, an all-reduce on another stream that waits
// for them, and a kernel that waits for it.
func profileOf(rank int) string {
	return fmt.Sprintf(`{"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": %d, "world_size": 2}, "deviceProperties": [{"id": 0}],
"traceEvents": [
{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1.000, "dur": 2, "args": {"External id": 1}},
{"ph": "M", "name": "process_name", "args": {"name": "python"}},
{"ph": "X", "cat": "kernel", "name": "gemm", "ts": 1000.5, "dur": 10, "args": {"stream": 7, "correlation": 1}},
{"ph": "X", "cat": "kernel", "name": "relu", "ts": 1012.5, "dur": 5, "args": {"stream": 7, "correlation": 2}},
{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "ts": 1018.5, "dur": 100, "args": {"stream": 20, "Collective name": "allreduce",
 "In msg nelems": 1000, "Out msg nelems": 1000, "Group size": 2, "dtype": "BFloat16", "Process Group Name": "0", "Process Group Ranks": "[0, 1]"}},
{"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoD", "ts": 1118.5, "dur": 3, "args": {"stream": 7}},
{"ph": "X", "cat": "cuda_sync", "name": "Stream Wait Event", "ts": 1, "dur": 1, "args": {"stream": 7}}
]}`, rank)
}

func opener(files map[string]string) func(string) (io.ReadCloser, error) {
	return func(name string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(files[name])), nil }
}

// The order of kernels is rebuilt from streams and times; gaps are kept.
func TestParse(t *testing.T) {
	if !Looks([]byte(profileOf(0))) {
		t.Error("is not recognized")
	}
	g, err := Parse([]string{"a", "b"}, 0, opener(map[string]string{"a": profileOf(1), "b": profileOf(0)}))
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, op := range g.Ranks[0] {
		fmt.Fprintf(&got, "%v %v after %v; ", op.Kind, op.Time, op.After)
	}
	want := "computation 10us after []; computation 2us after [0]; computation 5us after [1]; computation 1us after [2]; " +
		"collective 0s after [3]; computation 3us after [2 4]; "
	if got.String() != want {
		t.Errorf("%s\nwant\n%s", &got, want)
	}
	if notes := g.Notes.Texts(); len(notes) != 1 || notes[0] != "a: event 6: category cuda_sync of events with a stream is not used (2 times, this is the first)" {
		t.Errorf("%q", notes)
	}
	if len(g.Calls) != 1 || g.Calls[0].Size != 2000*units.Byte || g.Files[0] != "b" {
		t.Errorf("%+v, %v", g.Calls, g.Files)
	}
	if _, _, err := graph.Compile(g); err != nil {
		t.Error(err)
	}
}

func TestRefuses(t *testing.T) {
	for _, c := range []struct{ old, text, want string }{
		{`"Collective name": "allreduce",`, "", "a: event 4 (ncclDevKernel_AllReduce_Sum_bf16_RING_LL): it does not say its collective"},
		{`"allreduce"`, `"alltoallv"`, `event 4 (ncclDevKernel_AllReduce_Sum_bf16_RING_LL): collective "alltoallv" is unknown; expected all-reduce`},
		{`"Collective name": "allreduce",`, `"Collective name": "all_to_allv", "In split size": "[1, 2]", "Out split size": "[]",`, "all_to_allv of blocks of [1, 2] and [] elements is not understood"},
		{`"cat": "kernel", "name": "nccl`, `"cat": "python", "name": "nccl`, "b: 1 collectives of group 0 [0, 1] of rank 1, and 0 of rank 0 in a: the profiles cover different parts"},
		{`"In msg nelems": 1000, "Out msg nelems": 1000`, `"In msg nelems": 0`, `allreduce of 0 elements`},
		{`"BFloat16"`, `"Complex"`, `elements of type "Complex"`},
		{`"rank": 0`, `"rank": 7`, "the profile of rank 7, among those of 2 ranks"},
		{`"dur": 10`, `"dur": -10`, "event 2 (gemm): begins at 1000.5 us and takes -10 us"},
		{`"ts": 1012.5`, `"ts": "soon"`, "event 3"},
		{`]}`, ``, "a: byte 1064: the file ends early"},
		{`"world_size": 2`, `"world_size": 8`, "a: a job of 8 ranks, by world_size; there are 2 profiles"},
		{`[{"id": 0}]`, strings.Repeat("[", 1001), "a: byte 1109: values within each other 1000 times"},
		{`"aten::mm"`, `"` + strings.Repeat("m", 17<<20) + `"`, "a: byte 16777728: a value of more than 16 MiB"},
		{`"rank": 0`, `"rank": 0, "rank": 0`, "a: byte 76: key rank is there twice"},
		{`"dur": 10`, `"dur": 10, "dur": 11`, "key dur is there twice"},
		{`"In msg nelems": 1000`, `"In msg nelems": 1000, "In msg nelems": 1`, "key In msg nelems is there twice"},
		{`"traceEvents"`, `"traceEvents": [], "traceEvents"`, "key traceEvents is there twice"},
		{`[{"id": 0}]`, `[{"id": 0, "id": 1}]`, "key id is there twice"},
		{`"[0, 1]"`, `"[0, 5]"`, "b: 1 collectives of group 0 [0, 1] of rank 1, and 0 of rank 0 in a"},
		{`"In msg nelems": 1000`, `"In msg nelems": 1001`, "another rank has all-reduce of"},
	} {
		text := strings.Replace(profileOf(0), c.old, c.text, 1)
		if c.old == "]}" {
			text = strings.TrimSuffix(profileOf(0), c.old)
		}
		g, err := Parse([]string{"a", "b"}, 0, opener(map[string]string{"a": text, "b": profileOf(1)}))
		if err == nil {
			_, _, err = graph.Compile(g)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40s: %v; want %q", c.text, err, c.want)
		}
	}
}

// A barrier is an all-reduce of an element of each rank, an all-to-all-v of equal blocks is an
// all-to-all, and an odd size is rounded up and noted.
func TestApproximates(t *testing.T) {
	for _, c := range []struct{ collective, more, elements, dtype, want, note string }{
		{"barrier", "", `"In msg nelems": 0`, "Byte", "all-reduce 8B", ""},
		{"all_to_allv", `"In split size": "[500, 500]", "Out split size": "[]",`, `"In msg nelems": 1000`, "BFloat16", "all-to-all 2KB", ""},
		{"broadcast", "", `"In msg nelems": 101`, "Byte", "broadcast 102B", "a: event 4: collectives become larger: a multiple of 2 bytes, and at least 2 for each rank (2 times, this is the first)"},
		{"allreduce", "", `"In msg nelems": 1`, "Bool", "all-reduce 2B", "a: event 4: collectives become larger: a multiple of 2 bytes, and at least 2 for each rank (2 times, this is the first)"},
	} {
		replace := strings.NewReplacer(`"Collective name": "allreduce",`, `"Collective name": "`+c.collective+`",`+c.more,
			`"In msg nelems": 1000, "Out msg nelems": 1000`, c.elements, "BFloat16", c.dtype)
		g, err := Parse([]string{"a", "b"}, 0, opener(map[string]string{"a": replace.Replace(profileOf(0)), "b": replace.Replace(profileOf(1))}))
		if err != nil {
			t.Errorf("%s: %v", c.collective, err)
			continue
		}
		notes := strings.Join(g.Notes.Texts()[1:], "; ")
		if got := fmt.Sprintf("%s %v", g.Calls[0].Collective, g.Calls[0].Size); got != c.want || notes != c.note {
			t.Errorf("%s: %s, %q; want %s, %q", c.collective, got, notes, c.want, c.note)
		}
		if _, _, err := graph.Compile(g); err != nil {
			t.Errorf("%s: %v", c.collective, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	corpus := fuzztest.New(f)
	corpus.Add([]byte(strings.Replace(profileOf(0), `"world_size": 2`, `"world_size": 1`, 1)))
	corpus.Fuzz(func(t *testing.T, text []byte) {
		open := func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
		g, err := Parse([]string{"a"}, 0, open)
		if err != nil {
			return
		}
		_, _, _ = graph.Compile(g)
	})
}

// What a file says is never lost: with a record left out, repeated or added, the job is another
// one, the file is refused, or a note tells what was skipped.
func TestNothingIsLost(t *testing.T) {
	lines := losttest.Lines(profileOf(0))
	told := func(text string) string {
		g, err := Parse([]string{"a", "b"}, 0, opener(map[string]string{"a": text, "b": profileOf(1)}))
		if err != nil {
			return err.Error()
		}
		for _, ops := range g.Ranks { // places tell of any line that is missing
			for i := range ops {
				ops[i].Place = 0
			}
		}
		for i := range g.Calls {
			g.Calls[i].Place = 0
		}
		return fmt.Sprint(g.Ranks, g.Calls, len(g.Notes.Texts()))
	}
	losttest.Check(t, losttest.Sample{Records: lines, Told: told, Idle: []string{"cpu_op", "process_name"}, At: 4,
		Added: []string{`{"ph": "X", "cat": "kernel", "name": "x", "ts": 1, "dur": 1},`,
			`{"ph": "X", "cat": "kernel", "name": "x", "ts": 1, "args": {"stream": 7}},`,
			`{"ph": "B", "cat": "kernel", "name": "x", "ts": 1, "args": {"stream": 7}},`,
			`{"ph": "X", "cat": "colour", "name": "x", "ts": 1, "args": {"stream": 7}},`}})
	for old, now := range map[string]string{"]}": "]} {}", "\n]}": "\n], \"traceEvents\": []}", `"traceEvents"`: `"events"`,
		`{"schemaVersion": 1`: `{"colour": 1`, "\"allreduce\"": "\"alltoall\", \"In split size\": \"[1, 999]\""} {
		text := profileOf(0)
		i := strings.LastIndex(text, old)
		if told(text[:i]+now+text[i+len(old):]) == told(text) {
			t.Errorf("nothing tells %s instead of %s", now, old)
		}
	}
}
