package sweep

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"

	"weft/internal/fuzztest"
	"weft/internal/golden"
)

var newYear = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// newSubmission returns a submission of points in shards.
func newSubmission(points, shards int) *Submission {
	s := &Submission{Format: Format, ID: "sweep-20260101T000000-sim", Lab: "many", Kind: "sim", Shards: shards,
		Began: newYear, Series: "X", Results: "runs"}
	for i := range points {
		s.Points = append(s.Points, fmt.Sprintf("seed=%d", i+1))
	}
	return s
}

// Every point is in exactly one shard, and no shard has two points more than another.
func TestShards(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		points := rapid.IntRange(1, 500).Draw(t, "points")
		s := newSubmission(points, rapid.IntRange(1, points).Draw(t, "shards"))
		count := make([]int, points)
		for k := range s.Shards {
			of := s.PointsOf(k)
			if len(of) < points/s.Shards || len(of) > points/s.Shards+1 || !slices.IsSorted(of) {
				t.Fatalf("shard %d has %v", k, of)
			}
			for _, i := range of {
				if count[i]++; s.ShardOf(i) != k {
					t.Fatalf("point %d is in shards %d and %d", i, k, s.ShardOf(i))
				}
			}
		}
		if slices.Min(count) != 1 || slices.Max(count) != 1 {
			t.Fatal(count)
		}
	})
	for _, c := range []struct{ points, slots, want int }{{1, 8, 1}, {1000, 6, 24}, {10, 6, 10}, {1e6, 1e6, MaxShards}, {5, 0, 4}} {
		if got := DefaultShards(c.points, c.slots); got != c.want {
			t.Errorf("%d points, %d slots: %d shards, want %d", c.points, c.slots, got, c.want)
		}
	}
}

// The start of a submission names no run that exists, and none that a later command line makes.
func TestBeganIsFree(t *testing.T) {
	now := newYear.Add(time.Hour + 300*time.Millisecond)
	got, err := Began(now, []string{"20260101T005959-1", "sweep-20260101T005958-sim", "x"})
	if want := newYear.Add(time.Hour - 3*time.Second); err != nil || !got.Equal(want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

// Two submitters that chose the same start at once do not both have it to themselves.
func TestAlone(t *testing.T) {
	s := newSubmission(3, 1)
	for name, alone := range map[string]bool{s.ID: true, "sweep-20260101T000000-sim-2": false, "sweep-20260101T000000-emu": false,
		"20260101T000000-1": false, "20260101T000001-1": true, "sweep-20251231T235959-sim": true} {
		if got := s.Alone([]string{s.ID, name}); got != alone {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A point is tried until it has a result, and no more than MaxTries times in a round. A machine
// that lacked something is not the point's fault.
func TestDecide(t *testing.T) {
	try := func(n, round int, why string) (all []Try) {
		return slices.Repeat([]Try{{Point: 3, Round: round, Host: "m1", Error: why}}, n)
	}
	for name, c := range map[string]struct {
		f    Found
		want Next
	}{
		"new":            {Found{}, Run},
		"placed":         {Found{Placed: map[int]bool{3: true}, Tries: try(9, 1, "")}, Skip},
		"another placed": {Found{Placed: map[int]bool{2: true}}, Run},
		"killed twice":   {Found{Tries: try(2, 1, "")}, Run},
		"three times":    {Found{Tries: try(3, 1, "")}, GiveUp},
		"before":         {Found{Tries: try(3, 0, "")}, Run},
		"disk full":      {Found{Tries: try(9, 1, "no space left")}, Run},
		"noted":          {Found{Notes: map[int]Note{3: {Point: 3, What: GivenUp}}}, Skip},
		"disagrees":      {Found{Placed: map[int]bool{3: true}, Notes: map[int]Note{3: {Point: 3, What: Disagrees}}}, Skip},
	} {
		if got := Decide(&c.f, 1, 3); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	n := Exhausted(&Found{Tries: try(3, 1, "")}, 1, 3)
	if n.What != GivenUp || !strings.Contains(n.Error, "after 3 tries, on m1, m1, m1") {
		t.Errorf("%+v", n)
	}
}

// A task starts its process again as long as that settles points.
func TestKeep(t *testing.T) {
	var k Keep
	for _, settled := range []int{0, 0, 0, 1, 1, 2, 2, 2, 2} {
		if !k.Again(settled) {
			t.Fatalf("ended at %d settled points", settled)
		}
	}
	if k.Again(2) {
		t.Error("a process that never settles anything is started for ever")
	}
}

func TestJudge(t *testing.T) {
	s := newSubmission(5, 2) // points 0, 2, 4 and 1, 3
	placed := func(points ...int) Found {
		f := Found{Placed: map[int]bool{}, Notes: map[int]Note{}}
		for _, i := range points {
			f.Placed[i] = true
		}
		return f
	}
	gone := placed(0, 1, 2, 3)
	gone.Notes[4] = Note{Point: 4, What: GivenUp, Error: "given up after 3 tries"}
	never := placed(0, 1, 2, 3)
	never.Notes[4] = Note{Point: 4, What: NeverStarted}
	late := placed(0, 1, 2, 3, 4) // it was given up while a machine that was cut off had it
	late.Notes[4] = Note{Point: 4, What: GivenUp}
	full := []Task{{Shard: 0, State: Failed}, {Shard: 1, State: Waiting, Error: "no suitable node"}}
	cancelled := placed(0)
	cancelled.Cancelled = true
	two := func(a, b string) []Task {
		return []Task{{Shard: 0, State: a}, {Shard: 1, State: b}, {Shard: 7, State: Running}}
	}
	for name, c := range map[string]struct {
		f      Found
		tasks  []Task
		answer error
		want   string
		shard0 string
		say    string
	}{
		"queued":     {placed(), two(Waiting, Waiting), nil, Waiting, Waiting, ""},
		"begun":      {placed(0), two(Running, Waiting), nil, Running, Running, ""},
		"one ended":  {placed(1, 3), two(Running, Done), nil, Running, Running, ""},
		"all":        {placed(0, 1, 2, 3, 4), nil, nil, Done, Done, "weft sweep collect"},
		"tasks lie":  {placed(0, 1, 3), two(Done, Done), nil, Stopped, Stopped, "2 of 5 points have no result: weft sweep resume"},
		"failed":     {placed(0), two(Failed, Failed), nil, Stopped, Failed, "resume"},
		"no tasks":   {placed(0), nil, nil, Stopped, Stopped, "resume"},
		"cancelled":  {cancelled, nil, nil, Cancelled, Stopped, "resume"},
		"given up":   {gone, nil, nil, Failed, Done, "retries what was given up"},
		"came late":  {late, nil, nil, Done, Done, "collect"},
		"no room":    {placed(), full, nil, Running, Failed, "no shard runs: no suitable node"},
		"never":      {never, nil, nil, Done, Done, "collect"},
		"no answer":  {placed(0), nil, errors.New("connection refused"), Running, Stopped, "does not answer"},
		"late reply": {placed(0, 1, 2, 3, 4), nil, errors.New("connection refused"), Done, Done, ""},
	} {
		st := s.Judge(Round{Number: 1, On: "swarm", Began: newYear}, &c.f, c.tasks, c.answer, newYear.Add(time.Minute))
		if st.State != c.want || st.Shards[0].State != c.shard0 || !strings.Contains(st.Say, c.say) {
			t.Errorf("%s: %s, shard 0 %s, %q; want %s, %s, %q", name, st.State, st.Shards[0].State, st.Say, c.want, c.shard0, c.say)
		}
		if over := c.want != Running && c.want != Waiting; st.Over() != over {
			t.Errorf("%s: over %v", name, st.Over())
		}
	}
	begun := placed(0, 1)
	st := s.Judge(Round{Number: 1, Began: newYear, Done: 1}, &begun, two(Running, Running), nil, newYear.Add(10*time.Second))
	if st.EtaS != 30 || st.Done != 2 || st.Shards[0].Points != 3 || st.Shards[1].Done != 1 {
		t.Errorf("%+v", st)
	}
	st = s.Judge(Round{Number: 1}, &gone, nil, nil, newYear)
	if len(st.Problems) != 1 || st.Problems[0].Name != "seed=5" || st.Problems[0].Run != "runs/many/20260101T000000-5" {
		t.Errorf("%+v", st.Problems)
	}
}

// A second copy of a simulation is the same, or two machines disagree. Emulations always differ.
func TestCompare(t *testing.T) {
	a := Print{"flows.parquet": "1", "summary.json": "2"}
	for name, c := range map[string]struct {
		kind   string
		second Print
		want   Verdict
		why    string
	}{
		"same":     {"sim", Print{"flows.parquet": "1", "summary.json": "2"}, Same, ""},
		"differs":  {"sim", Print{"flows.parquet": "9", "summary.json": "2"}, Differ, "different flows.parquet"},
		"missing":  {"sim", Print{"summary.json": "2"}, Differ, "flows.parquet"},
		"more":     {"sim", Print{"flows.parquet": "1", "summary.json": "2", "x": "3"}, Differ, "different x"},
		"emulated": {"emu", Print{"flows.parquet": "9"}, Later, ""},
	} {
		if got, why := Compare(c.kind, a, c.second); got != c.want || !strings.Contains(why, c.why) {
			t.Errorf("%s: %d, %q", name, got, why)
		}
	}
}

func TestManifest(t *testing.T) {
	s := newSubmission(5, 2)
	s.Text, s.Inputs = "weft: 1\nname: many\n# \"quoted\" <text>\n", map[string][]byte{"a.csv": []byte("1,2\n")}
	k := Kubernetes{Image: "registry/weft@sha256:12", Claim: "runs", Workers: 2, Memory: 1 << 30, Parallel: 8}
	text, err := k.Manifest(s)
	if err != nil {
		t.Fatal(err)
	}
	golden.File(t, "testdata/kubernetes.golden", text)
	documents := yaml.NewDecoder(strings.NewReader(text))
	var config struct{ Data map[string]string }
	var job struct {
		Spec struct {
			Completions, Parallelism int
			Tries                    int    `yaml:"backoffLimitPerIndex"`
			Mode                     string `yaml:"completionMode"`
		}
	}
	if err := errors.Join(documents.Decode(&config), documents.Decode(&job)); err != nil {
		t.Fatal(err)
	}
	again, err := Parse([]byte(config.Data["submission.json"]))
	if err != nil || again.Text != s.Text || string(again.Inputs["a.csv"]) != "1,2\n" || len(again.Points) != 5 {
		t.Errorf("%+v, %v", again, err)
	}
	if j := job.Spec; j.Completions != 2 || j.Parallelism != 2 || j.Tries != 3 || j.Mode != "Indexed" {
		t.Errorf("%+v", j)
	}
	s.Inputs["b.csv"] = make([]byte, 1<<20)
	if _, err := k.Manifest(s); err == nil || !strings.Contains(err.Error(), "ConfigMap has room") {
		t.Error(err)
	}
}

// Whatever is in the file, a submission that is accepted can be run within bounds.
func FuzzParse(f *testing.F) {
	corpus := fuzztest.New(f)
	good, err := newSubmission(3, 2).Encode()
	if err != nil {
		f.Fatal(err)
	}
	corpus.Add(good)
	corpus.Add([]byte(`{"format":1,"id":"../x","lab":"a"}`))
	corpus.Fuzz(func(t *testing.T, b []byte) {
		s, err := Parse(b)
		if err != nil {
			return
		}
		n := 0
		for k := range s.Shards {
			n += len(s.PointsOf(k))
		}
		if n != len(s.Points) || strings.ContainsAny(s.ID+s.Lab, "/\n") {
			t.Fatalf("%d of %d points, %q", n, len(s.Points), s.ID)
		}
	})
}
