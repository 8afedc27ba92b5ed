package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker (see the Makefile). Builds without it use the module's version.
var version = ""

// versionText returns the version of this program: the linked one, else the module's, else the
// commit.
func versionText() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return "dev"
}

// versionLine returns the line that weft version and weft --version print.
func versionLine() string {
	return fmt.Sprintf("weft %s (%s, %s)", versionText(), runtime.Version(), platform)
}

const platform = runtime.GOOS + "/" + runtime.GOARCH

func (a *app) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "print the version",
		Long:    "Print the version of weft, of Go, and the platform.",
		Example: "  weft version\n  weft version --json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return writeJSON(a.stdout, map[string]string{
					"version": versionText(), "go": runtime.Version(), "platform": platform,
				})
			}
			_, err := fmt.Fprintln(a.stdout, versionLine())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
