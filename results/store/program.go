package store

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"io"
	"os"
	"sync"
)

// Program returns an identity of this program's binary. A finished run is reused only by the same
// program. It is empty if the binary cannot be read.
var Program = sync.OnceValue(func() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // only read
	h := sha256.New()
	if id := buildID(f); id != nil {
		h.Write(id)
	} else if _, err := io.Copy(h, f); err != nil {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
})

// buildID returns the build ID that the Go linker writes: hashes of the inputs and of the output.
// Hashing the binary itself would take as long as a short simulation. It is nil without a build ID.
func buildID(f io.ReaderAt) []byte {
	file, err := elf.NewFile(f)
	if err != nil {
		return nil
	}
	note := file.Section(".note.go.buildid")
	if note == nil {
		return nil
	}
	desc, err := note.Data()
	// elf(5): three sizes and the name come first.
	if err != nil || len(desc) < 16 || !bytes.Equal(desc[12:16], []byte("Go\x00\x00")) {
		return nil
	}
	if desc = desc[16:]; len(bytes.Trim(desc, "\x00")) == 0 {
		return nil
	}
	return desc
}
