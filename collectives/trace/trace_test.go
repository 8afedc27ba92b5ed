package trace

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weft/collectives/schedule"
	"weft/collectives/schedule/scheduletest"
	"weft/internal/fuzztest"
	"weft/units"
)

func TestParse(t *testing.T) {
	got, err := Parse("step.csv", []byte(`# a comment
name, collective, algorithm, size, compute, group, stride, jitter, op, type, shift, start, repeat, chunk
"layer 3, attention",all-reduce,auto,8MiB,120us,8,,20us,max,bfloat16,,,3,
,permute,,1KB,,,2,,,,-3,5ms,,

last,broadcast,binomial-tree,4B,1ns,,,,,,,,,off
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Item{
		{
			Name: "layer 3, attention", Collective: schedule.AllReduce, Algorithm: schedule.Ring, Type: schedule.BFloat16, Op: schedule.Max,
			Size: 8 * units.MiB, Chunk: 128 * units.KB, Compute: 120 * units.Microsecond, Jitter: 20 * units.Microsecond,
			Group: 8, Stride: 1, Repeat: 3,
		},
		{
			Collective: schedule.Permute, Algorithm: schedule.Direct, Type: schedule.Float32, Op: schedule.Sum, Size: units.KB,
			Start: 5 * units.Millisecond, Stride: 2, Shift: -3, Repeat: 1,
		},
		{
			Name: "last", Collective: schedule.Broadcast, Algorithm: schedule.BinomialTree, Type: schedule.Float32, Op: schedule.Sum, Size: 4,
			Compute: units.Nanosecond, Previous: true, Stride: 1, Repeat: 1,
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant\n%+v", got, want)
	}
}

// Every error has its position.
func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                                            "x.csv:1:1: a trace without collectives",
		"collective,size\n":                                           "x.csv:1:1: a trace without collectives",
		"collective\nall-reduce\n":                                    "x.csv:1:1: column size is missing",
		"collective,size,color\n":                                     `x.csv:1:17: no column is called "color"`,
		"collective,size,size\n":                                      "x.csv:1:17: column size is listed twice",
		"collective,size\nall-reduce\n":                               "x.csv:2:1: 1 fields; expected 2",
		"collective,size\n\"all":                                      "x.csv:2:5: ",
		"collective,size\ngossip,4B\n":                                `x.csv:2:1: collective is "gossip"; expected one of all-reduce`,
		"collective,size\nall-reduce,4":                               "x.csv:2:12: size: ",
		"collective,size\nreduce,6B":                                  "x.csv:2:8: size is 6B, which is no whole number of float32 elements of 4 bytes",
		"collective,size\nreduce,2B":                                  "x.csv:2:8: size is 2B; expected from 4B",
		"collective,size,algorithm\nreduce,8B,ring":                   `x.csv:2:11: algorithm is "ring"; expected one of auto, chain`,
		"collective,size,op\nbroadcast,8B,max":                        "x.csv:2:14: op does not apply to broadcast by chain",
		"collective,size,op\nreduce,8B,avg":                           `x.csv:2:11: op is "avg"; expected one of sum`,
		"collective,size,type\nreduce,8B,half":                        `x.csv:2:11: type is "half"`,
		"collective,size,root\nall-reduce,8B,1":                       "x.csv:2:15: root does not apply",
		"collective,size,shift\nall-reduce,8B,1":                      "x.csv:2:15: shift does not apply",
		"collective,size,shift\npermute,8B,0":                         "x.csv:2:12: shifted by 0",
		"collective,size,parallel\nall-reduce,8B,1":                   "x.csv:2:15: parallel does not apply",
		"collective,size,algorithm\nall-reduce,8B,hierarchical":       "hierarchical needs local",
		"collective,size,repeat\nreduce,8B,0":                         `x.csv:2:11: repeat is "0"; expected a whole number from 1`,
		"collective,size,repeat\nreduce,8B,1e3":                       `repeat is "1e3"`,
		"collective,size,group\nreduce,8B,1":                          `group is "1"; expected a whole number from 2`,
		"collective,size,compute\nreduce,8B,5":                        "x.csv:2:11: compute: ",
		"collective,size,compute\nreduce,8B,-5us":                     "x.csv:2:11: compute is -5us; expected from 0s to 1000s",
		"collective,size,start\nreduce,8B,-5us":                       "start is -5us",
		"collective,size,chunk\nreduce,8B,6B":                         "chunk is 6B, which is no whole number",
		"collective,size,name\nreduce,8B,a\x01b":                      `name "a�b"`,
		"collective,size,name\nreduce,8B," + strings.Repeat("n", 200): "expected at most 100 bytes",
	} {
		_, err := Parse("x.csv", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	_, err := Parse("x.csv", []byte("collective,size\ngossip,4B\nreduce,8B\nreduce,x\n"))
	if err == nil || strings.Count(err.Error(), "\n") != 1 || !strings.Contains(err.Error(), ":4:8:") {
		t.Errorf("two mistakes: %v", err)
	}
	_, err = Parse("x.csv", []byte("collective,size\n"+strings.Repeat("gossip,4B\n", 100)))
	if err == nil || strings.Count(err.Error(), "\n") != maxErrors-1 {
		t.Errorf("a hundred mistakes: %v", err)
	}
	_, err = Parse("x.csv", []byte("collective,size\n"+strings.Repeat("reduce,8B\n", maxItems+1)))
	if err == nil || !strings.Contains(err.Error(), "more than 100000 collectives") {
		t.Errorf("too many: %v", err)
	}
}

// Spreadsheets begin a file with a byte order mark.
func TestByteOrderMark(t *testing.T) {
	for _, text := range []string{"\ufeffcollective,size\nreduce,8B\n", "\ufeff# a comment\ncollective,size\nreduce,8B\n"} {
		if items, err := Parse("x.csv", []byte(text)); err != nil || len(items) != 1 {
			t.Errorf("%q: %v, %v", text, items, err)
		}
	}
}

// Parse reads back what Format writes.
func TestFormat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var items []Item
		for i := range rapid.IntRange(1, 5).Draw(t, "items") {
			s := scheduletest.Any(t, scheduletest.Bounds{Ranks: 16, Elements: 1 << 20, Chunks: []int{0, 1, 1000}})
			it := Item{
				Collective: s.Collective, Algorithm: s.Algorithm, Type: s.Type, Op: s.Op, Size: s.Size, Chunk: s.Chunk, Root: s.Root,
				Parallel: s.Parallel, Local: s.Group, Stride: rapid.IntRange(1, 9).Draw(t, "stride"), Repeat: rapid.IntRange(1, 9).Draw(t, "repeat"),
				Compute: units.Time(rapid.Int64Range(0, 1<<49).Draw(t, "compute")), Jitter: units.Time(rapid.Int64Range(0, 1<<49).Draw(t, "jitter")),
				Previous: i > 0 && rapid.Bool().Draw(t, "previous"),
				Name:     rapid.StringMatching(`[ -~]{0,20}`).Draw(t, "name"),
			}
			it.Name = strings.TrimSpace(it.Name)
			if it.Op == "" {
				it.Op = schedule.Sum
			}
			f, _ := schedule.About(it.Collective, it.Algorithm)
			if !f.Rooted {
				it.Root = 0
			}
			if !f.Window {
				it.Parallel = 0
			}
			if it.Collective == schedule.Permute {
				it.Shift = 1 + rapid.IntRange(0, 9).Draw(t, "shift")
			}
			if !it.Previous {
				it.Start = units.Time(rapid.Int64Range(0, 1<<49).Draw(t, "start"))
			}
			items = append(items, it)
		}
		text := Format(items)
		got, err := Parse("x.csv", []byte(text))
		if err != nil || !reflect.DeepEqual(got, items) {
			t.Fatalf("%+v\nbecame\n%+v\n%v\n%s", items, got, err, text)
		}
	})
}

// Groups partition the ranks.
func TestGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		it := Item{Group: rapid.IntRange(2, 9).Draw(t, "group"), Stride: rapid.IntRange(1, 9).Draw(t, "stride")}
		n := it.Group * it.Stride * rapid.IntRange(1, 4).Draw(t, "blocks")
		groups, err := it.Groups(n)
		if err != nil {
			t.Fatal(err)
		}
		all := slices.Concat(groups...)
		slices.Sort(all)
		for i, r := range all {
			if i != r {
				t.Fatalf("%v", groups)
			}
		}
		for _, g := range groups {
			if len(g) != it.Group || g[1]-g[0] != it.Stride {
				t.Fatalf("%v", groups)
			}
		}
		if _, err := it.Groups(n + 1); err == nil {
			t.Fatalf("%d ranks in groups of %d", n+1, it.Group)
		}
	})
	all := Item{Stride: 2}
	if groups, err := all.Groups(8); err != nil || !reflect.DeepEqual(groups, [][]int{{0, 2, 4, 6}, {1, 3, 5, 7}}) {
		t.Errorf("%v, %v", groups, err)
	}
}

// Each of the bundled traces works for 16 ranks.
func TestTracesOfSteps(t *testing.T) {
	for name, want := range map[string]int{"data-parallel": 5, "moe": 9, "pipeline": 3} {
		path := filepath.Join("testdata", name+".csv")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		items, err := Parse(path, text)
		if err != nil || len(items) != want {
			t.Fatalf("%s: %d items, %v", name, len(items), err)
		}
		for _, it := range items {
			groups, err := it.Groups(16)
			if err != nil {
				t.Errorf("%s %s: %v", name, it.Name, err)
				continue
			}
			s, err := it.Spec(len(groups[0]))
			if err != nil {
				t.Errorf("%s %s: %v", name, it.Name, err)
			}
			for r := range groups[0] {
				if _, err := schedule.Build(s, r); err != nil {
					t.Errorf("%s %s: %v", name, it.Name, err)
				}
			}
		}
	}
	bad := Item{Collective: schedule.Permute, Algorithm: schedule.Direct, Size: 4, Shift: 4}
	if _, err := bad.Spec(4); err == nil {
		t.Error("a shift by as many as there are ranks")
	}
}

func FuzzParse(f *testing.F) {
	corpus := fuzztest.New(f)
	corpus.Add([]byte("collective,size\nall-reduce,8MiB\n"))
	corpus.Add([]byte("# c\nname,collective,algorithm,size,compute\n\"a,b\",all-to-all,windowed,8MiB,12us\n"))
	corpus.Add([]byte("collective,size,start,op,type,chunk,local,algorithm\nall-reduce,8MiB,1us,prod,bfloat16,off,4,hierarchical\n"))
	corpus.Fuzz(func(t *testing.T, text []byte) {
		items, err := Parse("x", text)
		if err != nil {
			return
		}
		again, err := Parse("x", []byte(Format(items)))
		if err != nil || !reflect.DeepEqual(items, again) {
			t.Fatalf("%+v\nbecame\n%+v\n%v", items, again, err)
		}
	})
}
