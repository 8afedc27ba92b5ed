package store

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"weft/internal/clip"
	"weft/internal/natural"
	"weft/internal/nearest"
	"weft/results/record"
)

// SweepFile is the file with the record.Sweep of a sweep, in a directory beside those of its runs.
const SweepFile = "sweep.json"

// WriteSweep replaces the sweep.json of a sweep's directory.
func WriteSweep(dir string, s record.Sweep) error { return writeJSON(filepath.Join(dir, SweepFile), s) }

// IsRun reports whether dir is the directory of a run.
func IsRun(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, ManifestFile))
	return err == nil
}

// Runs returns the run directories of a lab, or of all labs if lab is empty, below root. If some
// directories cannot be read, it returns the other runs and the first reason. The error is
// fs.ErrNotExist if there is no root.
func Runs(root, lab string) (out []string, err error) {
	var unread []error
	labs, err := names(root)
	switch {
	case errors.Is(err, errUnprintable) && lab == "":
		unread = append(unread, err)
	case err != nil && !errors.Is(err, errUnprintable):
		return nil, err
	}
	if lab != "" {
		labs = []string{lab}
	}
	for _, l := range labs {
		dirs, errs := runsIn(filepath.Join(root, l))
		out, unread = append(out, dirs...), append(unread, errs...)
	}
	if n := len(unread) - 1; n > 0 {
		return out, fmt.Errorf("%w; %d more cannot be read", unread[0], n)
	}
	return out, errors.Join(unread...)
}

// runsIn returns the run directories in a directory, and the errors of what cannot be read. A path
// that is no directory holds none.
func runsIn(dir string) (out []string, unread []error) {
	all, err := names(dir)
	switch {
	case errors.Is(err, errUnprintable):
		unread = append(unread, err)
	case err != nil && !isNoDirectory(err):
		return nil, []error{err}
	}
	for _, name := range all {
		run := filepath.Join(dir, name)
		switch _, err := os.Stat(filepath.Join(run, ManifestFile)); {
		case err == nil:
			out = append(out, run)
		case !isNoDirectory(err):
			unread = append(unread, err)
		}
	}
	return out, unread
}

// Sweeps returns the directories of sweeps in those of the runs that Runs returns.
func Sweeps(runs []string) (out []string) {
	done := map[string]bool{}
	for _, run := range runs {
		folder := filepath.Dir(run)
		if done[folder] {
			continue
		}
		done[folder] = true
		for _, name := range EntryNames(folder) {
			if isSweep(folder, name) {
				out = append(out, filepath.Join(folder, name))
			}
		}
	}
	return out
}

// ReadSweep reads the sweep.json of a sweep's directory.
func ReadSweep(dir string) (*record.Sweep, error) {
	s, _, err := readJSON[record.Sweep](filepath.Join(dir, SweepFile), maxJSON)
	return s, err
}

// isNoDirectory reports whether an error means that a path is no directory, or does not exist.
func isNoDirectory(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)
}

// names returns the names in a directory that print, and errUnprintable if there are others.
func names(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	var out []string
	for _, e := range entries {
		if name := e.Name(); cleanText(name, false) == name {
			out = append(out, name)
		} else if err == nil {
			err = fmt.Errorf("%w: %s", errUnprintable, clip.Line(filepath.Join(dir, name)))
		}
	}
	return out, err
}

// errUnprintable is returned for a directory with a name that is left out: messages would have it.
var errUnprintable = fmt.Errorf("left out, since its name has characters that do not print (rename it): %w",
	fs.ErrInvalid)

// EntryNames returns the names in a directory, none if it cannot be read.
func EntryNames(dir string) []string {
	out, _ := names(dir)
	return out
}

// Found is what a name of runs stands for.
type Found struct {
	Runs []string // directories; those of a sweep in the order of its points
	// Points are the points of a sweep's runs, by directory. A reused run may have recorded
	// another: it was made alone, or in a sweep of other settings.
	Points map[string]map[string]any
	// Lacking are the points of a sweep without a run, as summaries with the reason: an
	// interruption left them out, or their directories are gone.
	Lacking []*record.Summary
	// Judged are the expectations across the points of the sweeps: see record.AcrossPoints. Of a
	// sweep that has not ended it has none, but a summary that says so.
	Judged []*record.Summary
	// Labs says that the runs are those of all labs in a directory, which may be one.
	Labs bool
	// Open says that a sweep of the runs has not ended: it continues, or was killed.
	Open bool
	// Submitted is the directory of an open sweep of weft sweep submit; empty: there is none.
	Submitted string
}

// Span returns the first and the last run by their names, which have other orders than the points.
func (f *Found) Span() (first, last string) {
	return slices.MinFunc(f.Runs, natural.Compare), slices.MaxFunc(f.Runs, natural.Compare)
}

func (f *Found) add(other Found) {
	f.Open = f.Open || other.Open
	f.Runs, f.Lacking = append(f.Runs, other.Runs...), append(f.Lacking, other.Lacking...)
	f.Submitted = cmp.Or(f.Submitted, other.Submitted)
	f.Judged = append(f.Judged, other.Judged...)
	if f.Points == nil {
		f.Points = map[string]map[string]any{}
	}
	maps.Copy(f.Points, other.Points)
}

// Find returns what a name stands for, as a path or below root: a run, a sweep, or the newest runs
// of a lab. It has no runs if the name stands for none; the error is the reason if that is a
// directory that cannot be read.
func Find(root, name string) (Found, error) {
	var unread []error
	for _, dir := range []string{name, filepath.Join(root, name)} {
		_, err := os.Stat(filepath.Join(dir, ManifestFile))
		if err == nil {
			return Found{Runs: []string{dir}}, nil
		}
		if !isNoDirectory(err) {
			unread = append(unread, err)
		}
		for _, find := range []func(string) (Found, error){sweepRuns, newestRuns} {
			if found, err := find(dir); err != nil {
				unread = append(unread, err)
			} else if len(found.Runs) > 0 {
				return found, nil
			}
		}
		_, errs := runsIn(dir)
		unread = append(unread, errs...)
	}
	if len(unread) > 0 {
		return Found{}, unread[0]
	}
	return Found{}, nil
}

// Near returns the name that Find knows below root and that is most like a name that it does not
// know: of a lab with runs, or of a run beside it. It is empty if none is similar.
func Near(root, name string) string {
	folder, base := filepath.Split(filepath.Clean(name))
	best, distance := "", len(base)/3+1
	for _, parent := range []string{folder, filepath.Join(root, folder)} {
		if parent == "" {
			continue
		}
		for _, candidate := range EntryNames(parent) {
			path := filepath.Join(parent, candidate)
			found, _ := newestRuns(path) // what cannot be read is not proposed
			if d := nearest.Edits(base, candidate); d < distance && (IsRun(path) || len(found.Runs) > 0) {
				best, distance = folder+candidate, d
			}
		}
	}
	return best
}

// Newest returns the newest runs of every lab below root. The error is that of the first lab whose
// runs cannot be read.
func Newest(root string) (all Found, unread error) {
	all.Labs = true
	for _, lab := range EntryNames(root) {
		found, err := newestRuns(filepath.Join(root, lab))
		all.add(found)
		unread = cmp.Or(unread, err)
	}
	return all, unread
}

// sweepPrefix begins the names of the directories of sweeps; the second in which the sweep started
// follows, as in the names of runs.
const sweepPrefix = "sweep-"

// stampOf returns the second in which the run or sweep of a directory began, by its name.
func stampOf(name string) string {
	stamp, _, _ := strings.Cut(strings.TrimPrefix(name, sweepPrefix), "-")
	return stamp
}

// command is what one command line left in the directory of a lab.
type command struct {
	began  string // RFC 3339
	runs   map[string]*record.Manifest
	sweeps map[string]bool
}

// newestRuns returns the runs in the directory of a lab that belong to its last command line: the
// points of its sweeps, reused ones among them, and its other runs in the order of their numbers.
// Several command lines may have begun in the same second, which names of runs and sweeps have;
// their series tells them apart. Of a run and its retry it returns the one that counts. The error
// is that the last command line left a sweep that cannot be read.
func newestRuns(folder string) (found Found, err error) {
	all := EntryNames(folder)
	isSweep := func(name string) bool { return strings.HasPrefix(name, sweepPrefix) && isSweep(folder, name) }
	stamp := ""
	for _, name := range all {
		if s := stampOf(name); s > stamp && (isSweep(name) || IsRun(filepath.Join(folder, name))) {
			stamp = s
		}
	}
	var last *command
	commands := map[string]*command{} // by series
	for _, name := range all {
		if stamp == "" || stampOf(name) != stamp {
			continue
		}
		series, began := "", ""
		m, err := ReadManifest(filepath.Join(folder, name))
		switch {
		case err == nil && m.Series != nil:
			series, began = m.Series.ID, m.Started
		case isSweep(name):
			sweep, _, err := readJSON[record.Sweep](filepath.Join(folder, name, SweepFile), maxJSON)
			if err != nil || sweep.Series == "" {
				continue // the manifests of its runs name it
			}
			series, began = sweep.Series, sweep.Started
		case !IsRun(filepath.Join(folder, name)):
			continue
		}
		c := commands[series]
		if c == nil {
			c = &command{runs: map[string]*record.Manifest{}, sweeps: map[string]bool{}}
			commands[series] = c
		}
		if began >= c.began {
			c.began = began
		}
		switch {
		case isSweep(name):
			c.sweeps[name] = true
		default:
			c.runs[name] = m // nil if it is damaged
			if m != nil && m.Series != nil && m.Series.Sweep != "" {
				if sweep := filepath.Base(m.Series.Sweep); isSweep(sweep) {
					c.sweeps[sweep] = true
				}
			}
		}
		if last == nil || c.began >= last.began {
			last = c
		}
	}
	if last != nil {
		return last.found(folder)
	}
	return found, nil
}

// isSweep reports whether a directory of a lab's directory is about a sweep.
func isSweep(folder, name string) bool {
	_, err := os.Stat(filepath.Join(folder, name, SweepFile))
	return err == nil
}

// found returns the runs of a command line in the directory of a lab.
func (c *command) found(folder string) (found Found, err error) {
	for _, sweep := range slices.Sorted(maps.Keys(c.sweeps)) {
		of, err := sweepRuns(filepath.Join(folder, sweep))
		if err != nil {
			return found, err
		}
		found.add(of)
	}
	have := map[string]bool{}
	for _, dir := range found.Runs {
		have[dir] = true
	}
	for _, name := range c.counting() {
		if dir := filepath.Join(folder, name); !have[dir] {
			found.Runs = append(found.Runs, dir)
		}
	}
	return found, nil
}

// counting returns the names of the runs in the order of their numbers, without those that a retry
// or the run that it repeats replaces.
func (c *command) counting() []string {
	dropped := map[string]bool{}
	number := map[string]int{}
	for name, m := range c.runs {
		if m == nil {
			continue
		}
		if m.Series != nil {
			number[name] = m.Series.Number
		}
		if r := m.Retry; r != nil && r.Counts {
			dropped[filepath.Base(r.Of)] = true
		} else if r != nil {
			dropped[name] = true
		}
	}
	out := slices.DeleteFunc(slices.Collect(maps.Keys(c.runs)), func(name string) bool { return dropped[name] })
	slices.SortFunc(out, func(x, y string) int { return cmp.Or(number[x]-number[y], natural.Compare(x, y)) })
	return out
}

// sweepRuns returns the points of the sweep that dir is about; nothing if dir is not about a sweep.
// The runs are beside dir, and may be of earlier command lines. While a sweep runs, or if it was
// killed, its runs are those whose manifests name it.
func sweepRuns(dir string) (found Found, err error) {
	sweep, _, err := readJSON[record.Sweep](filepath.Join(dir, SweepFile), maxJSON)
	if isNoDirectory(err) {
		return found, nil
	}
	if err == nil && len(sweep.Points) == 0 {
		err = fmt.Errorf("%s: damaged: it has no points", filepath.Join(dir, SweepFile))
	}
	if err != nil {
		return found, err
	}
	folder := filepath.Dir(filepath.Clean(dir))
	found.Points = map[string]map[string]any{}
	var own map[string]string // by point; nil: not read yet
	named := map[string]bool{}
	for _, p := range sweep.Points {
		run, why := p.Run, p.Error
		found.Open = found.Open || p.Status == record.Running
		if run == "" && p.Status == record.Running {
			if own == nil {
				own = runsOf(folder, filepath.Base(filepath.Clean(dir)))
			}
			run, why = own[PointKey(p.Point)], "not run yet, or the sweep was killed or cancelled"
		}
		path := filepath.Join(folder, filepath.Base(run))
		lost := ""
		if run != "" {
			lost = lostRun(path, filepath.Base(run), sweep.Lab, &p, named)
		}
		if run != "" && lost == "" {
			found.Runs, found.Points[path] = append(found.Runs, path), p.Point
			continue
		}
		s := record.NotRun(sweep.Lab, p.Point, sweep.Engine, p.Status, why)
		s.Seed = p.Seed
		switch {
		case lost != "":
			s.Status, s.Error = record.Failed, lost
		case s.Status == record.Running:
			s.Status = record.Interrupted
		}
		found.Lacking = append(found.Lacking, s)
	}
	judged := sweep.Across()
	if found.Open {
		if sweep.Submitted {
			found.Submitted = dir
		}
		judged = record.AcrossPoints(sweep.Lab, sweep.Engine, nil)
		judged.Status = record.Running
		judged.Error = "the sweep has not ended: nothing was judged across points"
	}
	if judged != nil {
		found.Judged = append(found.Judged, judged)
	}
	return found, nil
}

// lostRun returns why a directory, which is called name for people, does not have the run of a
// point; "" if it has. named has the directories of other points, to which this one is added.
func lostRun(dir, name, lab string, p *record.SweepPoint, named map[string]bool) string {
	_, err := os.Stat(dir)
	again := named[dir]
	named[dir] = true
	switch {
	case err != nil:
		return fmt.Sprintf("its directory %s is gone", name)
	case !IsRun(dir):
		return fmt.Sprintf("its directory %s has no %s", name, ManifestFile)
	case again, ofOtherPoint(dir, lab, p):
		return fmt.Sprintf("its directory %s has the run of another point", name)
	}
	return ""
}

// ofOtherPoint reports whether the manifest in a directory contradicts the point of a sweep that
// names it. Another sweep or a single run may have made it, with other paths in its point.
func ofOtherPoint(dir, lab string, p *record.SweepPoint) bool {
	m, err := ReadManifest(dir)
	if err != nil {
		return false // whoever reads the run says so
	}
	if OtherPoint(m.Point, p.Point) {
		return true
	}
	return m.Lab != lab || p.Seed != 0 && m.Seed != p.Seed // an older sweep does not have seeds
}

// OtherPoint reports whether two points have different values at a path of both.
func OtherPoint(a, b map[string]any) bool {
	for path, value := range a {
		if other, both := b[path]; both && number(value) != number(other) {
			return true
		}
	}
	return false
}

// number returns a whole number as JSON has it, and other values as they are.
func number(value any) any {
	if n, is := value.(int64); is {
		return float64(n)
	}
	return value
}

// runsOf returns the names of the runs in the directory of a lab whose manifests name a sweep, by
// their points. Of a run and its retry it has the one that counts.
func runsOf(folder, sweep string) map[string]string {
	c := command{runs: map[string]*record.Manifest{}}
	for _, name := range EntryNames(folder) {
		m, err := ReadManifest(filepath.Join(folder, name))
		if err == nil && m.Series != nil && filepath.Base(m.Series.Sweep) == sweep {
			c.runs[name] = m
		}
	}
	out := map[string]string{}
	for _, name := range c.counting() {
		out[PointKey(c.runs[name].Point)] = name
	}
	return out
}

// PointKey returns a point as text: the same for the same values. Keys of JSON objects are sorted.
func PointKey(point map[string]any) string {
	text, _ := json.Marshal(point) // it was read from JSON
	return string(text)
}

// Manifests returns the manifests of all runs in a directory, newest first, without unreadable
// ones.
func Manifests(folder string) []*record.Manifest {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	var out []*record.Manifest
	for _, e := range slices.Backward(entries) {
		dir := filepath.Join(folder, e.Name())
		if m, err := ReadManifest(dir); err == nil {
			m.Run = dir // the results may have been moved
			out = append(out, m)
		}
	}
	return out
}

// NewestComplete returns the newest run beside dir, dir included, that reached its end, or dir if
// none did.
func NewestComplete(dir string) string {
	runs, _ := runsIn(filepath.Dir(dir)) // what cannot be read is not complete
	slices.SortFunc(runs, func(a, b string) int { return natural.Compare(b, a) })
	for _, run := range runs {
		if s, err := ReadSummary(run); err == nil && s.Complete() {
			return run
		}
	}
	return dir
}
