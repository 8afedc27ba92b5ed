//go:build !man

package main

import "github.com/spf13/cobra"

// packaging returns the commands that only builds for packaging have (man.go): none.
func packaging() []*cobra.Command { return nil }
