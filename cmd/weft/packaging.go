//go:build !man

package main

import "github.com/spf13/cobra"

// packaging returns no commands: those of builds for packaging are in man.go.
func packaging() []*cobra.Command { return nil }
