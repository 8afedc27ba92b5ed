package namespace

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/cleanup"
	"weft/nodeimg/boot"
	"weft/orchestrator/runtime"
	"weft/units"
)

// groups are the control groups of one launch: an empty one whose name identifies the owner, and
// below it one for each node with everything that runs in it.
type groups struct {
	hierarchy
	dir    string // empty if there are none
	why    error  // why nodes are not limited, or nil
	memory units.Bytes
	nodes  int // maximum number of nodes that one process of agents drives
	agents []string

	mu sync.Mutex     // guards what follows
	of map[string]int // number of a node's group, by the node's name
}

// groupPrefix begins the name of a launch's group. The owner and eight random digits follow.
const groupPrefix = "weft-"

// groupOwner returns the owner in the name of a launch's group.
func groupOwner(name string) (runtime.Owner, bool) {
	text, weft := strings.CutPrefix(name, groupPrefix)
	text, chance, found := strings.Cut(text, "_")
	if !weft || !found || len(chance) != 8 || strings.Trim(chance, "0123456789abcdef") != "" {
		return runtime.Owner{}, false
	}
	return runtime.ParseOwner(text)
}

// makeGroups creates the group of a launch if this process may. Otherwise every process is limited
// by itself, but not a node as a whole.
func makeGroups(spec *runtime.Spec) (*groups, error) {
	g := &groups{memory: cmp.Or(spec.Memory, runtime.DefaultMemory), of: map[string]int{}}
	for i := range spec.Agents {
		g.agents = append(g.agents, runtime.AgentsName(i))
		g.nodes = (len(spec.Nodes) + spec.Agents - 1) / spec.Agents
	}
	owner, err := runtime.Self()
	if err != nil {
		return nil, err
	}
	if g.hierarchy, g.why = findHierarchy(); g.why != nil {
		return g, nil
	}
	removeDead(g.parent)
	var chance [4]byte
	_, _ = rand.Read(chance[:]) // never fails
	dir := filepath.Join(g.parent, groupPrefix+owner.String()+"_"+hex.EncodeToString(chance[:]))
	err = spec.Do(runtime.Op{Do: "make control group", Kind: runtime.Group, Name: dir}, func() error {
		if g.why = os.Mkdir(dir, 0o755); g.why != nil {
			return nil
		}
		g.dir = dir
		if g.version == 2 {
			g.why = set(dir, "cgroup.subtree_control", "+memory")
			_ = set(dir, "cgroup.subtree_control", "+pids") // optional: processes are limited otherwise as well
		}
		return nil
	})
	return g, err
}

// enter moves a process that was just started into the group of a node. An error is kept for Bound:
// the lab works without the limit.
func (g *groups) enter(node string, pid int) {
	if g.dir == "" {
		return
	}
	dir, err := g.group(node)
	if err == nil {
		err = set(dir, "cgroup.procs", strconv.Itoa(pid))
	}
	if err != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.why = cmp.Or(g.why, err)
	}
}

// group returns the folder of a node's group and creates it the first time.
func (g *groups) group(node string) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, there := g.of[node]
	if !there {
		n = len(g.of)
	}
	dir := filepath.Join(g.dir, strconv.Itoa(n))
	if there {
		return dir, nil
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	g.of[node] = n
	memory := g.memory
	if slices.Contains(g.agents, node) {
		memory *= units.Bytes(g.nodes)
	}
	limit := strconv.FormatInt(int64(memory), 10)
	if g.version == 1 {
		if err := set(dir, "memory.limit_in_bytes", limit); err != nil {
			return "", err
		}
		// absent if swap is not counted
		return dir, ignore(fs.ErrNotExist, set(dir, "memory.memsw.limit_in_bytes", limit))
	}
	if err := set(dir, "memory.max", limit); err != nil {
		return "", err
	}
	return dir, errors.Join(
		ignore(fs.ErrNotExist, set(dir, "memory.swap.max", "0")),
		ignore(fs.ErrNotExist, set(dir, "pids.max", strconv.Itoa(runtime.MaxProcesses))))
}

// ignore returns err, or nil if it is the expected one.
func ignore(expected, err error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

// set writes a setting of a group.
func set(dir, name, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0) // what is not there is not made
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return cleanup.Join(err, f.Close())
}

// procs returns cgroup.procs of a node's group, for a program that starts in the node, or nil if
// the node is not limited.
func (g *groups) procs(node string) ([]*os.File, error) {
	if g.whyUnbounded() != nil {
		return nil, nil
	}
	dir, err := g.group(node)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "cgroup.procs"), os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	return []*os.File{f}, nil
}

// whyUnbounded returns why nodes are not limited, or nil if they are.
func (g *groups) whyUnbounded() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.why
}

// remove removes the groups. Their processes have ended.
func (g *groups) remove(ctx context.Context) error {
	if g.dir == "" {
		return nil
	}
	return RemoveGroup(ctx, g.dir)
}

// busyTime is the time limit for a group to be removable after its processes have ended. Our own
// choice.
const busyTime = 2 * time.Second

// RemoveGroup removes the group of a launch and those in it, if it exists. It undoes a runtime.Op
// of kind Group. Paths with another form of name or outside the control group file systems are left
// alone. A group in which something runs is an error: only empty groups can be removed.
func RemoveGroup(ctx context.Context, dir string) error { return removeGroup(ctx, dir, busyTime) }

// removeGroup is RemoveGroup with another limit than busyTime.
func removeGroup(ctx context.Context, dir string, busy time.Duration) error {
	if _, ok := groupOwner(filepath.Base(dir)); !ok || !filepath.IsAbs(dir) || filepath.Clean(dir) != dir {
		return nil
	}
	var about unix.Statfs_t
	switch err := unix.Statfs(dir, &about); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return &fs.PathError{Op: "look at control group", Path: dir, Err: err}
	case about.Type != unix.CGROUP_SUPER_MAGIC && about.Type != unix.CGROUP2_SUPER_MAGIC:
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	deadline := time.Now().Add(busy)
	var all cleanup.Errors
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err == nil && e.IsDir() {
			all.Add(removeEmpty(ctx, filepath.Join(dir, e.Name()), deadline))
		}
	}
	if err := all.Err(); err != nil {
		return err
	}
	return removeEmpty(ctx, dir, deadline)
}

// removeEmpty removes a group. It waits until its ended processes are gone from it.
func removeEmpty(ctx context.Context, dir string, deadline time.Time) error {
	for {
		err := unix.Rmdir(dir)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
			return &fs.PathError{Op: "remove control group", Path: dir, Err: err}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// removeDead removes the groups of killed owners among those in parent. It does not wait for groups
// whose processes are still ending, and ignores errors: CleanGroups tells what cannot be removed.
func removeDead(parent string) {
	entries, _ := os.ReadDir(parent)
	for _, d := range entries {
		if o, ok := groupOwner(d.Name()); ok && isOurGroup(d) && o.Dead() {
			_ = removeGroup(context.Background(), filepath.Join(parent, d.Name()), 0)
		}
	}
}

// CleanGroups removes the groups of launches whose owner is dead, anywhere in the hierarchy, and
// returns their paths.
func CleanGroups(ctx context.Context, dead func(runtime.Owner) bool) (names []string, err error) {
	mounts, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		return nil, err
	}
	var all cleanup.Errors
	for line := range strings.Lines(string(mounts)) {
		before, after, _ := strings.Cut(line, " - ")
		f, g := strings.Fields(before), strings.Fields(after)
		if len(f) < 5 || len(g) < 3 || g[0] != "cgroup2" && (g[0] != "cgroup" || !strings.Contains(g[2], "memory")) {
			continue
		}
		err := filepath.WalkDir(boot.Unescape(f[4]), func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) || err == nil && !d.IsDir() {
				return nil // gone meanwhile
			}
			if err != nil {
				all.Add(err)
				return nil
			}
			o, ok := groupOwner(d.Name())
			if !ok {
				return nil
			}
			if isOurGroup(d) && dead(o) {
				if err := RemoveGroup(ctx, path); err != nil {
					all.Add(err)
				} else {
					names = append(names, path)
				}
			}
			return fs.SkipDir
		})
		if err != nil {
			all.Add(fmt.Errorf("%s: %w", f[4], err))
		}
	}
	return names, all.Err()
}

// isOurGroup reports whether a directory belongs to this user. The name is no proof: anyone can be
// user 0 in a user namespace.
func isOurGroup(d fs.DirEntry) bool {
	info, err := d.Info()
	if err != nil {
		return false // gone meanwhile
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// Bound describes the nodes' memory limit for people.
func (c *Cluster) Bound() string {
	if why := c.groups.whyUnbounded(); why != nil {
		return fmt.Sprintf("%v per process, not per node: %v", c.groups.memory, why)
	}
	return fmt.Sprintf("%v per node, by control groups (version %d)", c.groups.memory, c.groups.version)
}
