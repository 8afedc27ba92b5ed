package shard

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"weft/internal/regular"
	"weft/internal/shell"
	"weft/orchestrator/sweep"
	"weft/results/store"
)

// Folder is the folder of a submission in the sweep's directory.
const Folder = "submission"

// Names in Folder.
const (
	submissionFile = "submission.json"
	roundsFolder   = "rounds"
	triesFolder    = "tries"
	workFolder     = "work"
	notesFolder    = "notes"
	differsFolder  = "differs"
	cancelledFile  = "cancelled"
	collectedFile  = "collected"
)

// maxNote is the largest accepted note, try or round in bytes.
const maxNote = 1 << 20

// ErrOver is returned if the sweep was cancelled or collected: its tasks end.
var ErrOver = errors.New("the sweep was cancelled or collected")

// Dir is the directory of a submitted sweep.
type Dir struct {
	Path string // of the sweep's directory
	Sub  *sweep.Submission
}

// Create makes the directory of a sweep with its submission, at once: whoever sees the directory
// sees all of it. The error is fs.ErrExist if path is taken.
func Create(path string, s *sweep.Submission) (_ *Dir, err error) {
	text, err := s.Encode()
	if err != nil {
		return nil, err
	}
	removeUnfinished(filepath.Dir(path))
	temp := &Dir{filepath.Join(filepath.Dir(path), unfinished+rand.Text()), s}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(temp.Path))
		}
	}()
	for _, name := range []string{"", roundsFolder, triesFolder, workFolder, notesFolder} {
		if err := os.MkdirAll(temp.at(name), 0o755); err != nil {
			return nil, err
		}
	}
	if err := temp.write(submissionFile, text); err != nil {
		return nil, err
	}
	if err := announce(temp.Path, temp); err != nil {
		return nil, err
	}
	return &Dir{path, s}, os.Rename(temp.Path, path)
}

// unfinished begins the names of directories that Create makes, and unfinishedLife is how long they
// may take.
const (
	unfinished     = ".sweep-"
	unfinishedLife = time.Hour
)

// removeUnfinished removes the directories of submitters that were killed.
func removeUnfinished(folder string) {
	all, _ := filepath.Glob(filepath.Join(folder, unfinished+"*")) // the pattern is right
	for _, dir := range all {
		if info, err := os.Lstat(dir); err == nil && time.Since(info.ModTime()) > unfinishedLife {
			_ = os.RemoveAll(dir) // the next submitter tries again
		}
	}
}

// Adopt returns the directory below results of the submission in a file, and makes it unless
// another task has. It is for tasks that nobody submitted: their first round is on.
func Adopt(results, file, on string) (*Dir, error) {
	text, err := regular.Read(file, sweep.MaxText)
	if err != nil {
		return nil, err
	}
	s, err := sweep.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	d := &Dir{filepath.Join(results, s.Lab, s.ID), s}
	for _, name := range []string{roundsFolder, triesFolder, workFolder, notesFolder} {
		if d.Over() {
			break // another task's sweep was collected, and its folders removed
		}
		if err := os.MkdirAll(d.at(name), 0o755); err != nil {
			return nil, err
		}
	}
	if !d.has(submissionFile) {
		if err := d.write(submissionFile, text); err != nil {
			return nil, err
		}
	}
	if _, err := store.ReadSweep(d.Path); errors.Is(err, fs.ErrNotExist) && !d.Over() {
		if err := announce(d.Path, d); err != nil {
			return nil, err
		}
	}
	if _, ok, err := d.Round(); err != nil || ok {
		return d, err
	}
	return d, d.AddRound(sweep.Round{Number: 1, On: on, Workers: 1, Began: time.Now().UTC()})
}

// Open reads the submission in the directory of a sweep.
func Open(path string) (*Dir, error) {
	text, err := regular.Read(filepath.Join(path, Folder, submissionFile), sweep.MaxText)
	if err != nil {
		return nil, err
	}
	s, err := sweep.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if base := filepath.Base(path); base != s.ID {
		return nil, fmt.Errorf("%s holds the submission %s: name its directory %[2]s again", path, s.ID)
	}
	return &Dir{filepath.Clean(path), s}, nil
}

// Name returns the name of the sweep for a command line: its ID if it is below the default
// directory of runs, otherwise its path, as a word of a shell.
func (d *Dir) Name() string {
	if d.Path == filepath.Join(store.DefaultRoot(), d.Sub.Lab, d.Sub.ID) {
		return d.Sub.ID
	}
	return shell.Quote(d.Path)
}

// List returns all sweeps below root, by ID.
func List(root string) []*Dir {
	var all []*Dir
	for _, l := range store.EntryNames(root) {
		paths, _ := filepath.Glob(filepath.Join(root, l, "sweep-*")) // the pattern is right
		for _, path := range paths {
			if d, err := Open(path); err == nil {
				all = append(all, d)
			}
		}
	}
	slices.SortFunc(all, func(a, b *Dir) int { return strings.Compare(a.Sub.ID, b.Sub.ID) })
	return all
}

// Find returns the sweep with an ID: a path, lab/ID below root, or an ID that only one lab below
// root has.
func Find(root, id string) (*Dir, error) {
	var found []string
	patterns := []string{id, filepath.Join(root, id)}
	for _, l := range store.EntryNames(root) {
		patterns = append(patterns, filepath.Join(root, l, id))
	}
	for _, dir := range patterns {
		if _, err := os.Stat(filepath.Join(dir, Folder, submissionFile)); err == nil &&
			!slices.Contains(found, filepath.Clean(dir)) {
			found = append(found, filepath.Clean(dir))
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("no submitted sweep %s in %s; --results names another directory of runs, and weft "+
			"sweep status without an ID lists the sweeps there", id, root)
	case 1:
		return Open(found[0])
	}
	return nil, fmt.Errorf("%s is several sweeps: %s; name one by its path", id, strings.Join(found, ", "))
}

// at returns the path of a file of the submission.
func (d *Dir) at(names ...string) string {
	return filepath.Join(append([]string{d.Path, Folder}, names...)...)
}

// runDir returns the place of a point's run.
func (d *Dir) runDir(point int) string {
	return filepath.Join(filepath.Dir(d.Path), d.Sub.RunName(point))
}

// RunDir returns the run of a point if it is in its place.
func (d *Dir) RunDir(point int) (dir string, placed bool) {
	dir = d.runDir(point)
	return dir, store.IsRun(dir)
}

// write replaces a file of the submission. Readers see the old file or the new one.
func (d *Dir) write(name string, text []byte) error {
	temp := d.at(name + "." + rand.Text())
	if err := os.WriteFile(temp, text, 0o644); err != nil {
		return err
	}
	if err := os.Rename(temp, d.at(name)); err != nil {
		_ = os.Remove(temp) // the first error matters more
		return err
	}
	return nil
}

// writeJSON replaces a file of the submission with v as JSON.
func (d *Dir) writeJSON(name string, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	return d.write(name, b.Bytes())
}

// readJSON reads a file of the submission.
func readJSON[T any](d *Dir, name string) (v T, err error) {
	text, err := regular.Read(d.at(name), maxNote)
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", d.at(name), err)
	}
	return v, err
}

// AddRound writes the start of the shards, and removes a cancellation.
func (d *Dir) AddRound(r sweep.Round) error {
	if err := os.Remove(d.at(cancelledFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return d.writeJSON(filepath.Join(roundsFolder, strconv.Itoa(r.Number)+".json"), r)
}

// Round returns the last round; ok is false if there is none.
func (d *Dir) Round() (r sweep.Round, ok bool, err error) {
	last := 0
	for _, name := range store.EntryNames(d.at(roundsFolder)) {
		if n, err := strconv.Atoi(strings.TrimSuffix(name, ".json")); err == nil {
			last = max(last, n)
		}
	}
	if last == 0 {
		return r, false, nil
	}
	r, err = readJSON[sweep.Round](d, filepath.Join(roundsFolder, strconv.Itoa(last)+".json"))
	r.Number = last
	return r, err == nil, err
}

// Cancel tells every task that the sweep is over.
func (d *Dir) Cancel() error { return d.write(cancelledFile, nil) }

// Over reports whether the sweep was cancelled or collected.
func (d *Dir) Over() bool { return d.has(cancelledFile) || d.has(collectedFile) }

func (d *Dir) has(name string) bool {
	_, err := os.Stat(d.at(name))
	return err == nil
}

// Scan returns what the files of a sweep show.
func (d *Dir) Scan() *sweep.Found {
	f := &sweep.Found{Name: d.Name(), Placed: map[int]bool{}, Notes: map[int]sweep.Note{}, Tries: d.Tries(-1)}
	stamp := d.Sub.Stamp() + "-"
	for _, name := range store.EntryNames(filepath.Dir(d.Path)) {
		text, ok := strings.CutPrefix(name, stamp)
		n, err := strconv.Atoi(text)
		if ok && err == nil && n >= 1 && n <= len(d.Sub.Points) && text == strconv.Itoa(n) {
			_, f.Placed[n-1] = d.RunDir(n - 1)
		}
	}
	for _, name := range store.EntryNames(d.at(notesFolder)) {
		if n, err := readJSON[sweep.Note](d, filepath.Join(notesFolder, name)); err == nil &&
			n.Point >= 0 && n.Point < len(d.Sub.Points) && name == noteName(n.Point) {
			f.Notes[n.Point] = n
		}
	}
	f.Cancelled, f.Collected = d.has(cancelledFile), d.has(collectedFile)
	return f
}

// about returns what the files show of one point.
func (d *Dir) about(point int) *sweep.Found {
	f := &sweep.Found{Placed: map[int]bool{}, Notes: map[int]sweep.Note{}}
	if _, f.Placed[point] = d.RunDir(point); f.Placed[point] {
		return f
	}
	if n, err := readJSON[sweep.Note](d, filepath.Join(notesFolder, noteName(point))); err == nil {
		f.Notes[point] = n
	}
	f.Tries = d.Tries(point)
	return f
}

// Tries returns the tries of a point, or with -1 of all points.
func (d *Dir) Tries(point int) (out []sweep.Try) {
	for _, name := range store.EntryNames(d.at(triesFolder)) {
		if point >= 0 && !strings.HasPrefix(name, fmt.Sprintf("%d-", point)) || filepath.Ext(name) != ".json" {
			continue
		}
		if t, err := readJSON[sweep.Try](d, filepath.Join(triesFolder, name)); err == nil {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b sweep.Try) int { return a.Began.Compare(b.Began) })
	return out
}

// noteName returns the name of the note about a point.
func noteName(point int) string { return fmt.Sprintf("%d.json", point) }

// note writes a note.
func (d *Dir) note(n sweep.Note) error {
	return d.writeJSON(filepath.Join(notesFolder, noteName(n.Point)), n)
}

// Forget removes the notes about points that another round tries again, and returns their number.
// A point about which machines disagree has a run; its second copy is removed.
func (d *Dir) Forget() (int, error) {
	count := 0
	for point, n := range d.Scan().Notes {
		if n.What == sweep.NeverStarted {
			continue
		}
		count++
		if err := os.Remove(d.at(notesFolder, noteName(point))); err != nil {
			return count, err
		}
	}
	return count, os.RemoveAll(d.at(differsFolder))
}

// Finish removes what only tasks need, once every point is settled. Tasks that still run end.
func (d *Dir) Finish() error {
	if err := d.write(collectedFile, nil); err != nil {
		return err
	}
	all := errors.Join(os.RemoveAll(d.at(workFolder)), os.RemoveAll(d.at(triesFolder)))
	for _, folder := range []string{"", roundsFolder, notesFolder} {
		for _, name := range store.EntryNames(d.at(folder)) {
			if len(filepath.Ext(name)) > len(rand.Text()) { // of a write whose process was killed
				all = errors.Join(all, os.Remove(d.at(folder, name)))
			}
		}
	}
	return all
}

// Reopen undoes Finish, for another round.
func (d *Dir) Reopen() error {
	var all error
	for _, name := range []string{triesFolder, workFolder} {
		if err := os.Mkdir(d.at(name), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			all = errors.Join(all, err)
		}
	}
	if err := os.Remove(d.at(collectedFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		all = errors.Join(all, err)
	}
	return all
}

// Settled returns the number of points that need no further try.
func (d *Dir) Settled() int {
	n := 0
	for f, i := d.Scan(), 0; i < len(d.Sub.Points); i++ {
		if sweep.Decide(f, 0, i) == sweep.Skip {
			n++
		}
	}
	return n
}
