package lab

import (
	"strings"
	"testing"
)

// A condition whose value no lab can have, that no point of a sweep meets, or that names no setting
// is an error at its line. A single run reports it as unmet; so does a command line that removes
// the points that met it.
func TestConditions(t *testing.T) {
	const sweep = "\nsweep: {transport.kind: [pc4, roce], seed: [1, 2]}"
	const ranks = "\nsweep: {workload.0.ranks: [2, 4]}"
	for _, c := range []struct {
		when, more, says string // says: of the problem; "": none
		applies, unmet   int    // in all points together
		set              string
	}{
		{"transport.kind == roce", "", "", 0, 1, ""},
		{"transport.kind == pc4", "", "", 1, 0, ""},
		{"transport.kind != roce", "", "", 1, 0, ""},
		{"transport.kind == rocee", "", `did you mean "roce"?`, 0, 0, ""},
		{"transport.kind != rocee", "", `did you mean "roce"?`, 0, 0, ""},
		{"seed == 77", "", "", 0, 1, ""},
		{"seed == many", "", "seed == many", 0, 0, ""},
		{"topology.link.rate == 100", "", "topology.link.rate == 100", 0, 0, ""},
		{"topology.link.rate == 0.1Tbps", "", "", 1, 0, ""},
		{"topology.link.loss == 200%", "", "topology.link.loss == 200%", 0, 0, ""},
		{"queues.pfc == off", "", "", 1, 0, ""},
		{"transport.knd == pc4", "", `did you mean "transport.kind"?`, 0, 0, ""},
		{"transport.kind == roce and transport.roce.qps == 4", "", "", 0, 1, ""},
		{"transport.kind == pc4 or seed == 2", "", "transport.kind == pc4 or seed", 0, 0, ""},
		{"transport.kind", "", "is not a condition", 0, 0, ""},
		{"engine.kind == sim", "", "", 1, 0, ""}, // which the run decides

		{"transport.kind == roce", sweep, "", 2, 2, ""},
		{"transport.kind == roce and seed == 2", sweep, "", 1, 3, ""},
		{"transport.kind == hpcc", sweep, "no point of the sweep meets the condition", 0, 0, ""},
		{"transport.kind == rocee", sweep, `did you mean "roce"?`, 0, 0, ""},
		{"seed == 77", sweep, "no point of the sweep meets the condition", 0, 0, ""},
		{"transport.kind == roce and seed == 77", sweep, "no point of the sweep meets the condition", 0, 0, ""},
		{"workload.0.ranks == 3", ranks, "no point of the sweep meets the condition", 0, 0, ""},
		{"transport.kind == roce", sweep, "", 0, 2, "transport.kind=pc4"},
		{"seed == 2", sweep, "", 0, 2, "seed=1"},
		{"transport.kind == rocee", sweep, `did you mean "roce"?`, 0, 0, "seed=1"},
		{"transport.kind == hpcc", sweep, "no point of the sweep meets the condition", 0, 0, "seed=1"},
		{"transport.kind == hpcc", sweep, "no point of the sweep meets the condition", 0, 0, "topology.mtu=1000"},
		{"transport.kind == hpcc", sweep, "no point of the sweep meets the condition", 0, 0, "sweep.seed=[1, 2, 3]"},
		{"transport.kind == hpcc", sweep, "", 2, 0, "transport.kind=hpcc"},
		{"transport.kind == hpcc", "", "", 0, 2, "sweep.seed=[1, 2]"},
	} {
		text := "weft: 1\nname: x\ntopology: {kind: star, hosts: 5}\nworkload: [{collective: incast, ranks: 2, size: 1KB}]\n" +
			"transport: {kind: pc4}\nexpect:\n  - drops == 0 when " + c.when + c.more
		if c.more == sweep {
			text = strings.Replace(text, "transport: {kind: pc4}\n", "", 1)
		}
		var opts Options
		if c.set != "" {
			opts.Set = []string{c.set}
		}
		labs, err := Parse("lab.yaml", []byte(text), opts)
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), ":5: expect.0: ") {
				t.Errorf("%s%s: %v, want %q at the line", c.when, c.more, err, c.says)
			}
			continue
		}
		applies, unmet := 0, 0
		for _, l := range labs {
			applies, unmet = applies+len(l.Expect), unmet+len(l.Unmet)
		}
		if err != nil || applies != c.applies || unmet != c.unmet {
			t.Errorf("%s%s, %s: %d apply, %d do not, %v; want %d and %d", c.when, c.more, c.set, applies, unmet, err, c.applies, c.unmet)
		}
	}
}

// A shard reads some points of a sweep. Conditions that only others meet are no problem of it.
func TestConditionsOfAShard(t *testing.T) {
	text := "weft: 1\nname: x\ntopology: {kind: star, hosts: 5}\nexpect:\n  - drops == 0 when seed == 2\n" +
		"  - drops == 0 when seed == 9\nsweep: {seed: [1, 2]}"
	labs, err := Parse("lab.yaml", []byte(text), Options{Only: func(point int) bool { return point == 0 }})
	if err != nil || len(labs) != 2 || labs[1] != nil || len(labs[0].Unmet) != 2 {
		t.Errorf("%v, %v", labs, err)
	}
}

// A condition of the command line that no run meets is a problem, whatever else is there: the same
// command chose the runs.
func TestConditionsOfTheCommandLine(t *testing.T) {
	const text = "weft: 1\nname: x\ntopology: {kind: star, hosts: 5}\nworkload: [{collective: incast, ranks: 2, size: 1KB}]"
	for _, c := range []struct {
		when, more string
		set        []string
		applies    int // -1: a problem
	}{
		{"transport.kind == pc4", "", nil, 1},
		{"engine.kind == emu", "", nil, 1}, // which the run decides
		{"transport.kind == roce", "", nil, -1},
		{"transport.kind == roce", "", []string{"transport.kind=roce"}, 1},
		{"seed == 2", "\nsweep: {seed: [1, 2]}", nil, 1},
		{"seed == 77", "\nsweep: {seed: [1, 2]}", nil, -1},
		{"seed == 2", "\nsweep: {seed: [1, 2]}", []string{"seed=1"}, -1},
		{"seed == 3", "\nsweep: {seed: [1, 2]}", []string{"sweep.seed=[1, 3]"}, 1},
	} {
		opts := Options{Set: append(c.set, `expect=["drops == 0 when `+c.when+`"]`)}
		labs, err := Parse("lab.yaml", []byte(text+c.more), opts)
		if c.applies < 0 {
			if err == nil || !strings.HasPrefix(err.Error(), "--set expect=") ||
				!strings.Contains(err.Error(), "no run of this command meets the condition") {
				t.Errorf("%s%s %v: %v", c.when, c.more, c.set, err)
			}
			continue
		}
		applies := 0
		for _, l := range labs {
			applies += len(l.Expect)
		}
		if err != nil || applies != c.applies {
			t.Errorf("%s%s %v: %d apply, %v", c.when, c.more, c.set, applies, err)
		}
	}
}

// A condition that no point of the file's sweep meets stays a problem, whatever flag or setting
// that has nothing to do with it is on the command line.
func TestConditionsBesideOtherFlags(t *testing.T) {
	text := "weft: 1\nname: x\ntopology: {kind: star, hosts: 5}\nworkload: [{collective: incast, ranks: 2, size: 1KB}]\n" +
		"expect:\n  - fct.p99 < 1ns when queues.buffer == 7bdp\n  - drops == 0 when engine.kind == emu\n" +
		"sweep: {queues.buffer: [5bdp, 20bdp]}"
	for _, opts := range []Options{
		{}, {Set: []string{"seed=5"}}, {Set: []string{"sweep.seed=[1, 2]"}}, {Set: []string{"queues.buffer=5bdp"}},
		{Engine: EngineOptions{Kind: "sim"}}, {Engine: EngineOptions{Kind: "emu"}}, {Engine: EngineOptions{Kind: "both"}},
		{Engine: EngineOptions{Runtime: "namespace"}}, {Engine: EngineOptions{Dilation: "100"}}, {Retry: "100"},
	} {
		_, err := Parse("lab.yaml", []byte(text), opts)
		if p, ok := err.(Problems); !ok || len(p) != 1 || p[0].Path != "expect.0" ||
			!strings.Contains(p[0].Message, "no point of the sweep meets the condition") {
			t.Errorf("%+v: %v", opts, err)
		}
	}
}

// The engine of a command line may leave out a line of a sweep that another engine judges.
func TestConditionsOfASweepInAnotherEngine(t *testing.T) {
	text := "weft: 1\nname: x\ntopology: {kind: star, hosts: 5}\nexpect:\n  - fidelity == ok when engine.kind == emu\nsweep: {seed: [1, 2]}"
	for kind, unmet := range map[string]int{"": 0, "sim": 2, "emu": 0, "both": 0} {
		labs, err := Parse("lab.yaml", []byte(text), Options{Engine: EngineOptions{Kind: kind}})
		if err != nil || len(labs) != 2 || len(labs[0].Unmet)+len(labs[1].Unmet) != unmet {
			t.Errorf("--engine %q: %v, %v", kind, labs, err)
		}
	}
}

// The reason why no point meets a condition names what all points have, up to a few.
func TestUnmetNamesAllPoints(t *testing.T) {
	for seeds, want := range map[string]string{
		"[1]": "seed is 1", "[1, 2]": "seed is 1 or seed is 2",
		"[1, 2, 4, 5, 6, 7]": "seed is 1, seed is 2, seed is 4, seed is 5 or 2 others",
	} {
		text := "weft: 1\nname: x\ntopology: {kind: star, hosts: 5}\nexpect:\n  - drops == 0 when seed == 3\nsweep: {seed: [3]}"
		labs, err := Parse("lab.yaml", []byte(text), Options{Set: []string{"sweep.seed=" + seeds}})
		if err != nil {
			t.Fatal(err)
		}
		if all := Unmet(labs); len(all) != 1 || all[0].Why != want {
			t.Errorf("%s: %+v, want %s", seeds, all, want)
		}
	}
}

// A lab that leaves its engine open, or asks for both, has a condition on it decided by each run.
func TestConditionsOnAnOpenEngine(t *testing.T) {
	for _, c := range []struct {
		kind, when, engines string // engines: in which the line is judged
	}{
		{"auto", "engine.kind == emu", "emu"}, {"both", "engine.kind == emu", "emu"},
		{"auto", "engine.kind != emu", "sim"}, {"both", "engine.kind == sim and seed == 1", "sim"},
		{"auto", "engine.kind == emu and seed == 2", ""}, {"auto", "engine.kind == auto", "sim emu"},
		{"sim", "engine.kind == emu", ""}, {"emu", "engine.kind == emu", "sim emu"}, {"auto", "seed == 1", "sim emu"},
	} {
		text := "weft: 1\nname: x\ntopology: {kind: star, hosts: 5}\nworkload: [{collective: incast, ranks: 2, size: 1KB}]\n" +
			"engine: {kind: " + c.kind + "}\nexpect:\n  - drops == 0 when " + c.when
		labs, err := Parse("lab.yaml", []byte(text), Options{})
		if err != nil {
			t.Fatal(err)
		}
		var judged []string
		for _, engine := range []string{"sim", "emu"} {
			in := labs[0].In(engine)
			if len(in.Expect) == 1 {
				judged = append(judged, engine)
			}
			if len(in.Expect)+len(in.Unmet) != 1 || len(in.Unmet) == 1 && in.Unmet[0].Why == "" {
				t.Errorf("%+v in %s: %+v, not judged: %+v", c, engine, in.Expect, in.Unmet)
			}
		}
		if got := strings.Join(judged, " "); got != c.engines {
			t.Errorf("%+v: judged in %q", c, got)
		}
	}
}
