package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"weft/orchestrator/cni"
)

func (a *app) cniCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cni",
		Short: "attach containers to hosts of a deployed lab, as a CNI plugin",
		Long: `Attach a container that another program starts to a host of a deployed lab, and detach it: a plugin
for CNI runtimes such as podman, Kubernetes with Multus, and cnitool. They call it under the name
weft-cni, with the request in environment variables and the network configuration on standard
input (docs/cni.md):

  ln -s "$(command -v weft)" /opt/cni/bin/weft-cni
  weft cni > /etc/cni/net.d/weft.conflist

Without a request it prints a network configuration to start from.`,
		Example: "  weft cni",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if os.Getenv("CNI_COMMAND") == "" {
				fmt.Fprint(a.stdout, cni.Example)
				return nil
			}
			if code := cni.Main(); code != exitOK {
				return exitCode(code) // the error is on standard output, as the protocol wants it
			}
			return nil
		},
	}
}
