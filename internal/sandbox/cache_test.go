package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	build "weft/internal/sandbox/sandboxtest"
)

// A cache keeps compiled code. One that is damaged is replaced, and one that others can change is
// not used.
func TestCache(t *testing.T) {
	module := build.Module{Event: build.Answer(1)}.Bytes()
	compiled := func(cache string) (files []string) {
		t.Helper()
		p, err := Compile(t.Context(), module, Options{Memory: 16, Start: startFuel, Cache: cache})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if _, err := p.New(); err != nil {
			t.Fatal(err)
		}
		files, _ = filepath.Glob(filepath.Join(cache, "*", "*"))
		return files
	}
	cache := filepath.Join(t.TempDir(), "a", "b")
	files := compiled(cache)
	if len(files) != 1 {
		t.Fatalf("files %q", files)
	}
	// What a process that was killed left is not code.
	if left, err := filepath.Glob(filepath.Join(cache, "wazero-*")); err != nil || len(left) != 1 ||
		os.WriteFile(filepath.Join(left[0], "0.tmp"), nil, 0o600) != nil {
		t.Fatal(left, err)
	}
	whole, err := Export(cache)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(files[0])
	if err != nil {
		t.Fatal(err)
	}
	compiled(cache)
	if after, err := os.Stat(files[0]); err != nil || !os.SameFile(before, after) {
		t.Errorf("compiled again: %v", err)
	}
	for _, damage := range []func() error{
		func() error { return os.Truncate(files[0], 40) },
		func() error { return os.WriteFile(files[0], []byte("WAZEVO and nothing of use behind it"), 0o600) },
		func() error { return os.WriteFile(files[0], nil, 0o600) },
		func() error { return os.Truncate(files[0], 2<<30) },
		func() error { return errors.Join(os.Remove(files[0]), syscall.Mkfifo(files[0], 0o600)) },
		func() error { return errors.Join(os.Remove(files[0]), os.Mkdir(files[0], 0o700)) },
		func() error { return errors.Join(os.Remove(files[0]), os.Symlink("/dev/zero", files[0])) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		compiled(cache) // finds the damage
		compiled(cache)
		if again, err := Export(cache); err != nil || again.Name != whole.Name || len(again.Bytes) != len(whole.Bytes) {
			t.Errorf("after damage: %d bytes, %v; want %d", len(again.Bytes), err, len(whole.Bytes))
		}
	}
	// A folder above that others can write to is no place for code, unless it is sticky.
	for mode, want := range map[fs.FileMode]int{0o777: 0, 0o777 | fs.ModeSticky: 1, 0o755: 1} {
		above := filepath.Join(t.TempDir(), "above")
		if err := errors.Join(os.Mkdir(above, 0o700), os.Chmod(above, mode)); err != nil {
			t.Fatal(err)
		}
		if files := compiled(filepath.Join(above, "weft", "code")); len(files) != want {
			t.Errorf("below a folder of mode %v: code %q", mode, files)
		}
	}

	open := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(cache, link); err != nil {
		t.Fatal(err)
	}
	if files := compiled(open); len(files) > 0 {
		t.Errorf("code in a folder that others can change: %q", files)
	}
	for _, dir := range []string{open, link, filepath.Join(cache, "none")} {
		if _, err := Export(dir); err == nil {
			t.Errorf("%s: code", dir)
		}
	}
}

// Only the caches that were used last stay, and nothing else is removed.
func TestUsed(t *testing.T) {
	all := t.TempDir()
	if err := os.Mkdir(filepath.Join(all, "other"), 0o700); err != nil {
		t.Fatal(err)
	}
	name := func(i int) string { return filepath.Join(all, fmt.Sprintf("%064x", i)) }
	for i := range 5 {
		if err := os.MkdirAll(name(i), 0o700); err != nil {
			t.Fatal(err)
		}
		past := time.Now().Add(time.Duration(i-10) * time.Hour)
		if err := os.Chtimes(name(i), past, past); err != nil {
			t.Fatal(err)
		}
	}
	Used(name(0), 2)
	left, _ := filepath.Glob(filepath.Join(all, "*"))
	if want := []string{name(0), name(4), filepath.Join(all, "other")}; !slices.Equal(left, want) {
		t.Errorf("left %q; want %q", left, want)
	}
}
