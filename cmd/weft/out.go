package main

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"weft/results/store"
)

// outFlag adds --out: the directory that keeps runs, for every command that writes or reads them.
func outFlag(f *pflag.FlagSet, out *string) {
	*out = store.DefaultRoot()
	f.Var((*folder)(out), "out", "directory that keeps all runs; "+store.RootVar+" names another default")
}

// folder is a flag that names a directory.
type folder string

func (f *folder) String() string { return string(*f) }
func (f *folder) Type() string   { return "string" }

func (f *folder) Set(text string) error {
	if text == "" {
		return errors.New("expected a directory")
	}
	*f = folder(text)
	return nil
}

// formerRoot is the default directory of runs in earlier versions.
const formerRoot = "results"

// moved returns a hint if the present default root has no runs and the former one has.
func moved(root string) string {
	if root != "runs" || len(store.Runs(root, "")) > 0 || len(store.Runs(formerRoot, "")) == 0 {
		return ""
	}
	return fmt.Sprintf("%s holds runs of an earlier version: add --out %s, or rename it to %s", formerRoot, formerRoot, root)
}
