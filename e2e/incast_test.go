package e2e

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// junitReport is the part of a JUnit report that a CI system reads.
type junitReport struct {
	Tests    int `xml:"tests,attr"`
	Failures int `xml:"failures,attr"`
	Suites   []struct {
		Name  string `xml:"name,attr"`
		Cases []struct {
			Name    string `xml:"name,attr"`
			Failure *struct {
				Message string `xml:"message,attr"`
			} `xml:"failure"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

// junit reads a report.
func (d *workspace) junit(name string) (j junitReport) {
	d.t.Helper()
	content, err := os.ReadFile(filepath.Join(d.dir, name))
	if err != nil {
		d.t.Fatal(err)
	}
	if err := xml.Unmarshal(content, &j); err != nil {
		d.t.Fatalf("%v in\n%s", err, content)
	}
	return j
}

// failed lists the names of the failed cases.
func (j junitReport) failed() (names []string) {
	for _, s := range j.Suites {
		for _, c := range s.Cases {
			if c.Failure != nil {
				names = append(names, c.Name)
			}
		}
	}
	return names
}

// PC4 paper, Fig. 6(a): degrees 2 to 16. Each point of the sweep is a run of its own.
func TestIncastMeetsTheFigureOfThePaper(t *testing.T) {
	d := newWorkspace(t)
	all := d.run("run", libraryLab(t, "pc4/incast.yaml"), "--engine", "sim", "--json", "--junit",
		"report.xml").wantCode(0).summaries()
	degrees := []float64{2, 4, 8, 16}
	if len(all) != len(degrees) || len(d.runs()) != len(degrees) {
		t.Fatalf("%d summaries and %d run directories, want %d", len(all), len(d.runs()), len(degrees))
	}
	for i, s := range all {
		wantDone(t, s)
		if s.Point["workload.0.ranks"] != degrees[i] || s.Flows.Count != int64(degrees[i]) {
			t.Errorf("run %d is of %v, with %d flows; want %g", i, s.Point, s.Flows.Count, degrees[i])
		}
		t.Logf("%2g senders: mean RTT %.2f us of %.2f, p99 slowdown %.2f", degrees[i], s.RTT.Mean, s.BaseRTTUS,
			s.Flows.Slowdown.P99)
	}
	if report := d.junit("report.xml"); len(report.Suites) != len(degrees) || report.Failures != 0 ||
		report.Tests < 4*len(degrees) {
		t.Errorf("%+v", report)
	}
	d.checkClean("runs", "report.xml")
}

const missing = `
weft: 1
name: missing
topology: {kind: star, hosts: 3, link: {rate: 100Gbps, delay: 1us}}
workload:
  - {collective: incast, ranks: 2, size: 64KB}
expect:
  - verified == true
  - fct_slowdown.p99 <= 0.5
`

// A missed expectation is exit code 3, in the summary, in the table and in the report.
func TestMissedExpectation(t *testing.T) {
	d := newWorkspace(t)
	r := d.run("run", d.writeLab("missing.yaml", missing), "--engine", "sim", "--junit", "report.xml").wantCode(3)
	_, s := d.summary()
	if s.Status != "ok" || !s.Verified || len(s.Expect) != 2 || !s.Expect[0].OK || s.Expect[1].OK ||
		s.Expect[1].Got < 1 {
		t.Errorf("%+v", s)
	}
	if !strings.Contains(r.stdout, "fct_slowdown.p99 <= 0.5") {
		t.Errorf("the table does not show what was missed:\n%s", r.stdout)
	}
	report := d.junit("report.xml")
	if failed := report.failed(); report.Failures != 1 || len(failed) != 1 || failed[0] != "fct_slowdown.p99 <= 0.5" {
		t.Errorf("failures in the report: %v of %+v", failed, report)
	}
}

// --set replaces what the file says, in the run and in the manifest, and is checked like the file.
func TestSet(t *testing.T) {
	d := newWorkspace(t)
	name := d.writeLab("lab.yaml", missing)
	s := d.run("run", name, "--engine", "sim", "--json", "--set", "seed=7", "--set", "workload.0.size=32KB",
		"--set", "workload.0.ranks=1", "--set", "expect.1=flows == 1").wantCode(0).summaries()[0]
	if s.Seed != 7 || s.Flows.Count != 1 || s.Flows.Bytes != 32_000 {
		t.Errorf("%+v", s)
	}
	d.run("run", name, "--engine", "sim", "--set", "workload.0.sizes=1KB").wantCode(2).wantOnStderr("sizes", "size")
	d.run("run", name, "--engine", "sim", "--set", "seed").wantCode(2)
	if n := len(d.runs()); n != 1 {
		t.Errorf("%d runs, want 1", n)
	}
}

// Several labs on one command line are as many runs.
func TestSmokeLabsSimulated(t *testing.T) {
	smoke, err := filepath.Glob(filepath.Join(labs, "smoke", "*.yaml"))
	if err != nil || len(smoke) < 5 {
		t.Fatalf("%v, %v", smoke, err)
	}
	args := []string{"run", "--engine", "sim", "--json"}
	for _, s := range smoke {
		args = append(args, libraryLab(t, filepath.Join("smoke", filepath.Base(s))))
	}
	d := newWorkspace(t)
	all := d.run(args...).wantCode(0).summaries()
	if len(all) < len(smoke) || len(all) != len(d.runs()) {
		t.Errorf("%d labs, %d summaries, %d runs", len(smoke), len(all), len(d.runs()))
	}
	for _, s := range all {
		wantDone(t, s)
	}
}
