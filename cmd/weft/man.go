//go:build man

package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// This file is built only with the tag man: a release ships manual pages and completions, and weft
// itself needs no Markdown renderer. `make release` uses it:
//
//	go run -tags man ./cmd/weft man DIR

// packaging returns the commands that only builds for packaging have.
func packaging() []*cobra.Command {
	return []*cobra.Command{{
		Use: "man DIR", Short: "write manual pages and completions", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return writeManual(cmd.Root(), args[0]) },
	}}
}

// writeManual writes man1/*.1 and completions/* below dir, dated SOURCE_DATE_EPOCH.
func writeManual(root *cobra.Command, dir string) error {
	epoch, err := strconv.ParseInt(cmp.Or(os.Getenv("SOURCE_DATE_EPOCH"), "0"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	pages, completions := filepath.Join(dir, "man1"), filepath.Join(dir, "completions")
	for _, d := range []string{pages, completions} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	root.DisableAutoGenTag = true
	literal(root)
	date := time.Unix(epoch, 0).UTC()
	header := &doc.GenManHeader{Section: "1", Date: &date, Source: "Weft", Manual: "Weft"}
	if err := doc.GenManTree(root, header, pages); err != nil {
		return err
	}
	write := map[string]func(path string) error{
		"weft.bash": func(path string) error { return root.GenBashCompletionFileV2(path, true) },
		"_weft":     root.GenZshCompletionFile,
		"weft.fish": func(path string) error { return root.GenFishCompletionFile(path, true) },
	}
	for name, generate := range write {
		if err := generate(filepath.Join(completions, name)); err != nil {
			return err
		}
	}
	return nil
}

// literal turns indented lines of descriptions into Markdown blocks, which keep line breaks.
func literal(cmd *cobra.Command) {
	var b strings.Builder
	block := false
	for line := range strings.Lines(cmd.Long) {
		indented := strings.HasPrefix(line, "  ")
		if indented != block {
			b.WriteString("\n")
		}
		if block = indented; indented {
			line = "  " + line
		}
		b.WriteString(line)
	}
	cmd.Long = b.String()
	for _, c := range cmd.Commands() {
		literal(c)
	}
}
