package docker

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"weft/nodeimg/boot"
)

// allowRealTime lets a process use real-time scheduling as this one does. If the kernel divides
// real-time run time between control groups (CONFIG_RT_GROUP_SCHED, version 1 only), a container's
// group has none, and nodes would wait for other programs. The process is then moved to this
// process's group of that hierarchy only; the container's limits of memory, processes and devices
// remain. A failure shows in the fidelity verdict.
func allowRealTime(pid int) {
	const none = "0"
	mount, theirs := cpuGroup("/proc/" + strconv.Itoa(pid))
	_, own := cpuGroup("/proc/self")
	if mount == "" || theirs == own {
		return
	}
	runtimeOf := func(group string) string {
		text, _ := os.ReadFile(filepath.Join(mount, group, "cpu.rt_runtime_us")) // empty without CONFIG_RT_GROUP_SCHED
		return string(bytes.TrimSpace(text))
	}
	if runtimeOf(theirs) != none || runtimeOf(own) == none {
		return
	}
	_ = os.WriteFile(filepath.Join(mount, own, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
}

// cpuGroup returns the mount point of the cpu controller's hierarchy, and the group in it of a
// process, given its folder in /proc. Both are empty unless control groups are of version 1. See
// cgroups(7) and proc_pid_mountinfo(5).
func cpuGroup(proc string) (mount, group string) {
	groups, err := os.ReadFile(proc + "/cgroup")
	if err != nil {
		return "", ""
	}
	for line := range strings.Lines(string(groups)) {
		if f := strings.SplitN(strings.TrimSpace(line), ":", 3); len(f) == 3 &&
			slices.Contains(strings.Split(f[1], ","), "cpu") {
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
		if at > 4 && len(f) == at+4 && f[at+1] == "cgroup" && slices.Contains(strings.Split(f[at+3], ","), "cpu") &&
			f[3] == "/" {
			return boot.Unescape(f[4]), group
		}
	}
	return "", ""
}
