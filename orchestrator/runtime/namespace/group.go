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
	"weft/orchestrator/runtime"
	"weft/units"
)

// groups are the control groups of one launch: one in which nothing runs, by whose name its owner is known, and in that one
// for each node, with all that runs in it.
type groups struct {
	hierarchy
	dir    string // empty: there are none
	why    error  // then
	memory units.Bytes
	nodes  int // that a process with the agents of several drives, at most
	agents []string

	mu sync.Mutex     // guards what follows
	of map[string]int // the group of a node, by the node's name
}

// groupPrefix begins the name of a launch's group. The name of its owner and eight digits by chance follow.
const groupPrefix = "weft-"

// groupOwner returns the owner of a launch's group by the name of that.
func groupOwner(name string) (runtime.Owner, bool) {
	text, weft := strings.CutPrefix(name, groupPrefix)
	text, chance, two := strings.Cut(text, "_")
	if !weft || !two || len(chance) != 8 || strings.Trim(chance, "0123456789abcdef") != "" {
		return runtime.Owner{}, false
	}
	return runtime.ParseOwner(text)
}

// makeGroups makes the group of a launch where that can be, and is told of in time by the journal; elsewhere each process is
// bounded, but not all of a node together.
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
	if g.hierarchy, g.why = bounding(); g.why != nil {
		return g, nil
	}
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
			_ = set(dir, "cgroup.subtree_control", "+pids") // not handed on: processes are counted otherwise
		}
		return nil
	})
	return g, err
}

// enter puts a process that has just been started into the group of a node, by the node's name. What the machine refuses is
// kept for bound: the lab is as good without.
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

// group is that of a node, made when it is first asked for.
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
	most := strconv.FormatInt(int64(memory), 10)
	if g.version == 1 {
		if err := set(dir, "memory.limit_in_bytes", most); err != nil {
			return "", err
		}
		return dir, unless(fs.ErrNotExist, set(dir, "memory.memsw.limit_in_bytes", most)) // swap is not counted here
	}
	if err := set(dir, "memory.max", most); err != nil {
		return "", err
	}
	return dir, errors.Join(
		unless(fs.ErrNotExist, set(dir, "memory.swap.max", "0")),
		unless(fs.ErrNotExist, set(dir, "pids.max", strconv.Itoa(runtime.MaxProcesses))))
}

// unless is err, or nil where it is one that is expected.
func unless(expected, err error) error {
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

// procs is what a program that is to run in a node writes itself to; nil: nothing bounds the node.
func (g *groups) procs(node string) ([]*os.File, error) {
	if g.bounds() != nil {
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

// bounds says why nodes are not bounded; nil: they are.
func (g *groups) bounds() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.why
}

// remove removes the groups, of which nothing is used any more.
func (g *groups) remove(ctx context.Context) error {
	if g.dir == "" {
		return nil
	}
	return RemoveGroup(ctx, g.dir)
}

// busyTime is how long a group may say that it is busy once its processes have ended. Ours.
const busyTime = 2 * time.Second

// RemoveGroup removes the group of a launch, and those in it, if it is there. It is the undo of a runtime.Op of kind Group.
// What has another name, or lies elsewhere than among control groups, is left alone; so is, with an error, a group in which
// something runs: groups are only removed when they are empty.
func RemoveGroup(ctx context.Context, dir string) error {
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
	deadline := time.Now().Add(busyTime)
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

// removeEmpty removes a group, and waits for those that have ended to be gone from it.
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

// CleanGroups removes the groups of launches whose owner is gone, wherever in the hierarchy, and returns their names.
func CleanGroups(ctx context.Context) (names []string, err error) {
	return cleanGroups(ctx, func(o runtime.Owner) bool { return !o.Alive() })
}

// CleanGroupsOf is CleanGroups for the launches of one owner.
func CleanGroupsOf(ctx context.Context, owner runtime.Owner) (names []string, err error) {
	return cleanGroups(ctx, func(o runtime.Owner) bool { return o.Is(owner) && !o.Alive() })
}

// cleanGroups removes the groups of dead owners.
func cleanGroups(ctx context.Context, dead func(runtime.Owner) bool) (names []string, err error) {
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
		err := filepath.WalkDir(f[4], func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return nil // it has gone meanwhile, or is not for us to see
			}
			o, ok := groupOwner(d.Name())
			if !ok {
				return nil
			}
			if mine(d) && dead(o) {
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

// mine reports whether a directory belongs to this user. A name does not tell: in a user namespace of their own, anybody is
// user 0.
func mine(d fs.DirEntry) bool {
	info, err := d.Info()
	if err != nil {
		return false // it has gone meanwhile
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// Bound says what memory the nodes of a lab may use, in words.
func (c *Cluster) Bound() string {
	if why := c.groups.bounds(); why != nil {
		return fmt.Sprintf("%v per process, not per node: %v", c.groups.memory, why)
	}
	return fmt.Sprintf("%v per node, by control groups (version %d)", c.groups.memory, c.groups.version)
}
