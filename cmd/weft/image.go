package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"weft/internal/regular"
	"weft/nodeimg/image"
)

// imageCommand returns weft image, whose verb save writes the image of the shards of a sweep.
func (a *app) imageCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "image", Short: "write the container image of this program",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use: "save FILE", Short: "write an archive for docker load",
		Long: `Write a container image of this program and nothing else, for docker load on each machine of a swarm
whose registry does not have it. It prints the ID of the image, which follows from the program, so that
it is the same on all machines. weft sweep submit --on swarm uses that image by default.`,
		Example: "  weft image save weft.tar      # then, on each machine: docker load -i weft.tar",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			p, err := image.Read(self)
			if err != nil {
				return err
			}
			id, err := p.ID()
			if err != nil {
				return err
			}
			var b bytes.Buffer
			if err := p.Save(&b); err != nil {
				return err
			}
			if err := regular.WriteOutput(args[0], b.Bytes()); err != nil {
				return fmt.Errorf("image: %w", err)
			}
			fmt.Fprintln(a.stdout, id)
			return nil
		},
	})
	return cmd
}
