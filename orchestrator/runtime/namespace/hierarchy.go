package namespace

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

// hierarchy is where control groups that bound memory can be made: cgroups(7).
type hierarchy struct {
	version int    // 1 or 2
	parent  string // the group below which they are made
}

// bounding finds the hierarchy in which this process may bound memory. Version 1 has groups below that of this process.
// Version 2 wants no processes beside groups, so they are made below the nearest group above that hands memory on.
func bounding() (hierarchy, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return hierarchy{}, err
	}
	mounts, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		return hierarchy{}, err
	}
	return boundingIn(string(text), string(mounts))
}

// boundingIn does so by what the kernel says of the process's groups, and of mounts.
func boundingIn(groups, mounts string) (hierarchy, error) {
	path, two := "", ""
	for line := range strings.Lines(groups) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(f) != 3:
		case slices.Contains(strings.Split(f[1], ","), "memory"):
			path = f[2]
		case f[0] == "0":
			two = f[2]
		}
	}
	if path != "" {
		_, own, err := place(mounts, path, func(kind, options string) bool {
			return kind == "cgroup" && slices.Contains(strings.Split(options, ","), "memory")
		})
		if err == nil {
			err = writable(own)
		}
		return hierarchy{1, own}, err
	}
	root, own, err := place(mounts, two, func(kind, _ string) bool { return kind == "cgroup2" })
	if err != nil {
		return hierarchy{}, err
	}
	refused := errors.New("no group above this process hands memory on")
	for dir := own; dir != root; {
		dir = filepath.Dir(dir)
		if text, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control")); err != nil || !slices.Contains(strings.Fields(string(text)), "memory") {
			continue
		}
		if refused = writable(dir); refused == nil {
			return hierarchy{2, dir}, nil
		}
	}
	return hierarchy{}, refused
}

// place finds the mount of a hierarchy, and in it the group that the kernel calls path.
func place(mounts, path string, is func(kind, options string) bool) (root, group string, err error) {
	for line := range strings.Lines(mounts) {
		before, after, _ := strings.Cut(line, " - ")
		f, g := strings.Fields(before), strings.Fields(after)
		if len(f) < 5 || len(g) < 3 || !is(g[0], g[2]) {
			continue
		}
		below, err := filepath.Rel(f[3], path)
		if err != nil || below == ".." || strings.HasPrefix(below, "../") || strings.HasPrefix(path, "/..") { // seen from a namespace of groups
			continue
		}
		return f[4], filepath.Join(f[4], below), nil
	}
	return "", "", errors.New("no hierarchy of control groups with memory is mounted")
}

// writable says why this process may not make groups below a group.
func writable(dir string) error {
	if err := unix.Access(dir, unix.W_OK); err != nil {
		return &fs.PathError{Op: "make control groups in", Path: dir, Err: err}
	}
	return nil
}

// GroupMemory says how the built-in runtime bounds the memory of nodes here, or why it cannot bound more than that of each
// process.
func GroupMemory() (how string, err error) {
	h, err := bounding()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("version %d, below %s", h.version, h.parent), nil
}
