package lab

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"weft/units"
)

// reading gives labs the files of a map.
func reading(files map[string]string) Options {
	return Options{Read: func(name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, os.ErrNotExist
	}}
}

const traced = "weft: 1\nname: lab\ntopology: {kind: star, hosts: 8}\n"

const step = `name,collective,size,compute,jitter,group,stride,shift
grads,all-reduce,1MB,10us,5us,4,,
moe,all-to-all,1MB,,,2,4,
next,permute,1KB,,,,,-1
`

// A trace becomes an item for every group of ranks of every collective of every step, in the order
// of hosts.
func TestTraceBecomesItems(t *testing.T) {
	labs, err := Parse("lab.yaml", []byte(traced+"workload: [{collective: broadcast, size: 1KB}, {trace: a/step.csv, ranks: [h7, h6, h5, h4, h3, h2, h1, h0], repeat: 2, start: previous}, {collective: gather, size: 1KB}]"),
		reading(map[string]string{"a/step.csv": step}))
	if err != nil {
		t.Fatal(err)
	}
	l := labs[0]
	if len(l.Workload) != 2*(2+4+1)+2 || l.Rows() != 5 {
		t.Fatalf("%d items in %d rows", len(l.Workload), l.Rows())
	}
	first, again := &l.Workload[1], &l.Workload[8]
	if !first.Previous || first.Compute != 10*units.Microsecond || first.Jitter != 5*units.Microsecond || first.Row != 1 || first.Index != 1 {
		t.Errorf("the first collective: %+v", first)
	}
	if !again.Previous || again.Row != 1 || again.Line.Step != 1 {
		t.Errorf("the first collective of the second step: %+v", again)
	}
	if got := fmt.Sprint(l.Workload[1].Line.Members, l.Workload[2].Line.Members, l.Workload[4].Line.Members, l.Workload[7].Line.Members); got != "[0 1 2 3] [4 5 6 7] [1 5] [0 1 2 3 4 5 6 7]" {
		t.Errorf("members %s", got)
	}
	if last := &l.Workload[15]; last.Row != 4 || last.Index != 2 || last.Line != nil {
		t.Errorf("the item after the trace: %+v", last)
	}
	if len(l.Traces) != 1 || l.Traces[0].File != "a/step.csv" || l.Traces[0].Sum != sumOf("a/step.csv", []byte(step)) {
		t.Errorf("traces %+v", l.Traces)
	}
}

func TestTraceForGroupsOfRanks(t *testing.T) {
	labs, err := Parse("lab.yaml", []byte(traced+"workload: [{trace: s.csv, ranks: {groups: 2, size: 4}}]"),
		reading(map[string]string{"s.csv": "collective,size,group\nall-reduce,1MB,2\n"}))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(labs[0].Workload); n != 4 || labs[0].Workload[3].Ranks.Group != 1 || labs[0].Rows() != 1 {
		t.Errorf("%d items, %d rows: %+v", n, labs[0].Rows(), labs[0].Workload)
	}
}

// Errors in a trace point at the line of the lab that names it.
func TestTraceProblems(t *testing.T) {
	for _, c := range []struct{ item, file, want string }{
		{"{trace: ../step.csv}", step, `lab.yaml:4:20: workload.0.trace: "../step.csv"; expected a file below the lab file's folder`},
		{"{trace: /etc/passwd}", step, "expected a file below"},
		{"{trace: a//b}", step, "expected a file below"},
		{"{trace: [a]}", step, "is a list; expected a file"},
		{"{trace: none.csv}", step, "file does not exist"},
		{"{trace: step.csv}", "collective,size\ngossip,4B\n", `workload.0.trace: step.csv:2:1: collective is "gossip"`},
		{"{trace: step.csv, size: 1MB}", step, "workload.0.size: applies to a collective; those of a trace have theirs in the file"},
		{"{trace: step.csv, poisson: {every: 1us, for: 1ms}}", step, "workload.0.poisson: applies to a collective, and those of a trace have none; leave it out"},
		{"{trace: step.csv, sise: 1MB}", step, "workload.0.sise: unknown key (did you mean \"size\"?); expected one of trace, format, scale_compute, ranks, size, repeat, start"},
		{"{trace: step.csv, ranks: 3}", step, "step.csv: collective 1 (grads): 3 ranks do not form groups of 4, 1 apart"},
		{"{trace: step.csv, repeat: 100000}", step, "are more than 20000"},
		{"{trace: step.csv, repeat: 2}", "collective,size,start\nreduce,4B,\nreduce,4B,1us\n", "workload.0.repeat: collective 2 of step.csv starts at an instant of its own"},
		{"{trace: step.csv}", "collective,size\nall-gather,16B\n", "step.csv: collective 1: 16B is less than an element for each of 8 ranks; expected at least 32B"},
		{"{trace: step.csv, repeat: 3000}", "collective,size,group\nreduce,4B,2\nreduce,4B,2\n", "becomes 24000 collectives"},
	} {
		_, err := Parse("lab.yaml", []byte(traced+"workload: ["+c.item+"]"), reading(map[string]string{"step.csv": c.file}))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.item, err, c.want)
		}
	}
	if _, err := Parse("lab.yaml", []byte(traced+"workload: [{trace: step.csv}]"), Options{}); err == nil || !strings.Contains(err.Error(), "cannot be read here") {
		t.Errorf("without files: %v", err)
	}
	_, err := Parse("lab.yaml", []byte(traced+"workload: [{trace: step.csv}]"), reading(map[string]string{"step.csv": "collective,size\nall-gather,16B\nreduce,4B\nall-gather,8B\n"}))
	const each = "lab.yaml:4:20: workload.0.trace: step.csv: collective %d: %s is less than an element for each of 8 ranks; expected at least 32B"
	if want := fmt.Sprintf(each+"\n"+each, 1, "16B", 3, "8B"); err == nil || err.Error() != want {
		t.Errorf("two mistakes in a trace: %v, want %s", err, want)
	}
	var problems Problems
	if _, err := Parse("lab.yaml", []byte(traced+"workload: [{trace: step.csv, size: 1MB, sise: 1}]"), reading(nil)); !errors.As(err, &problems) || len(problems) != 3 {
		t.Errorf("three mistakes: %v", err)
	}
}
