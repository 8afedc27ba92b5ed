package store

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"

	"weft/results/record"
)

// outerVar is the environment variable with the process of the machine that this one ends with, as JSON, where this one is of a
// kernel of its own, which nobody outside can look into.
const outerVar = "WEFT_OUTER_PROCESS"

// Outer is the setting of the environment by which runs of a process in another kernel are known as this process's. It is empty where
// this process cannot be told from others.
func Outer() string {
	p := own()
	text, err := json.Marshal(p)
	if p == nil || err != nil {
		return ""
	}
	return outerVar + "=" + string(text)
}

// self describes the process that runs end with, so that others can tell whether it still exists: this one, or the one outside. It
// is nil where there is no /proc.
func self() *record.Process {
	p := new(record.Process)
	if text := os.Getenv(outerVar); text != "" && json.Unmarshal([]byte(text), p) == nil {
		return p
	}
	return own()
}

// own describes this process.
func own() *record.Process {
	boot, space := here()
	started, ok := startOf("self")
	if !ok || boot == "" || space == "" {
		return nil
	}
	return &record.Process{PID: os.Getpid(), Started: started, Boot: boot, Space: space}
}

// gone reports whether a process has ended, for all that can be known here: false where it cannot be seen, because it
// is another machine's, another container's, or of before this machine was started.
func gone(p *record.Process) bool {
	if p == nil {
		return false
	}
	boot, space := here()
	if p.Boot == "" || p.Boot != boot || p.Space != space {
		return false
	}
	started, ok := startOf(strconv.Itoa(p.PID))
	return !ok || started != p.Started
}

// here names the boot of this machine and the namespace of process numbers, empty where they have no names.
func here() (boot, space string) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", ""
	}
	space, err = os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return "", ""
	}
	return strings.TrimSpace(string(id)), space
}

// startOf returns when a process was started, in clock ticks since boot: with its number that is unique. ok is false
// when there is no such process any more, or only its exit code.
func startOf(pid string) (ticks uint64, ok bool) {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0, false
	}
	// proc_pid_stat(5): the name, in parentheses, may hold anything; fields 3, the state, and 22 follow it.
	after := string(text[strings.LastIndexByte(string(text), ')')+1:])
	fields := strings.Fields(after)
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return 0, false
	}
	ticks, err = strconv.ParseUint(fields[19], 10, 64)
	return ticks, err == nil
}
