package labfile

import (
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"sync"

	"weft/results/store"
)

// watched is a file system that remembers which regular files were opened. Files of folders that
// were only listed are not among them.
type watched struct {
	fs.FS
	mu    sync.Mutex
	names map[string]bool
}

func (w *watched) note(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names[path.Clean(name)] = true
}

// Open implements fs.FS.
func (w *watched) Open(name string) (fs.File, error) {
	f, err := w.FS.Open(name)
	if err == nil {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			w.note(name)
		}
	}
	return f, err
}

// watch returns a source whose reads are remembered.
func watch(src Source) (Source, *watched) {
	w := &watched{FS: src.Files, names: map[string]bool{}}
	if read := src.Read; read != nil {
		src.Read = func(name string) ([]byte, error) {
			text, err := read(name)
			if err == nil {
				w.note(name)
			}
			return text, err
		}
	}
	if src.Files != nil {
		src.Files = w
	}
	return src, w
}

// inputs returns the files that were opened, for the directory of a run.
func (w *watched) inputs(src Source) store.Inputs {
	in := store.Inputs{Lab: src.Name}
	if src.Name == StdinName {
		in.Lab = Stdin
	}
	if len(w.names) > 0 {
		in.Files = make(map[string][]byte, len(w.names))
	}
	left := store.MaxInputs
	for _, name := range slices.Sorted(maps.Keys(w.names)) {
		text, err := w.content(name, left, src.Read)
		in.Files[name] = text
		left -= len(text)
		if err != nil {
			in.Left = err.Error()
		}
		if left < 0 || err != nil || len(in.Files) > store.MaxInputFiles {
			break // the run's directory refuses them, and says why
		}
	}
	return in
}

// content reads a file, up to one byte more than there is room for.
func (w *watched) content(name string, room int, read func(string) ([]byte, error)) ([]byte, error) {
	if w.FS == nil {
		return read(name)
	}
	f, err := w.FS.Open(name)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, int64(room)+1))
	_ = f.Close() // only read
	return text, err
}
