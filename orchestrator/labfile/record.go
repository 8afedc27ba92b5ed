package labfile

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
)

// A Recorder remembers the files that a lab names, so that another machine can read the same lab.
type Recorder struct {
	max int64

	mu    sync.Mutex
	files map[string][]byte
	size  int64
}

// NewRecorder returns a recorder of files of at most max bytes together.
func NewRecorder(max int64) *Recorder { return &Recorder{max: max, files: map[string][]byte{}} }

// Files returns what was read, by the name that the lab has for it.
func (r *Recorder) Files() map[string][]byte { return r.files }

// Record returns a source whose reads are remembered.
func (r *Recorder) Record(src Source) Source {
	read, files := src.Read, src.Files
	src.Read = func(name string) ([]byte, error) {
		text, err := read(name)
		if err == nil {
			err = r.add(name, text)
		}
		return text, err
	}
	src.Files = recorded{files, r}
	return src
}

// add remembers a file.
func (r *Recorder) add(name string, text []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.files[name]; ok {
		return nil
	}
	if r.size += int64(len(text)); r.size > r.max {
		return fmt.Errorf("the files that the lab names have more than %d MiB, which is too much to send to other "+
			"machines", r.max>>20)
	}
	r.files[name] = text
	return nil
}

// recorded is a file system whose regular files are remembered.
type recorded struct {
	fs.FS
	r *Recorder
}

// Open implements fs.FS.
func (f recorded) Open(name string) (fs.File, error) {
	file, err := f.FS.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil || info.IsDir() {
		return file, err
	}
	text, err := io.ReadAll(io.LimitReader(file, f.r.max+1))
	_ = file.Close() // only read
	if err == nil {
		err = f.r.add(name, text)
	}
	if err != nil {
		return nil, err
	}
	return memory(map[string][]byte{name: text}).Open(name)
}

// Recorded returns the source of a lab whose files were remembered.
func Recorded(name string, text []byte, files map[string][]byte) Source {
	return Source{Name: name, Text: text, Files: memory(files), Read: func(name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return slices.Clone(text), nil
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}}
}

// memory returns files as a file system with folders: that of a ZIP archive.
func memory(files map[string][]byte) fs.FS {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, text := range files {
		if !fs.ValidPath(name) {
			continue // no fs.FS has such a name
		}
		f, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err == nil {
			_, err = f.Write(text)
		}
		if err != nil {
			return failed{err}
		}
	}
	if err := w.Close(); err != nil {
		return failed{err}
	}
	r, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		return failed{err}
	}
	return r
}

// failed is a file system without files.
type failed struct{ error }

// Open implements fs.FS.
func (f failed) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: f.error}
}
