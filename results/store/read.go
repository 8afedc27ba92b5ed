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

// ReadManifest reads manifest.json of a run directory.
func ReadManifest(dir string) (*record.Manifest, error) {
	return readJSON[record.Manifest](filepath.Join(dir, ManifestFile))
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
