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
		Short: "print the JSON Schema of lab files, or of what a run leaves, or a dissector for Wireshark",
		Long: "Print the JSON Schema (draft 2020-12) of lab files. Editors use it for completion when a lab begins with\n" +
			"  # yaml-language-server: $schema=schema.json\n" +
			"and weft schema > schema.json left the schema beside it.\n" +
			"dissector is a program in Lua by which Wireshark and tshark understand the headers of Weft's transport:\n" +
			"  weft schema dissector > weft.lua; wireshark -X lua_script:weft.lua capture.pcapng",
		Example:   "  weft schema\n  weft schema summary\n  weft schema dissector",
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: []string{"lab", "summary", "manifest", "dissector"},
		RunE: func(_ *cobra.Command, args []string) error {
			text := map[string]func() []byte{"lab": lab.Schema, "summary": schema.Summary, "manifest": schema.Manifest, "dissector": dissector.Lua}
			print, ok := text[append(args, "lab")[0]]
			if !ok {
				return usagef("no schema of %q; there are lab, summary, manifest and dissector", args[0])
			}
			_, err := a.stdout.Write(print())
			return err
		},
	}
}
