package store

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"weft/results/record"
	"weft/results/stats"
	"weft/units"
)

const us = units.Microsecond

var newYear = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// createRun creates a run below root.
func createRun(t *testing.T, root string) *Run {
	t.Helper()
	r, err := Open(Options{Root: root, Now: newYear, Manifest: record.Manifest{Lab: "pc4-incast", Seed: 7}, LabText: []byte("weft: 1\n")})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// readFile returns the text of a file of a run.
func readFile(t *testing.T, r *Run, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(r.Dir(), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// writeAll writes rows to every file of a run.
func writeAll(t *testing.T, r *Run) {
	t.Helper()
	d := stats.NewDist()
	d.Record(4 * us)
	d.Record(0)
	for _, err := range []error{
		r.Flows([]record.Flow{
			{Src: "h0", Dst: "h1", Conn: 3, Size: 1500, Start: us / 2, Finished: true, FCT: 10 * us, Ideal: 8 * us},
			{Item: 1, Repeat: 2, Src: "h1", Dst: "h0", Message: 9, Size: 1, Start: 1, Ideal: us},
		}),
		r.Parts([]record.Part{{Collective: "all-reduce", Algorithm: "ring", Rank: 1, Host: "h1", Start: 0, End: 3 * us, Checked: 16}}),
		r.Queue(record.Queue{At: 12345678, Port: "edge0->h1", Queued: 4158, Marks: 7, Drops: 2}),
		r.Window(record.Window{At: us, Conn: 2, Window: 8316, Rate: 50 * units.Gbps}),
		r.Window(record.Window{At: us, Conn: 3, Credited: true, Credit: -20}),
		r.Ack(record.Ack{At: 3 * us / 2, Conn: 2, RTT: 8300 * units.Nanosecond, Marked: true}),
		r.Clock(record.Clock{At: us, Host: "h3", Error: -17, Bound: 20, State: "locked"}),
		r.Event(record.Event{At: us, Kind: "node died", Where: "h3", Detail: "killed"}),
		r.Histogram(RTTFile, d),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestDataFiles(t *testing.T) {
	r := createRun(t, t.TempDir())
	writeAll(t, r)
	if err := r.Finish(newYear.Add(time.Second), &record.Summary{Status: "ok"}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		FlowsFile: "item,repeat,src,dst,conn,message,bytes,start_ps,fct_ps,ideal_ps,slowdown\n" +
			"0,0,h0,h1,3,0,1500,500000,10000000,8000000,1.25\n" +
			"1,2,h1,h0,0,9,1,1,,1000000,\n",
		CollectivesFile: "item,repeat,collective,algorithm,rank,host,start_ps,end_ps,checked,wrong\n" +
			"0,0,all-reduce,ring,1,h1,0,3000000,16,0\n",
		QueuesFile:  "time_ps,port,queued_bytes,ce_marks,drops\n12345678,edge0->h1,4158,7,2\n",
		WindowsFile: "time_ps,conn,cwnd_bytes,rate_bps,credit_bytes\n1000000,2,8316,50000000000,\n1000000,3,,0,-20\n",
		AcksFile:    "time_ps,conn,rtt_ps,ce\n1500000,2,8300000,1\n",
		ClocksFile:  "time_ps,host,error_ps,bound_ps,state\n1000000,h3,-17,20,locked\n",
	} {
		var b strings.Builder
		if err := Export(&b, r.Dir(), name, "csv"); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for name, want := range map[string]string{
		EventsFile: `{"time_us":1.000000,"event":"node died","where":"h3","detail":"killed"}` + "\n",
		LabFile:    "weft: 1\n",
	} {
		if diff := cmp.Diff(want, readFile(t, r, name)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	var b strings.Builder
	if err := Export(&b, r.Dir(), FlowsFile, "json"); err != nil {
		t.Fatal(err)
	}
	if want := `{"item":1,"repeat":2,"src":"h1","dst":"h0","conn":0,"message":9,"bytes":1,"start_ps":1,"fct_ps":null,"ideal_ps":1000000,"slowdown":null}`; !strings.Contains(b.String(), want) {
		t.Errorf("as JSON: %s", b.String())
	}
	if err := Export(io.Discard, r.Dir(), RatesFile, "csv"); !errors.Is(err, ErrNoTable) {
		t.Errorf("rates of a run that did not measure them: %v", err)
	}
	if err := Export(io.Discard, r.Dir(), "../../x", "csv"); err == nil || !strings.Contains(err.Error(), "flows.parquet") {
		t.Errorf("a file outside: %v", err)
	}
}

func TestManifestStatus(t *testing.T) {
	r := createRun(t, t.TempDir())
	want := func(status string) *record.Manifest {
		t.Helper()
		m, err := ReadManifest(r.Dir())
		if err != nil {
			t.Fatal(err)
		}
		if m.Status != status {
			t.Errorf("status %q, want %q", m.Status, status)
		}
		return m
	}
	if m := want("running"); m.Seed != 7 || m.Started != "2026-01-01T00:00:00Z" || m.Run != filepath.ToSlash(r.Dir()) {
		t.Errorf("got %+v", m)
	}
	if err := r.Update(func(m *record.Manifest) { m.Dilation = 2000 }); err != nil {
		t.Fatal(err)
	}
	if m := want("running"); m.Dilation != 2000 {
		t.Errorf("dilation %v, want 2000", m.Dilation)
	}
	sum := &record.Summary{
		Lab: "pc4-incast", Status: "interrupted", Error: "by the user", Expect: []record.Expect{{That: "drops <= 1 * flows"}},
	}
	if err := r.Finish(newYear.Add(time.Minute), sum); err != nil {
		t.Fatal(err)
	}
	if m := want("interrupted"); m.Ended != "2026-01-01T00:01:00Z" || m.Error != "by the user" {
		t.Errorf("got %+v", m)
	}
	if text := readFile(t, r, SummaryFile); !strings.Contains(text, `"drops <= 1 * flows"`) {
		t.Errorf("an expectation is escaped: %s", text)
	}
	back, err := ReadSummary(r.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sum, back); diff != "" {
		t.Error(diff)
	}
	if err := r.Abandon(newYear, errors.New("too late")); err != nil {
		t.Error(err)
	}
	want("interrupted")
	if left, _ := filepath.Glob(filepath.Join(r.Dir(), ".*")); left != nil {
		t.Errorf("temporary files left: %v", left)
	}
}

// rootVar is the environment variable that makes this test binary open a run below its value and
// wait.
const rootVar = "WEFT_TEST_STORE_ROOT"

func TestMain(m *testing.M) {
	root := os.Getenv(rootVar)
	if root == "" {
		os.Exit(m.Run())
	}
	r, err := Open(Options{Root: root, Now: newYear, Manifest: record.Manifest{Lab: "held"}})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(r.Dir())
	_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
	os.Exit(1)
}

// After kill -9 the run cannot write its end, but a reader of the manifest sees that it failed.
func TestKilledRunIsFailed(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), rootVar+"="+t.TempDir())
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	dir := strings.TrimSpace(line)
	alive, err := ReadManifest(dir)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if err != nil || alive.Status != "running" || alive.Process == nil || alive.Process.PID != cmd.Process.Pid {
		t.Fatalf("%q: while it ran, %+v: %v", dir, alive, err)
	}
	dead, err := ReadManifest(dir)
	if err != nil || dead.Status != "failed" || dead.Error != "the run was killed" {
		t.Errorf("%+v: %v", dead, err)
	}
}

// A run in another kernel ends with the process outside that started it.
func TestOuterProcess(t *testing.T) {
	name, text, _ := strings.Cut(Outer(), "=")
	t.Setenv(name, strings.Replace(text, fmt.Sprintf(`"pid":%d`, os.Getpid()), `"pid":1073741824`, 1))
	if p := runProcess(); p.PID != 1<<30 || p.Boot != thisProcess().Boot || !hasEnded(p) {
		t.Errorf("%+v", p)
	}
	r := createRun(t, t.TempDir())
	if m, err := ReadManifest(r.Dir()); err != nil || m.Status != "failed" {
		t.Errorf("%+v, %v", m, err)
	}
}

// A process is identified by more than its PID, and one that cannot be seen from here counts as
// running.
func TestHasEnded(t *testing.T) {
	if hasEnded(nil) || hasEnded(runProcess()) {
		t.Error("this process has ended")
	}
	for name, c := range map[string]struct {
		change func(*record.Process)
		want   bool
	}{
		"same number, started later": {func(p *record.Process) { p.Started++ }, true},
		"no such number":             {func(p *record.Process) { p.PID = 1 << 30 }, true},
		"another boot, or machine":   {func(p *record.Process) { p.PID, p.Boot = 1<<30, "x" }, false},
		"another namespace":          {func(p *record.Process) { p.PID, p.Space = 1<<30, "x" }, false},
		"without a boot":             {func(p *record.Process) { *p = record.Process{PID: 1 << 30} }, false},
	} {
		p := runProcess()
		c.change(p)
		if got := hasEnded(p); got != c.want {
			t.Errorf("%s: ended %t, want %t", name, got, c.want)
		}
	}
}

// Points of a sweep start in any order, and keep the numbers of their order in the sweep.
func TestSeriesNumbers(t *testing.T) {
	root := t.TempDir()
	open := func(began time.Time, number, of int) string {
		t.Helper()
		r, err := Open(Options{
			Root: root, Now: newYear.Add(time.Minute), Series: Series{Began: began, Number: number, Of: of}, Manifest: record.Manifest{Lab: "x"},
		})
		if err != nil {
			t.Fatal(err)
		}
		return filepath.Base(r.Dir())
	}
	for _, c := range []struct {
		number, of int
		want       string
	}{
		{3, 3, "20260101T000000-3"}, {1, 3, "20260101T000000-1"}, {2, 3, "20260101T000000-2"},
		{2, 3, "20260101T000000-5"}, {1, 3, "20260101T000000-4"}, // another command line
		{1, 1, "20260101T000000-6"},
	} {
		if got := open(newYear, c.number, c.of); got != c.want {
			t.Errorf("run %d of %d is %s, want %s", c.number, c.of, got, c.want)
		}
	}
	if got := open(time.Time{}, 0, 0); got != "20260101T000100-1" {
		t.Errorf("a run by itself is %s", got)
	}
}

func TestCheckRoot(t *testing.T) {
	base := t.TempDir()
	for _, good := range []string{base, filepath.Join(base, "a", "b"), "", "."} {
		if err := CheckRoot(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	if left, _ := os.ReadDir(base); len(left) > 0 {
		t.Errorf("something was created: %v", left)
	}
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{file, filepath.Join(file, "results")} {
		if err := CheckRoot(bad); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	denied := "create a directory in /proc" // root may write there, but nobody creates anything
	if unix.Access("/proc", unix.W_OK) != nil {
		denied = "write to /proc: permission denied"
	}
	if err := CheckRoot("/proc/results"); err == nil || !strings.Contains(err.Error(), denied) {
		t.Errorf("/proc denies directories: %v", err)
	}
	removed := filepath.Join(base, "removed")
	if err := os.Mkdir(removed, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(removed)
	if err := os.Remove(removed); err != nil {
		t.Fatal(err)
	}
	if err := CheckRoot("runs"); err == nil || !strings.Contains(err.Error(), "has been removed") {
		t.Errorf("in a removed directory: %v", err)
	}
	if unix.Access("/sys/kernel", unix.W_OK) != nil {
		if err := CheckRoot("/sys/kernel/results"); err == nil || !strings.Contains(err.Error(), "write to /sys/kernel") {
			t.Error(err)
		}
	}
}

// A run that cannot begin leaves no directory of its lab, nor does a sweep.
func TestNothingIsLeftOfWhatCannotBegin(t *testing.T) {
	base := t.TempDir()
	root := filepath.Join(base, "runs")
	full := errors.New("no space left on device")
	if _, err := Claim(root, "lab", "sweep", "", func(string) error { return full }); !errors.Is(err, full) {
		t.Error(err)
	}
	o := Options{Root: root, Now: newYear, LabText: []byte("x"), Manifest: record.Manifest{Lab: "lab"},
		Inputs: Inputs{Lab: "x.yaml", Files: map[string][]byte{"a": nil, "a/b": nil}}} // which no disk can hold
	if _, err := Open(o); err == nil {
		t.Error("the run began")
	}
	if left, _ := os.ReadDir(base); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

func TestAbandonedRun(t *testing.T) {
	r := createRun(t, t.TempDir())
	writeAll(t, r)
	if err := r.Abandon(newYear, errors.New("node h3 died")); err != nil {
		t.Fatal(err)
	}
	m, err := ReadManifest(r.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if m.Status != "failed" || m.Error != "node h3 died" {
		t.Errorf("got %q, %q", m.Status, m.Error)
	}
	if got := readPorts(t, r.Dir()); len(got) != 1 || got[0] != "edge0->h1" {
		t.Errorf("%s holds %q", QueuesFile, got)
	}
}

// The ports of a run have a column for trims if any port trimmed, and otherwise the same bytes as
// before there was one.
func TestPortsHaveTrimsWhereThereAreSome(t *testing.T) {
	for trims, want := range map[int64]string{0: "rate_bps\na,0,0,2,0,0,0,0,0,0,0,0\n", 5: "rate_bps,trims\na,0,0,2,0,0,0,0,0,0,0,0,5\n"} {
		r := createRun(t, t.TempDir())
		if err := errors.Join(r.Ports([]record.Port{{Port: "a", Drops: 2, Trims: trims}}), r.Abandon(newYear, errors.New("over"))); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := Export(&out, r.Dir(), PortsFile, "csv"); err != nil || !strings.HasSuffix(out.String(), want) {
			t.Errorf("%d trims: %v, %q", trims, err, out.String())
		}
	}
}

func TestRunsOfOneSecond(t *testing.T) {
	root := t.TempDir()
	var mu sync.Mutex
	dirs := map[string]bool{}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			r, err := Open(Options{Root: root, Now: newYear, Manifest: record.Manifest{Lab: "x"}})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			dirs[r.Dir()] = true
		})
	}
	all.Wait()
	if len(dirs) != 20 || !dirs[filepath.Join(root, "x", "20260101T000000-1")] {
		t.Errorf("20 runs have %d directories: %v", len(dirs), dirs)
	}
}

func TestBadLabNames(t *testing.T) {
	for _, name := range []string{"", ".", "..", "../x", "a/b", "/etc", ".hidden"} {
		root := t.TempDir()
		if _, err := Open(Options{Root: root, Now: newYear, Manifest: record.Manifest{Lab: name}}); err == nil {
			t.Errorf("%q was accepted", name)
		}
		if left, _ := os.ReadDir(root); len(left) > 0 {
			t.Errorf("%q: something was created", name)
		}
	}
}

func TestUnwritableRoot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Open(Options{Root: file, Now: newYear, Manifest: record.Manifest{Lab: "x"}})
	if err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("got %v, want an error that names %s", err, file)
	}
}

// Closing the files reports a full disk at the latest. /dev/full stands for one.
func TestFullDiskFailsTheRun(t *testing.T) {
	r := createRun(t, t.TempDir())
	writeAll(t, r)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("no /dev/full: %v", err)
	}
	victim := r.files[QueuesFile].(*table[queueRow])
	victim.file.Close()
	victim.file = full
	var row error
	for i := 0; row == nil && i < 2*groupRows; i++ {
		row = r.Queue(record.Queue{At: us, Port: "a->b", Queued: 1})
	}
	if !errors.Is(row, syscall.ENOSPC) {
		t.Fatalf("got %v, want no space left on device", row)
	}
	if err := r.Event(record.Event{Kind: "late"}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the error does not stick: %v", err)
	}
	sum := &record.Summary{Status: "ok"}
	if err := r.Finish(newYear, sum); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Finish returned %v", err)
	}
	if sum.Status != "failed" || !strings.Contains(sum.Error, "no space left") {
		t.Errorf("summary says %q, %q", sum.Status, sum.Error)
	}
	m, err := ReadManifest(r.Dir())
	if err != nil || m.Status != "failed" {
		t.Errorf("manifest says %+v, %v", m, err)
	}
}

func TestVanishedDirectory(t *testing.T) {
	r := createRun(t, t.TempDir())
	if err := os.RemoveAll(r.Dir()); err != nil {
		t.Fatal(err)
	}
	if err := r.Queue(record.Queue{}); err == nil {
		t.Error("no error of a write")
	}
	if err := r.Finish(newYear, &record.Summary{Status: "ok"}); err == nil {
		t.Error("no error of Finish")
	}
	if _, err := ReadSummary(r.Dir()); err == nil {
		t.Error("a summary was read")
	}
}

func TestMicrosAreExact(t *testing.T) {
	for t0, want := range map[units.Time]string{
		0: "0.000000", 1: "0.000001", us: "1.000000", 3*us + 40: "3.000040", -us - 7: "-1.000007",
	} {
		if got := micros(t0); got != want {
			t.Errorf("micros(%d) = %s, want %s", t0, got, want)
		}
	}
}

// readPorts reads the ports of queues.parquet.
func readPorts(t interface {
	Helper()
	Fatal(...any)
}, dir string) []string {
	t.Helper()
	var out []string
	type row struct {
		Port string `parquet:"port"`
	}
	if err := Scan(dir, QueuesFile, func(rows []row) error {
		for _, r := range rows {
			out = append(out, strings.Clone(r.Port))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// Command lines that start in the same second, each with several runs at once, share no directory,
// and the runs of each can be identified.
func TestSeriesOfOneSecond(t *testing.T) {
	const commands, of = 16, 5
	root := t.TempDir()
	var all sync.WaitGroup
	runs, sweeps := make([][of]string, commands), make([]string, commands)
	for i := range commands {
		s := Series{ID: fmt.Sprint(i), Began: newYear, Of: of}
		all.Go(func() {
			dir, err := Claim(root, "x", "sweep-"+s.Stamp()+"-sim", "", NewFolder)
			if err != nil {
				t.Error(err)
			}
			sweeps[i] = dir
		})
		for n := range of {
			s := s
			s.Number = n + 1
			all.Go(func() {
				r, err := Open(Options{Root: root, Now: newYear, Series: s, Manifest: record.Manifest{Lab: "x"}})
				if err != nil {
					t.Error(err)
					return
				}
				runs[i][n] = r.Dir()
				if err := r.Finish(newYear, &record.Summary{Status: record.OK, Seed: uint64(i)}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	seen := map[string]bool{}
	for i := range commands {
		if seen[sweeps[i]] {
			t.Errorf("two sweeps have %s", sweeps[i])
		}
		seen[sweeps[i]] = true
		for n, dir := range runs[i] {
			if seen[dir] {
				t.Errorf("two runs have %s", dir)
			}
			seen[dir] = true
			m, err := ReadManifest(dir)
			if err != nil || m.Series == nil || *m.Series != (record.Series{ID: fmt.Sprint(i), Number: n + 1, Of: of}) {
				t.Errorf("%s: %+v, %v", dir, m.Series, err)
			}
			if s, err := ReadSummary(dir); err != nil || s.Seed != uint64(i) {
				t.Errorf("%s: %+v, %v", dir, s, err)
			}
		}
	}
}

func TestClaim(t *testing.T) {
	root := t.TempDir()
	for i, want := range []string{"a.svg", "a-2.svg", "a-3.svg"} {
		path, err := Claim(root, "x", "a", ".svg", NewFile([]byte{byte(i)}))
		if err != nil || path != filepath.Join(root, "x", want) {
			t.Errorf("%s, %v; want %s", path, err, want)
		}
	}
	if b, err := os.ReadFile(filepath.Join(root, "x", "a.svg")); err != nil || !slices.Equal(b, []byte{0}) {
		t.Errorf("the first is %v, %v", b, err)
	}
	if _, err := Claim(root, "../x", "a", "", NewFolder); err == nil {
		t.Error("a path as the name of a lab")
	}
	if _, err := Claim(filepath.Join(root, "x", "a.svg"), "x", "a", "", NewFolder); err == nil {
		t.Error("a directory in a file")
	}
}
