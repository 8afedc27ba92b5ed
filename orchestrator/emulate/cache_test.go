package emulate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// A process that measures and never ends, being stopped, keeps no other from measuring and from
// storing what it found.
func TestCapacityIsMeasuredBesideAStoppedProcess(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	file, err := cacheFile("")
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := lock(t.Context(), filepath.Join(filepath.Dir(file), "capacity.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	want := Capacity{PacketsPerSecond: 1e5, Lateness: []LatenessAt{{1e4, 3e4}}}
	measured := 0
	for range 2 { // the second finds what the first stored
		got, err := cachedWithin(t.Context(), time.Millisecond, "", func() (Capacity, error) {
			measured++
			return want, nil
		})
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if measured != 1 {
		t.Errorf("measured %d times, want once", measured)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := cachedWithin(ctx, time.Hour, "", nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestCapacityIsMeasuredOnce(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	want := Capacity{PacketsPerSecond: 1e5, Lateness: []LatenessAt{{1e4, 3e4}, {6e4, 5e4}}, Foreign: 0.1}
	same := func(c Capacity) bool { return cmp.Equal(c, want) }
	var measured atomic.Int32
	measure := func() (Capacity, error) { measured.Add(1); return want, nil }
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if c, err := cached(t.Context(), "", measure); err != nil || !same(c) {
				t.Errorf("got %+v, %v, want %+v", c, err, want)
			}
		})
	}
	all.Wait()
	if n := measured.Load(); n != 1 {
		t.Errorf("measured %d times, want once", n)
	}
	file, err := cacheFile("")
	if err != nil {
		t.Fatal(err)
	}
	for _, broken := range []string{"", "{", `{"packets_per_second": 0}`, `[]`,
		`{"packets_per_second": 1e-300, "lateness": [{"packets_per_second": 1, "p99_ns": 1}]}`,
		`{"packets_per_second": 1e300, "lateness": [{"packets_per_second": 1, "p99_ns": 1}]}`,
		`{"packets_per_second": 1e5, "lateness": [{}]}`,
		`{"packets_per_second": 1e5, "lateness": [{"packets_per_second": 1e4, "p99_ns": -1}]}`,
		`{"packets_per_second": 1e5, "lateness": [{"packets_per_second": 2e4, "p99_ns": 1}, {"packets_per_second": 1e4, "p99_ns": 1}]}`,
	} {
		if err := os.WriteFile(file, []byte(broken), 0o644); err != nil {
			t.Fatal(err)
		}
		measured.Store(0)
		if c, err := cached(t.Context(), "", measure); err != nil || !same(c) || measured.Load() != 1 {
			t.Errorf("cache of %q: %+v, %v, measured %d times", broken, c, err, measured.Load())
		}
	}
	// What was measured on a busy machine is believed for a while only.
	want.Foreign = 0.2
	if err := writeCapacity(file, want); err != nil {
		t.Fatal(err)
	}
	for age, measures := range map[time.Duration]int32{0: 0, 2 * busyLife: 1} {
		then := time.Now().Add(-age)
		if err := os.Chtimes(file, then, then); err != nil {
			t.Fatal(err)
		}
		measured.Store(0)
		if c, err := cached(t.Context(), "", measure); err != nil || !same(c) || measured.Load() != measures {
			t.Errorf("%v old, from a busy machine: %+v, %v, measured %d times", age, c, err, measured.Load())
		}
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), ".*")); len(left) > 0 {
		t.Errorf("temporary files are left: %v", left)
	}
}

// A cache in which something else lies than files of Weft is neither waited for nor read without
// end.
func TestCacheThatIsNoFile(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	file, err := cacheFile("")
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Dir(file)
	want := Capacity{PacketsPerSecond: 1e5, Lateness: []LatenessAt{{1e4, 3e4}}}
	pipe := func(path string) error { return unix.Mkfifo(path, 0o600) }
	endless := func(path string) error { return os.Symlink("/dev/zero", path) }
	directory := func(path string) error { return os.Mkdir(path, 0o700) }
	for _, make := range []func(string) error{pipe, endless, directory} {
		for _, path := range []string{file, filepath.Join(folder, "capacity.lock")} {
			if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o700), make(path)); err != nil {
				t.Fatal(err)
			}
			if c, err := cached(t.Context(), "", func() (Capacity, error) { return want, nil }); err != nil ||
				!cmp.Equal(c, want) {
				t.Errorf("got %+v, %v", c, err)
			}
			if left, _ := filepath.Glob(filepath.Join(folder, ".*")); len(left) > 0 {
				t.Errorf("temporary files are left: %v", left)
			}
		}
	}
}

func TestOldMeasurementsArePruned(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	file, err := cacheFile("")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 2 * keptBuilds {
		for _, ext := range []string{".json", ".json.lock"} {
			name := filepath.Join(dir, fmt.Sprintf("capacity-%02d%s", i, ext))
			then := time.Now().Add(-time.Duration(i) * time.Hour)
			if err := errors.Join(os.WriteFile(name, nil, 0o644), os.Chtimes(name, then, then)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := cached(t.Context(), "", func() (Capacity, error) { return Capacity{PacketsPerSecond: 1}, nil }); err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "capacity-*.json"))
	locks, _ := filepath.Glob(filepath.Join(dir, "capacity-*.lock"))
	if len(left) != keptBuilds+1 || !slices.Contains(left, file) ||
		slices.Contains(left, filepath.Join(dir, "capacity-07.json")) || len(locks) != 1 {
		t.Errorf("left %v and %v", left, locks)
	}
}

func TestCapacityWithoutACache(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "/dev/null/nowhere")
	failed := errors.New("failed")
	if _, err := cached(t.Context(), "", func() (Capacity, error) { return Capacity{}, failed }); !errors.Is(err,
		failed) {
		t.Errorf("got %v, want what measuring said", err)
	}
}

func TestWaitingForALockEndsWithTheContext(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lock(ctx, file); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's end", err)
	}
}
