// Package testenv isolates the tests of a package from their user: from the user's cache, state
// directory and runs, and from settings in the environment.
package testenv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Main runs tests with temporary folders, removes the folders, and returns the exit code. TestMain
// calls it with m.Run.
func Main(run func() int) (code int) {
	remove, err := useTempFolders()
	if err == nil {
		defer func() {
			if err := remove(); err != nil {
				fmt.Fprintln(os.Stderr, "testenv:", err)
				code = 1
			}
		}()
		return run()
	}
	fmt.Fprintln(os.Stderr, "testenv:", err)
	return 1
}

// useTempFolders points the variables that locate Weft's folders to a new temporary folder.
func useTempFolders() (remove func() error, err error) {
	dir, err := os.MkdirTemp("", "test-of-weft-*")
	if err != nil {
		return nil, err
	}
	vars := map[string]string{
		"XDG_CACHE_HOME": filepath.Join(dir, "cache"), // measurements of the machine
		"WEFT_STATE":     filepath.Join(dir, "state"), // deployed labs; deploy.RootVar
		"WEFT_OUT":       filepath.Join(dir, "runs"),  // store.RootVar
	}
	// Some tests run the go command, whose cache would move with XDG_CACHE_HOME; keep the present
	// one.
	if cache, cerr := os.UserCacheDir(); cerr == nil && os.Getenv("GOCACHE") == "" {
		vars["GOCACHE"] = filepath.Join(cache, "go-build")
	}
	for name, value := range vars {
		err = errors.Join(err, os.Setenv(name, value))
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return func() error { return os.RemoveAll(dir) }, nil
}
