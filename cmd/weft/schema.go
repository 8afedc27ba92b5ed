package main

import (
	"github.com/spf13/cobra"

	"weft/orchestrator/lab"
)

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "print the JSON Schema of lab files",
		Long: "Print the JSON Schema (draft 2020-12) of lab files. Editors use it for completion when a lab begins with\n" +
			"  # yaml-language-server: $schema=<path of the schema>",
		Example: "  weft schema",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := a.stdout.Write(lab.Schema())
			return err
		},
	}
}
