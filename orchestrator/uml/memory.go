package uml

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"weft/units"
)

// Bounds of the memory that a kernel gets by itself. Ours: a lab of the size of the quickstart takes 200 MB, and each
// gigabyte takes 16 MB, and time at boot, for the kernel's own table of pages.
const (
	leastMemory = 256 * units.MiB
	mostMemory  = 4 * units.GiB
)

// chooseMemory is half of what is available, within bounds.
func chooseMemory() (units.Bytes, error) {
	available, err := available()
	if err != nil {
		return 0, err
	}
	m := min(available/2, mostMemory)
	if m < leastMemory {
		return 0, fmt.Errorf("too little memory for User Mode Linux: it takes %v at least, and half of what is available here is %v", leastMemory, available/2)
	}
	return m / units.MiB * units.MiB, nil
}

// available is the machine's own estimate of what programs may take without swapping.
func available() (units.Bytes, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	for l := range strings.Lines(string(text)) {
		var kib int64
		if n, _ := fmt.Sscanf(l, "MemAvailable: %d kB", &kib); n == 1 {
			return units.Bytes(kib) * units.KiB, nil
		}
	}
	return 0, errors.New("/proc/meminfo does not tell MemAvailable")
}

// memoryDir returns a directory that can hold the file that is the kernel's memory. It has to take all of it: the file is
// sparse, and where the file system is full the kernel is killed by SIGBUS in the middle of its work, as in containers
// whose /dev/shm has 64 MB. Programs are mapped from it, so it must not be mounted noexec. In memory it is at its best;
// on a disk every page that the kernel touches is written there in the end.
func memoryDir(dirs []string, need units.Bytes) (string, error) {
	why := make([]string, 0, len(dirs))
	fallback := ""
	for _, dir := range dirs {
		var s unix.Statfs_t
		err := unix.Statfs(dir, &s)
		free := units.Bytes(s.Bavail) * units.Bytes(s.Bsize)
		switch {
		case err != nil:
			why = append(why, fmt.Sprintf("%s: %v", dir, err))
		case unix.Access(dir, unix.R_OK|unix.W_OK|unix.X_OK) != nil:
			why = append(why, dir+": may not be written")
		case s.Flags&unix.ST_NOEXEC != 0:
			why = append(why, dir+": is mounted noexec")
		case free < need:
			why = append(why, fmt.Sprintf("%s: has %v", dir, free))
		case s.Type == unix.TMPFS_MAGIC:
			return dir, nil
		case fallback == "":
			fallback = dir
		}
	}
	if fallback != "" {
		return fallback, nil
	}
	return "", fmt.Errorf("no directory for the %v of memory of User Mode Linux: %s; free some, or name another one in TMPDIR", need, strings.Join(why, "; "))
}
