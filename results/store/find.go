package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"weft/internal/natural"
	"weft/internal/nearest"
	"weft/results/record"
)

// SweepFile is the file with the record.Sweep of a sweep, in a directory beside those of its runs.
const SweepFile = "sweep.json"

// IsRun reports whether dir is the directory of a run.
func IsRun(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, ManifestFile))
	return err == nil
}

// Runs returns the run directories of a lab, or of all labs if lab is empty, below root. If some
// directories cannot be read, it returns the other runs and the first reason. The error is
// fs.ErrNotExist if there is no root.
func Runs(root, lab string) (out []string, err error) {
	labs, err := names(root)
	if err != nil {
		return nil, err
	}
	if lab != "" {
		labs = []string{lab}
	}
	var unread []error
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
	if err != nil && !isNoDirectory(err) {
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

// isNoDirectory reports whether an error means that a path is no directory, or does not exist.
func isNoDirectory(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)
}

// names returns the names in a directory.
func names(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = e.Name()
	}
	return out, err
}

// EntryNames returns the names in a directory, none if it cannot be read.
func EntryNames(dir string) []string {
	out, _ := names(dir)
	return out
}

// Find returns the run directories that a name stands for, as a path or below root: a run, the
// points of a sweep, or the newest runs of a lab. It is empty if the name stands for no run; the
// error is the reason if that is a directory that cannot be read.
func Find(root, name string) ([]string, error) {
	var unread []error
	for _, dir := range []string{name, filepath.Join(root, name)} {
		_, err := os.Stat(filepath.Join(dir, ManifestFile))
		if err == nil {
			return []string{dir}, nil
		}
		if !isNoDirectory(err) {
			unread = append(unread, err)
		}
		if runs := sweepRuns(dir); len(runs) > 0 {
			return runs, nil
		}
		if runs := newestRuns(dir); len(runs) > 0 {
			return runs, nil
		}
		_, errs := runsIn(dir)
		unread = append(unread, errs...)
	}
	if len(unread) > 0 {
		return nil, unread[0]
	}
	return nil, nil
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
			if d := nearest.Edits(base, candidate); d < distance && (IsRun(path) || len(newestRuns(path)) > 0) {
				best, distance = folder+candidate, d
			}
		}
	}
	return best
}

// Newest returns the newest runs of every lab below root.
func Newest(root string) (dirs []string) {
	for _, lab := range EntryNames(root) {
		dirs = append(dirs, newestRuns(filepath.Join(root, lab))...)
	}
	return dirs
}

// newestRuns returns the runs in the directory of a lab that the last command made, in the order of
// their numbers. The runs of a command share a series; several commands may have begun in the same
// second, which is the first part of the names. Of a run and its retry it returns the one that
// counts.
func newestRuns(folder string) []string {
	type found struct {
		dir    string
		number int // in the series
	}
	stamp := "" // the latest second in which a run began
	names := EntryNames(folder)
	for _, name := range names {
		if s, _, ok := strings.Cut(name, "-"); ok && s > stamp && IsRun(filepath.Join(folder, name)) {
			stamp = s
		}
	}
	var last, started string // the series that began last, and when
	series := map[string][]found{}
	dropped := map[string]bool{} // of a run and its retry, the one that does not count
	for _, name := range names {
		dir := filepath.Join(folder, name)
		if s, _, ok := strings.Cut(name, "-"); !ok || s != stamp || !IsRun(dir) {
			continue
		}
		var id, began string // empty for a damaged manifest
		f := found{dir: dir}
		if m, err := ReadManifest(dir); err == nil && m.Series != nil {
			id, began, f.number = m.Series.ID, m.Started, m.Series.Number
			if r := m.Retry; r != nil && r.Counts {
				dropped[filepath.Base(r.Of)] = true
			} else if r != nil {
				dropped[name] = true
			}
		}
		series[id] = append(series[id], f)
		if began >= started {
			last, started = id, began
		}
	}
	runs := series[last]
	slices.SortFunc(runs, func(x, y found) int { return cmp.Or(x.number-y.number, natural.Compare(x.dir, y.dir)) })
	var out []string
	for _, f := range runs {
		if !dropped[filepath.Base(f.dir)] {
			out = append(out, f.dir)
		}
	}
	return out
}

// sweepRuns returns the runs of the sweep that dir is about; none if dir is not about a sweep.
func sweepRuns(dir string) []string {
	sweep, _, err := readJSON[record.Sweep](filepath.Join(dir, SweepFile), maxJSON)
	if err != nil {
		return nil
	}
	var out []string
	for _, p := range sweep.Points {
		if run := filepath.Join(filepath.Dir(filepath.Clean(dir)), filepath.Base(p.Run)); p.Run != "" && IsRun(run) {
			out = append(out, run)
		}
	}
	return out
}

// NotRun returns the points that an interruption left out of the sweep of a run, as summaries
// without a run.
func NotRun(run string) (out []*record.Summary) {
	m, err := ReadManifest(run)
	if err != nil || m.Series == nil || m.Series.Sweep == "" {
		return nil
	}
	folder := filepath.Join(filepath.Dir(filepath.Clean(run)), filepath.Base(m.Series.Sweep))
	sweep, _, err := readJSON[record.Sweep](filepath.Join(folder, SweepFile), maxJSON)
	if err != nil {
		return nil
	}
	for _, p := range sweep.Points {
		if p.Run == "" && p.Status == record.Interrupted {
			out = append(out, record.NotRun(sweep.Lab, p.Point, m.Engine, p.Status, p.Error))
		}
	}
	return out
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
