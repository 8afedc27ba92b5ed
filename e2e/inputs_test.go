package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const pairJob = `num_ranks 2
rank 0 {
l1: calc 5000
l2: send 100000b to 1 tag 7
l2 requires l1
l3: recv 4000b from 1 tag 8
}
rank 1 {
l1: recv 100000b from 0 tag 7
l2: send 4000b to 0 tag 8
l2 requires l1
}
`

// weft trace shows a job, weft convert writes it in another format, both run with the same data
// files, and a run's timeline is written. A job that cannot run is an error with its place, and
// leaves nothing behind.
func TestJobFromTraceToTimeline(t *testing.T) {
	d := newWorkspace(t)
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	weft := func(code int, args ...string) result {
		t.Helper()
		r := d.run(args...)
		if r.code != code {
			t.Fatalf("%v: exit code %d\n%s%s", args, r.code, r.stdout, r.stderr)
		}
		return r
	}
	write("job.goal", strings.Replace(pairJob, "rank 1 {\n", "rank 1 {\nl0: recv 4000b from 0 tag 9\n", 1))
	if r := weft(2, "trace", "job.goal"); !strings.Contains(r.stderr, "job.goal:9: ") {
		t.Errorf("a receive without its message: %s", r.stderr)
	}
	weft(2, "convert", "job.goal", "job/")
	write("job.goal", strings.Replace(pairJob, "rank 1 {\n", "rank 1 {\nl0: recv 4000b from 0 tag 9\n", 1)+"oops\n")
	if r := weft(2, "trace", "job.goal"); !strings.Contains(r.stderr, "job.goal:14: ") {
		t.Errorf("a line that is no statement: %s", r.stderr)
	}
	if _, err := os.Stat(filepath.Join(d.dir, "job")); err == nil {
		t.Error("a conversion that failed left a folder")
	}

	write("job.goal", pairJob)
	out := weft(0, "trace", "job.goal").stdout
	for _, want := range []string{"goal, 2 ranks, 5 operations", "computations   1", "messages       2, 104KB", "critical path  5us"} {
		if !strings.Contains(out, want) {
			t.Errorf("weft trace does not say %q:\n%s", want, out)
		}
	}
	if got := strings.Fields(weft(0, "convert", "job.goal", "job/").stdout); !slices.Equal(got, []string{"job/rank.0.et", "job/rank.1.et"}) {
		t.Errorf("files %q", got)
	}
	if r := weft(2, "convert", "job.goal", "job/"); !strings.Contains(r.stderr, "job is a folder with files") {
		t.Errorf("converted over an earlier conversion: %s", r.stderr)
	}
	weft(0, "convert", "job/", "again.goal")
	if out := weft(0, "trace", "job").stdout; !strings.Contains(out, "chakra, 2 ranks, 5 operations") {
		t.Errorf("converted to Chakra:\n%s", out)
	}
	lab := d.writeLab("job.yaml", "weft: 1\nname: job\ntopology: {kind: star, hosts: 2}\nworkload: [{trace: job.goal}]\n")
	var data [3]string
	for i, trace := range []string{"job.goal", "job", "again.goal"} {
		weft(0, "run", lab, "--engine", "sim", "--set", "workload.0.trace="+trace, "--out", filepath.Join(d.dir, trace+".runs"))
		dirs, _ := filepath.Glob(filepath.Join(d.dir, trace+".runs", "job", "2*"))
		if len(dirs) != 1 {
			t.Fatalf("runs %q", dirs)
		}
		for _, table := range []string{"flows", "collectives"} {
			data[i] += weft(0, "results", "export", dirs[0], table, "csv").stdout
		}
		if i > 0 {
			continue
		}
		var timeline struct {
			Events []struct{ Name, Ph string } `json:"traceEvents"`
		}
		if err := json.Unmarshal([]byte(weft(0, "results", "export", dirs[0], "perfetto").stdout), &timeline); err != nil ||
			len(timeline.Events) < 8 {
			t.Errorf("a timeline of %d events, %v", len(timeline.Events), err)
		}
	}
	if data[0] != data[1] || data[0] != data[2] || len(data[0]) < 300 {
		t.Errorf("%d, %d and %d bytes of data, which differ", len(data[0]), len(data[1]), len(data[2]))
	}
}
