package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"weft/internal/clip"
	"weft/internal/regular"
	"weft/results/record"
)

// maxJSON limits the size of a summary or a manifest, in bytes.
const maxJSON = 64 << 20

// ReadSummary reads summary.json of a run directory, and compares it with the manifest. Without a
// summary the error is ErrNoSummary with the reason. If the summary contradicts itself or the
// manifest, it is ErrContradicts.
func ReadSummary(dir string) (*record.Summary, error) {
	path := filepath.Join(dir, SummaryFile)
	s, text, err := readJSON[record.Summary](path, maxJSON)
	if errors.Is(err, fs.ErrNotExist) {
		if err := missingFileError(dir, SummaryFile); errors.Is(err, errRemoved) {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return nil, fmt.Errorf("%s: %w", dir, noSummaryError(dir))
	}
	if err != nil {
		return nil, err
	}
	if err := checkFormat(path, s.Format); err != nil {
		return nil, err
	}
	m, err := ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(m.Files, func(f record.File) bool { return f.Name == SummaryFile })
	switch {
	case i < 0 && unsealed(m):
		return nil, fmt.Errorf("%s: %w", dir, noSummaryError(dir)) // the run wrote it, and not yet its end
	case i < 0:
		return nil, fmt.Errorf("%s: %w", path, errUnlisted)
	case m.Files[i].Bytes != int64(len(text)) || m.Files[i].Sum != checksum(text):
		return nil, fmt.Errorf("%s: %w", path, errChanged)
	}
	if at := s.Negative(); at != "" {
		return nil, fmt.Errorf("%s: damaged: %s is negative, which no run can measure; run the lab again", path, at)
	}
	if err := checkConsistent(path, text, s, m); err != nil {
		return nil, err
	}
	s.LackAbsent(text)
	return s, nil
}

// errUnlisted is returned for a file of a run that ended, which its manifest does not list: nothing
// tells whether it is as the run left it.
var errUnlisted = fmt.Errorf("changed or damaged: %s has no checksum of it", ManifestFile)

// unsealed reports whether a run is in progress, or was killed before it wrote its end: then its
// manifest lists no files.
func unsealed(m *record.Manifest) bool {
	return m.Ended == "" && len(m.Files) == 0 && (m.Status == record.Running || m.Status == record.Failed)
}

// ErrNoSummary is returned for a run that is in progress, or that ended without a summary.
var ErrNoSummary = errors.New("no summary")

// noSummaryError returns the reason for a missing summary.
func noSummaryError(dir string) error {
	m, err := ReadManifest(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w and no manifest: this is not a run directory", ErrNoSummary)
	case err != nil:
		return err
	case m.Status == record.Running:
		return fmt.Errorf("%w: the run is in progress", ErrNoSummary)
	}
	return fmt.Errorf("%w: %s", ErrNoSummary, m.Error)
}

// ReadManifest reads manifest.json of a run directory. A run that was killed could not write its
// end; ReadManifest returns status failed for it instead of running. It can see that only on the
// machine of the run and before its next boot; elsewhere such a run seems to be running.
func ReadManifest(dir string) (*record.Manifest, error) {
	m, _, err := readJSON[record.Manifest](filepath.Join(dir, ManifestFile), maxJSON)
	if err != nil {
		return nil, err
	}
	if err := checkFormat(filepath.Join(dir, ManifestFile), m.Format); err != nil {
		return nil, err
	}
	if m.Status == record.Running && hasEnded(m.Process) {
		m.Status, m.Error = record.Failed, "the run was killed"
	}
	return m, nil
}

// Damage says which files that the manifest lists are gone or have another size than the run left,
// "" if none. It does not read them: DamageInside does.
func Damage(dir string, m *record.Manifest) string {
	return damage(dir, m, func(record.File) bool { return true })
}

// DamageInside is Damage that also reads the files, and compares their checksums.
func DamageInside(dir string, m *record.Manifest) string {
	return damage(dir, m, func(f record.File) bool {
		is, err := fileSum(filepath.Join(dir, f.Name))
		return err == nil && is.Sum == f.Sum
	})
}

// damage is Damage with a check of the files that have the right size.
func damage(dir string, m *record.Manifest, intact func(record.File) bool) string {
	var gone, changed []string
	for _, f := range m.Files {
		info, err := os.Lstat(filepath.Join(dir, f.Name)) // also one in a folder: part of a job
		switch {
		case !filepath.IsLocal(f.Name): // not written by a run
			changed = append(changed, f.Name)
		case errors.Is(err, fs.ErrNotExist):
			gone = append(gone, f.Name)
		case err != nil || !info.Mode().IsRegular() || info.Size() != f.Bytes || !intact(f):
			changed = append(changed, f.Name)
		}
	}
	var parts []string
	for _, is := range []struct {
		names []string
		what  string
	}{{gone, "removed"}, {changed, "changed or damaged"}} {
		if len(is.names) > 0 {
			parts = append(parts, fmt.Sprintf("%s after the run: %s", is.what, strings.Join(is.names, ", ")))
		}
	}
	return strings.Join(parts, "; ")
}

// checkFormat returns an error for a format that this program cannot read.
func checkFormat(path string, version int) error {
	switch {
	case version > Format:
		return fmt.Errorf("%s: %w", path, newerFormat(version))
	case version < 1:
		return fmt.Errorf("%s: no format: written by an older weft, or not part of a run; run the lab again", path)
	}
	return nil
}

// newerFormat returns the error for a format of a later version.
func newerFormat(version int) error {
	return fmt.Errorf("format %d is newer than %d, the newest that this weft reads: use a newer weft", version, Format)
}

// readJSON parses a JSON file of up to most bytes, and returns its text too. It is the only reader
// of the JSON files of runs and sweeps: what it returns is clean.
func readJSON[T any](path string, most int64) (_ *T, text []byte, err error) {
	if text, err = regular.Read(path, most); err != nil {
		return nil, nil, err
	}
	v := new(T)
	if err := json.Unmarshal(text, v); err != nil {
		return nil, nil, fmt.Errorf("%s: damaged: %s", path, clip.Line(err.Error()))
	}
	clean(reflect.ValueOf(v), false)
	return v, text, nil
}

// ReadLab reads the lab file of a run directory; empty if the run kept none.
func ReadLab(dir string) (string, error) {
	text, err := regular.Read(filepath.Join(dir, LabFile), maxJSON)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(text), err
}

// maxNetwork is the largest accepted network.json in bytes: enough for 100,000 hosts.
const maxNetwork = 256 << 20

// ReadNetwork reads network.json of a run directory.
func ReadNetwork(dir string) (*record.NetworkMap, error) {
	m, _, err := readJSON[record.NetworkMap](filepath.Join(dir, NetworkFile), maxNetwork)
	return m, err
}
