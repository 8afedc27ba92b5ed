package shard

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	"weft/orchestrator/labfile"
	orchestrate "weft/orchestrator/run"
	"weft/orchestrator/sweep"
	"weft/results/record"
	"weft/results/store"
)

const labText = "weft: 1\nname: many\ntopology: {kind: star, hosts: 4}\nworkload: [{collective: permute, size: 8KB}]\n" +
	"sweep: {seed: [1, 2, 3]}\n"

// began is when the sweep of newSubmission began.
var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// newSubmission returns the submission of a lab of three points in two shards.
func newSubmission() *sweep.Submission {
	return &sweep.Submission{Format: sweep.Format, ID: "sweep-20260101T000000-sim", Lab: "many", File: "many.yaml", Text: labText,
		Engine: lab.EngineOptions{Kind: "sim"}, Kind: "sim", Points: []string{"seed=1", "seed=2", "seed=3"}, Shards: 2,
		Began: began, Series: "S", Results: "runs", Program: store.Program()}
}

// newDir submits a lab of three points in two shards, and starts a round.
func newDir(t *testing.T) *Dir {
	t.Helper()
	s := newSubmission()
	path := filepath.Join(t.TempDir(), "many", s.ID)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	d, err := Create(path, s)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.AddRound(sweep.Round{Number: 1, On: "local", Began: began}); err != nil {
		t.Fatal(err)
	}
	if d, err = Open(path); err != nil {
		t.Fatal(err)
	}
	return d
}

// options returns the options of a process on a machine.
func options(t *testing.T, shard int, host string, run Engine) Options {
	return Options{Shard: shard, Round: 1, Host: host, Run: run, Say: func(line string) { t.Log(host, line) }}
}

// runAll runs both shards.
func runAll(t *testing.T, d *Dir) {
	t.Helper()
	for k := range d.Sub.Shards {
		if err := Run(t.Context(), d, options(t, k, "m1", orchestrate.Run)); err != nil {
			t.Fatal(err)
		}
	}
}

// The shards leave what a local sweep leaves, byte for byte, and no temporary files.
func TestSameAsLocal(t *testing.T) {
	d := newDir(t)
	runAll(t, d)
	local := t.TempDir()
	labs, err := Labs(d.Sub, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := d.Scan()
	for i, l := range labs {
		x, err := experiment.Build(l)
		if err != nil {
			t.Fatal(err)
		}
		s, err := orchestrate.Run(t.Context(), x, orchestrate.Options{Engine: "sim", Root: local, LabText: []byte(labText),
			Program: store.Program()})
		if err != nil {
			t.Fatal(err)
		}
		dir, placed := d.RunDir(i)
		if !placed || !f.Placed[i] {
			t.Fatalf("point %d has no run", i)
		}
		got, err := PrintOf(dir)
		if err != nil {
			t.Fatal(err)
		}
		want, err := PrintOf(s.Run)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range []string{"topology.svg", "view.html"} { // this test draws no local pages
			if _, ok := want[page]; !ok {
				delete(got, page)
			}
		}
		if len(got) < 4 || !maps.Equal(got, want) {
			t.Errorf("point %d: %v, want %v", i, got, want)
		}
		if s, err := store.ReadSummary(dir); err != nil || s.Run != "runs/many/20260101T000000-"+[]string{"1", "2", "3"}[i] {
			t.Errorf("the summary is of %+v, %v", s, err)
		}
	}
	if left := store.EntryNames(d.at(workFolder)); len(left)+len(f.Tries)+len(f.Notes) > 0 {
		t.Errorf("left %v, %v, %v", left, f.Tries, f.Notes)
	}
}

// A second copy of a point is dropped if it has the same bytes. Otherwise it is kept beside the
// first, and both machines are named.
func TestSecondCopies(t *testing.T) {
	d := newDir(t)
	first := true
	// While the first copy runs, another machine runs the shard to its end.
	twice := func(ctx context.Context, x *experiment.Experiment, o orchestrate.Options) (*record.Summary, error) {
		s, err := orchestrate.Run(ctx, x, o)
		if first {
			first = false
			if err := Run(ctx, d, options(t, 0, "m2", orchestrate.Run)); err != nil {
				t.Fatal(err)
			}
		}
		return s, err
	}
	if err := Run(t.Context(), d, options(t, 0, "m1", twice)); err != nil {
		t.Fatal(err)
	}
	f := d.Scan()
	if !f.Placed[0] || !f.Placed[2] || len(f.Notes)+len(f.Tries) > 0 || len(store.EntryNames(d.at(workFolder))) > 0 {
		t.Errorf("%+v", f)
	}
	first = true
	broken := func(ctx context.Context, x *experiment.Experiment, o orchestrate.Options) (*record.Summary, error) {
		if err := Run(ctx, d, options(t, 1, "m2", orchestrate.Run)); err != nil {
			t.Fatal(err)
		}
		x.Lab.Seed++ // a machine that computes something else
		return orchestrate.Run(ctx, x, o)
	}
	if err := Run(t.Context(), d, options(t, 1, "m1", broken)); err != nil {
		t.Fatal(err)
	}
	f = d.Scan()
	n := f.Notes[1]
	if n.What != sweep.Disagrees || len(n.Hosts) != 2 || n.Hosts[1] != "m1" || !strings.Contains(n.Error, "different manifest.json") {
		t.Errorf("%+v", n)
	}
	if kept := store.EntryNames(d.at(differsFolder)); len(kept) != 1 || !f.Placed[1] {
		t.Errorf("kept %v", kept)
	}
	st := d.Sub.Judge(sweep.Round{}, f, nil, nil, time.Now())
	if st.State != sweep.Failed || len(st.Problems) != 1 {
		t.Errorf("%+v", st)
	}
}

// A run of another command line is not overwritten.
func TestForeignRunStays(t *testing.T) {
	d := newDir(t)
	r, err := store.Open(store.Options{Root: filepath.Dir(filepath.Dir(d.Path)), Now: d.Sub.Began, Manifest: record.Manifest{Lab: "many"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Finish(time.Now(), &record.Summary{Status: "ok"}); err != nil || r.Dir() != d.runDir(0) {
		t.Fatal(r.Dir(), err)
	}
	if err := d.place(0, r.Dir(), "m1"); !errors.Is(err, errForeign) {
		t.Error(err)
	}
	if err := Run(t.Context(), d, options(t, 0, "m1", orchestrate.Run)); !errors.Is(err, errForeign) {
		t.Error(err)
	}
	if err := errors.Join(os.RemoveAll(r.Dir()), d.Check(0), Run(t.Context(), d, options(t, 0, "m1", orchestrate.Run)),
		d.Check(0)); err != nil {
		t.Error(err)
	}
}

// Tasks that are killed during a point leave their tries; the point is given up by name, and the
// others are run.
func TestPoisonedPoint(t *testing.T) {
	d := newDir(t)
	killed := errors.New("killed")
	die := func(ctx context.Context, x *experiment.Experiment, o orchestrate.Options) (*record.Summary, error) {
		if x.Lab.Seed == 1 {
			panic(killed) // leaves the try where it is, as kill -9 does
		}
		return orchestrate.Run(ctx, x, o)
	}
	process := func() (err error) {
		defer func() {
			if r := recover(); r != nil {
				err = r.(error)
			}
		}()
		return Run(t.Context(), d, options(t, 0, "m1", die))
	}
	for range sweep.MaxTries {
		if err := process(); !errors.Is(err, killed) {
			t.Fatal(err)
		}
	}
	if err := process(); err != nil {
		t.Fatal(err)
	}
	f := d.Scan()
	if n := f.Notes[0]; n.What != sweep.GivenUp || len(n.Hosts) != sweep.MaxTries || f.Placed[0] || !f.Placed[2] {
		t.Errorf("%+v", f)
	}
	if n, err := d.Forget(); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	o := options(t, 0, "m1", orchestrate.Run)
	o.Round = 2
	if err := Run(t.Context(), d, o); err != nil || !d.Scan().Placed[0] {
		t.Errorf("another round: %v", err)
	}
}

// A full disk is the machine's fault: the task fails, and the point is tried elsewhere.
func TestMachineWithoutSpace(t *testing.T) {
	d := newDir(t)
	full := func(context.Context, *experiment.Experiment, orchestrate.Options) (*record.Summary, error) {
		return nil, &fs.PathError{Op: "write", Path: "x", Err: unix.ENOSPC}
	}
	for range 2 * sweep.MaxTries {
		var machine MachineError
		if err := Run(t.Context(), d, options(t, 0, "m3", full)); !errors.As(err, &machine) || !errors.Is(err, unix.ENOSPC) {
			t.Fatal(err)
		}
	}
	st := d.Sub.Judge(sweep.Round{Number: 1}, d.Scan(), nil, nil, time.Now())
	if st.Done != 0 || !strings.Contains(st.Shards[0].Error, "m3: write x: no space left") {
		t.Errorf("%+v", st)
	}
	runAll(t, d)
	if f := d.Scan(); !f.Placed[0] || len(f.Notes) > 0 {
		t.Errorf("%+v", f)
	}
}

// Another build of weft runs nothing, and a sweep that is over ends its tasks.
func TestOverAndOtherBuilds(t *testing.T) {
	d := newDir(t)
	none := func(context.Context, *experiment.Experiment, orchestrate.Options) (*record.Summary, error) {
		t.Fatal("it ran")
		return nil, nil
	}
	d.Sub.Program = "another"
	for range 2 * sweep.MaxTries {
		if err := Run(t.Context(), d, options(t, 0, "m1", none)); err == nil || !strings.Contains(err.Error(), "another build of weft") {
			t.Error(err)
		}
	}
	st := d.Sub.Judge(sweep.Round{Number: 1}, d.Scan(), nil, nil, time.Now())
	if st.Done != 0 || len(st.Problems) > 0 || !strings.Contains(st.Shards[0].Error, "m1: this is another build") {
		t.Errorf("%+v", st)
	}
	d.Sub.Program = store.Program()
	for _, name := range store.EntryNames(d.at(triesFolder)) {
		if err := os.Remove(d.at(triesFolder, name)); err != nil {
			t.Fatal(err)
		}
	}
	wait := func(ctx context.Context, _ *experiment.Experiment, _ orchestrate.Options) (*record.Summary, error) {
		if err := d.Cancel(); err != nil {
			t.Fatal(err)
		}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	if err := Run(t.Context(), d, options(t, 0, "m1", wait)); !errors.Is(err, ErrOver) {
		t.Error(err)
	}
	if f := d.Scan(); !f.Cancelled || len(f.Tries) > 0 || len(store.EntryNames(d.at(workFolder))) > 0 {
		t.Errorf("%+v", f)
	}
	if err := Run(t.Context(), d, options(t, 0, "m1", none)); !errors.Is(err, ErrOver) {
		t.Error(err)
	}
	if err := errors.Join(d.Finish(), d.Reopen(), d.AddRound(sweep.Round{Number: 2})); err != nil {
		t.Fatal(err)
	}
	runAll(t, d)
	for _, folder := range []string{"", roundsFolder, notesFolder} { // writes whose process was killed
		if err := os.WriteFile(d.at(folder, "1.json."+rand.Text()), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Finish(); err != nil {
		t.Fatal(err)
	}
	if left := store.EntryNames(d.at(notesFolder)); len(left) > 0 || len(store.EntryNames(d.at(roundsFolder))) != 2 {
		t.Errorf("left %v", left)
	}
	if err := Run(t.Context(), d, options(t, 0, "m1", none)); !errors.Is(err, ErrOver) {
		t.Error(err)
	}
	names := store.EntryNames(d.at())
	if strings.Join(names, " ") != "collected notes rounds submission.json" {
		t.Errorf("left %v", names)
	}
}

// Whoever looks for a process sees whether it runs, however many look. A state that cannot be
// written leaves no file, and what a killed process leaves is removed.
func TestProcess(t *testing.T) {
	d := newDir(t)
	p := &Process{Dir: d, Name: "local", Mode: 0o600}
	if err := p.Write(7); err != nil {
		t.Fatal(err)
	}
	state := 0
	if runs, err := p.Look(&state); runs || err != nil || state != 7 || p.Dir.has("local.lock") {
		t.Errorf("runs %v, %v, state %d", runs, err, state)
	}
	_, end, err := p.Begin(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	end(nil)                                 // leaves its lock, as a process that was killed
	other, free, err := p.lock(unix.LOCK_SH) // another look
	if err != nil || !free {
		t.Fatal(free, err)
	}
	if runs, err := p.Look(&state); runs || err != nil {
		t.Errorf("runs %v, %v, state %d", runs, err, state)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, end, err := p.Begin(t.Context(), 1)
	if err != nil || ctx.Err() != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(p.at(".lock"), 0o444); err != nil { // of another user
		t.Fatal(err)
	}
	if runs, err := p.Look(&state); !runs || err != nil {
		t.Errorf("runs %v, %v", runs, err)
	}
	end(nil)
	if err := os.Chmod(p.at(".lock"), 0o644); err != nil { // its own again, which begins rounds and removes it
		t.Fatal(err)
	}
	if err := os.Mkdir(p.at(stateTemp), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := p.Write(8); err == nil {
		t.Error("written over a directory")
	}
	if err := os.WriteFile(p.at(stateTemp), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(p.at("*")); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// A lab reads the same files from a submission as beside the lab.
func TestInputsAreRecorded(t *testing.T) {
	folder := t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, "traces"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"lab.yaml": labText, "traces/a.txt": "hello", "traces/b.txt": "you"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	src, err := labfile.Open(filepath.Join(folder, "lab.yaml"), false)
	if err != nil {
		t.Fatal(err)
	}
	r := labfile.NewRecorder(1 << 10)
	recorded := r.Record(src)
	if _, err := recorded.Read("traces/a.txt"); err != nil {
		t.Fatal(err)
	}
	if text, err := fs.ReadFile(recorded.Files, "traces/b.txt"); err != nil || string(text) != "you" {
		t.Fatalf("%q, %v", text, err)
	}
	again := labfile.Recorded("lab.yaml", src.Text, r.Files())
	if text, err := again.Read("traces/b.txt"); err != nil || string(text) != "you" {
		t.Errorf("%q, %v", text, err)
	}
	if all, err := fs.ReadDir(again.Files, "traces"); err != nil || len(all) != 2 {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := again.Read("traces/c.txt"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	small := labfile.NewRecorder(3)
	if _, err := small.Record(src).Read("traces/a.txt"); err == nil || !strings.Contains(err.Error(), "too much to send") {
		t.Error(err)
	}
}

// The directory of a sweep is found by its ID, with its lab, or as a path.
func TestFind(t *testing.T) {
	d := newDir(t)
	root := filepath.Dir(filepath.Dir(d.Path))
	for _, id := range []string{d.Sub.ID, "many/" + d.Sub.ID, d.Path} {
		if got, err := Find(root, id); err != nil || got.Path != d.Path {
			t.Errorf("%s: %+v, %v", id, got, err)
		}
	}
	if _, err := Find(root, "sweep-x"); err == nil || !strings.Contains(err.Error(), "no submitted sweep sweep-x") {
		t.Error(err)
	}
	if err := os.CopyFS(filepath.Join(root, "other", d.Sub.ID), os.DirFS(d.Path)); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(root, d.Sub.ID); err == nil || !strings.Contains(err.Error(), "several sweeps") {
		t.Error(err)
	}
	moved := filepath.Join(root, "many", "moved")
	if err := os.Rename(d.Path, moved); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(moved); err == nil || !strings.Contains(err.Error(), "name its directory") {
		t.Error(err)
	}
}

// Tasks of a manifest make the directory of their sweep, whichever comes first, and leave the same
// runs. Once it is collected they leave nothing new.
func TestAdopt(t *testing.T) {
	text, err := newDir(t).Sub.Encode()
	if err != nil {
		t.Fatal(err)
	}
	file, results := filepath.Join(t.TempDir(), "submission.json"), t.TempDir()
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	for k := range 2 {
		d, err := Adopt(results, file, sweep.ByManifest)
		if err != nil {
			t.Fatal(err)
		}
		if err := Run(t.Context(), d, options(t, k, "pod", orchestrate.Run)); err != nil {
			t.Fatal(err)
		}
	}
	d, err := Find(results, "sweep-20260101T000000-sim")
	if err != nil {
		t.Fatal(err)
	}
	if r, ok, err := d.Round(); d.Settled() != 3 || !ok || err != nil || r.On != sweep.ByManifest {
		t.Errorf("%d settled, round %+v, %v", d.Settled(), r, err)
	}
	if err := d.Finish(); err != nil {
		t.Fatal(err)
	}
	if d, err = Adopt(results, file, sweep.ByManifest); err != nil || !d.Over() || d.has(workFolder) {
		t.Errorf("%+v, %v", d, err)
	}
}

// The directory of a sweep appears with its submission, and what killed submitters left is removed
// after an hour.
func TestCreate(t *testing.T) {
	folder := t.TempDir()
	old, young := filepath.Join(folder, unfinished+"OLD"), filepath.Join(folder, unfinished+"YOUNG")
	for _, dir := range []string{old, young} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(old, time.Time{}, time.Now().Add(-2*unfinishedLife)); err != nil {
		t.Fatal(err)
	}
	s := newSubmission()
	path := filepath.Join(folder, s.ID)
	if _, err := Create(path, s); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(path, s); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	all, err := filepath.Glob(filepath.Join(folder, ".*")) // with hidden ones
	if err != nil || len(all) != 1 || all[0] != young {
		t.Error(all, err)
	}
	if _, err := os.Stat(filepath.Join(path, Folder, submissionFile)); err != nil {
		t.Error(err)
	}
}

// Whoever reads the results of a submitted sweep before it is collected finds the points that have
// no run, too, whatever became of the shards, and that nothing was judged across points.
func TestReadersSeeAllPointsOfASubmission(t *testing.T) {
	text, err := newSubmission().Encode()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "submission.json")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	adopted, err := Adopt(t.TempDir(), file, sweep.ByManifest)
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]*Dir{"submitted": newDir(t), "adopted": adopted} {
		if s, err := store.ReadSweep(d.Path); err != nil || len(s.Points) != 3 || !s.Submitted {
			t.Fatalf("%s: %+v, %v", name, s, err)
		}
		if err := Run(t.Context(), d, options(t, 0, "m1", orchestrate.Run)); err != nil { // points 0 and 2
			t.Fatal(err)
		}
		for _, stop := range []func() error{func() error { return nil }, d.Cancel} {
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			found, err := store.Newest(filepath.Dir(filepath.Dir(d.Path)))
			if err != nil || len(found.Runs) != 2 || len(found.Lacking) != 1 || found.Lacking[0].Seed != 2 || !found.Open ||
				found.Submitted != d.Path || len(found.Judged) != 1 || found.Judged[0].Status != record.Running {
				t.Errorf("%s: %+v, %v", name, found, err)
			}
		}
	}
}
