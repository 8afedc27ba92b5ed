// Package junit writes runs as a JUnit XML report, so that a CI system shows a missed expectation where it
// shows failed tests. What comes in are summaries, what goes out is XML: one suite per run, with one case for
// the run itself, one for its data, one for its fidelity when it was emulated, and one per expectation; and one suite per sweep, with
// what is expected across its points.
package junit

import (
	"encoding/xml"
	"fmt"
	"io"
	"strconv"

	"weft/results/record"
	"weft/results/table"
)

type report struct {
	XMLName  xml.Name `xml:"testsuites"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Suites   []suite  `xml:"testsuite"`
}

type suite struct {
	Name     string     `xml:"name,attr"`
	Tests    int        `xml:"tests,attr"`
	Failures int        `xml:"failures,attr"`
	Time     string     `xml:"time,attr"` // seconds of wall time
	Cases    []testcase `xml:"testcase"`
}

type testcase struct {
	Name    string   `xml:"name,attr"`
	Class   string   `xml:"classname,attr"`
	Failure *failure `xml:"failure"`
}

type failure struct {
	Message string `xml:"message,attr"`
}

// Write writes the report. across are sweeps, with expectations alone. With strict, a fidelity other than ok is a failure.
func Write(w io.Writer, runs, across []*record.Summary, strict bool) error {
	suites := make([]suite, 0, len(runs)+len(across))
	for _, s := range runs {
		suites = append(suites, describe(s, strict))
	}
	for _, s := range across {
		one := newSuite(s)
		one.expect(s)
		suites = append(suites, one)
	}
	var r report
	for _, one := range suites {
		r.Tests += one.Tests
		r.Failures += one.Failures
		r.Suites = append(r.Suites, one)
	}
	b, err := xml.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("junit report: %w", err)
	}
	_, err = io.WriteString(w, xml.Header+string(b)+"\n")
	return err
}

func newSuite(s *record.Summary) suite {
	name := s.Lab
	if p := table.Point(s.Point); p != "" {
		name += " " + p
	}
	return suite{Name: name + " (" + s.Engine + ")", Time: strconv.FormatFloat(s.WallS, 'f', 3, 64)}
}

func (u *suite) add(what string, ok bool, message string) {
	c := testcase{Name: what, Class: u.Name}
	if !ok {
		c.Failure = &failure{Message: message}
		u.Failures++
	}
	u.Tests++
	u.Cases = append(u.Cases, c)
}

func (u *suite) expect(s *record.Summary) {
	for _, e := range s.Expect {
		u.add(e.That, e.OK, e.Note)
	}
}

func describe(s *record.Summary, strict bool) suite {
	out := newSuite(s)
	out.add("run", s.Status == "ok", s.Status+": "+s.Error)
	out.add("data verified", s.Verified, "the data of a collective is wrong or was not checked")
	if f := s.Fidelity; f != nil {
		out.add("fidelity", f.Verdict == "ok" || !strict && f.Verdict != "invalid", fmt.Sprintf("%s: %v", f.Verdict, f.Reasons))
	}
	out.expect(s)
	return out
}
