// Package junit writes runs as a JUnit XML report, so that a CI system shows a missed expectation where it
// shows failed tests. What comes in are summaries, what goes out is XML: one suite per run, with one case for
// the run itself, one for its data, one for its fidelity when it was emulated, and one per expectation.
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

// Write writes the report. With strict, a fidelity other than ok is a failure.
func Write(w io.Writer, runs []*record.Summary, strict bool) error {
	var r report
	for _, s := range runs {
		one := describe(s, strict)
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

func describe(s *record.Summary, strict bool) suite {
	name := s.Lab
	if p := table.Point(s.Point); p != "" {
		name += " " + p
	}
	name += " (" + s.Engine + ")"
	out := suite{Name: name, Time: strconv.FormatFloat(s.WallS, 'f', 3, 64)}
	add := func(what string, ok bool, message string) {
		c := testcase{Name: what, Class: name}
		if !ok {
			c.Failure = &failure{Message: message}
			out.Failures++
		}
		out.Tests++
		out.Cases = append(out.Cases, c)
	}
	add("run", s.Status == "ok", s.Status+": "+s.Error)
	add("data verified", s.Verified, "the data of a collective is wrong or was not checked")
	if f := s.Fidelity; f != nil {
		add("fidelity", f.Verdict == "ok" || !strict && f.Verdict != "invalid", fmt.Sprintf("%s: %v", f.Verdict, f.Reasons))
	}
	for _, e := range s.Expect {
		add(e.That, e.OK, e.Note)
	}
	return out
}
