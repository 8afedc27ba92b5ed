package boot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// A Showing makes a program of the machine visible in a node, beside the files that every node has:
// the folder of the program, or its file alone if that folder holds much else. Other programs do
// not see it.
type Showing struct {
	program string // its path, with links resolved; "": a folder is shown for itself
	what    string // the folder, or the file
	// a detached mount of the folder or file; -1: none
	tree int
}

// wide are folders that are never shown as a whole.
var wide = []string{"/", "/boot", "/dev", "/etc", "/home", "/media", "/mnt", "/opt", "/root", "/run", "/srv", "/tmp",
	"/var", "/var/lib", "/var/run", "/var/tmp"}

// Show prepares to show a program of this machine in a node, by its absolute path. Any other name
// means a program that the node has already. No folder that holds one of hidden is shown. The
// caller must be in the machine's mount namespace, and closes the result.
func Show(program string, hidden []string) (*Showing, error) {
	s := &Showing{program: program, tree: -1}
	if !filepath.IsAbs(program) || strings.HasPrefix(program, "/proc/") {
		return s, nil
	}
	path, err := filepath.EvalSymlinks(program)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil // the node may have it
	}
	if err != nil {
		return nil, err
	}
	if Common(path) {
		return s, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a program", program)
	}
	s.program, s.what = path, filepath.Dir(path)
	if parts := strings.Split(path, "/"); parts[1] == "opt" && len(parts) > 3 {
		s.what = "/opt/" + parts[2] // FHS 3.0, section 3.13: a package's own
	}
	covers := func(dir string) bool { return within(dir, s.what) || within(s.what, dir) }
	if slices.Contains(wide, s.what) || filepath.Dir(s.what) == "/home" || slices.ContainsFunc(hidden, covers) {
		s.what = path
	}
	s.tree, err = unix.OpenTree(unix.AT_FDCWD, s.what, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return nil, fmt.Errorf("show %s in the node: %w; a program below /usr needs no showing", s.what, err)
	}
	return s, nil
}

// Common reports whether every node sees a file of this machine at its absolute path.
func Common(path string) bool {
	under := func(parent string) func(string) bool {
		return func(name string) bool { return within(path, parent+name) }
	}
	return slices.ContainsFunc(folders, under("")) || slices.ContainsFunc(settings, under("/etc/"))
}

// NoShowing shows nothing.
var NoShowing = &Showing{tree: -1}

// ShowFolder prepares to show a folder of this machine at another path of a node.
func ShowFolder(folder, at string) (*Showing, error) {
	tree, err := unix.OpenTree(unix.AT_FDCWD, folder, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("show %s in the node: %w", folder, err)
	}
	return &Showing{what: at, tree: tree}, nil
}

// Close releases the mount.
func (s *Showing) Close() {
	if s.tree >= 0 {
		unix.Close(s.tree)
	}
}

// Place makes the program visible to the calling thread, which must be in the node, and returns the
// program's path there. A file of the node with this path has priority.
func (s *Showing) Place() (program string, err error) {
	if s.tree < 0 {
		return s.program, nil
	}
	// an empty file is where one was shown before
	if info, err := os.Stat(s.program); s.program != "" && err == nil && info.Size() > 0 {
		return s.program, nil
	}
	if err := ownMounts(); err != nil {
		return "", err
	}
	const root = unix.MS_REMOUNT | unix.MS_BIND | unix.MS_NOSUID | unix.MS_NODEV
	if err := unix.Mount("", "/", "", root, ""); err != nil {
		return "", fmt.Errorf("show %s: %w", s.what, err)
	}
	if err := s.point(); err != nil {
		return "", fmt.Errorf("show %s: %w", s.what, err)
	}
	if err := unix.MoveMount(s.tree, "", unix.AT_FDCWD, s.what, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return "", fmt.Errorf("show %s: %w", s.what, err)
	}
	err = unix.MountSetattr(unix.AT_FDCWD, s.what, unix.AT_RECURSIVE, &unix.MountAttr{
		Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV,
	})
	if errors.Is(err, unix.ENOSYS) {
		err = remountEach()
	}
	if err != nil {
		return "", fmt.Errorf("make %s read-only: %w", s.what, err)
	}
	if err := unix.Mount("", "/", "", root|unix.MS_RDONLY, ""); err != nil {
		return "", fmt.Errorf("make / read-only: %w", err)
	}
	return s.program, nil
}

// point makes the folder or file to mount on.
func (s *Showing) point() error {
	defer unix.Umask(unix.Umask(0o022)) // as in plant
	if s.what != s.program {
		return os.MkdirAll(s.what, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(s.what), 0o755); err != nil {
		return err
	}
	return create(s.what, nil, 0o755)
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
