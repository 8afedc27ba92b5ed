package store

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"

	"weft/results/record"
)

// outerVar is the environment variable by which a process in a kernel of its own (UML) learns the
// process of the machine that it ends with, as JSON. Nobody outside can look into that kernel.
const outerVar = "WEFT_OUTER_PROCESS"

// Outer returns the environment setting that makes runs of a process in another kernel count as
// runs of this process. It is empty if this process cannot be identified.
func Outer() string {
	p := thisProcess()
	text, err := json.Marshal(p)
	if p == nil || err != nil {
		return ""
	}
	return outerVar + "=" + string(text)
}

// runProcess returns the process that a run ends with, so that others can check whether it exists:
// this one, or the one outside this kernel. It is nil without /proc.
func runProcess() *record.Process {
	p := new(record.Process)
	if text := os.Getenv(outerVar); text != "" && json.Unmarshal([]byte(text), p) == nil {
		return p
	}
	return thisProcess()
}

// thisProcess returns the identity of this process; nil without /proc.
func thisProcess() *record.Process {
	boot, space := bootAndNamespace()
	started, ok := startTicks("self")
	if !ok || boot == "" || space == "" {
		return nil
	}
	return &record.Process{PID: os.Getpid(), Started: started, Boot: boot, Space: space}
}

// hasEnded reports whether a process has ended. It is false if that cannot be seen from here,
// because the process belongs to another machine, another container or an earlier boot.
func hasEnded(p *record.Process) bool {
	if p == nil {
		return false
	}
	boot, space := bootAndNamespace()
	if p.Boot == "" || p.Boot != boot || p.Space != space {
		return false
	}
	started, ok := startTicks(strconv.Itoa(p.PID))
	return !ok || started != p.Started
}

// bootAndNamespace returns the boot of this machine and its PID namespace; empty without /proc.
func bootAndNamespace() (boot, space string) {
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

// startTicks returns the start of a process in clock ticks since boot, which makes its PID unique.
// ok is false if there is no such process, or only a zombie.
func startTicks(pid string) (ticks uint64, ok bool) {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0, false
	}
	// proc_pid_stat(5): the name, in parentheses, may hold anything. Fields 3 (state) and 22
	// (start) follow it.
	after := string(text[strings.LastIndexByte(string(text), ')')+1:])
	fields := strings.Fields(after)
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return 0, false
	}
	ticks, err = strconv.ParseUint(fields[19], 10, 64)
	return ticks, err == nil
}
