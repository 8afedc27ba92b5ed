package table

import (
	"strings"
	"testing"
	"unicode/utf8"

	"weft/results/expect"
	"weft/results/record"
)

// sweepOf is points that differ in transport and size; the ranks are the same in all.
func sweepOf(t *testing.T) []*record.Summary {
	t.Helper()
	var out []*record.Summary
	for i, kind := range []string{"pc4", "strack"} {
		for k, size := range []string{"64KB", "1MB"} {
			s := simulated()
			s.Point = map[string]any{"transport.kind": kind, "workload.0.size": size, "workload.0.ranks": 8}
			s.Flows.FCT.P99 = float64(100 * (1 + i + 2*k))
			s.Flows.Slowdown.P99 = float64(2 + i + k)
			s.Collectives = []record.Collective{{Name: "all-reduce", BusBWGbps: float64(80 + i + 3*k)}}
			s.Expect = nil
			out = append(out, s)
		}
	}
	return out
}

// Points have a column for each path that differs, and none that says the same in every row, but in
// a line.
func TestSweepHasAColumnForEachPath(t *testing.T) {
	var out strings.Builder
	if err := Points(&out, sweepOf(t), Style{}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if head := strings.Fields(lines[0]); strings.Join(head, " ") != "transport size FCT p99 slowdown p99 busbw status" {
		t.Errorf("columns %q", head)
	}
	if row := strings.Fields(lines[4]); strings.Join(row, " ") != "strack 1MB 400 us 4 84 Gb/s ok" {
		t.Errorf("row %q", row)
	}
	if !strings.HasPrefix(lines[5], "the same in all: lab incast, ranks 8, engine sim, ") {
		t.Errorf("%q", lines[5])
	}
}

// Emulated points have their dilation in the table: in a column if machines chose different ones.
func TestDilationOfEmulatedPoints(t *testing.T) {
	points := sweepOf(t)
	for _, s := range points {
		s.Engine, s.Dilation = "emu", 4300
	}
	for _, c := range []struct {
		last float64
		want string
	}{{4300, "engine emu, dilation 4300, "}, {8600, "transport  size  dilation  FCT p99"}} {
		points[3].Dilation = c.last
		var out strings.Builder
		if err := Points(&out, points, Style{}); err != nil || !strings.Contains(out.String(), c.want) {
			t.Errorf("%v\n%s\nwant %q", err, out.String(), c.want)
		}
	}
}

// The table has a column for trims if any run has some.
func TestTrimsHaveAColumnWhereThereAreSome(t *testing.T) {
	runs := sweepOf(t)
	runs[2].Network.Trims = 7
	var out strings.Builder
	if err := Points(&out, runs, Style{}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if !strings.Contains(lines[0], "  trims  ") || !strings.Contains(lines[3], "  7  ") || !strings.Contains(lines[1], "  0  ") {
		t.Errorf("%s", out.String())
	}
}

// In a narrow terminal columns go before text is shortened, and what went is said.
func TestTablesFitTheTerminal(t *testing.T) {
	for _, width := range []int{120, 60, 40, 34} {
		var out strings.Builder
		runs := sweepOf(t)
		for i, s := range runs {
			s.Flows.Count = int64(1000 + i)
			s.Network.CEMarks, s.RTT.Mean = int64(10*i), float64(5+i)
		}
		if err := Points(&out, runs, Style{Width: width}); err != nil {
			t.Fatal(err)
		}
		rows, said := 0, false
		for line := range strings.Lines(out.String()) {
			switch {
			case strings.HasPrefix(line, "the same"):
			case strings.HasPrefix(line, "no room for"):
				said = strings.Contains(line, "marks") && strings.Contains(line, "--json has all")
			default:
				rows++
				if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width {
					t.Errorf("%d characters in a terminal of %d: %q", n, width, line)
				}
				if !strings.Contains(line, "strack") && !strings.Contains(line, "pc4") && rows > 1 {
					t.Errorf("width %d: which run is %q?", width, line)
				}
			}
		}
		if rows != 5 || said != (width < 120) {
			t.Errorf("width %d: %d rows, said %t\n%s", width, rows, said, out.String())
		}
	}
	cols := []Column{{Name: "run", Cells: []Cell{Left("runs/a-lab-with-a-long-name/20260101T000000-1")}},
		{Name: "status", Cells: []Cell{Left("ok")}}}
	var out strings.Builder
	if err := Columns(&out, cols, "", Style{Width: 30}); err != nil || !strings.Contains(out.String(),
		"runs/a-lab…01T000000-1  ok\n") {
		t.Errorf("%v: %q", err, out.String())
	}
}

// A column may have a bound of its own, also where there is no terminal.
func TestColumnWithAMost(t *testing.T) {
	cols := []Column{{Name: "settings", Cells: []Cell{Left(strings.Repeat("x", 500))}, MaxWidth: 20},
		{Name: "status", Cells: []Cell{Left("ok")}}}
	var out strings.Builder
	if err := Columns(&out, cols, "", Style{}); err != nil || !strings.Contains(out.String(),
		"\nxxxxxxxxx…xxxxxxxxxx  ok\n") {
		t.Errorf("%v: %q", err, out.String())
	}
}

func TestShort(t *testing.T) {
	all := []string{"workload.0.ranks", "workload.1.ranks", "transport.kind", "topology.kind", "seed",
		"transport.pc4.target_qtime"}
	for path, want := range map[string]string{
		"workload.0.ranks": "0.ranks", "workload.1.ranks": "1.ranks", "transport.kind": "transport",
		"topology.kind": "topology", "seed": "seed",
		"transport.pc4.target_qtime": "target_qtime",
	} {
		if got := Short(path, all); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
}

// What tables head a number with is a name of expectations, or the error about it says which is:
// nobody has to look for it.
func TestHeadsAreNamesOfExpectations(t *testing.T) {
	heads := []string{
		"cut", "done", "flow completion", "round trip", "queueing", "queue events", "retransmits", "timeouts",
		"largest queue",
		"time", "algbw", "size", "checked", "wrong", "converged", "holds", "cost", "clock_error p99",
	}
	for _, n := range PointNumbers(nil) {
		heads = append(heads, n.Head)
	}
	for _, head := range heads {
		word, part, _ := strings.Cut(head, " p")
		word = strings.ReplaceAll(strings.TrimSuffix(word, " mean"), " ", "_")
		switch {
		case part != "":
			word += ".p" + part
		case strings.HasSuffix(head, " mean"):
			word += ".mean"
		}
		_, err := expect.ParseValue(word)
		if err == nil {
			continue
		}
		_, is, ok := strings.Cut(err.Error(), "did you mean ")
		if !ok {
			t.Errorf("%s: %v", head, err)
			continue
		}
		if _, err := expect.ParseValue(strings.TrimSuffix(is, "?")); err != nil {
			t.Errorf("%s: %v", head, err)
		}
	}
}
