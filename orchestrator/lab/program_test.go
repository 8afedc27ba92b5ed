package lab

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/results/record"
	"weft/units"
)

const programLab = "weft: 1\nname: lab\ntopology: {kind: star, hosts: 4}\n"

// A program stands in the workload beside collectives, whose numbers do not count it.
func TestProgram(t *testing.T) {
	labs, err := Parse("lab.yaml", []byte(programLab+`workload:
  - {program: [python3, /lab/train.py, 4], hosts: [h2, h0], launch: torchrun, clock: real, files: [a/train.py],
     env: {THREADS: 1, B: "x y"}, timeout: 1.5s, start: 3us, metrics: '(?P<time_us>\d+) us'}
  - {collective: broadcast, size: 1KB, start: previous}
  - {program: ["true"], timeout: off}
  - {program: ["true"], hosts: 3}
expect: [metric.time_us.max < 1ms, collective.0.time < 1s]
`), reading(map[string]string{"a/train.py": "print()"}))
	if err != nil {
		t.Fatal(err)
	}
	l := labs[0]
	if len(l.Workload) != 1 || l.Rows() != 1 || l.Workload[0].Row != 0 || l.Workload[0].Index != 1 || len(l.Programs) != 3 {
		t.Fatalf("%+v, %+v", l.Workload, l.Programs)
	}
	p := l.Programs[0]
	if strings.Join(p.Args, " ") != "python3 /lab/train.py 4" || strings.Join(p.Hosts.Names, " ") != "h2 h0" || p.LabTime ||
		p.Launch != "torchrun" || strings.Join(p.Env, "|") != "THREADS=1|B=x y" || p.Timeout != 1500*time.Millisecond ||
		p.Start != 3*units.Microsecond || p.Files[0].Base() != "train.py" || string(p.Files[0].Text) != "print()" ||
		p.Metrics.NumSubexp() != 1 {
		t.Errorf("%+v", p)
	}
	p = l.Programs[1]
	if !p.Hosts.All || !p.LabTime || p.Launch != "none" || p.Timeout != 0 || p.Index != 2 || p.Metrics != nil {
		t.Errorf("%+v", p)
	}
	if p = l.Programs[2]; p.Hosts.First != 3 || p.Timeout != 10*time.Minute {
		t.Errorf("%+v", p)
	}
}

func TestProgramProblems(t *testing.T) {
	for item, want := range map[string]string{
		"{program: []}":                                "workload.0.program: does not name a program",
		"{program: [x], hosts: []}":                    "workload.0.hosts: an empty list",
		"{program: [x], hosts: 5}":                     "workload.0.hosts: ",
		"{program: [x], hosts: [h0, h0]}":              `workload.0.hosts.1: "h0" is listed twice`,
		"{program: [x], hosts: [h7]}":                  "workload.0.hosts.0: no host is named",
		"{program: [x], launch: ssh}":                  "expected one of none, torchrun",
		"{program: [x], size: 1MB}":                    "workload.0.size: applies to a collective, not to a program",
		"{program: [x], collective: all-reduce}":       "workload.0.collective: applies to a collective, not to a program",
		"{program: [x], start: previous}":              "workload.0.start: ",
		"{program: [x], files: [../x]}":                "expected a file below the lab file's folder",
		"{program: [x], files: [none]}":                "workload.0.files.0: file does not exist",
		"{program: [x], files: [f, d/f]}":              "workload.0.files.1: d/f is there already as /lab/f",
		"{program: [x], env: {1x: 2}}":                 `"1x" is no name of a variable`,
		"{program: [x], env: {WEFT_PROGRAM: 2}}":       "names that begin with WEFT_ are Weft's own",
		"{program: [x], env: [A]}":                     "workload.0.env: ",
		"{program: [x], metrics: '('}":                 "workload.0.metrics: missing closing )",
		"{program: [x], metrics: 'x'}":                 "0 named groups; expected 1 to 20",
		"{program: [x], metrics: '(?P<A>x)'}":          `group "A"; expected a name`,
		"{program: [x], timeout: 1ms}":                 "expected 1s to 86400s",
		"{collective: reduce, size: 4B, env: {A: 1}}":  "workload.0.env: applies to a program",
		"{collective: reduce, size: 4B, metrics: '('}": "workload.0.metrics: applies to a program",
	} {
		_, err := Parse("lab.yaml", []byte(programLab+"workload: ["+item+"]"), reading(map[string]string{"f": "", "d/f": ""}))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", item, err, want)
		}
	}
}

// A file that is too large is refused with what to do.
func TestLargeFileOfAProgram(t *testing.T) {
	opts := Options{Read: func(string) ([]byte, error) { return nil, ErrTooLarge }}
	_, err := Parse("lab.yaml", []byte(programLab+"workload: [{program: [x], files: [model]}]"), opts)
	if err == nil || !strings.Contains(err.Error(), "workload.0.files.0: it is larger than 4 MiB; leave it in the folder") {
		t.Error(err)
	}
}

// A program of the command line replaces workload, expectations and their sweep.
func TestProgramOfTheCommandLine(t *testing.T) {
	const text = programLab + `workload: [{collective: reduce, size: 4B}]
expect: [collective.0.time < 1s]
sweep: {workload.0.size: [4B, 8B], seed: [1, 2]}
`
	opts := reading(nil)
	opts.Program = &Command{Args: []string{"ping", "-c", "3"}, Hosts: "h1,h3", Launch: "none", Timeout: "5s", Metrics: `(?P<ms>\d)`,
		Env: []string{"A=b=c"}, Files: []ProgramFile{{"my file", []byte("x")}}}
	labs, err := Parse("lab.yaml", []byte(text), opts)
	if err != nil {
		t.Fatal(err)
	}
	l := labs[0]
	if len(labs) != 2 || len(l.Workload) != 0 || len(l.Expect) != 0 || len(l.Programs) != 1 {
		t.Fatalf("%d labs: %+v", len(labs), l)
	}
	if p := l.Programs[0]; strings.Join(p.Args, " ") != "ping -c 3" || strings.Join(p.Hosts.Names, " ") != "h1 h3" || p.Env[0] != "A=b=c" ||
		string(p.Files[0].Text) != "x" || p.Timeout != 5*time.Second || !p.LabTime {
		t.Errorf("%+v", p)
	}
	for _, s := range l.Sources {
		if s.Path == "workload.0.program.0" && s.From != "command line: -- CMD" || s.Path == "workload.0.timeout" && s.From != "command line: --timeout" {
			t.Errorf("%+v", s)
		}
	}
	opts.Program = &Command{Args: []string{"x"}, Hosts: "h9", Env: []string{"A"}}
	if _, err := Parse("lab.yaml", []byte(text), opts); err == nil || !strings.Contains(err.Error(), "--hosts") || !strings.Contains(err.Error(), "expected NAME=VALUE") {
		t.Errorf("%v", err)
	}
}

// Arguments may be written as numbers and truth values, which mean their text; the schema and the
// reader agree.
func TestArgumentsAreText(t *testing.T) {
	schema := compileSchema(t)
	for item, want := range map[string]string{
		"[iperf3, -s, -1]":               "iperf3 -s -1",
		"[x, 1.50, 0x10, 1e3, true, no]": "x 1.50 0x10 1e3 true no",
		"[x, '1', \"\", 2026-01-01]":     "x 1  2026-01-01",
		"[x, [1]]":                       "",
		"[x, {a: 1}]":                    "",
		"[x, null]":                      "",
	} {
		text := []byte(programLab + "workload: [{program: " + item + "}]")
		labs, err := Parse("lab.yaml", text, Options{})
		if (err == nil) != (want != "") || err == nil && strings.Join(labs[0].Programs[0].Args, " ") != want {
			t.Errorf("%s: %v, want %q", item, err, want)
		}
		if err := schema.Validate(asJSON(t, text)); (err == nil) != (want != "") {
			t.Errorf("%s: the schema says %v", item, err)
		}
	}
}

// A transport that was chosen for a lab of programs alone is one error, with its place, wherever
// it was chosen. Beside a collective or background traffic it has a use, and so it has for other
// points of a sweep.
func TestTransportOfPrograms(t *testing.T) {
	const program = "{program: [x]}"
	cases := []struct {
		rest string // of the file
		set  []string
		want string // "": it is right
	}{
		{"workload: [" + program + "]\n", nil, ""},
		{"workload: [" + program + "]\ntransport: {}\n", nil, ""},
		{"workload: [" + program + "]\ntransport: {kind: roce}\n", nil, "lab.yaml:5:19: transport.kind: only programs send here"},
		{"workload: [" + program + "]\ntransport: {pc4: {beta: 0.4}}\n", nil, "lab.yaml:5:25: transport.pc4.beta: "},
		{"workload: [" + program + "]\nsweep: {transport.kind: [pc4, roce, hpcc]}\n", nil, "lab.yaml:5:26: transport.kind: "},
		{"workload: [" + program + "]\nsweep: {'transport.kind, queues.pfc': [[pc4, off], [roce, on]]}\n", nil, "transport.kind: "},
		{"workload: [" + program + "]\n", []string{"transport.kind=roce"}, "--set transport.kind=roce: transport.kind: "},
		{"workload: [" + program + "]\n", []string{"sweep.transport.kind=[pc4, roce]"}, "transport.kind: "},
		{"workload: [" + program + "]\ntransport: {kind: roce}\nbackground: {load: 20%}\n", nil, ""},
		{"workload: [" + program + ", {collective: all-reduce, size: 1KB}]\ntransport: {kind: roce}\n", nil, ""},
		{"transport: {kind: roce}\nworkload: [" + program + "]\nsweep: {workload: [[" + program +
			"], [{collective: all-reduce, size: 1KB}]]}\n", nil, ""},
		{"workload: [" + program + "]\nsweep: {workload: [[" + program +
			"], [{collective: all-reduce, size: 1KB}]], transport.kind: [roce, pc4]}\n", nil, "transport.kind: "},
	}
	for _, c := range cases {
		labs, err := Parse("lab.yaml", []byte(programLab+c.rest), Options{Set: c.set})
		var found Problems
		errors.As(err, &found)
		if c.want != "" {
			if len(found) != 1 || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s %v: %v; want %s", c.rest, c.set, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s %v: %v", c.rest, c.set, err)
		}
		for _, l := range labs {
			if listed := l.sourced("transport.kind"); listed != (l.Sends() != record.Programs) {
				t.Errorf("%s: transport.kind is listed: %t", c.rest, listed)
			}
		}
	}
}

// sourced reports whether the settings of a lab list a path.
func (l *Lab) sourced(path string) bool {
	return slices.ContainsFunc(l.Sources, func(s Source) bool { return s.Path == path })
}

// A program of the command line takes the place of the file's transport, which is told.
func TestTransportOfCommand(t *testing.T) {
	o := Options{Program: &Command{Args: []string{"true"}}}
	const text = programLab + "transport: {kind: roce}\nworkload: [{collective: all-reduce, size: 1KB}]\n"
	labs, err := Parse("lab.yaml", []byte(text), o)
	if err != nil {
		t.Fatal(err)
	}
	notes := labs[0].Notes()
	if len(notes) != 1 || notes[0].Path != "transport" || notes[0].Line != 4 {
		t.Errorf("%+v", notes)
	}
	o.Set = []string{"transport.kind=roce"}
	if _, err := Parse("lab.yaml", []byte(text), o); err == nil || !strings.Contains(err.Error(), "--set transport.kind=roce: ") {
		t.Errorf("%v", err)
	}
}
