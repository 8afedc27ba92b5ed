package store

import (
	"fmt"
	"os"
)

// reserveSize is room for the last manifest and the summary, which are to be written even when data has filled
// the disk. Each takes about a tenth of it. Ours.
const reserveSize = 64 << 10

// reserve takes room on the disk that holds dir until the file is closed. The file has no name, so that it goes
// with the process however that ends.
func reserve(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, ".reserve-*")
	if err != nil {
		return nil, err
	}
	if err = os.Remove(f.Name()); err == nil {
		_, err = f.Write(make([]byte, reserveSize))
	}
	if err != nil {
		_ = f.Close() // the first error is what matters
		return nil, fmt.Errorf("room for a summary: %w", err)
	}
	return f, nil
}
