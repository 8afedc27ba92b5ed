package shard

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"weft/internal/regular"
	"weft/orchestrator/sweep"
	"weft/results/store"
)

// errForeign is returned if another command line has taken the place of a run.
var errForeign = errors.New("the place of the run is taken by a run of another command line; move that away, " +
	"and resume the sweep")

// Check returns an error if the place of a point's run is taken by one of another command line.
func (d *Dir) Check(point int) error {
	to := d.runDir(point)
	m, err := store.ReadManifest(to)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && (m.Series == nil || m.Series.ID != d.Sub.Series):
		err = errForeign
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", to, err)
	}
	return err
}

// place renames a finished run into the place of its point. If the place is taken, the copies are
// compared. A copy that differs from the first is kept for inspection, and noted.
func (d *Dir) place(point int, run, host string) error {
	to := d.runDir(point)
	err := os.Rename(run, to)
	if err == nil {
		return syncDir(filepath.Dir(to))
	}
	if !errors.Is(err, fs.ErrExist) && !errors.Is(err, unix.ENOTEMPTY) {
		return err
	}
	if err := d.Check(point); err != nil {
		return err
	}
	m, err := store.ReadManifest(to)
	if err != nil {
		return err
	}
	first, err := PrintOf(to)
	if err != nil {
		return err
	}
	second, err := PrintOf(run)
	if err != nil {
		return err
	}
	verdict, why := sweep.Compare(d.Sub.Kind, first, second)
	if verdict != sweep.Differ {
		return nil
	}
	if err := os.MkdirAll(d.at(differsFolder), 0o755); err != nil {
		return err
	}
	if err := os.Rename(run, d.at(differsFolder, filepath.Base(run)+"-"+rand.Text())); err != nil {
		return err
	}
	return d.note(sweep.Note{Point: point, What: sweep.Disagrees, Error: why + "; the second copy is in " +
		d.at(differsFolder), Hosts: []string{m.Machine.Host, host}})
}

// syncDir makes the renames in a directory durable, where the file system can.
func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		err = nil
	}
	return errors.Join(err, f.Close())
}

// timed returns the keys of a JSON file of a run that depend on the machine or the time, and
// whether the file is one with such keys.
func timed(name string) (keys []string, is bool) {
	switch name {
	case store.ManifestFile:
		return []string{"run", "started", "ended", "process", "machine", "go", "series", "files"}, true
	case store.SummaryFile:
		return []string{"run", "wall_s"}, true
	}
	return nil, false
}

// derived are files for people that show when and where a run ran. They follow from the others.
var derived = []string{"report.html"}

// PrintOf returns the fingerprint of a run directory.
func PrintOf(run string) (sweep.Print, error) {
	out := sweep.Print{}
	err := filepath.WalkDir(run, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(run, path)
		if err != nil || slices.Contains(derived, name) {
			return err
		}
		out[name], err = hashOf(path, name)
		return err
	})
	return out, err
}

// hashOf returns the hash of a file of a run, without what depends on the machine or the time.
func hashOf(path, name string) (string, error) {
	keys, is := timed(name)
	if !is {
		f, err := regular.Open(path)
		if err != nil {
			return "", err
		}
		h := sha256.New()
		_, err = io.Copy(h, f)
		return hex.EncodeToString(h.Sum(nil)), errors.Join(err, f.Close())
	}
	text, err := regular.Read(path, sweep.MaxText)
	if err != nil {
		return "", err
	}
	var v map[string]json.RawMessage
	if err := json.Unmarshal(text, &v); err != nil {
		return "", fmt.Errorf("%s: damaged: %w", path, err)
	}
	for _, k := range keys {
		delete(v, k)
	}
	text, err = json.Marshal(v) // sorts the keys
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}
