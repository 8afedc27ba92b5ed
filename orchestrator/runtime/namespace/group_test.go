package namespace

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weft/internal/testenv"
	"weft/orchestrator/runtime"
	"weft/orchestrator/runtime/runtimetest"
	"weft/units"
)

// A launch's groups are below the process's own in version 1, and below the nearest ancestor with
// the memory controller in version 2.
func TestBoundingHierarchy(t *testing.T) {
	unified := t.TempDir()
	own := filepath.Join(unified, "user.slice/user@1000.service/app.slice/shell.scope")
	if err := os.MkdirAll(own, 0o755); err != nil {
		t.Fatal(err)
	}
	for dir, controllers := range map[string]string{"user.slice": "cpu memory pids", "user.slice/user@1000.service": "memory pids", "user.slice/user@1000.service/app.slice": "pids"} {
		if err := os.WriteFile(filepath.Join(unified, dir, "cgroup.subtree_control"), []byte(controllers+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	one := filepath.Join(t.TempDir(), "a space")
	if err := os.MkdirAll(filepath.Join(one, "job/7"), 0o755); err != nil {
		t.Fatal(err)
	}
	// The kernel escapes spaces, which a path of TMPDIR may have.
	shown := func(path string) string { return strings.ReplaceAll(path, " ", `\040`) }
	mount1 := "30 20 0:26 / /elsewhere rw - cgroup cgroup rw,cpu\n31 20 0:27 / " + shown(one) + " rw shared:9 - cgroup cgroup rw,memory\n"
	mount2 := "32 20 0:28 / " + shown(unified) + " rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
	inside := "31 20 0:27 /job " + shown(one) + " rw - cgroup cgroup rw,memory\n" // a container's view
	for _, c := range []struct {
		what, groups, mounts string
		want                 hierarchy
		err                  string
	}{
		{"version 1", "4:memory:/job/7\n1:cpu:/\n0::/\n", mount1 + mount2, hierarchy{1, filepath.Join(one, "job/7")}, ""},
		{"version 1 in a container", "4:memory:/job\n", inside, hierarchy{1, one}, ""},
		{"version 2", "0::/user.slice/user@1000.service/app.slice/shell.scope\n", mount2, hierarchy{2, filepath.Join(unified, "user.slice/user@1000.service")}, ""},
		{"no memory controller", "0::/user.slice\n", mount2, hierarchy{}, "no control group above this process enables the memory controller for its children"},
		{"the root of version 2", "0::/\n", mount2, hierarchy{}, "no control group above this process enables the memory controller for its children"},
		{"a group outside of the namespace", "4:memory:/../other\n", mount1, hierarchy{}, "no control group hierarchy"},
		{"nothing is mounted", "0::/\n", "", hierarchy{}, "no control group hierarchy"},
		{"nonsense", "x\n", "x\n- y\n", hierarchy{}, "no control group hierarchy"},
	} {
		got, err := parseHierarchy(c.groups, c.mounts)
		if c.err == "" && (err != nil || got != c.want) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %+v, %v; want %+v %s", c.what, got, err, c.want, c.err)
		}
	}
}

// launchBounded launches a lab whose nodes have a memory limit, or skips the test.
func launchBounded(t *testing.T, memory units.Bytes) *Cluster {
	t.Helper()
	if _, err := GroupMemory(); err != nil {
		t.Skip(err)
	}
	spec := runtimetest.Lab(2)
	spec.Memory = memory
	c := launchLab(t, spec)
	if why := c.groups.whyUnbounded(); why != nil {
		t.Skip(why)
	}
	return c
}

// The programs of a node together have no more memory than the node, and the node survives them.
func TestPrivMemoryOfANode(t *testing.T) {
	c := launchBounded(t, 100*units.MiB)
	const hog = "head -c 30M /dev/zero | tail -c 30M | (sleep 1; cat) | wc -c" // tail holds all of it
	if out, err := runIn(t, c, "h0", "sh", "-c", hog); err != nil || strings.TrimSpace(out) != "31457280" {
		t.Errorf("a program of 30 MB: %v, %q", err, out)
	}
	many := "for i in 1 2 3 4 5 6; do (" + hog + ") & done; wait; exit 3"
	out, err := runIn(t, c, "h0", "sh", "-c", many)
	var status *runtime.StatusError
	if !errors.As(err, &status) || !status.OutOfMemory || status.Text != "exit status 3 (out of memory)" {
		t.Errorf("children had too little memory: %v", err)
	}
	if _, err := runIn(t, c, "h0", "false"); !errors.As(err, &status) || status.OutOfMemory {
		t.Errorf("one that fails afterwards, by itself: %v", err)
	}
	if n := strings.Count(out, "31457280"); n == 6 || n == 0 {
		t.Errorf("%d of 6 programs of 30 MB each fit into 100 MiB:\n%s", n, out)
	}
	if out, err := runIn(t, c, "h0", "echo", "alive"); err != nil || out != "alive\n" {
		t.Errorf("afterwards: %v, %q", err, out)
	}
	if out, err := runIn(t, c, "h1", "sh", "-c", hog); err != nil || strings.TrimSpace(out) != "31457280" {
		t.Errorf("another node: %v, %q", err, out)
	}
	select {
	case e := <-c.Exits():
		t.Error(e.Err)
	default:
	}
	dir := c.groups.dir
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(dir); err == nil {
		t.Errorf("%s is left", dir)
	}
}

// Groups whose owner is gone are removed; those of others, and similar folders, are not.
func TestPrivCleanGroups(t *testing.T) {
	c := launchBounded(t, 0)
	self, err := runtime.Self()
	if err != nil {
		t.Fatal(err)
	}
	gone := self
	gone.Start++
	dead := filepath.Join(c.groups.parent, groupPrefix+gone.String()+"_0123abcd")
	alike := []string{
		filepath.Join(c.groups.parent, groupPrefix+gone.String()),
		filepath.Join(c.groups.parent, groupPrefix+gone.String()+"_0123abcd9"),
		filepath.Join(c.groups.parent, "not-"+groupPrefix+gone.String()+"_0123abcd"),
		filepath.Join(c.groups.parent, groupPrefix+self.String()+"_0123abcd"),
	}
	for _, dir := range append(slices.Clone(alike), dead, filepath.Join(dead, "0"), filepath.Join(dead, "1")) {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, dir := range append(slices.Clone(alike), filepath.Join(dead, "0"), filepath.Join(dead, "1"), dead) {
			_ = os.Remove(dir)
		}
	})
	names, err := CleanGroups(t.Context(), runtime.Owner.Dead)
	if err != nil || !slices.Contains(names, dead) {
		t.Errorf("%v, %v", names, err)
	}
	for _, dir := range append(alike, c.groups.dir) {
		if _, err := os.Lstat(dir); err != nil {
			t.Error(err)
		}
	}
	if err := RemoveGroup(t.Context(), c.groups.dir); err == nil {
		t.Error("a group in which nodes run was removed")
	}
	folder := filepath.Join(t.TempDir(), filepath.Base(dead))
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{folder, alike[0], c.groups.parent + "/../" + filepath.Base(c.groups.parent) + "/" + filepath.Base(alike[3]), filepath.Base(alike[3])} {
		if err := RemoveGroup(t.Context(), dir); err != nil {
			t.Error(err)
		}
	}
	for _, dir := range append(alike, folder) {
		if _, err := os.Lstat(dir); err != nil {
			t.Error(err)
		}
	}
}

// The next launch removes the groups of a killed owner beside its own.
func TestPrivLaunchRemovesDeadGroups(t *testing.T) {
	c := launchBounded(t, 0)
	gone, err := runtime.Self()
	if err != nil {
		t.Fatal(err)
	}
	alive := filepath.Join(c.groups.parent, groupPrefix+gone.String()+"_0123abcd")
	gone.Start++
	dead := filepath.Join(c.groups.parent, groupPrefix+gone.String()+"_0123abcd")
	for _, dir := range []string{alive, dead, filepath.Join(dead, "0")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Remove(dir) })
	}
	launchBounded(t, 0)
	if _, err := os.Lstat(dead); err == nil {
		t.Errorf("%s is left", dead)
	}
	for _, dir := range []string{alive, c.groups.dir} {
		if _, err := os.Lstat(dir); err != nil {
			t.Error(err)
		}
	}
}

// An orchestrator that is killed leaves empty groups, which its name in theirs identifies.
func TestPrivGroupsAfterAKill(t *testing.T) {
	testenv.NeedNamespaces(t)
	if _, err := GroupMemory(); err != nil {
		t.Skip(err)
	}
	cmd := exec.Command("/proc/self/exe", "launch", "mark")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	up := make([]byte, 3)
	if _, err := out.Read(up); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	names, err := CleanGroups(t.Context(), runtime.Owner.Dead)
	if err != nil || len(names) != 1 {
		t.Errorf("%v, %v", names, err)
	}
	if names, err := CleanGroups(t.Context(), runtime.Owner.Dead); err != nil || len(names) != 0 {
		t.Errorf("again: %v, %v", names, err)
	}
}
