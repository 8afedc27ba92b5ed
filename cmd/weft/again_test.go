package main

import (
	"html"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"weft/results/store"
)

// The command that a report gives to repeat its run repeats it, whatever --set and the sweep set,
// also where only other points of the sweep use what was set.
func TestReportCommandRepeatsTheRun(t *testing.T) {
	for _, c := range []struct {
		sweep   string
		set     []string
		reports int
	}{
		{`workload.0.size: [64KB, 128KB], "seed, topology.mtu": [[1000000, 4096], [2, 1000]]`, []string{
			"about=it's a test", "seed=1000000",
			"faults=[{at: 1us, link: h0-switch0, down: 1us}, {at: 3us, host: h1, pause: 1us}]"}, 2},
		{`transport.kind: [pc4, strack, ccm]`, []string{"transport.pc4.base_rate=off", "transport.ccm={congested: 100KB}"}, 3},
		{`transport.kind: [pc4, strack]`, []string{"sweep.transport.pc4.initial=[line, base-rate]", "transport.kind=pc4"}, 2},
		{`transport.kind: [pc4, strack]`, []string{"sweep.transport.pc4.initial=[line, base-rate]"}, 3},
	} {
		t.Chdir(t.TempDir())
		t.Setenv(store.RootVar, "")
		write(t, "tiny.yaml", `weft: 1
name: tiny
topology: {kind: star, hosts: 4}
workload: [{collective: permute, size: 64KB}]
sweep: {`+c.sweep+"}\n")
		args := []string{"run", "tiny.yaml", "--engine", "sim"}
		for _, set := range c.set {
			args = append(args, "--set", set)
		}
		code, _, words := weft(t, orchestrated{}, args...)
		if code != exitOK {
			t.Fatalf("exit code %d: %s", code, words)
		}
		repeatReports(t, c.reports)
	}
}

// repeatReports requires that the commands of all reports repeat their runs, of the lab tiny in the
// working directory.
func repeatReports(t *testing.T, wanted int) {
	t.Helper()
	reports, err := filepath.Glob("runs/tiny/2*/report.html")
	if err != nil || len(reports) != wanted {
		t.Fatalf("reports %q (%v); want %d", reports, err, wanted)
	}
	for _, report := range reports {
		text, err := os.ReadFile(report)
		if err != nil {
			t.Fatal(err)
		}
		command := regexp.MustCompile(`weft (run runs/[^\n]*)`).FindStringSubmatch(string(text))
		if command == nil {
			t.Fatalf("%s has no command", report)
		}
		again := shellWords(t, html.UnescapeString(command[1]))
		code, _, told := weft(t, orchestrated{}, append(again, "--out", filepath.Base(filepath.Dir(report)))...)
		if code != exitOK {
			t.Errorf("%q: exit code %d: %s", again, code, told)
			continue
		}
		made, err := filepath.Glob(filepath.Join(filepath.Base(filepath.Dir(report)), "tiny", "2*"))
		if err != nil || len(made) != 1 {
			t.Fatalf("%q left %q (%v)", again, made, err)
		}
		for _, file := range []string{store.FlowsFile, store.PortsFile} {
			want, errWant := os.ReadFile(filepath.Join(filepath.Dir(report), file))
			got, errGot := os.ReadFile(filepath.Join(made[0], file))
			if errWant != nil || errGot != nil || string(got) != string(want) {
				t.Errorf("%q: %s differs from the first run (%v, %v)", again, file, errWant, errGot)
			}
		}
	}
}
