package labfile

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"sync"

	"weft/orchestrator/lab"
	"weft/results/store"
)

// A Recorder remembers the files that a lab names as they were when they were first read. A file
// that is read again is still the same.
type Recorder struct {
	max    int64 // bytes of all files together
	refuse bool  // a file that does not fit is an error; else it is streamed and not remembered

	mu    sync.Mutex
	files map[string][]byte
	size  int64
	over  bool // a file did not fit
}

// NewRecorder returns a recorder of files of at most max bytes together. To read more is an error.
func NewRecorder(max int64) *Recorder {
	return &Recorder{max: max, refuse: true, files: map[string][]byte{}}
}

// newRecorder returns a recorder for runs, which go without files that are too large.
func newRecorder() *Recorder { return &Recorder{max: store.MaxInputs, files: map[string][]byte{}} }

// Files returns what was read, by the path relative to the lab file.
func (r *Recorder) Files() map[string][]byte { return r.files }

// inputs returns what was read of a lab, for the directory of a run.
func (r *Recorder) inputs(name string) store.Inputs {
	if name == StdinName {
		name = Stdin
	}
	if r.over {
		return store.Inputs{Lab: name, Left: store.TooLarge}
	}
	return store.Inputs{Lab: name, Files: r.files}
}

// Record returns a source whose reads are remembered.
func (r *Recorder) Record(src Source) Source {
	if read := src.Read; read != nil {
		src.Read = func(name string) ([]byte, error) {
			if text, ok := r.known(name); ok {
				return slices.Clone(text), nil
			}
			text, err := read(name)
			if err != nil {
				return text, err
			}
			fits, err := r.reserve(int64(len(text)))
			if fits {
				r.keep(name, text)
			}
			return text, err
		}
	}
	if src.Files != nil {
		src.Files = recorded{src.Files, r}
	}
	src.recorder = r
	return src
}

// known returns a file that was read before.
func (r *Recorder) known(name string) (text []byte, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text, ok = r.files[path.Clean(name)]
	return text, ok
}

// reserve makes room for a file.
func (r *Recorder) reserve(size int64) (fits bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case size <= r.max-r.size:
		r.size += size
		return true, nil
	case r.refuse:
		return false, fmt.Errorf("the files that the lab names have more than %d MiB, which is too much to send to "+
			"other machines", r.max>>20)
	}
	r.over = true
	return false, nil
}

// keep remembers a file.
func (r *Recorder) keep(name string, text []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files[path.Clean(name)] = text
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
	if err != nil || !info.Mode().IsRegular() {
		return file, err
	}
	text, ok := f.r.known(name)
	if !ok {
		size := info.Size()
		fits, err := f.r.reserve(size)
		if err == nil && !fits {
			return file, nil
		}
		if err == nil {
			text, err = io.ReadAll(io.LimitReader(file, size+1))
		}
		if err == nil && int64(len(text)) > size {
			err = &fs.PathError{Op: "read", Path: name, Err: errors.New("it grew meanwhile")}
		}
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		f.r.keep(name, text)
	}
	_ = file.Close() // only read
	return lab.FilesOf(func(string) ([]byte, error) { return text, nil }).Open(name)
}

// Recorded returns the source of a lab whose files were remembered.
func Recorded(name string, text []byte, files map[string][]byte) Source {
	return Source{Name: name, Text: text, Files: memory(files), Read: func(name string) ([]byte, error) {
		if text, ok := files[path.Clean(name)]; ok {
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
