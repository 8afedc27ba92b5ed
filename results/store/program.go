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

// Program tells this program from every other: what makes a finished run worth keeping. Empty when its file cannot be read.
var Program = sync.OnceValue(func() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // it was only read
	id := buildID(f)
	if id == nil {
		h := sha256.New()
		if _, err := io.Copy(h, f); err != nil {
			return ""
		}
		return hex.EncodeToString(h.Sum(nil)[:16])
	}
	sum := sha256.Sum256(id)
	return hex.EncodeToString(sum[:16])
})

// buildID is what the go command writes into a program it has linked: hashes of all that went into it and of what came out. To hash
// the file itself takes as long as a short simulation. nil: it is not there.
func buildID(f io.ReaderAt) []byte {
	file, err := elf.NewFile(f)
	if err != nil {
		return nil
	}
	note := file.Section(".note.go.buildid")
	if note == nil {
		return nil
	}
	data, err := note.Data()
	if err != nil || len(data) < 16 || !bytes.Equal(data[12:16], []byte("Go\x00\x00")) { // elf(5): three sizes and the name before it
		return nil
	}
	if data = data[16:]; len(bytes.Trim(data, "\x00")) == 0 {
		return nil
	}
	return data
}
