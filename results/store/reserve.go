package store

import (
	"fmt"
	"os"
)

// reserveSize is the disk space, in bytes, for the last manifest and the summary, which must be
// written even if data has filled the disk. Each takes about a tenth of it. Our choice.
const reserveSize = 64 << 10

// reserve takes space on the disk of dir until the returned file is closed. The file has no name,
// so it disappears with the process however that ends.
func reserve(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, ".reserve-*")
	if err != nil {
		return nil, err
	}
	if err = os.Remove(f.Name()); err == nil {
		_, err = f.Write(make([]byte, reserveSize))
	}
	if err != nil {
		_ = f.Close() // the first error matters more
		return nil, fmt.Errorf("reserve disk space for the summary: %w", err)
	}
	return f, nil
}
