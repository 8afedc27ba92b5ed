package store

import (
	"encoding/json"
	"errors"
	"fmt"

	"weft/internal/clip"
	"weft/results/record"
)

// ErrContradicts is wrapped by the error about a run whose summary contradicts itself or the
// manifest: nothing tells which of the two is right.
var ErrContradicts = errors.New("damaged")

// checkConsistent returns an error unless a summary, whose text is that of the file at path, agrees
// with itself and with the manifest of a run that ended.
func checkConsistent(path string, text []byte, s *record.Summary, m *record.Manifest) error {
	what := contradiction(s)
	if what == "" {
		what = missingField(s, text)
	}
	if what == "" {
		what = otherManifest(s, m)
	}
	if what == "" {
		return nil
	}
	return fmt.Errorf("%s: %w: %s; run the lab again", path, ErrContradicts, what)
}

// contradiction returns a field of a summary that contradicts another one, and how; "" if none
// does.
func contradiction(s *record.Summary) string {
	ok, work := s.Status == record.OK, len(s.Collectives) > 0 || s.Flows.Count > 0
	for i := range s.Collectives {
		switch wrong := s.Collectives[i].Wrong; {
		case wrong > 0 && s.Verified:
			return fmt.Sprintf("collectives.%d.wrong is %d, and verified is true", i, wrong)
		case wrong > 0 && ok:
			return fmt.Sprintf("collectives.%d.wrong is %d, and status is ok", i, wrong)
		}
	}
	switch unfinished := s.Flows.Unfinished; {
	case unfinished > 0 && ok:
		return fmt.Sprintf("flows.unfinished is %d, and status is ok", unfinished)
	case unfinished > s.Flows.Count:
		return fmt.Sprintf("flows.unfinished is %d, and flows.count is %d", unfinished, s.Flows.Count)
	case ok && work && !s.Verified && s.Lacks("verified") == "":
		return "verified is false, and status is ok"
	}
	for i := range s.Expect {
		if e := &s.Expect[i]; e.OK && e.Unmeasured {
			return fmt.Sprintf("expect.%d.ok is true, and expect.%[1]d.unmeasured, too", i)
		}
	}
	return ""
}

// counts are the fields that every Weft writes of a run that sent messages: null only with a reason
// in unmeasured. Fields that came later are not among them, so that older runs stay readable.
var counts = []struct{ section, field string }{
	{"", "verified"}, {"flows", "count"}, {"flows", "unfinished"}, {"network", "packets"}, {"network", "drops"},
	{"network", "lost"}, {"network", "retransmits"}, {"network", "timeouts"},
}

// missingField returns the first of counts that a summary lacks without a reason, though messages
// were sent and the run came to its end; "" if there is none.
func missingField(s *record.Summary, text []byte) string {
	if !s.Complete() || len(s.Collectives) == 0 && s.Flows.Count == 0 {
		return ""
	}
	var has struct {
		Verified       json.RawMessage
		Flows, Network map[string]json.RawMessage
	}
	if json.Unmarshal(text, &has) != nil {
		return "" // it was parsed before
	}
	for _, c := range counts {
		path, value := c.section+"."+c.field, has.Network[c.field]
		switch c.section {
		case "":
			path, value = c.field, has.Verified
		case "flows":
			value = has.Flows[c.field]
		}
		if (len(value) == 0 || string(value) == "null") && s.Lacks(path) == "" {
			return path + " is missing, and messages were sent"
		}
	}
	return ""
}

// otherManifest returns a field of a summary that the manifest has otherwise; "" if there is none.
func otherManifest(s *record.Summary, m *record.Manifest) string {
	differs := func(field, is, other string) string {
		return fmt.Sprintf("%s is %q, and %q in %s", field, clip.Text(is), clip.Text(other), ManifestFile)
	}
	verdict := ""
	if s.Fidelity != nil {
		verdict = s.Fidelity.Verdict
	}
	switch {
	case s.Status != m.Status && m.Error != "":
		return differs("status", s.Status, m.Status) + " (" + clip.Line(m.Error) + ")"
	case m.Fidelity != nil && m.Fidelity.Verdict != verdict:
		return differs("fidelity.verdict", verdict, m.Fidelity.Verdict)
	case s.Error == "" && m.Error != "":
		return differs("error", "", m.Error)
	}
	type pair struct{ name, is, other string }
	all := []pair{{"status", s.Status, m.Status}, {"lab", s.Lab, m.Lab}, {"engine", s.Engine, m.Engine},
		{"datapath", s.Datapath, m.Datapath}, {"runtime", s.Runtime, m.Runtime}, {"transport", s.Transport, m.Sends},
		{"carried", s.Carried, m.Carried}, {"error", s.Error, m.Error}}
	if s.Seed != 0 && m.Seed != 0 {
		all = append(all, pair{"seed", fmt.Sprint(s.Seed), fmt.Sprint(m.Seed)})
	}
	if s.Dilation != 0 && m.Dilation != 0 {
		all = append(all, pair{"dilation", fmt.Sprint(s.Dilation), fmt.Sprint(m.Dilation)})
	}
	if len(s.Point) > 0 && len(m.Point) > 0 {
		all = append(all, pair{"point", PointKey(s.Point), PointKey(m.Point)})
	}
	for _, p := range all {
		if p.is != p.other && p.is != "" && p.other != "" { // an older run lacks what came later
			return differs(p.name, p.is, p.other)
		}
	}
	return ""
}

// Consistent returns an error if the run has a summary that contradicts itself or the manifest.
// Other damage of the summary does not concern the data files.
func Consistent(dir string) error {
	if _, err := ReadSummary(dir); errors.Is(err, ErrContradicts) {
		return err
	}
	return nil
}
