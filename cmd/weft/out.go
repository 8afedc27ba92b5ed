package main

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

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

// formerRoot is the default directory of runs in earlier versions.
const formerRoot = "results"

// formerRootHint returns a hint if the default root has no runs but the former default has.
func formerRootHint(root string) string {
	if root != "runs" || len(store.Runs(root, "")) > 0 || len(store.Runs(formerRoot, "")) == 0 {
		return ""
	}
	return fmt.Sprintf("%[1]s holds runs of an earlier version: add --out %[1]s, or rename it to %s", formerRoot, root)
}
