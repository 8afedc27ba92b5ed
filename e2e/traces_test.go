package e2e

import (
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/quiettest"
)

// member is a process that a weft started, directly or through another.
type member struct {
	pid   int
	began string // start time: another process may get the number
	name  string // as ps shows it: weft-h0
	space string // its network namespace; empty where this user may not know
}

// stat returns the parent and the start time of a process; ok is false when it has ended.
func stat(pid int) (parent int, began string, ok bool) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, "", false
	}
	_, rest, _ := strings.Cut(string(line), ") ") // what follows the name: state, parent, ...
	fields := strings.Fields(rest)
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return 0, "", false
	}
	parent, _ = strconv.Atoi(fields[1])
	return parent, fields[19], true
}

// allPIDs lists the processes of this machine.
func allPIDs() (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// family lists the processes below this weft, by number.
func (p *process) family() []member {
	parents := map[int]int{}
	began := map[int]string{}
	for _, pid := range allPIDs() {
		if parent, start, ok := stat(pid); ok {
			parents[pid], began[pid] = parent, start
		}
	}
	var all []member
	for _, pid := range slices.Sorted(maps.Keys(parents)) {
		above := parents[pid]
		for above > 1 && above != p.cmd.Process.Pid {
			above = parents[above]
		}
		if above != p.cmd.Process.Pid {
			continue
		}
		m := member{pid: pid, began: began[pid]}
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		m.name = strings.TrimSpace(string(name))
		m.space, _ = os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
		all = append(all, m)
	}
	return all
}

// alive reports whether the process has not ended.
func (m member) alive() bool {
	_, began, ok := stat(m.pid)
	return ok && began == m.began
}

// sentBytes returns the number of bytes that the node has sent over its interface.
func (m member) sentBytes() int {
	const sentField = 8 // after eight counters of what was received: proc_net(5)
	table, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/dev", m.pid))
	for line := range strings.Lines(string(table)) {
		if name, counters, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "eth0" {
			if fields := strings.Fields(counters); len(fields) > sentField {
				n, _ := strconv.Atoi(fields[sentField])
				return n
			}
		}
	}
	return 0
}

// awaitMidRun waits until every one of the lab's hosts has sent that many bytes, and returns all
// processes.
func (p *process) awaitMidRun(hosts, bytes int) (family []member) {
	p.t.Helper()
	had := map[int]int{} // bytes sent, by process, when they were looked at last
	what := eventually(patience, func() string {
		if !p.running() {
			return ""
		}
		family = p.family()
		busy, all := 0, 0
		for _, m := range family {
			if !strings.HasPrefix(m.name, "weft-h") {
				continue
			}
			all++
			now := m.sentBytes()
			if before := had[m.pid]; before >= bytes && now > before {
				busy++
			}
			had[m.pid] = now
		}
		if busy < hosts || all != hosts { // hosts that measure the machine are more, or do not send any more
			return fmt.Sprintf("%d of %d hosts have sent %d bytes, of processes %v", busy, hosts, bytes, family)
		}
		return ""
	})
	if what != "" || !p.running() {
		p.t.Fatalf("the run is not under way: %s; weft said:\n%s%s", what, p.stdout.String(), p.stderr.String())
	}
	return family
}

// traces are the things that a run could leave on a machine beside processes.
type traces struct {
	interfaces []string
	mounts     []string
	files      []string // called something with weft, where programs leave files beside TMPDIR, which is the desk's own
}

// takeTraces returns the traces on the machine now. Only root's Weft makes interfaces and mounts
// there; an ordinary user's are in namespaces, and new ones are somebody else's.
func takeTraces(t testing.TB) traces {
	t.Helper()
	var now traces
	for _, dir := range []string{"/run", "/run/netns", "/run/lock", "/dev/shm", "/sys/fs/cgroup"} {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			info, err := e.Info()
			if err == nil && strings.HasPrefix(strings.ToLower(e.Name()), "weft") &&
				info.Sys().(*syscall.Stat_t).Uid == uint32(os.Geteuid()) {
				now.files = append(now.files, filepath.Join(dir, e.Name()))
			}
		}
	}
	if os.Geteuid() != 0 {
		return now
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		now.interfaces = append(now.interfaces, i.Name)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		// of containers, of whoever: see noContainers
		if !strings.Contains(line, " - overlay ") && !strings.Contains(line, " - nsfs ") {
			now.mounts = append(now.mounts, strings.TrimSuffix(line, "\n"))
		}
	}
	return now
}

// nothingLeft fails the test unless every process of the family is gone, so are their network
// namespaces and all other processes of the program under test, and the machine is as it was
// before, on a quiet machine within d.
func (before traces) nothingLeft(t testing.TB, family []member, d time.Duration) {
	t.Helper()
	start := quiettest.Start()
	what := eventually(patience, func() string {
		var left []string
		for _, m := range family {
			if m.alive() {
				left = append(left, fmt.Sprintf("process %d (%s)", m.pid, m.name))
			}
		}
		left = append(left, ownProcesses()...)
		left = append(left, inUse(family)...)
		now := takeTraces(t)
		left = append(left, added("interface", before.interfaces, now.interfaces)...)
		left = append(left, added("mount", before.mounts, now.mounts)...)
		left = append(left, added("file", before.files, now.files)...)
		return strings.Join(left, "\n")
	})
	if what != "" {
		t.Errorf("left behind after %v:\n%s", patience, what)
		return
	}
	start.AtMost(t, d, fmt.Sprintf("the end of %d processes and all their traces", len(family)))
}

// ownProcesses lists the processes that run the program under test, as far as this user may see.
func ownProcesses() (left []string) {
	program, err := os.Stat(weft)
	if err != nil {
		return []string{err.Error()}
	}
	for _, pid := range allPIDs() {
		if exe, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && os.SameFile(exe, program) {
			left = append(left, fmt.Sprintf("process %d runs weft", pid))
		}
	}
	return left
}

// inUse lists the network namespaces of the family in which any thread still is.
func inUse(family []member) (left []string) {
	host, _ := os.Readlink("/proc/self/ns/net")
	spaces := map[string]bool{}
	for _, m := range family {
		if m.space != "" && m.space != host {
			spaces[m.space] = true
		}
	}
	links, _ := filepath.Glob("/proc/[0-9]*/task/*/ns/net")
	for _, l := range links {
		if space, err := os.Readlink(l); err == nil && spaces[space] {
			left = append(left, fmt.Sprintf("namespace %s, by %s", space, l))
		}
	}
	return left
}

// added lists the entries that are new.
func added(what string, before, now []string) (left []string) {
	for _, n := range now {
		if !slices.Contains(before, n) {
			left = append(left, what+" "+n)
		}
	}
	return left
}

// checkClean fails the test if weft left anything in the workspace beside the given files and its
// results.
func (d *workspace) checkClean(files ...string) {
	d.t.Helper()
	for _, dir := range []string{d.dir, d.temp} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			d.t.Fatal(err)
		}
		for _, e := range entries {
			if !slices.Contains(files, e.Name()) {
				d.t.Errorf("%s appeared in %s", e.Name(), dir)
			}
		}
	}
}
