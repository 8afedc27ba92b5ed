package emulate

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/cleanup"
	"weft/internal/regular"
)

// lockTime is the longest time to wait for another process that measures. Our own choice: it takes
// seconds, many on a busy machine, and for ever if it is stopped.
const lockTime = 30 * time.Second

// cached returns the machine's capacity from the user's cache directory, or measures and stores it.
// Two processes do not measure at once, because each would disturb the other, unless one takes
// longer than lockTime. An unreadable cache file is measured again, and one that cannot be written
// is no error.
func cached(ctx context.Context, attachment string, measure func() (Capacity, error)) (Capacity, error) {
	return cachedWithin(ctx, lockTime, attachment, measure)
}

// cachedWithin is cached with another lockTime.
func cachedWithin(ctx context.Context, limit time.Duration, attachment string,
	measure func() (Capacity, error)) (Capacity, error) {
	file, err := cacheFile(attachment)
	if err != nil {
		return measure()
	}
	if c, err := readCapacity(file); err == nil {
		return c, nil
	}
	wait, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	unlock, err := lock(wait, filepath.Join(filepath.Dir(file), "capacity.lock"))
	if err == nil {
		defer unlock()
	}
	switch {
	case ctx.Err() != nil:
		return Capacity{}, ctx.Err()
	case err != nil && wait.Err() == nil: // there can be no lock
		return measure()
	}
	// another process measured while this one waited
	if c, err := readCapacity(file); err == nil {
		return c, nil
	}
	c, err := measure()
	if err != nil {
		return c, err
	}
	if writeCapacity(file, c) == nil {
		prune(file)
	}
	return c, nil
}

// cacheFile names the cache file of this machine and program. The capacity depends on the kernel,
// the build, the processors and their number, the privileges and the attachment (runtime and kind
// of NIC), so all of them are part of the name.
func cacheFile(attachment string) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", err
	}
	exe, err := os.Stat("/proc/self/exe")
	if err != nil {
		return "", err
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%s %s %d %d %d %s %t %s", u.Release, u.Version, exe.Size(),
		exe.ModTime().UnixNano(),
		goruntime.NumCPU(), processor(), os.Geteuid() == 0, attachment))
	return filepath.Join(dir, "weft", fmt.Sprintf("capacity-%x.json", key[:8])), nil
}

// processor returns the name of the machine's processors, or "" if unknown.
func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimSpace(name)
		}
	}
	return ""
}

// busyLife is how long the measurement of a busy machine is used.
const busyLife = 10 * time.Minute

// maxCapacity is the largest accepted size of a cache file in bytes, several times the usual one.
const maxCapacity = 1 << 20

func readCapacity(file string) (Capacity, error) {
	var c Capacity
	b, err := regular.Read(file, maxCapacity)
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return c, err
	}
	if !c.Sensible() {
		return c, fmt.Errorf("%s: capacity %+v", file, c)
	}
	if info, err := os.Stat(file); c.busy() && (err != nil || time.Since(info.ModTime()) > busyLife) {
		return c, fmt.Errorf("%s: measured on a busy machine", file)
	}
	return c, nil
}

// maxBoot is the longest Capacity.Boot that is accepted, in bytes. That of Linux has 36.
const maxBoot = 64

// Sensible reports whether c can be a measurement: at least one packet per second, at most a
// billion, and lateness at rising loads.
func (c Capacity) Sensible() bool {
	within := func(x, low, high float64) bool { return x >= low && x <= high }
	last := 0.0
	for _, l := range c.Lateness {
		if !within(l.PacketsPerSecond, last, 1e9) || !within(l.P99NS, 0, 1e12) {
			return false
		}
		last = l.PacketsPerSecond
	}
	return within(c.PacketsPerSecond, 1, 1e9) && last > 0 && len(c.Boot) <= maxBoot
}

// writeCapacity replaces the file atomically.
func writeCapacity(file string, c Capacity) error {
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".capacity-*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	if err = cleanup.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// keptBuilds is the number of measurements of other builds, kernels and privileges that are kept.
const keptBuilds = 7

// prune removes all but the newest measurements beside file, and those of earlier formats.
func prune(file string) {
	type old struct {
		name string
		at   time.Time
	}
	all, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "capacity-*"))
	var others []old
	for _, name := range all {
		info, err := os.Stat(name)
		if err != nil || name == file {
			continue
		}
		if filepath.Ext(name) == ".json" {
			others = append(others, old{name, info.ModTime()})
			// a lock that another build may hold while it measures
		} else if time.Since(info.ModTime()) > time.Hour {
			os.Remove(name)
		}
	}
	slices.SortFunc(others, func(a, b old) int { return b.at.Compare(a.at) })
	for _, o := range others[min(keptBuilds, len(others)):] {
		os.Remove(o.name)
	}
}

// lockPoll is the interval between attempts to take a lock that another process holds.
const lockPoll = 50 * time.Millisecond

// lock takes the lock of file. The kernel releases it when the process ends, for whatever reason.
func lock(ctx context.Context, file string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, err
	}
	f, err := regular.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, err
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(lockPoll):
		}
	}
}
