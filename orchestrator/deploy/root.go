package deploy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/cleanup"
	"weft/internal/clip"
)

// RootVar is the environment variable with the path of the state directory.
const RootVar = "WEFT_STATE"

// A Root is the state directory: it has a folder for each deployed lab, and lock files.
type Root struct {
	path string
	dir  *os.Root // no name leads out of it
}

// DefaultRoot returns the path of a user's state directory: the value of RootVar, or /run/weft for
// root, or weft below XDG_RUNTIME_DIR, or, without that, weft-UID below the directory for temporary
// files.
func DefaultRoot(user int) string {
	if dir := os.Getenv(RootVar); dir != "" {
		return dir
	}
	if user == 0 {
		return "/run/weft"
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "weft")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("weft-%d", user))
}

// madeByWeft is the mode bit of a state directory that Weft made, and removes when it is empty. It
// has no other effect in a directory that only one user may enter.
const madeByWeft = os.ModeSticky

// OpenRoot opens a state directory and creates it if it does not exist. It returns an error if
// another user owns the directory or may enter it.
func OpenRoot(path string) (*Root, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if err := os.Mkdir(path, 0o700|madeByWeft); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("state directory: %w; set %s to use another", err, RootVar)
	}
	if err := checkRoot(path); err != nil {
		return nil, err
	}
	dir, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	return &Root{path: path, dir: dir}, nil
}

// checkRoot returns an error unless path is a directory that only this user owns and may enter.
func checkRoot(path string) error {
	var s unix.Stat_t
	if err := unix.Lstat(path, &s); err != nil {
		return fmt.Errorf("state directory %s: %w", path, err)
	}
	switch {
	case s.Mode&unix.S_IFMT != unix.S_IFDIR:
		return fmt.Errorf("state directory %s: it is not a directory; set %s to use another", path, RootVar)
	case int(s.Uid) != os.Geteuid():
		return fmt.Errorf("state directory %s: it belongs to user %d; set %s to use another", path, s.Uid, RootVar)
	case s.Mode&0o077 != 0:
		return fmt.Errorf("state directory %s: others may enter it (mode %#o); chmod 700 %s", path, s.Mode&0o777, path)
	}
	return nil
}

// Close closes the directory.
func (r *Root) Close() error { return r.dir.Close() }

// Path returns the path of the directory.
func (r *Root) Path() string { return r.path }

// Remove removes the directory if it is empty and Weft made it.
func (r *Root) Remove() error {
	info, err := os.Lstat(r.path)
	if err == nil && info.Mode()&madeByWeft == 0 {
		return nil
	}
	if err == nil {
		err = os.Remove(r.path)
	}
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// labName matches the names of labs; see lab.Lab.Name.
var labName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// CheckName returns an error unless name is valid for a lab. Valid names cannot be paths.
func CheckName(name string) error {
	if !labName.MatchString(name) {
		return fmt.Errorf("%q is not the name of a lab; expected 1 to 63 of a-z, 0-9 and -", clip.Text(name))
	}
	return nil
}

// lockSuffix ends the name of a lab's lock file.
const lockSuffix = ".lock"

// Labs returns the names of the labs that have a folder here, in order. Other folders, which are
// there if the path names a folder of the user's by mistake, are not labs.
func (r *Root) Labs() ([]string, error) {
	entries, err := fs.ReadDir(r.dir.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && labName.MatchString(e.Name()) && r.isLab(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// isLab reports whether a folder was made for a lab: it has a journal or a deployment, or is empty,
// as it is before it has a journal. A folder that cannot be read counts as a lab's: the
// command that uses it returns the error.
func (r *Root) isLab(name string) bool {
	for _, file := range []string{journalFile, deploymentFile} {
		if _, err := r.dir.Lstat(filepath.Join(name, file)); !missing(err) {
			return true
		}
	}
	f, err := r.dir.Open(name)
	if err != nil {
		return !missing(err)
	}
	defer f.Close()
	_, err = f.Readdirnames(1)
	return err != nil
}

// folder opens the folder of a lab.
func (r *Root) folder(name string) (*os.Root, error) { return r.dir.OpenRoot(name) }

// locks returns the names of the labs that have a lock file here, in order. Lock files are empty.
func (r *Root) locks() ([]string, error) {
	entries, err := fs.ReadDir(r.dir.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	var names []string
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), lockSuffix)
		if !ok || !labName.MatchString(name) {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && info.Size() == 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// A Lock is the right to change a lab. The kernel releases it when the process that holds it ends.
type Lock struct {
	root *Root
	name string
	file *os.File
}

// lockTime is the time limit for getting a lab's lock. Our own choice: longer than a deployment
// takes.
const lockTime = 30 * time.Second

// ErrLocked is returned for a lab that another process is changing.
var ErrLocked = errors.New("another process is deploying or destroying this lab")

// Lock takes the lock of a lab. It returns ErrLocked if it does not get the lock within wait.
func (r *Root) Lock(name string, wait time.Duration) (*Lock, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	deadline := time.Now().Add(wait)
	for {
		l, err := r.tryLock(name)
		switch {
		case err != nil:
			return nil, fmt.Errorf("lock of lab %s: %w", name, err)
		case l != nil:
			return l, nil
		case time.Now().After(deadline):
			return nil, fmt.Errorf("lab %s: %w", name, ErrLocked)
		}
		time.Sleep(20 * time.Millisecond) // flock has no timeout
	}
}

// tryLock takes the lock, or returns nil if another process holds it. Unlock removes the file, so a
// file that was opened may be gone once it is locked; then the lock is void.
func (r *Root) tryLock(name string) (*Lock, error) {
	f, err := r.dir.OpenFile(name+lockSuffix, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, nil
		}
		return nil, err
	}
	ours, err := f.Stat()
	if err == nil {
		var there fs.FileInfo
		if there, err = r.dir.Lstat(name + lockSuffix); err == nil && os.SameFile(ours, there) {
			return &Lock{root: r, name: name, file: f}, nil
		}
	}
	f.Close()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return nil, nil
}

// Unlock removes the lock's file and releases the lock.
func (l *Lock) Unlock() error {
	err := l.root.dir.Remove(l.name + lockSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return cleanup.Join(err, l.file.Close())
}
