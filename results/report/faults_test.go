package report

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"weft/results/record"
	"weft/results/table"
)

// faultyRun returns a run with four faults: two of a link and one of a host during the run, and one
// of a host after it.
func faultyRun(t *testing.T) *Run {
	t.Helper()
	r, err := Load(writeRun(t, 1, us, func(s *record.Summary) {
		s.Status, s.Error = "failed", "link a-b is down from 50us to the end of the run\n  to survive it: faults.0.down shorter"
		s.Network.Cut, s.Network.Lost = 161, 3
	}))
	if err != nil {
		t.Fatal(err)
	}
	r.Manifest.Faults = []record.Fault{
		{Path: "faults.0", Link: "a-b", What: "down", FromUS: 50},
		{Path: "faults.1", Host: "h3", What: "paused", FromUS: 60, UntilUS: 70},
		{Path: "faults.2", Link: "a-b", What: "loss 5%", FromUS: 10, UntilUS: 20},
		{Path: "faults.3", Host: "h7", What: "killed", FromUS: 1e6}, // after the run
	}
	return r
}

// A report has the reason for a failure, the lost packets and the faults, in words and in charts
// over time.
func TestReportShowsFaults(t *testing.T) {
	r := faultyRun(t)
	p, err := r.Page(nil)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for want, count := range map[string]int{
		"link a-b is down from 50 us": 1, "to survive it: faults.0.down shorter": 1, "Why it failed": 1, "3 packets lost, 161 packets cut off": 1,
		"<h2>Faults</h2>": 1, "<td class=\"\">from 60 us to 70 us</td>": 1, "<td class=\"\">did not happen: the run ended before 1 s</td>": 1,
		"<td class=\"\">never routed around</td>": 1,
	} {
		if n := strings.Count(text, want); n != count {
			t.Errorf("%q %d times, want %d", want, n, count)
		}
	}
	figures, err := r.Figures()
	if err != nil {
		t.Fatal(err)
	}
	marked := 0
	for _, f := range figures {
		if f.X != timeAxis() {
			if len(f.Spans) > 0 {
				t.Errorf("%s has no axis of time, and faults on it", f.Name)
			}
			continue
		}
		marked++
		if len(f.Spans) != 2 || f.Spans[0].Name != "a-b: down from 50 us to the end, never routed around, loss 5% from 10 us to 20 us" || f.Spans[1].Name != "h3: paused from 60 us to 70 us" {
			t.Errorf("%s: %+v", f.Name, f.Spans)
		}
		svg, err := f.SVG()
		if err != nil || !strings.Contains(string(svg), "h3: paused from 60 us to 70 us") {
			t.Errorf("%s does not show what its marks are: %v", f.Name, err)
		}
	}
	if marked != 4 {
		t.Errorf("%d charts over time", marked)
	}
}

// Charts mark a limited number of faults and count the others.
func TestManyFaults(t *testing.T) {
	r := faultyRun(t)
	r.Manifest.Faults = nil
	for i := range 300 {
		r.Manifest.Faults = append(r.Manifest.Faults, record.Fault{Host: "h" + string(rune('a'+i%20)), What: "paused", FromUS: 1, UntilUS: 2})
	}
	locations, more := FaultLocations(r.Manifest.Faults, math.Inf(1))
	if len(locations) != maxLocations || more != 12 || !strings.HasSuffix(locations[0].String(), ", and 12 more") {
		t.Errorf("%d locations and %d more; the first is %q", len(locations), more, locations[0].String())
	}
	if _, caption := r.spans(); caption != "Faults of 12 more links and hosts are not marked." {
		t.Errorf("caption %q", caption)
	}
	if table, more := faultTable(r.Manifest.Faults, math.Inf(1)); len(table.Rows) != 100 || more != 200 {
		t.Errorf("%d rows and %d more", len(table.Rows), more)
	}
}

// A fault after the end of the run has no mark, so that tables, charts and drawings use the same
// numbers. All of them say when switches learned of a link.
func TestFaultsAfterTheEnd(t *testing.T) {
	down := func(link string, from, until, reroute float64) record.Fault {
		return record.Fault{Link: link, What: record.LinkDown, FromUS: from, UntilUS: until, RerouteUS: reroute}
	}
	faults := []record.Fault{
		down("a-b", 1000, 0, 100), down("c-d", 400, 500, 100), down("e-f", 600, 0, 100), down("g-h", 10, 0, 0),
	}
	const end = 650
	listed, _ := faultTable(faults, end)
	var got [][]string
	for _, row := range listed.Rows {
		got = append(got, table.Strings([]table.Cell{row[0], row[4], row[5]}))
	}
	if want := [][]string{
		{"", "did not happen: the run ended before 1 ms", ""}, {"1", "from 400 us to 500 us", "routed around after 100 us"},
		{"2", "from 600 us to the end", "not routed around yet: the run ended before 700 us"}, {"3", "from 10 us to the end", "never routed around"},
	}; !reflect.DeepEqual(got, want) {
		t.Errorf("table %q, want %q", got, want)
	}
	r := &Run{Manifest: &record.Manifest{Faults: faults}, Summary: &record.Summary{LabTimeUS: end}}
	spans, caption := r.spans()
	if len(spans) != 3 || spans[0].Name != "c-d: down from 400 us to 500 us, routed around after 100 us" ||
		!reflect.DeepEqual(spans[0].Instants, []float64{500, 600}) || len(spans[1].Instants)+len(spans[2].Instants) > 0 {
		t.Errorf("spans %+v", spans)
	}
	if !strings.HasPrefix(caption, "Dotted lines: ") {
		t.Errorf("caption %q", caption)
	}
}
