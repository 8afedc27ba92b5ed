package lab

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"weft/fabric"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weft/fabric/queues"
	"weft/internal/fuzztest"
	"weft/internal/golden"
	"weft/orchestrator/topology"
	"weft/params"
	"weft/transport"
	"weft/transport/cc/pc4"
	"weft/units"
)

// filesMatching returns the files that match a pattern, of which there is at least one.
func filesMatching(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("no files match %s (%v)", pattern, err)
	}
	return names
}

// Every bad file is refused, and what is said of it is in the golden file beside it.
func TestBadLabs(t *testing.T) {
	for _, file := range filesMatching(t, "testdata/bad/*.yaml") {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			labs, err := Parse(name+".yaml", text, Options{})
			if err == nil {
				t.Fatalf("accepted as %d labs", len(labs))
			}
			golden.Check(t, "bad/"+name, err.Error()+"\n")
		})
	}
}

// What every good file means, value by value with its origin, is in the golden file beside it. A
// section that is exactly what minimal.yaml comes to is one line there, so that a new key changes
// few of these files.
func TestGoodLabs(t *testing.T) {
	text, err := os.ReadFile("testdata/good/minimal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	minimal := map[string][]Source{}
	for _, section := range sectionsOf(mustParse(t, string(text), Options{})[0]) {
		path, _ := parentOf(section[0].Path)
		minimal[path] = section
	}
	for _, file := range filesMatching(t, "testdata/good/*.yaml") {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			labs, err := Parse(name+".yaml", text, Options{})
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			for i, l := range labs {
				if len(labs) > 1 {
					fmt.Fprintf(&b, "point %d: %v\n", i, l.Point)
				}
				if i == 0 || i == len(labs)-1 {
					for _, section := range sectionsOf(l) {
						path, _ := parentOf(section[0].Path)
						if name != "minimal" && len(section) > 1 && slices.EqualFunc(section, minimal[path], sameSource) {
							fmt.Fprintf(&b, "%-32s  as in minimal.golden\n", path+".*")
							continue
						}
						for _, s := range section {
							fmt.Fprintf(&b, "%-32s  %-12s  %s\n", s.Path, s.Value, s.From)
						}
					}
				}
			}
			golden.Check(t, "good/"+name, b.String())
		})
	}
}

// sectionsOf returns the sources of a lab, cut where the section changes.
func sectionsOf(l *Lab) (all [][]Source) {
	last := ""
	for _, s := range l.Sources {
		path, _ := parentOf(s.Path)
		if len(all) == 0 || path != last {
			all, last = append(all, nil), path
		}
		all[len(all)-1] = append(all[len(all)-1], s)
	}
	return all
}

// sameSource reports whether the lines of two sources are the same.
func sameSource(a, b Source) bool { return a.Path == b.Path && a.Value == b.Value && a.From == b.From }

// The labs that come with Weft are read without a problem, and say nothing that has no effect.
func TestLabsOfTheRepository(t *testing.T) {
	for _, file := range append(filesMatching(t, "../../labs/*.yaml"), filesMatching(t, "../../labs/*/*.yaml")...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		read := func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(filepath.Dir(file), name)) }
		labs, err := Parse(file, text, Options{Read: read, Files: os.DirFS(filepath.Dir(file))})
		if err != nil {
			t.Error(err)
		}
		for _, l := range labs {
			for _, note := range l.Notes() {
				if strings.Contains(note.Error(), "leave it out") {
					t.Error(note)
				}
			}
		}
	}
}

const star = "weft: 1\nname: lab\ntopology: {kind: star, hosts: 8}\nworkload:\n  - {collective: incast, ranks: 2, size: 1MB}\n"

func mustParse(t *testing.T, text string, opts Options) []*Lab {
	t.Helper()
	labs, err := Parse("lab.yaml", []byte(text), opts)
	if err != nil {
		t.Fatal(err)
	}
	return labs
}

func wantProblems(t *testing.T, text string, opts Options, want ...string) {
	t.Helper()
	labs, err := Parse("lab.yaml", []byte(text), opts)
	if err == nil {
		t.Errorf("accepted as %d labs; want %s", len(labs), want)
	} else if got := strings.Split(err.Error(), "\n"); !slices.Equal(got, want) {
		t.Errorf("got problems\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// pc4Defaults is the section of PC4 that a lab leaves to its defaults.
func pc4Defaults() transport.Section {
	s, _, _ := transport.SectionOf("pc4")
	params.SetDefaults(s)
	return s
}

func TestValuesOfALab(t *testing.T) {
	l := mustParse(t, star, Options{})[0]
	want := &Lab{
		File: "lab.yaml", Name: "lab", Seed: 1,
		Topology:  topology.Spec{Kind: "star", Shape: &topology.Star{Size: 8}, Link: topology.LinkSpec{Link: fabric.Link{Rate: 100 * units.Gbps, Delay: units.Microsecond, ReorderBy: 10 * units.Microsecond}}, MTU: 4096},
		Queues:    queues.Queues{Buffer: params.Size{BDP: 5}, ECN: &queues.ECN{Kmin: params.Size{BDP: 0.25}, Kmax: params.Size{BDP: 0.75}, Pmax: 1}, Routing: "ecmp"},
		Clocks:    Clocks{Sync: "perfect"},
		Transport: Transport{Kind: "pc4", Section: pc4Defaults()},
		Workload:  []Item{{Collective: "incast", Algorithm: "direct", Ranks: Ranks{First: 2}, Root: "h2", Type: "float32", Size: units.MB, Flows: 1, Repeat: 1}},
		Measure:   Measure{Queues: 10 * units.Microsecond, View: ViewAuto},
		Engine:    Engine{Kind: "auto", Runtime: "auto", Datapath: DatapathFabric, NIC: "socket", Machines: 1, Memo: "auto"},
		Point:     map[string]any{},
	}
	if diff := cmp.Diff(want, l, cmpopts.IgnoreFields(Lab{}, "Sources", "notes", "sections"), cmpopts.IgnoreUnexported(queues.Queues{}, queues.Shared{}, topology.Spec{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The points of a sweep come in the order of the file, the last path moving fastest.
func TestSweepIsTheCrossProduct(t *testing.T) {
	text := star + "sweep:\n  workload.0.ranks: [2, 4]\n  seed: [1, 2, 3]\n"
	var got []string
	for _, l := range mustParse(t, text, Options{}) {
		got = append(got, fmt.Sprintf("%d/%d/%v", l.Workload[0].Ranks.First, l.Seed, l.Point))
	}
	want := []string{
		"2/1/map[seed:1 workload.0.ranks:2]", "2/2/map[seed:2 workload.0.ranks:2]", "2/3/map[seed:3 workload.0.ranks:2]",
		"4/1/map[seed:1 workload.0.ranks:4]", "4/2/map[seed:2 workload.0.ranks:4]", "4/3/map[seed:3 workload.0.ranks:4]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// A parameter of one transport is not swept in the runs of others, which would repeat. Paths that
// change together may leave one as it is.
func TestSweepDoesNotRepeatOtherTransports(t *testing.T) {
	for sweep, want := range map[string][]string{
		"  transport.kind: [pc4, strack]\n  transport.pc4.beta: [0.5, 0.25]\n  seed: [1, 2]\n": {
			"pc4/0.5/map[seed:1 transport.kind:pc4 transport.pc4.beta:0.5]",
			"pc4/0.5/map[seed:2 transport.kind:pc4 transport.pc4.beta:0.5]",
			"pc4/0.25/map[seed:1 transport.kind:pc4 transport.pc4.beta:0.25]",
			"pc4/0.25/map[seed:2 transport.kind:pc4 transport.pc4.beta:0.25]",
			"strack/map[seed:1 transport.kind:strack]", "strack/map[seed:2 transport.kind:strack]",
		},
		"  transport.kind, transport.pc4.beta: [[pc4, 0.5], [pc4, 0.25], [strack, null]]\n": {
			"pc4/0.5/map[transport.kind:pc4 transport.pc4.beta:0.5]",
			"pc4/0.25/map[transport.kind:pc4 transport.pc4.beta:0.25]",
			"strack/map[transport.kind:strack]",
		},
	} {
		var got []string
		for _, l := range mustParse(t, star+"sweep:\n"+sweep, Options{}) {
			beta := ""
			if p, ok := l.Transport.Section.Control().(pc4.Params); ok {
				beta = fmt.Sprintf("/%v", p.Beta)
			}
			got = append(got, fmt.Sprintf("%s%s/%v", l.Transport.Kind, beta, l.Point))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s-want +got:\n%s", sweep, diff)
		}
	}
}

// Points that are not asked for are left out, and the others are what they are in the whole sweep.
// Where points may repeat others, all are read, since their numbers follow from that.
func TestOnlySomePoints(t *testing.T) {
	for text, left := range map[string]int{
		star: 0, star + "sweep:\n  workload.0.ranks: [2, 4]\n  seed: [1, 2, 3]\n": 4,
		star + "sweep:\n  transport.pc4.beta: [0.5, 0.25]\n  seed: [1, 2]\n":                                  2,
		star + "sweep:\n  transport.kind: [pc4, strack]\n  transport.pc4.beta: [0.5, 0.25]\n  seed: [1, 2]\n": 0,
	} {
		whole := mustParse(t, text, Options{})
		some := mustParse(t, text, Options{Only: func(point int) bool { return point%3 == 0 }})
		if len(some) != len(whole) {
			t.Fatalf("%d points of %d\n%s", len(some), len(whole), text)
		}
		none := 0
		for i, l := range some {
			switch {
			case l == nil && i%3 != 0:
				none++
			case l == nil || !maps.Equal(l.Point, whole[i].Point) || l.Seed != whole[i].Seed:
				t.Errorf("point %d: %+v", i, l)
			}
		}
		if none != left {
			t.Errorf("left out %d points, want %d\n%s", none, left, text)
		}
	}
}

func TestPointsHaveTypes(t *testing.T) {
	text := star + "sweep:\n  measure.cwnd: [true]\n  transport.pc4.beta: [0.5]\n  transport.pc4.initial: ['line']\n  workload.0.ranks: [[h1, h2]]\n"
	got := mustParse(t, text, Options{})[0].Point
	want := map[string]any{"measure.cwnd": true, "transport.pc4.beta": 0.5, "transport.pc4.initial": "line", "workload.0.ranks": "[h1, h2]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The command line overrides the file, and takes what it sets out of the sweep.
func TestSetOverrides(t *testing.T) {
	text := star + "transport:\nengine: {kind: emu}\nsweep:\n  workload.0.ranks: [2, 4]\n  seed: [1, 2]\n  engine.kind: [sim, emu]\n"
	labs := mustParse(t, text, Options{
		Set:    []string{"workload.0.ranks=[h1, h3]", "transport.pc4.target_qtime=5us", "workload.0.root=h7", "about=a = b"},
		Engine: EngineOptions{Kind: "sim", Runtime: "namespace", Datapath: "fabric", Dilation: "50"},
	})
	if len(labs) != 2 {
		t.Fatalf("%d labs, want one for each seed", len(labs))
	}
	l := labs[1]
	if got := l.Workload[0].Ranks.Names; !slices.Equal(got, []string{"h1", "h3"}) {
		t.Errorf("ranks are %q", got)
	}
	if got := l.Engine; !reflect.DeepEqual(got, Engine{Kind: "sim", Runtime: "namespace", Datapath: "fabric", Dilation: 50, NIC: "socket",
		Machines: 1, Memo: "auto"}) {
		t.Errorf("the engine is %+v", got)
	}
	if pc4 := l.Transport.Section.Control().(pc4.Params); pc4.TargetQtime != 5*units.Microsecond || l.About != "a = b" || l.Workload[0].Root != "h7" {
		t.Errorf("target %v, about %q, root %q", pc4.TargetQtime, l.About, l.Workload[0].Root)
	}
	for path, want := range map[string]string{
		"transport.pc4.target_qtime": "command line: --set transport.pc4.target_qtime=5us",
		"engine.dilation":            "command line: --dilation 50",
		"seed":                       "sweep, line 10",
		"workload.0.size":            "line 5",
	} {
		i := slices.IndexFunc(l.Sources, func(s Source) bool { return s.Path == path })
		if i < 0 || l.Sources[i].From != want {
			t.Errorf("%s is not from %q: %+v", path, want, l.Sources)
		}
	}
}

// A problem with a value from the command line names the flag.
func TestSetProblems(t *testing.T) {
	wantProblems(t, star, Options{
		Set: []string{"seed", "=1", "seed=", "sweep=1", "sweep.seed=2", "weft=1", "a..b=1", "seed=two", "seed.x=1", "workload.3.size=1MB",
			"workload.first.size=1MB", "transprot.kind=pc4", "topology=[1", "topology.link=*x", "seed=\xff",
			strings.Repeat("a.", 20) + "a=1"},
		Engine: EngineOptions{Kind: "sym", Runtime: "podman", Datapath: "kern", Dilation: "0.1"},
	},
		`--datapath kern: engine.datapath: unknown value "kern"; expected one of auto, fabric, kernel`,
		`--dilation 0.1: engine.dilation: "0.1" is out of range; expected 1 to 1000000000`,
		`--engine sym: engine.kind: unknown value "sym" (did you mean "sim"?); expected one of auto, sim, emu, both`,
		`--runtime podman: engine.runtime: unknown value "podman"; expected one of auto, namespace, docker`,
		`--set =1: "" is not a path; expected names joined by dots, such as transport.kind`,
		`--set a..b=1: "a..b" is not a path; expected names joined by dots, such as transport.kind`,
		`--set a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.…: the path "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.…" is longer than 16 names`,
		`--set seed: no value; expected path=value such as seed=2`,
		`--set seed.x=1: seed.x: "two" stands where x would be`,
		`--set seed=: seed: has no value`,
		`--set seed=two: seed: "two" is not a seed; expected a whole number from 0 to 18446744073709551615`,
		`--set seed=`+"\uFFFD"+`: the byte 0xff is not UTF-8`,
		`--set sweep.seed=2: sweep.seed: is the single value "2"; expected a list of values such as [1, 2, 3]`,
		`--set sweep=1: a sweep is given one path at a time, with all its values: --set 'sweep.seed=[1, 2]', and another --set for another path; --set seed=1 takes a path out of the sweep`,
		`--set topology.link=*x: not valid YAML: unknown anchor 'x' referenced`,
		`--set topology=[1: not valid YAML: did not find expected ',' or ']'`,
		`--set transprot.kind=pc4: transprot: unknown key (did you mean "transport"?); expected one of weft, name, about, seed, topology, queues, clocks, background, transport, workload, faults, measure, expect, report, sweep, engine`,
		`--set weft=1: the version of the format cannot be set by a path; leave it out`,
		`--set workload.3.size=1MB: workload.3.size: "3" is not the number of an item, counted from 0; expected one below 1`,
		`--set workload.first.size=1MB: workload.first.size: "first" is not the number of an item, counted from 0; expected one below 1`,
	)
	wantProblems(t, star+"seed: 1\n", Options{Set: []string{"seed.x=1"}},
		`--set seed.x=1: seed.x: "1" stands where x would be`)
}

// A list for a single value, in the file or by --set, is answered with the sweep that it is.
func TestListsHintAtSweeps(t *testing.T) {
	wantProblems(t, star+"transport: {kind: [pc4, roce]}\n", Options{Set: []string{"seed=[1, 2]"}},
		`lab.yaml:6:19: transport.kind: is a list; expected one of `+strings.Join(transport.Kinds(), ", ")+`. To run the lab with each of several values: --set 'sweep.transport.kind=[pc4, roce]', or sweep: {transport.kind: [pc4, roce]} in the file`,
		`--set seed=[1, 2]: seed: is a list; expected a whole number such as 1. To run the lab with each of several values: --set 'sweep.seed=[1, 2]', or sweep: {seed: [1, 2]} in the file`,
	)
}

// The command line sets lines of the sweep: another list in place of the file's, or one more; a
// single value besides still ends it.
func TestSetSweep(t *testing.T) {
	const swept = star + "sweep:\n  seed: [1, 2, 3, 4]\n  'transport.kind, workload.0.size': [[pc4, 1MB], [roce, 2MB]]\n"
	points := func(sets ...string) string {
		t.Helper()
		labs, err := Parse("lab.yaml", []byte(swept), Options{Set: sets})
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, l := range labs {
			all = append(all, fmt.Sprintf("%d %s %v", l.Seed, l.Transport.Kind, l.Workload[0].Repeat))
		}
		return strings.Join(all, ", ")
	}
	for _, c := range []struct {
		sets []string
		want string
	}{
		{[]string{"sweep.seed=[7, 8]"}, "7 pc4 1, 7 roce 1, 8 pc4 1, 8 roce 1"},
		{[]string{"sweep.seed=[7, 8]", "transport.kind=pc4"}, "7 pc4 1, 8 pc4 1"},
		{[]string{"seed=3", "sweep.transport.kind, workload.0.size=[[swift, 1MB]]", "sweep.workload.0.repeat=[2, 3]"}, "3 swift 2, 3 swift 3"},
		{[]string{"sweep.seed=[7, 8]", "seed=7", "transport.kind=roce"}, "7 roce 1"},
	} {
		if got := points(c.sets...); got != c.want {
			t.Errorf("%q: %s, want %s", c.sets, got, c.want)
		}
	}
	wantProblems(t, swept, Options{Set: []string{"sweep.transport.kind=[swift, hpcc]"}},
		`--set sweep.transport.kind=[swift, hpcc]: sweep.transport.kind: it is swept together with others; expected all of them, as in --set 'sweep.transport.kind, workload.0.size=...'`)
}

// A value that the command line sets inside a value of the sweep is in the names of the points, and
// points that it makes equal are one.
func TestSetInsideSweptValue(t *testing.T) {
	const swept = star + "sweep:\n  'transport.kind, queues':\n    - [strack, {buffer: 5bdp}]\n" +
		"    - [roce, {shared: {total: 32MB}, pfc: on}]\n    - [roce, {shared: {total: 32MB}, pfc: off}]\n"
	for _, c := range []struct {
		sets []string
		want string
	}{
		{nil, "{buffer: 5bdp}, {shared: {total: 32MB}, pfc: on}, {shared: {total: 32MB}, pfc: off}"},
		{[]string{"queues.pfc=off"}, "{buffer: 5bdp, pfc: off}, {shared: {total: 32MB}, pfc: off}"},
		{[]string{"queues.pfc=off", "transport.kind=roce"}, "{shared: {total: 32MB}, pfc: off}"},
		{[]string{"queues={buffer: 5bdp}"}, "{buffer: 5bdp}"},
	} {
		var got []string
		labs, err := Parse("lab.yaml", []byte(swept), Options{Set: c.sets})
		for _, l := range labs {
			got = append(got, fmt.Sprint(l.Point["queues"]))
		}
		if text := strings.Join(got, ", "); err != nil || text != c.want {
			t.Errorf("%q: %s, %v; want %s", c.sets, text, err, c.want)
		}
	}
	wantProblems(t, swept, Options{Set: []string{"transport.kind.x=1"}},
		`--set transport.kind.x=1: transport.kind.x: "strack" stands where x would be`,
		`--set transport.kind.x=1: transport.kind.x: "roce" stands where x would be`)
}

// A value that every point of the sweep replaces is checked too; what only another base value would
// make of it is not. A sweep through a value that is wrong itself is no second problem.
func TestSweptBaseValues(t *testing.T) {
	swept := "sweep:\n  transport.kind: [pc4, roce]\n  workload.0.size: [1MB, 2MB]\n"
	wantProblems(t, strings.Replace(star, "size: ", "size: x", 1)+"transport: {kind: nonsense}\n"+swept, Options{},
		`lab.yaml:5:42: workload.0.size: "x1MB" does not begin with a decimal number; expected a size such as 4KiB or 50MB`,
		`lab.yaml:6:19: transport.kind: unknown value "nonsense"; expected one of `+strings.Join(transport.Kinds(), ", "))
	wantProblems(t, star+"transport: pc4\n"+swept, Options{},
		`lab.yaml:6:12: transport: is the single value "pc4"; expected a section of keys: transport: {kind: pc4}`)
	mustParse(t, star+"queues: {routing: ecmp, light: 10KB}\nsweep: {\"queues.routing, queues.light\": [[adaptive, 20KB], [adaptive, 10KB]]}\n", Options{})
}

// The values of a line of the sweep whose path a single value blocks are checked as if the section
// were there.
func TestSweptValuesOfBlockedPaths(t *testing.T) {
	section := func(was string) string {
		return `lab.yaml:6:12: transport: is the single value "` + was + `"; expected a section of keys: transport: {kind: pc4}`
	}
	kinds := "expected one of " + strings.Join(transport.Kinds(), ", ")
	wantProblems(t, star+"transport: pc4\nsweep:\n  foo.bar: [1]\n  transport.kind: [dcqcn, roce, PC4]\n", Options{}, section("pc4"),
		`lab.yaml:8:3: foo: unknown key; expected one of weft, name, about, seed, topology, queues, clocks, background, transport, workload, faults, measure, expect, report, sweep, engine`,
		`lab.yaml:9:20: sweep.transport.kind[0]: unknown value "dcqcn" (did you mean "roce"?); `+kinds,
		`lab.yaml:9:33: sweep.transport.kind[2]: unknown value "PC4" (did you mean "pc4"?); `+kinds)
	swift, _, _ := transport.SectionOf("swift")
	var keys []string
	for _, k := range swift.Keys() {
		keys = append(keys, k.Name)
	}
	wantProblems(t, star+"sweep: {transport.swift.none: [1], transport.kind: [swift]}\n", Options{},
		"lab.yaml:6:9: transport.swift.none: unknown key; expected one of "+strings.Join(keys, ", "))
	wantProblems(t, star+"transport: PC4\nsweep:\n  \"transport.pc4.tries, seed\": [[7, 1], [0, x]]\n", Options{}, section("PC4"),
		`lab.yaml:8:42: sweep.transport.pc4.tries, seed[1][0]: "0" is out of range; expected a whole number from 1 to 1000`,
		`lab.yaml:8:45: sweep.transport.pc4.tries, seed[1][1]: "x" is not a seed; expected a whole number from 0 to 18446744073709551615`)
	wantProblems(t, star+"transport: PC4\nsweep: {transport.pc4.tries: [0]}\n", Options{Set: []string{"transport.pc4.tries=3"}}, section("PC4"),
		`--set transport.pc4.tries=3: transport.pc4.tries: "PC4" stands where pc4 would be`)
	wantProblems(t, star+"transport: nonsense\nsweep: {transport.pc4.tries: [0]}\n", Options{}, strings.NewReplacer("{kind: pc4}", "{kind: nonsense}").Replace(section("nonsense")))
}

// A key that is unknown in a fault explains why nothing happens there.
func TestUnknownKeysOfFaults(t *testing.T) {
	const keys = "expected one of corrupt, clock, at, link, down, rate, queues, delay, loss, bit_errors, reroute, host, toward, for, kill, pause"
	for fault, want := range map[string][]string{
		"{at: 1us, link: h3-sw0, state: down}": {`lab.yaml:6:34: faults.0.state: unknown key (did you mean "down"?); ` + keys},
		"{at: 1us, host: h3, crash: true}":     {`lab.yaml:6:30: faults.0.crash: unknown key (did you mean "kill"?); ` + keys},
		"{at: 1us, link: h3-sw0, down: true, reroute: on}": {
			`lab.yaml:6:55: faults.0.reroute: "on" does not begin with a decimal number; expected a time such as 10us, or off`,
		},
		"{at: 1us, link: h3-sw0}": {"lab.yaml:6:26: faults.0.link: the fault changes nothing; expected down, or another rate, delay, loss or bit_errors"},
		"{at: 1us, host: h3}":     {"lab.yaml:6:26: faults.0.host: the fault changes nothing; expected kill: true, or a pause such as 1ms"},
	} {
		wantProblems(t, star+"faults: ["+fault+"]\n", Options{}, want...)
	}
}

// Hostile text costs little and gives one clear problem.
func TestHostileText(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"10 MB", strings.Repeat("# ten bytes\n", 1<<20), "lab.yaml:1:1: more than 1 MiB; a lab file has at most that"},
		{"many values", "expect: [" + strings.Repeat("a,", 200_000) + "]", "lab.yaml:1:200006: more than 100000 values; a lab file has fewer"},
		{"nested lists", strings.Repeat("[", 1<<20), "lab.yaml:1:1: not valid YAML: exceeded max depth of 10000"},
		{"nested blocks", nested(3000), "lab.yaml:18:18: " + strings.Repeat("a.", 16) + "a: nested more than 16 deep"},
		{"UTF-16", "\xff\xfew\x00e\x00f\x00t\x00", "lab.yaml:1:1: the byte 0xff is not UTF-8"},
		{"NUL", "weft: 1\nname: a\x00b\n", "lab.yaml:2:8: the control character U+0000 is not allowed"},
	} {
		t.Run(c.name, func(t *testing.T) { wantProblems(t, c.text, Options{}, c.want) })
	}
}

// nested is a mapping in a mapping, n deep.
func nested(n int) string {
	var b strings.Builder
	for i := range n {
		if b.Len() > 1<<19 {
			break
		}
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

func TestProblemsAreLimited(t *testing.T) {
	_, err := Parse("lab.yaml", []byte(star+strings.Repeat("x: 1\n", 5000)), Options{})
	problems, ok := err.(Problems)
	if !ok || len(problems) != maxProblems+1 {
		t.Fatalf("%T with %d problems; want %d and a note", err, len(problems), maxProblems)
	}
	if got := problems[maxProblems].Error(); got != "lab.yaml: more than 100 problems: the rest is not shown" {
		t.Errorf("the note is %q", got)
	}
}

// A sweep of a large lab is refused before it takes the machine's memory.
func TestSweepIsLimited(t *testing.T) {
	var seeds, hosts []string
	for i := range 500 {
		seeds = append(seeds, fmt.Sprint(i))
	}
	for i := range 8000 {
		hosts = append(hosts, fmt.Sprint("h", i))
	}
	text := "weft: 1\nname: lab\ntopology: {kind: star, hosts: 8000}\nworkload:\n  - {collective: permute, size: 1KB, ranks: [" +
		strings.Join(hosts, ", ") + "]}\nsweep:\n  seed: [" + strings.Join(seeds, ", ") + "]\n"
	wantProblems(t, text, Options{}, "lab.yaml:7:3: sweep: 500 points of a lab with 8011 values; expected fewer of either")
}

// A later stage reports a problem at the line of the value it is about.
func TestErrorf(t *testing.T) {
	l := mustParse(t, star+"seed: 3\n", Options{Set: []string{"workload.0.size=2MB"}})[0]
	for path, want := range map[string]string{
		"workload.0.ranks":   "lab.yaml:5:33: workload.0.ranks: bad 7",
		"workload.0.size":    "--set workload.0.size=2MB: workload.0.size: bad 7",
		"workload":           "lab.yaml:5:18: workload: bad 7",
		"topology.down.3":    "lab.yaml:3:18: topology.down.3: bad 7",
		"topology.link.rate": "lab.yaml:3:11: topology.link.rate: bad 7", // a default: the section it is missing from
		"nothing":            "lab.yaml:1:1: nothing: bad 7",
	} {
		if got := l.Errorf(path, "bad %d", 7).Error(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestHostCount(t *testing.T) {
	for _, c := range []struct {
		t    topology.Shape
		want int
	}{
		{&topology.FatTree{K: 8}, 128},
		{&topology.LeafSpine{Leaves: 4, HostsPerLeaf: 3}, 12},
		{&topology.Dumbbell{Side: 3}, 6},
		{&topology.Star{Size: 3}, 3},
		{&topology.Custom{Nodes: []topology.CustomNode{{Name: "a"}, {Name: "s", Switch: true}, {Name: "b"}}}, 2},
		{nil, 0},
	} {
		if got := (&topology.Spec{Shape: c.t}).HostCount(); got != c.want {
			t.Errorf("%+v has %d hosts, want %d", c.t, got, c.want)
		}
	}
}

// Whatever the text, Parse returns labs or problems, each with a place and in order, and does so
// twice alike.
func FuzzParse(f *testing.F) {
	corpus := fuzztest.New(f)
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/bad/*.yaml"} {
		names, _ := filepath.Glob(pattern)
		for _, name := range names {
			if text, err := os.ReadFile(name); err == nil {
				corpus.Add(text, "seed=1")
			}
		}
	}
	corpus.Add([]byte(traced+"workload: [{trace: a.csv}]"), step)
	corpus.Fuzz(func(t *testing.T, text []byte, set string) {
		opts := Options{Set: []string{set}, Read: func(string) ([]byte, error) { return []byte(set), nil }}
		if strings.Contains(set, ",") { // a trace rather than a setting
			opts.Set = nil
		}
		labs, err := Parse("f", text, opts)
		again, errAgain := Parse("f", text, opts)
		if diff := cmp.Diff(labs, again, cmpopts.IgnoreUnexported(Lab{}, queues.Queues{}, queues.Shared{}, topology.Spec{}, topology.LeafSpine{}, topology.Custom{})); diff != "" || fmt.Sprint(err) != fmt.Sprint(errAgain) {
			t.Fatalf("parsed twice: %s\n%v\n%v", diff, err, errAgain)
		}
		if err == nil {
			if len(labs) == 0 {
				t.Fatal("neither labs nor an error")
			}
			return
		}
		RestOf("f", text, opts, err.(Problems))
		for _, p := range err.(Problems) {
			if p.Message == "" || p.Flag == "" && p.Line < 1 && !strings.HasPrefix(p.Message, "more than") || strings.ContainsAny(p.Error(), "\n\x1b\x00") {
				t.Fatalf("a problem without place or on two lines: %#v", p)
			}
		}
	})
}

// A condition decides which points of a sweep an expectation is for.
func TestConditionsOfExpectations(t *testing.T) {
	text := star + "expect: [verified == true, drops == 0 when transport.kind == roce, pauses == 0 when transport.kind != roce]\n" +
		"sweep: {transport.kind: [pc4, roce]}\n"
	var got []string
	for _, l := range mustParse(t, text, Options{}) {
		for _, e := range l.Expect {
			got = append(got, e.Text)
		}
	}
	if want := []string{"verified == true", "pauses == 0", "verified == true", "drops == 0"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A condition is about a value, however the two places write it.
func TestConditionsCompareValues(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"0s", "0ns", true}, {"1us", "1000ns", true}, {"1us", "1ns", false}, {"4KiB", "4096B", true}, {"100Gbps", "0.1Tbps", true},
		{"50%", "0.5", true}, {"4", "4.0", true}, {"4", "5", false}, {"roce", "roce", true}, {"roce", "pc4", false}, {"0s", "0B", false}, {"off", "0s", false},
	} {
		if got := sameValue(c.a, c.b); got != c.want {
			t.Errorf("%s and %s: %v", c.a, c.b, got)
		}
	}
}

// Paths can move together. What the command line sets of one keeps the points that have that value.
func TestPathsThatMoveTogether(t *testing.T) {
	text := star + "transport: {hpcc: {eta: 0.9}}\nsweep:\n  transport.kind, topology.mtu: [[swift, 4906], [hpcc, 1000]]\n  seed: [1, 2]\n"
	points := func(opts Options) (got []string) {
		for _, l := range mustParse(t, text, opts) {
			got = append(got, fmt.Sprintf("%s/%d/%d/%v", l.Transport.Kind, l.Topology.MTU, l.Seed, l.Point["topology.mtu"]))
		}
		return got
	}
	all := []string{"swift/4906/1/4906", "swift/4906/2/4906", "hpcc/1000/1/1000", "hpcc/1000/2/1000"}
	if got := points(Options{}); !slices.Equal(got, all) {
		t.Errorf("got %q, want %q", got, all)
	}
	if got := points(Options{Set: []string{"transport.kind=hpcc"}}); !slices.Equal(got, all[2:]) {
		t.Errorf("hpcc: got %q, want %q", got, all[2:])
	}
	if got, want := points(Options{Set: []string{"transport.kind=pc4", "seed=2"}}), []string{"pc4/4096/2/<nil>"}; !slices.Equal(got, want) {
		t.Errorf("pc4: got %q, want %q", got, want)
	}
}
