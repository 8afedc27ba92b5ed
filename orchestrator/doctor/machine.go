package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/plural"
	"weft/internal/privilege"
	"weft/orchestrator/runtime/docker"
	"weft/orchestrator/runtime/namespace"
	"weft/units"
)

// machine returns the tests of the machine itself.
func machine() []test {
	return []test{
		{name: "kernel", try: kernel, grade: Degraded},
		{name: "go", try: func(context.Context) (string, error) {
			return fmt.Sprintf("%s %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH), nil
		}},
		{name: "cores", try: cores, grade: Degraded,
			cost: "the fabric and the hosts share one core: emulation needs a large dilation",
			fix:  "use a machine or virtual machine with at least two cores"},
		{name: "memory", try: memory, grade: Degraded,
			cost: "the kernel may kill large labs (out of memory)",
			fix:  "free memory: a host takes 2 MB and its buffers"},
	}
}

func kernel(context.Context) (string, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", err
	}
	return unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:]), nil
}

func cores(context.Context) (string, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return "", err
	}
	if n := set.Count(); n < 2 {
		return "", fmt.Errorf("%d", n)
	}
	return fmt.Sprint(set.Count()), nil
}

func memory(context.Context) (string, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "MemAvailable: %d kB", &kib); n == 1 {
			available := fmt.Sprintf("%d MB available", kib*1024/int64(units.MB))
			if kib*1024 < 512*int64(units.MB) {
				return "", errors.New(available)
			}
			return available, nil
		}
	}
	return "", errors.New("not in /proc/meminfo")
}

// isolation returns the tests of what separates nodes from the machine.
func isolation() []test {
	return []test{
		{name: "privileges", try: privileges, grade: Missing,
			cost: "no emulation (the simulator needs no privileges)",
			fix: "run as root, or allow user namespaces: sysctl kernel.unprivileged_userns_clone=1 " +
				"kernel.apparmor_restrict_unprivileged_userns=0 user.max_user_namespaces=10000"},
		{name: "namespaces", try: func(context.Context) (string, error) {
			return "network, mount, PID, UTS, IPC", privilege.CheckNamespaces()
		}, grade: Missing,
			cost: "no emulation with the built-in runtime",
			fix:  "run outside of the container, or with the right to create namespaces (CAP_SYS_ADMIN)"},
		{name: "cgroups", try: cgroups, grade: Degraded,
			cost: "nothing for the built-in runtime; the Docker runtime limits its containers with them",
			fix:  "boot with systemd.unified_cgroup_hierarchy=1"},
		{name: "memory limits", try: func(context.Context) (string, error) { return namespace.GroupMemory() },
			grade: Degraded,
			cost:  "the built-in runtime limits the memory of programs per process, not per node",
			fix:   "run as root, or in a control group of your own: systemd-run --user --scope weft ..."},
	}
}

func privileges(context.Context) (string, error) {
	initial, outside := privilege.InitialUserNS()
	switch {
	case !privilege.NeedsUserNS() && initial:
		return "root", nil
	case !privilege.NeedsUserNS():
		return fmt.Sprintf("root of a user namespace (user %s outside)", outside), nil
	}
	if err := privilege.CheckNamespaces(); err != nil {
		return "", err
	}
	return fmt.Sprintf("user %d, may create user namespaces", os.Geteuid()), nil
}

func cgroups(context.Context) (string, error) {
	text, err := os.ReadFile("/sys/fs/cgroup/cgroup.controllers")
	switch {
	case err == nil:
		return "version 2: " + strings.TrimSpace(string(text)), nil
	case !errors.Is(err, os.ErrNotExist):
		return "", err
	}
	if _, err := os.Stat("/sys/fs/cgroup/cpu"); err == nil {
		return "", errors.New("version 1")
	}
	return "", errors.New("not mounted")
}

// containers returns the test of the Docker Engine at host, and whether its containers could be
// nodes.
func containers(host string) test {
	return test{name: "docker", grade: Missing,
		try: func(ctx context.Context) (string, error) {
			about, err := docker.Probe(ctx, host)
			if errors.Is(err, docker.ErrUnusable) {
				text := strings.TrimPrefix(err.Error(), docker.ErrUnusable.Error()+": ")
				if about != "" {
					text = about + ": " + text
				}
				return "", errors.New(text)
			}
			return about, err
		},
		cost: "no Docker runtime; the built-in one runs the same labs, except programs in images",
		fix: "install Docker Engine 20.10 or newer (apt-get install docker.io), start it (systemctl start " +
			"docker), and run weft as root"}
}

// engineTime is for an engine to say which machines it has.
const engineTime = 5 * time.Second

// engine finds the machines of an engine.
func engine(e Engine) test {
	return test{name: e.Name, grade: Missing,
		try: func(ctx context.Context) (string, error) {
			ctx, cancel := context.WithTimeout(ctx, engineTime)
			defer cancel()
			names, err := e.Machines(ctx)
			if err == nil && len(names) == 0 {
				err = errors.New("none of its machines takes work")
			}
			if err != nil {
				return "", err
			}
			return plural.Count(len(names), "machine") + ": " + strings.Join(names, ", "), nil
		},
		cost: "no sweeps and no parts of labs on other machines with --on " + e.Name,
		fix:  "see docs/scale-out.md; agents started by hand need neither Docker Swarm nor Slurm"}
}
