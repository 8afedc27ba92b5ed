package uml

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"weft/units"
)

// Bounds of a kernel's default memory. Our own values: a lab of quickstart size needs 200 MB, and
// each gigabyte costs 16 MB and boot time for the kernel's page table.
const (
	minMemory = 256 * units.MiB
	maxMemory = 4 * units.GiB
)

// chooseMemory returns half of the available memory, within the bounds.
func chooseMemory() (units.Bytes, error) {
	available, err := available()
	if err != nil {
		return 0, err
	}
	m := min(available/2, maxMemory)
	if m < minMemory {
		return 0, fmt.Errorf("too little memory for User Mode Linux: it takes %v at least, and half of what is "+
			"available here is %v", minMemory, available/2)
	}
	return m / units.MiB * units.MiB, nil
}

// available returns the kernel's estimate of what programs can allocate without swapping
// (MemAvailable).
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
	return 0, errors.New("/proc/meminfo has no MemAvailable")
}

// memoryDir returns a directory for the file that holds the kernel's memory. It needs room for the
// whole file: the file is sparse, and on a full file system the kernel dies of SIGBUS, for example
// in containers with a /dev/shm of 64 MB. Programs are mapped from the file, so it must not be on a
// noexec mount. A file system in memory is best; on a disk every touched page is eventually
// written.
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
	return "", fmt.Errorf("no directory for the %v of memory of User Mode Linux: %s; free some, or name another "+
		"one in TMPDIR", need, strings.Join(why, "; "))
}
