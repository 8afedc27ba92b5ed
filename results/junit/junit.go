// Package junit writes runs as a JUnit XML report, so that a CI system shows missed expectations
// like failed tests. Input: summaries. Output: XML with one suite per run and one per sweep.
//
// The suite of a run has a case for the run itself (skipped if an interruption left it out), one
// for its data (skipped if the run did not end, which is reported once), one for the fidelity of an
// emulation, and one per expectation (skipped if --strict does not accept that fidelity, or if it
// was met with one that is invalid, which proves nothing; a miss fails, as in the exit code). The
// suite of a sweep has the expectations across its points.
package junit

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

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
	Skipped  int        `xml:"skipped,attr"`
	Time     string     `xml:"time,attr"` // seconds of wall time
	Cases    []testcase `xml:"testcase"`
}

type testcase struct {
	Name    string   `xml:"name,attr"`
	Class   string   `xml:"classname,attr"`
	Failure *failure `xml:"failure"`
	Skipped *skipped `xml:"skipped"`
}

// failure has the first line of the reason as its message and all of it as its text.
type failure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

type skipped struct {
	Message string `xml:"message,attr"`
}

// Write writes the report. across are sweeps, with expectations only. A fidelity that strict (the
// value of --strict of weft run) does not accept is a failure; any other fidelity below ok is
// skipped.
func Write(w io.Writer, runs, across []*record.Summary, strict string) error {
	suites := make([]suite, 0, len(runs)+len(across))
	for _, s := range runs {
		suites = append(suites, describe(s, strict))
	}
	refused := slices.ContainsFunc(runs, func(s *record.Summary) bool { return !s.Accepted(strict) })
	for _, s := range across {
		one := newSuite(s)
		one.expect(s, refused && s.Engine != "sim")
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

// add adds a case. Unless it is ok, it failed with this kind and reason.
func (u *suite) add(what string, ok bool, kind, reason string) {
	c := testcase{Name: what, Class: u.Name}
	if !ok {
		first, _, _ := strings.Cut(reason, "\n")
		c.Failure = &failure{first, kind, reason}
		u.Failures++
	}
	u.Tests++
	u.Cases = append(u.Cases, c)
}

// skip adds a case that was not judged, with the reason.
func (u *suite) skip(what, why string) {
	u.Tests++
	u.Skipped++
	u.Cases = append(u.Cases, testcase{Name: what, Class: u.Name, Skipped: &skipped{why}})
}

// expect adds a case for each expectation. With refused, --strict does not accept the fidelity that
// its numbers depend on, and neither a met nor a missed one proves anything.
func (u *suite) expect(s *record.Summary, refused bool) {
	for _, e := range s.Expect {
		switch {
		case e.Skipped:
			u.skip(e.That, e.Note)
		case refused:
			u.skip(e.That, "not judged: --strict does not accept the fidelity")
		case e.OK && e.Unproven:
			u.skip(e.That, e.Doubt)
		default:
			u.add(e.That, e.OK, "missed", table.Found(e))
		}
	}
}

func describe(s *record.Summary, strict string) suite {
	out := newSuite(s)
	if !s.Started() {
		out.skip("run", s.Status+" before it began")
		return out
	}
	ended := s.Status == record.OK || s.Status == record.Unverified
	out.add("run", ended, s.Status, cmp.Or(s.Error, s.Status))
	switch why := s.Lacks("verified"); {
	case ended && why != "":
		out.skip("data verified", why)
	case ended:
		out.add("data verified", s.Verified, record.Unverified,
			cmp.Or(s.Error, "the data of a collective is wrong or was not checked"))
	default:
		out.skip("data verified", "the run did not end: "+s.Status)
	}
	if verdict := s.Outcome().Fidelity; verdict != "" {
		why := "fidelity not judged: " + s.Unjudged()
		if s.Unjudged() == "" {
			why = "fidelity " + verdict + ": " + strings.Join(s.Fidelity.Reasons, "\n")
		}
		if (verdict != record.OK || s.Unjudged() != "") && s.Accepted(strict) {
			out.skip("fidelity", why)
		} else {
			out.add("fidelity", s.Accepted(strict), verdict, why)
		}
	}
	out.expect(s, !s.Accepted(strict))
	return out
}
