package main

import (
	"html"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"weft/results/store"
)

// The command that a report gives to repeat its run repeats it, whatever --set and the sweep set.
func TestReportCommandRepeatsTheRun(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv(store.RootVar, "")
	write(t, "tiny.yaml", `weft: 1
name: tiny
topology: {kind: star, hosts: 4}
workload: [{collective: permute, size: 64KB}]
sweep: {workload.0.size: [64KB, 128KB], "seed, topology.mtu": [[1000000, 4096], [2, 1000]]}
`)
	args := []string{"run", "tiny.yaml", "--engine", "sim", "--set", "about=it's a test", "--set", "seed=1000000",
		"--set", "faults=[{at: 1us, link: h0-switch0, down: 1us}, {at: 3us, host: h1, pause: 1us}]"}
	code, _, words := weft(t, orchestrated{}, args...)
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, words)
	}
	reports, err := filepath.Glob("runs/tiny/2*/report.html")
	if err != nil || len(reports) != 2 {
		t.Fatalf("reports %q (%v); want two", reports, err)
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
