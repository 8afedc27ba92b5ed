package main

import (
	"github.com/spf13/cobra"

	"weft/orchestrator/lab"
	"weft/results/schema"
)

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema [lab|summary|manifest]",
		Short: "print the JSON Schema of lab files, or of what a run leaves",
		Long: "Print the JSON Schema (draft 2020-12) of lab files. Editors use it for completion when a lab begins with\n" +
			"  # yaml-language-server: $schema=<path of the schema>",
		Example:   "  weft schema\n  weft schema summary",
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: []string{"lab", "summary", "manifest"},
		RunE: func(_ *cobra.Command, args []string) error {
			text := map[string]func() []byte{"lab": lab.Schema, "summary": schema.Summary, "manifest": schema.Manifest}
			print, ok := text[append(args, "lab")[0]]
			if !ok {
				return usagef("no schema of %q; there are lab, summary and manifest", args[0])
			}
			_, err := a.stdout.Write(print())
			return err
		},
	}
}
