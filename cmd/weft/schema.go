package main

import (
	"github.com/spf13/cobra"

	"weft/orchestrator/lab"
	"weft/results/schema"
	"weft/transport/wire/dissector"
)

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema [lab|summary|manifest|dissector]",
		Short: "print the JSON Schema of lab files or of a run's files, or a Wireshark dissector",
		Long: `Print the JSON Schema (draft 2020-12) of lab files. Editors use it for completion if a lab begins with
  # yaml-language-server: $schema=schema.json
and weft schema > schema.json wrote the schema beside it. summary and manifest are the schemas of
the files of a run.

dissector is a Lua program with which Wireshark and tshark decode the headers of Weft's transport:
  weft schema dissector > weft.lua; wireshark -X lua_script:weft.lua capture.pcapng`,
		Example:   "  weft schema\n  weft schema summary\n  weft schema dissector",
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: []string{"lab", "summary", "manifest", "dissector"},
		RunE: func(_ *cobra.Command, args []string) error {
			text := map[string]func() []byte{
				"lab": lab.Schema, "summary": schema.Summary, "manifest": schema.Manifest, "dissector": dissector.Lua,
			}
			print, ok := text[append(args, "lab")[0]]
			if !ok {
				return usagef("unknown schema %q; expected lab, summary, manifest or dissector", args[0])
			}
			_, err := a.stdout.Write(print())
			return err
		},
	}
}
