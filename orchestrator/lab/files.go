package lab

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io/fs"
	"maps"
	"path"
	"slices"
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

// summed is a file system that hashes what is read from its files, so that a change of their
// content shows.
type summed struct {
	fs.FS
	sums map[string]string // of each file that was read, by name
}

func summing(files fs.FS) *summed { return &summed{files, make(map[string]string)} }

// Open implements fs.FS.
func (s *summed) Open(name string) (fs.File, error) {
	f, err := s.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return &summedFile{File: f, of: s, name: name, sum: sha256.New()}, nil
}

// Stat implements fs.StatFS.
func (s *summed) Stat(name string) (fs.FileInfo, error) { return fs.Stat(s.FS, name) }

// ReadDir implements fs.ReadDirFS.
func (s *summed) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(s.FS, name) }

// sum returns the SHA-256 of the names and the content of the files.
func (s *summed) sum() string {
	all := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(s.sums)) {
		fmt.Fprintf(all, "%s %q\n", s.sums[name], name)
	}
	return hex.EncodeToString(all.Sum(nil))
}

// sumOf returns what sum returns for a file with this content.
func sumOf(name string, text []byte) string {
	one := sha256.Sum256(text)
	return (&summed{sums: map[string]string{name: hex.EncodeToString(one[:])}}).sum()
}

// summedFile is an open file of a summed file system.
type summedFile struct {
	fs.File
	of   *summed
	name string
	sum  hash.Hash
}

func (f *summedFile) Read(b []byte) (int, error) {
	n, err := f.File.Read(b)
	f.sum.Write(b[:n])
	return n, err
}

func (f *summedFile) Close() error {
	f.of.sums[f.name] = hex.EncodeToString(f.sum.Sum(nil))
	return f.File.Close()
}
