package store

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weft/internal/fuzztest"
	"weft/internal/quiettest"
	"weft/results/record"
)

// emptyRun returns the directory of a run that was killed before it wrote any data.
func emptyRun(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := writeJSON(filepath.Join(dir, ManifestFile), record.Manifest{Format: Format, Status: record.Running}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// An intact file without a manifest beside it is not part of a run.
func TestDataWithoutManifest(t *testing.T) {
	dir, _, _ := threeGroups(t)
	if err := os.Remove(filepath.Join(dir, ManifestFile)); err != nil {
		t.Fatal(err)
	}
	if err := Scan(dir, QueuesFile, func([]queueRow) error { return nil }); err == nil || !strings.Contains(err.Error(), ManifestFile) {
		t.Error(err)
	}
	if err := Export(io.Discard, dir, QueuesFile, "csv"); err == nil || !strings.Contains(err.Error(), ManifestFile) {
		t.Error(err)
	}
	if _, err := Numbers(dir, QueuesFile, "queued_bytes"); err == nil || !strings.Contains(err.Error(), ManifestFile) {
		t.Error(err)
	}
}

// threeGroups writes queues.parquet with three row groups, and returns the directory, the file and
// the end of each of its footers.
func threeGroups(t testing.TB) (dir string, content []byte, ends []int) {
	t.Helper()
	dir = emptyRun(t)
	q, err := createTable[queueRow](dir, QueuesFile, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range []string{"a->b", "b->c", "c->d"} {
		if err := q.add(queueRow{Time: 1, Port: port, Queued: 2}); err != nil {
			t.Fatal(err)
		}
		if err := q.flush(); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, int(q.size))
	}
	if err := q.close(); err != nil {
		t.Fatal(err)
	}
	content, err = os.ReadFile(filepath.Join(dir, QueuesFile))
	if err != nil {
		t.Fatal(err)
	}
	return dir, content, ends
}

// However many bytes reached the disk, a file has the groups whose footers are complete, and
// nothing else.
func TestCutFilesKeepTheirGroups(t *testing.T) {
	dir, content, ends := threeGroups(t)
	for cut := range len(content) + 1 {
		if cut%53 > 0 && !slices.ContainsFunc(ends, func(end int) bool { return cut >= end-1 && cut <= end+1 }) {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, QueuesFile), content[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		want := 0
		for _, end := range ends {
			if cut >= end {
				want++
			}
		}
		if want > 0 {
			if got := readPorts(t, dir); len(got) != want {
				t.Fatalf("cut at %d: %v, want %d rows", cut, got, want)
			}
			continue
		}
		if err := Scan(dir, QueuesFile, func([]queueRow) error { return nil }); err == nil || !strings.Contains(err.Error(), QueuesFile) {
			t.Fatalf("cut at %d: %v", cut, err)
		}
	}
}

// A changed byte is an error, or has no effect. The rows are never wrong.
func TestDamageIsAnError(t *testing.T) {
	dir, content, _ := threeGroups(t)
	rapid.Check(t, func(rt *rapid.T) {
		bad := bytes.Clone(content)
		for range rapid.IntRange(1, 4).Draw(rt, "bytes") {
			bad[rapid.IntRange(0, len(bad)-1).Draw(rt, "at")] ^= byte(rapid.IntRange(1, 255).Draw(rt, "flip"))
		}
		if err := os.WriteFile(filepath.Join(dir, QueuesFile), bad, 0o644); err != nil {
			rt.Fatal(err)
		}
		var got []string
		err := Scan(dir, QueuesFile, func(rows []queueRow) error {
			for _, r := range rows {
				got = append(got, r.Port)
			}
			return nil
		})
		if err == nil && !strings.HasPrefix("a->b b->c c->d", strings.Join(got, " ")) {
			rt.Fatalf("read %v", got)
		}
	})
}

// A file of nothing but starts of footers is given up quickly.
func TestOnlyMagic(t *testing.T) {
	dir := emptyRun(t)
	for _, text := range []string{"PAR1", "WFT1\x00\x00\x00\x00\x10\x00\x00\x00PAR1"} {
		if err := os.WriteFile(filepath.Join(dir, QueuesFile), []byte(strings.Repeat(text, 3<<20/len(text))), 0o644); err != nil {
			t.Fatal(err)
		}
		began := quiettest.Start()
		if err := Scan(dir, QueuesFile, func([]queueRow) error { return nil }); err == nil || !strings.Contains(err.Error(), "no intact footer") {
			t.Errorf("%q: %v", text, err)
		}
		began.AtMost(t, 10*time.Second, text)
	}
}

func FuzzScan(f *testing.F) {
	corpus := fuzztest.New(f)
	_, content, _ := threeGroups(f)
	corpus.Add(content)
	corpus.Add([]byte("PAR1PAR1"))
	dir := f.TempDir()
	corpus.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(filepath.Join(dir, QueuesFile), b, 0o644); err != nil {
			t.Fatal(err)
		}
		_ = Scan(dir, QueuesFile, func([]queueRow) error { return nil })
		_ = os.WriteFile(filepath.Join(dir, ManifestFile), b, 0o644)
		_, _ = ReadManifest(dir)
	})
}

func TestUnreadableFormats(t *testing.T) {
	for _, c := range []struct{ file, old, replacement, want string }{
		{ManifestFile, `"format": 1`, `"format": 7`, "format 7 is newer than 1, the newest that this weft reads: use a newer weft"},
		{ManifestFile, `"format": 1`, `"form": 1`, "no format"},
		{ManifestFile, `"format": 1`, `"format": 1,,`, "damaged: invalid character"},
		{SummaryFile, `"format": 1`, `"format": 9`, "format 9"},
		{SummaryFile, `"drops": 17`, `"drops": 16`, "changed or damaged after the run"},
		{SummaryFile, `"drops": 17`, `"drops": "x`, "damaged: "},
	} {
		r := createRun(t, t.TempDir())
		if err := r.Finish(newYear, &record.Summary{Status: "ok", Network: record.Network{Drops: 17}}); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadSummary(r.Dir()); err != nil {
			t.Fatal(err)
		}
		text := readFile(t, r, c.file)
		if err := os.WriteFile(filepath.Join(r.Dir(), c.file), []byte(strings.Replace(text, c.old, c.replacement, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadSummary(r.Dir()); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.file) {
			t.Errorf("%s: %v, want %s", c.replacement, err, c.want)
		}
	}
	r := createRun(t, t.TempDir())
	if _, err := ReadSummary(r.Dir()); !errors.Is(err, ErrNoSummary) || !strings.Contains(err.Error(), "in progress") {
		t.Errorf("of a run in progress: %v", err)
	}
	if _, err := ReadSummary(t.TempDir()); !errors.Is(err, ErrNoSummary) {
		t.Errorf("of an empty directory: %v", err)
	}
}

// The same rows give the same bytes, whatever the clock does.
func TestSameRowsSameBytes(t *testing.T) {
	write := func() []byte {
		dir := t.TempDir()
		q, err := createTable[queueRow](dir, QueuesFile, false)
		if err != nil {
			t.Fatal(err)
		}
		q.wrote = q.wrote.Add(-time.Hour)
		for i := range groupRows + 10 {
			if err := q.add(queueRow{Time: int64(i), Port: "a->b", Queued: int64(i % 7)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := q.close(); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, QueuesFile))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if a, b := write(), write(); !bytes.Equal(a, b) {
		t.Error("two files differ")
	}
}

// A killed emulation loses at most its last second.
func TestFlushByTime(t *testing.T) {
	dir := emptyRun(t)
	q, err := createTable[queueRow](dir, QueuesFile, true)
	if err != nil {
		t.Fatal(err)
	}
	defer q.close()
	q.wrote = q.wrote.Add(-2 * time.Second)
	if err := q.add(queueRow{Time: 1, Port: "a->b", Queued: 1}); err != nil {
		t.Fatal(err)
	}
	if got := readPorts(t, dir); len(got) != 1 {
		t.Errorf("on the disk: %v", got)
	}
}

// BenchmarkFlows writes and reads ten million flows.
func BenchmarkFlows(b *testing.B) {
	for range b.N {
		dir := emptyRun(b)
		t, err := createTable[flowRow](dir, FlowsFile, false)
		if err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		for i := range int64(10_000_000) {
			if err := t.add(flowRow{Src: "h1", Dst: "h2", Conn: i % 1000, Message: i, Bytes: 4096, Start: i * 1000, FCT: 5_000_000 + i*7919%1_000_003, Ideal: 4_000_000, Slowdown: 1.5}); err != nil {
				b.Fatal(err)
			}
		}
		if err := t.close(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(start).Seconds(), "write-s")
		b.ReportMetric(float64(t.size)/1e6, "MB")
		start = time.Now()
		if got, err := Numbers(dir, FlowsFile, "fct_ps"); err != nil || len(got) != 10_000_000 || got[1] != 5_007_919 {
			b.Fatal(len(got), err)
		}
		b.ReportMetric(time.Since(start).Seconds(), "read-s")
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.Sys)/1e6, "MB-memory")
	}
}

func TestNumbers(t *testing.T) {
	r := createRun(t, t.TempDir())
	writeAll(t, r)
	if err := r.Finish(newYear, &record.Summary{Status: "ok"}); err != nil {
		t.Fatal(err)
	}
	for column, want := range map[string][]float64{"fct_ps": {10e6}, "slowdown": {1.25}, "item": {0, 1}, "ideal_ps": {8e6, 1e6}} {
		if got, err := Numbers(r.Dir(), FlowsFile, column); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", column, got, err, want)
		}
	}
	if _, err := Numbers(r.Dir(), FlowsFile, "src"); err == nil || !strings.Contains(err.Error(), "not a column of numbers") {
		t.Error(err)
	}
	if _, err := Numbers(r.Dir(), FlowsFile, "x"); err == nil || !strings.Contains(err.Error(), `no column "x"`) {
		t.Error(err)
	}
	if _, err := Numbers(r.Dir(), RatesFile, "x"); !errors.Is(err, ErrNoTable) {
		t.Error(err)
	}
}

// docs/results.md names every file and every column.
func TestColumnsAreDocumented(t *testing.T) {
	b, err := os.ReadFile("../../docs/results.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range Tables() {
		at := strings.Index(string(b), table.File)
		for at >= 0 && !strings.Contains(lineAt(string(b), at), "#") {
			next := strings.Index(string(b)[at+1:], table.File)
			if next < 0 {
				at = -1
				break
			}
			at += 1 + next
		}
		if at < 0 {
			t.Errorf("no section for %s", table.File)
			continue
		}
		section, _, _ := strings.Cut(string(b)[at:], "\n## ")
		for _, c := range table.Columns {
			if !strings.Contains(section, "`"+c+"`") {
				t.Errorf("%s: column %s is not explained", table.File, c)
			}
		}
	}
}

// lineAt returns the line with the byte at an offset.
func lineAt(s string, at int) string {
	from := strings.LastIndexByte(s[:at], '\n') + 1
	line, _, _ := strings.Cut(s[from:], "\n")
	return line
}

// A file that was removed after the run, or that grew beyond what can be read, is an error at once.
func TestRemovedAndGrownFiles(t *testing.T) {
	dir, content, _ := threeGroups(t)
	m := record.Manifest{Format: Format, Status: "ok", Files: []record.File{{Name: QueuesFile, Bytes: int64(len(content)), Sum: checksum(content)}, {Name: SummaryFile, Bytes: 2}}}
	if err := writeJSON(filepath.Join(dir, ManifestFile), m); err != nil {
		t.Fatal(err)
	}
	if got := readPorts(t, dir); len(got) != 3 {
		t.Fatal(got)
	}
	scan := func() error { return Scan(dir, QueuesFile, func([]queueRow) error { return nil }) }
	if err := os.Truncate(filepath.Join(dir, QueuesFile), 1<<40); err != nil {
		t.Skip(err) // a file system without sparse files
	}
	began := quiettest.Start()
	if err := scan(); err == nil || !strings.Contains(err.Error(), "changed or damaged") {
		t.Errorf("a terabyte: %v", err)
	}
	began.AtMost(t, 10*time.Second, "a terabyte")
	if err := os.Remove(filepath.Join(dir, QueuesFile)); err != nil {
		t.Fatal(err)
	}
	if err := scan(); !errors.Is(err, errRemoved) {
		t.Error(err)
	}
	if _, err := ReadSummary(dir); !errors.Is(err, errRemoved) {
		t.Error(err)
	}
	if err := Scan(dir, RatesFile, func([]rateRow) error { return nil }); !errors.Is(err, ErrNoTable) {
		t.Error(err)
	}
}
