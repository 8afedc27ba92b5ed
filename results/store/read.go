package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"weft/internal/regular"
	"weft/results/record"
)

// maxJSON is how large a summary or a manifest is believed to be.
const maxJSON = 64 << 20

// ReadSummary reads summary.json of a run directory, and holds it against the manifest.
func ReadSummary(dir string) (*record.Summary, error) {
	s, text, err := readJSON[record.Summary](filepath.Join(dir, SummaryFile))
	if errors.Is(err, fs.ErrNotExist) {
		if err := absent(dir, SummaryFile); errors.Is(err, errRemoved) {
			return nil, fmt.Errorf("%s: %w", filepath.Join(dir, SummaryFile), err)
		}
		return nil, fmt.Errorf("%s has no summary: %w", dir, unfinished(dir))
	}
	if err != nil {
		return nil, err
	}
	if err := known(filepath.Join(dir, SummaryFile), s.Format); err != nil {
		return nil, err
	}
	m, err := ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range m.Files {
		if f.Name == SummaryFile && (f.Bytes != int64(len(text)) || f.Sum != checksum(text)) {
			return nil, fmt.Errorf("%s: it was changed or damaged after the run", filepath.Join(dir, SummaryFile))
		}
	}
	return s, nil
}

// ErrNoSummary is that a run has not ended, or ended without a summary.
var ErrNoSummary = errors.New("the run left none")

// unfinished says why there is no summary.
func unfinished(dir string) error {
	m, err := ReadManifest(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w, nor a manifest: it is no run directory", ErrNoSummary)
	case err != nil:
		return err
	case m.Status == record.Running:
		return fmt.Errorf("%w: it is still running", ErrNoSummary)
	}
	return fmt.Errorf("%w: %s", ErrNoSummary, m.Error)
}

// ReadManifest reads manifest.json of a run directory. Of a run that could not say how it ended, because it was
// killed, it tells that: status failed instead of running. It knows so on the machine, and in the boot, of the run;
// elsewhere such a run seems to be running.
func ReadManifest(dir string) (*record.Manifest, error) {
	m, _, err := readJSON[record.Manifest](filepath.Join(dir, ManifestFile))
	if err != nil {
		return nil, err
	}
	if err := known(filepath.Join(dir, ManifestFile), m.Format); err != nil {
		return nil, err
	}
	if m.Status == record.Running && gone(m.Process) {
		m.Status, m.Error = record.Failed, "the run was killed"
	}
	return m, nil
}

// known refuses what this program cannot read.
func known(path string, version int) error {
	switch {
	case version > Format:
		return fmt.Errorf("%s: it has format %d; this weft reads up to %d: take a newer weft", path, version, Format)
	case version < 1:
		return fmt.Errorf("%s: it names no format: it is of an older weft, or no file of a run; run the lab again", path)
	}
	return nil
}

func readJSON[T any](path string) (_ *T, text []byte, err error) {
	if text, err = regular.Read(path, maxJSON); err != nil {
		return nil, nil, err
	}
	v := new(T)
	if err := json.Unmarshal(text, v); err != nil {
		return nil, nil, fmt.Errorf("%s: it is damaged: %w", path, err)
	}
	return v, text, nil
}

// ReadLab reads the lab file that a run directory keeps; empty where it keeps none.
func ReadLab(dir string) (string, error) {
	text, err := regular.Read(filepath.Join(dir, LabFile), maxJSON)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(text), err
}
