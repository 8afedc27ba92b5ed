package sandbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// MaxCode is the maximum size of compiled code that is passed on. Go's runtime makes 5 MB of it.
const MaxCode = 32 << 20

// entryName matches the name of compiled code in a cache: the version and machine that it is for,
// and a hash.
var entryName = regexp.MustCompile(`^wazero-[A-Za-z0-9.+_-]{1,64}/[0-9a-f]{64}$`)

// private returns an error unless a folder for compiled code, which is run as it is, is one that
// only this user can change or replace: each folder above it belongs to this user or to root, and
// others cannot write there, or not remove what is not theirs. It makes the folder if there is
// none.
func private(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() || info.Mode().Perm()&0o022 != 0 || ownerOf(info) != os.Geteuid() {
		return fmt.Errorf("%s: other users can change it; expected a folder of this user only", dir)
	}
	named, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(named)
	if err != nil {
		return err
	}
	return errors.Join(firm(filepath.Dir(named)), firm(filepath.Dir(real)))
}

// firm returns an error if other users can replace what is in a folder, or the folder itself or one
// above it. The owner of the root folder can do that anyway; in a user namespace that may be an
// owner without a number.
func firm(dir string) error {
	top, err := os.Lstat("/")
	if err != nil {
		return err
	}
	for {
		info, err := os.Lstat(dir)
		if err != nil {
			return err
		}
		owner, link := ownerOf(info), info.Mode()&fs.ModeSymlink != 0
		others := info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 && !link
		if others || owner != os.Geteuid() && owner != 0 && owner != ownerOf(top) {
			return fmt.Errorf("%s: other users can change it; expected only this user and root", dir)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
		dir = filepath.Dir(dir)
	}
}

// ownerOf returns the user that a file belongs to; -1 if that is not known.
func ownerOf(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return -1
}

// sound reports whether a cache has nothing but files of a size that compiled code can have.
// Reading a pipe would not end.
func sound(cache string) bool {
	found, err := filepath.Glob(filepath.Join(cache, "*", "*"))
	for _, file := range found {
		dir, err1 := os.Lstat(filepath.Dir(file))
		info, err2 := os.Lstat(file)
		if err1 != nil || err2 != nil || !dir.IsDir() || !info.Mode().IsRegular() || info.Size() > MaxCode {
			return false
		}
	}
	return err == nil
}

// Code is the compiled code of one module, for a process of the same program on the same machine.
// It runs unchecked, so it must come from a process that is trusted.
type Code struct {
	Name  string // in the cache
	Bytes []byte
}

// Export returns the code that Compile left in a cache of its own for one module.
func Export(cache string) (Code, error) {
	if err := private(cache); err != nil {
		return Code{}, err
	}
	found, err := filepath.Glob(filepath.Join(cache, "*", "*"))
	found = slices.DeleteFunc(found, func(file string) bool { // another process may be writing, or was killed
		return strings.HasSuffix(file, ".tmp")
	})
	if err != nil || len(found) != 1 || !sound(cache) {
		return Code{}, errors.Join(err, fmt.Errorf("%s has %d files; expected one", cache, len(found)))
	}
	name, err := filepath.Rel(cache, found[0])
	if err != nil {
		return Code{}, err
	}
	f, err := os.Open(found[0])
	if err != nil {
		return Code{}, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, MaxCode+1))
	if err != nil {
		return Code{}, err
	}
	c := Code{filepath.ToSlash(name), text}
	return c, c.check()
}

func (c Code) check() error {
	if !entryName.MatchString(c.Name) || len(c.Bytes) == 0 || len(c.Bytes) > MaxCode {
		return fmt.Errorf("compiled code of %d bytes with the name %.80q; expected at most %d", len(c.Bytes), c.Name,
			MaxCode)
	}
	return nil
}

// Import makes a new folder in the one for temporary files, which is a cache with the code, and
// returns a function that removes it.
func (c Code) Import() (cache string, remove func() error, err error) {
	if err := c.check(); err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "weft-module-") // mode 0700
	if err != nil {
		return "", nil, err
	}
	remove = func() error { return os.RemoveAll(dir) }
	file := filepath.Join(dir, filepath.FromSlash(c.Name))
	if err = os.Mkdir(filepath.Dir(file), 0o700); err == nil {
		err = os.WriteFile(file, c.Bytes, 0o600)
	}
	if err != nil {
		return "", nil, errors.Join(err, remove())
	}
	return dir, remove, nil
}

// moduleName matches the folder of a module in a folder of caches.
var moduleName = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Used notes that a cache in a folder of caches, named by the hash of its module, was used, and
// removes those that were used longest ago, except for the given number of them. Each build
// of an edited module needs a new one.
func Used(cache string, keep int) {
	now := time.Now()
	_ = os.Chtimes(cache, now, now) // else it goes sooner
	parent := filepath.Dir(cache)
	entries, err := os.ReadDir(parent)
	if err != nil || private(parent) != nil {
		return
	}
	type old struct {
		name string
		used time.Time
	}
	var all []old
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.IsDir() && moduleName.MatchString(e.Name()) {
			all = append(all, old{e.Name(), info.ModTime()})
		}
	}
	slices.SortFunc(all, func(a, b old) int { return b.used.Compare(a.used) })
	for _, o := range all[min(keep, len(all)):] {
		_ = os.RemoveAll(filepath.Join(parent, o.name)) // the next process tries again
	}
}

// forget removes what a cache has, after it turned out to be useless.
func forget(cache string) {
	entries, err := filepath.Glob(filepath.Join(cache, "wazero-*"))
	if err != nil || private(cache) != nil {
		return
	}
	for _, e := range entries {
		if err := os.RemoveAll(e); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return // the next process tries again
		}
	}
}
