package lab

import (
	"bytes"
	"io/fs"
	"path"
	"time"
)

// FilesOf returns the files that a function such as Options.Read reads, as a file system without
// folders.
func FilesOf(read func(name string) ([]byte, error)) fs.FS { return readFiles(read) }

type readFiles func(name string) ([]byte, error)

// Open implements fs.FS.
func (read readFiles) Open(name string) (fs.File, error) {
	text, err := read(name)
	if err != nil {
		return nil, err
	}
	return &readFile{bytes.NewReader(text), path.Base(name)}, nil
}

// readFile is a file that was read. It is its own fs.FileInfo.
type readFile struct {
	*bytes.Reader
	name string
}

func (f *readFile) Stat() (fs.FileInfo, error) { return fileInfo{f}, nil }
func (f *readFile) Close() error               { return nil }

type fileInfo struct{ *readFile }

func (f fileInfo) Name() string     { return f.name }
func (f fileInfo) Size() int64      { return f.Reader.Size() }
func (fileInfo) Mode() fs.FileMode  { return 0o444 }
func (fileInfo) ModTime() time.Time { return time.Time{} }
func (fileInfo) IsDir() bool        { return false }
func (fileInfo) Sys() any           { return nil }
