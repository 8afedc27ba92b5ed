package store

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"weft/results/record"
)

// ReadSummary reads summary.json of a run directory.
func ReadSummary(dir string) (*record.Summary, error) {
	return readJSON[record.Summary](filepath.Join(dir, SummaryFile))
}

// ReadManifest reads manifest.json of a run directory. Of a run that could not say how it ended, because it was
// killed, it tells that: status failed instead of running. It knows so on the machine, and in the boot, of the run;
// elsewhere such a run seems to be running.
func ReadManifest(dir string) (*record.Manifest, error) {
	m, err := readJSON[record.Manifest](filepath.Join(dir, ManifestFile))
	if err == nil && m.Status == running && gone(m.Process) {
		m.Status, m.Error = "failed", "the run was killed"
	}
	return m, err
}

func readJSON[T any](path string) (*T, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	v := new(T)
	if err := json.Unmarshal(b, v); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return v, nil
}
