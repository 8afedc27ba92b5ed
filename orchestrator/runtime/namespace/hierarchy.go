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

	"weft/nodeimg/boot"
)

// hierarchy is where control groups with a memory limit can be created: cgroups(7).
type hierarchy struct {
	version int    // 1 or 2
	parent  string // the group below which they are created
}

// findHierarchy finds the hierarchy in which this process may limit memory. In version 1 that is
// below the group of this process. In version 2 a group with processes cannot have groups that
// limit memory, so it is below the nearest ancestor that enables the memory controller for its
// children.
func findHierarchy() (hierarchy, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return hierarchy{}, err
	}
	mounts, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		return hierarchy{}, err
	}
	return parseHierarchy(string(text), string(mounts))
}

// parseHierarchy is findHierarchy for the contents of /proc/self/cgroup and mountinfo.
func parseHierarchy(groups, mounts string) (hierarchy, error) {
	path, unified := "", ""
	for line := range strings.Lines(groups) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(f) != 3:
		case slices.Contains(strings.Split(f[1], ","), "memory"):
			path = f[2]
		case f[0] == "0":
			unified = f[2]
		}
	}
	if path != "" {
		_, own, err := findMount(mounts, path, func(kind, options string) bool {
			return kind == "cgroup" && slices.Contains(strings.Split(options, ","), "memory")
		})
		if err == nil {
			err = writable(own)
		}
		return hierarchy{1, own}, err
	}
	root, own, err := findMount(mounts, unified, func(kind, _ string) bool { return kind == "cgroup2" })
	if err != nil {
		return hierarchy{}, err
	}
	refused := errors.New("no control group above this process enables the memory controller for its children")
	for dir := own; dir != root; {
		dir = filepath.Dir(dir)
		if text, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control")); err != nil ||
			!slices.Contains(strings.Fields(string(text)), "memory") {
			continue
		}
		if refused = writable(dir); refused == nil {
			return hierarchy{2, dir}, nil
		}
	}
	return hierarchy{}, refused
}

// findMount returns the mount point of a hierarchy and the path in it of the group that the kernel
// calls path.
func findMount(mounts, path string, is func(kind, options string) bool) (root, group string, err error) {
	for line := range strings.Lines(mounts) {
		before, after, _ := strings.Cut(line, " - ")
		f, g := strings.Fields(before), strings.Fields(after)
		if len(f) < 5 || len(g) < 3 || !is(g[0], g[2]) {
			continue
		}
		below, err := filepath.Rel(f[3], path)
		// outside of this cgroup namespace
		if err != nil || below == ".." || strings.HasPrefix(below, "../") || strings.HasPrefix(path, "/..") {
			continue
		}
		root = boot.Unescape(f[4])
		return root, filepath.Join(root, below), nil
	}
	return "", "", errors.New("no control group hierarchy with the memory controller is mounted")
}

// writable returns an error unless this process may create groups below dir.
func writable(dir string) error {
	if err := unix.Access(dir, unix.W_OK); err != nil {
		return &fs.PathError{Op: "make control groups in", Path: dir, Err: err}
	}
	return nil
}

// GroupMemory describes how the built-in runtime limits the memory of nodes here. The error is why
// it can only limit that of each process.
func GroupMemory() (how string, err error) {
	h, err := findHierarchy()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("version %d, below %s", h.version, h.parent), nil
}
