package uml

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Package is the Debian package with the kernel and its modules.
const Package = "user-mode-linux"

// ErrMissing means that User Mode Linux is not installed.
var ErrMissing = errors.New("no User Mode Linux here: its kernel linux.uml is not in PATH (sudo apt-get install " +
	Package + ")")

// Kernel is an installed User Mode Linux.
type Kernel struct {
	Path    string // of its program
	Release string // such as 6.1.176
	Modules string // directory of its modules
}

// moduleDirs are the directories where distributions install modules.
var moduleDirs = []string{"/usr/lib/uml/modules", "/lib/modules", "/usr/lib/modules"}

// Find returns the installed kernel, or ErrMissing.
func Find(ctx context.Context) (*Kernel, error) {
	path, err := exec.LookPath("linux.uml")
	if err != nil {
		return nil, ErrMissing
	}
	return At(ctx, path)
}

// At returns the kernel with this path. It runs it to learn its release.
func At(ctx context.Context, path string) (*Kernel, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s --version: %w", path, err)
	}
	k := &Kernel{Path: path, Release: strings.TrimSpace(string(out))}
	if k.Release == "" || strings.ContainsAny(k.Release, "/ \t\n") {
		return nil, fmt.Errorf("%s --version: %q is not a kernel release", path, k.Release)
	}
	for _, dir := range moduleDirs {
		dir = filepath.Join(dir, k.Release)
		if _, err := os.Stat(filepath.Join(dir, "modules.dep")); err == nil {
			k.Modules = dir
			return k, nil
		}
	}
	return nil, fmt.Errorf("no modules of User Mode Linux %s here: no %s in any of %s (sudo apt-get install "+
		"--reinstall %s)",
		k.Release, filepath.Join(k.Release, "modules.dep"), strings.Join(moduleDirs, ", "), Package)
}

// private are the directories that the kernel does not share with the machine.
var private = []string{"/dev", "/proc", "/run", "/sys"}

// Shared returns an error unless path, which need not exist, is the same file or directory inside
// as outside.
func Shared(path string) error {
	real, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	rest := ""
	for {
		if r, err := filepath.EvalSymlinks(real); err == nil {
			real = filepath.Join(r, rest)
			break
		} else if real == "/" {
			return err
		}
		real, rest = filepath.Dir(real), filepath.Join(filepath.Base(real), rest)
	}
	for _, dir := range private {
		if real == dir || strings.HasPrefix(real, dir+"/") {
			return fmt.Errorf("%s: User Mode Linux has a %s of its own, so this would not be found, or not be "+
				"kept; use a folder elsewhere", path, dir)
		}
	}
	return nil
}

// Offer returns advice on how to get a kernel with everything the kernel datapath needs.
func Offer(ctx context.Context) string {
	if k, err := Find(ctx); err == nil {
		return fmt.Sprintf("weft run --kernel uml runs the lab under User Mode Linux %s, which is installed here",
			k.Release)
	}
	return "weft run --kernel uml runs the lab under User Mode Linux, once that is installed: sudo apt-get install " +
		Package
}
