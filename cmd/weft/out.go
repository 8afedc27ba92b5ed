package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"weft/results/store"
)

// outFlag adds --out, the directory of all runs, to a command that writes or reads them.
func outFlag(f *pflag.FlagSet, out *string) {
	*out = store.DefaultRoot()
	f.Var((*dirFlag)(out), "out", "directory of all runs; "+store.RootVar+" sets another default")
}

// dirFlag is a flag whose value is a directory, and not empty.
type dirFlag string

func (f *dirFlag) String() string { return string(*f) }
func (f *dirFlag) Type() string   { return "string" }

func (f *dirFlag) Set(text string) error {
	if text == "" {
		return errors.New("expected a directory")
	}
	*f = dirFlag(text)
	return nil
}

// checkRoot returns an error if root, which holds runs to read, is no directory or cannot be read.
// The default may be missing: no run was made yet.
func checkRoot(root string) error {
	f, err := os.OpenFile(root, os.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	switch {
	case err == nil:
		return f.Close()
	case root == store.DefaultRoot() && errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		return usagef("cannot read runs: %w", err)
	}
	return fmt.Errorf("cannot read runs: %w", err)
}

// isUnreadable reports whether an error is about a directory that exists and cannot be read.
func isUnreadable(err error) bool { return err != nil && !errors.Is(err, fs.ErrNotExist) }

// formerRoot is the default directory of runs in earlier versions.
const formerRoot = "results"

// formerRootHint returns a hint if the default root has no runs but the former default has.
func formerRootHint(root string) string {
	runs, _ := store.Runs(root, "") // the caller reports what cannot be read
	former, _ := store.Runs(formerRoot, "")
	if root != "runs" || len(runs) > 0 || len(former) == 0 {
		return ""
	}
	return fmt.Sprintf("%[1]s holds runs of an earlier version: add --out %[1]s, or rename it to %s", formerRoot, root)
}
