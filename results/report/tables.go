package report

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"weft/results/names"
	"weft/results/record"
	"weft/results/table"
	"weft/units"
)

// tileNumbers are the numbers of the tiles of a run's page, and how they stand.
var tileNumbers = []string{"fct.p99", "fct_slowdown.p99", "collective.0.busbw", "rtt.mean", "max_queue", "drops",
	"trims", "cut", "clock_error.p99", "lab_time"}

// A Tile is one of the main numbers of a run, in large.
type Tile struct {
	Name, Value string
	chart       string // that shows it
}

// tiles returns the main numbers of a run: first those of the charts that first names. It leaves
// out what the run does not have, and trims and packets cut off where there are none.
func tiles(s *record.Summary, first []string) []Tile {
	var out []Tile
	if s.Flows.Count > 0 {
		flows := units.Count(s.Flows.Count)
		if n := s.Flows.Unfinished; n > 0 {
			flows = units.Count(s.Flows.Count-n) + " of " + flows
		}
		out = append(out, Tile{Name: "flows done", Value: flows},
			Tile{Name: "data", Value: units.Shown(float64(s.Flows.Bytes), "B")})
	}
	for _, n := range record.Select(tileNumbers...) {
		if v, is := n.Shown(s); is && (v > 0 || n.Name != "trims" && n.Name != "cut") {
			out = append(out, Tile{n.Label, n.Text(s), n.Chart})
		}
	}
	if s.Fidelity != nil {
		out = append(out, Tile{Name: "fidelity", Value: s.Outcome().Fidelity})
	}
	lead(out, first, func(t Tile) string { return t.chart })
	return out
}

// summaryFacts returns what the tiles and tables of a run leave out, as pairs of a name and a text.
func summaryFacts(s *record.Summary, control string) [][2]string {
	n := &s.Network
	out := [][2]string{{"transport", record.Sender(names.Transport(s.Transport, control), s.Carried)}}
	out = append(out, table.Facts(s)...)
	if n.Refused+n.Beside > 0 {
		out = append(out, [2]string{"foreign packets", fmt.Sprintf("%s rejected, %s from outside the workload",
			units.Count(n.Refused), units.Count(n.Beside))})
	}
	if f := s.Fidelity; f != nil {
		out = append(out, [2]string{"fidelity", table.Fidelity(s) + "; dilation " + units.Number(s.Dilation)})
	}
	return out
}

// programsPart tells how the programs of the workload ended on each host, and what they printed.
func programsPart(s *record.Summary) Part {
	part := Part{Heading: "Programs", Tables: []table.Table{table.Programs(s)}, Text: fmt.Sprintf("Waited: the share "+
		"of the time in which the host's network was in use that a task waited for a processor, at most. Above %g %% "+
		"the fidelity is degraded, above %g %% invalid. A dash: the network was in use for too short a time to judge. "+
		"The output is in the folder output.", 100*record.OKLateness, 100*record.DegradedLateness)}
	if len(s.Metrics) > 0 {
		part.Tables = append(part.Tables, table.Metrics(s))
	}
	return part
}

// pointTable lists the points of a sweep: the run with a link to its page, what differs between the
// points, their results and a link to the network over time. same says what all points have. viewed
// reports whether the directory of a run has ViewFile.
func pointTable(runs []*record.Summary, viewed func(run string) bool) (t table.Table, same string) {
	same, cols := table.Differing(table.PointColumns(runs, names.Value, collectiveTime))
	first, last := table.Column{Name: "run"}, table.Column{Name: "over time"}
	watch := false
	for _, s := range runs {
		run, view := table.Left("–"), table.Cell{}
		if s.Run != "" {
			base := filepath.Base(s.Run)
			run = table.Cell{Text: base[strings.LastIndexByte(base, '-')+1:], Link: reportOf(s.Run)}
			if viewed(s.Run) {
				view, watch = table.Cell{Text: "watch", Link: "../" + base + "/" + ViewFile}, true
			}
		}
		first.Cells, last.Cells = append(first.Cells, run), append(last.Cells, view)
	}
	cols = append([]table.Column{first}, cols...)
	if watch {
		cols = append(cols, last)
	}
	return table.Beside(cols), same
}

// collectiveTime is the time of the first collective, unless that is a job.
var collectiveTime = table.PointNumber{First: true, Number: record.Number{
	Head: "collective", Unit: record.Microseconds, Of: func(s *record.Summary) (float64, error) {
		n := record.Select("collective.0.time")[0]
		if _, is := table.JobTime(s); is || !s.Complete() {
			return 0, errNoItem
		}
		return n.Get(s)
	},
}}

// shortPaths returns the shortest name of each path that no other has.
func shortPaths(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = table.Short(p, paths)
	}
	return out
}

// CSV returns the points of a sweep for other programs, with the same columns for every sweep. A
// number that a run does not have is empty.
func CSV(runs []*record.Summary) [][]string {
	runs = table.Started(runs)
	paths, metrics := table.SweptPaths(runs), table.PointNumbers(runs)
	head := append(slices.Clone(paths), "flows", "flows done", "packets cut")
	for _, m := range metrics {
		head = append(head, strings.TrimSpace(m.Head+" "+string(m.Unit)))
	}
	out := [][]string{append(head, "status")}
	for _, s := range runs {
		row := values(s, paths)
		for _, n := range []int64{s.Flows.Count, s.Flows.Count - s.Flows.Unfinished, s.Network.Cut} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		out = append(out, append(numbers(s, row, metrics), table.Outcome(s)))
	}
	return out
}

// values returns the values of a run at the paths of its sweep; empty without a value.
func values(s *record.Summary, paths []string) []string {
	row := make([]string, len(paths))
	for i, path := range paths {
		if v, ok := s.Point[path]; ok {
			row[i] = fmt.Sprint(v)
		}
	}
	return row
}

// numbers appends the main metrics of a run to its row, empty for those that it does not have.
func numbers(s *record.Summary, row []string, metrics []table.PointNumber) []string {
	for _, m := range metrics {
		if v, is := m.Shown(s); is {
			row = append(row, number(v))
		} else {
			row = append(row, "")
		}
	}
	return row
}
