package docker

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// freeTurns lets a process take turns on the processor as this one does. Where a kernel shares out real-time turns by
// control group (CONFIG_RT_GROUP_SCHED, in version 1 of control groups alone), a container's group has none, and nodes
// would wait for other programs. Such a process is moved to this one's group, of that hierarchy only: memory, processes
// and devices stay bounded by the container's. What cannot be done shows in the fidelity verdict.
func freeTurns(pid int) {
	const none = "0"
	mount, theirs := processorGroup("/proc/" + strconv.Itoa(pid))
	_, own := processorGroup("/proc/self")
	if mount == "" || theirs == own {
		return
	}
	turns := func(group string) string {
		text, _ := os.ReadFile(filepath.Join(mount, group, "cpu.rt_runtime_us")) // not there: nothing is shared out
		return string(bytes.TrimSpace(text))
	}
	if turns(theirs) != none || turns(own) == none {
		return
	}
	_ = os.WriteFile(filepath.Join(mount, own, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
}

// processorGroup returns where the hierarchy that shares out processors is mounted, and the group of a process, whose
// folder in /proc is given. Empty: control groups are not of version 1. See cgroups(7) and proc_pid_mountinfo(5).
func processorGroup(proc string) (mount, group string) {
	groups, err := os.ReadFile(proc + "/cgroup")
	if err != nil {
		return "", ""
	}
	for line := range strings.Lines(string(groups)) {
		if f := strings.SplitN(strings.TrimSpace(line), ":", 3); len(f) == 3 && slices.Contains(strings.Split(f[1], ","), "cpu") {
			group = f[2]
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || group == "" {
		return "", ""
	}
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line)
		at := slices.Index(f, "-")
		if at > 4 && len(f) == at+4 && f[at+1] == "cgroup" && slices.Contains(strings.Split(f[at+3], ","), "cpu") && f[3] == "/" {
			return f[4], group
		}
	}
	return "", ""
}
