package runtime

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Processes returns the PIDs for which is returns true.
func Processes(is func(pid int) bool) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is valid
	for _, f := range files {
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f))); err == nil && is(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Arguments returns the arguments of a process, with its name first, or nil if it has none or has
// ended.
func Arguments(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}

// Variable returns a variable of a process's environment. ok is false if the process has ended or
// this user may not read its environment.
func Variable(pid int, name string) (value string, ok bool) {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return "", false
	}
	for v := range strings.SplitSeq(string(env), "\x00") {
		if value, ok = strings.CutPrefix(v, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// EffectiveUser returns the effective user ID of a process, as seen from this user namespace.
func EffectiveUser(pid int) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 2 && f[0] == "Uid:" {
			return strconv.Atoi(f[2])
		}
	}
	return 0, fmt.Errorf("process %d has no user", pid)
}

// SameNamespace reports whether a process is in the same namespace of a kind ("pid", "user") as
// this one.
func SameNamespace(pid int, kind string) bool {
	ours, err := namespace("self", kind)
	if err != nil {
		return false
	}
	theirs, err := namespace(pid, kind)
	return err == nil && theirs == ours
}

// namespace returns the identity of a process's namespace. process is "self" or a PID.
func namespace(process any, kind string) (string, error) {
	return os.Readlink(fmt.Sprintf("/proc/%v/ns/%s", process, kind))
}

// KillIf kills a process if is still returns true once the process is held by a descriptor, after
// which its PID cannot be reused. A process that has ended is not an error.
func KillIf(pid int, is func(pid int) bool) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	if !is(pid) {
		return nil
	}
	return Kill(pid, fd)
}
