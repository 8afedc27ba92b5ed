package main

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"weft/orchestrator/machine"
	"weft/orchestrator/runtime"
	"weft/orchestrator/runtime/namespace"
	"weft/results/store"
)

// machineCommand returns weft machine.
func (a *app) machineCommand() *cobra.Command {
	var listen, secret string
	cmd := &cobra.Command{
		Use:   "machine",
		Short: "run parts of emulated labs on this machine for weft run --on",
		Long: `Start and end the processes of a part of an emulated lab for weft run --on, until interrupted. Only who
has the secret can use it, and what it starts ends with the connection (docs/scale-out.md). All
machines need the same build of weft, and the same secret in a file that only its owner can read:

  openssl rand -hex 32 > secret && chmod 600 secret`,
		Example: "  weft machine --listen 10.0.0.2:7788 --secret secret",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if listen == "" || secret == "" {
				return usagef("expected --listen ADDRESS:PORT and --secret FILE")
			}
			text, err := machine.ReadSecret(secret)
			if err != nil {
				return usageError{err}
			}
			if err := namespace.Available(); err != nil {
				return err
			}
			l, err := net.Listen("tcp", listen)
			if err != nil {
				return usageError{err}
			}
			var mu sync.Mutex
			say := func(line string) {
				mu.Lock()
				defer mu.Unlock()
				fmt.Fprintln(a.stderr, line)
			}
			say("listening at " + l.Addr().String())
			agent := machine.Agent{Secret: text, Build: store.Program(), Say: say}
			return agent.Serve(cmd.Context(), l)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "address and port for weft run and the agents of other machines")
	cmd.Flags().StringVar(&secret, "secret", "", "file with the secret")
	return cmd
}

// machineFlags are the flags of weft run for other machines.
type machineFlags struct {
	on     string
	secret string
}

func (f *machineFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.on, "on", "",
		"run parts of the lab on these machines, by the addresses of their agents (weft machine), as in A:7788,B:7788")
	cmd.Flags().StringVar(&f.secret, "secret", "", "file with the secret of the agents of --on")
}

// machines returns how to start each run on the machines of --on, and the settings of a lab that
// follow; nil: no --on.
func (f *machineFlags) machines() (start func() ([]runtime.Launch, error), set []string, err error) {
	if f.on == "" && f.secret == "" {
		return nil, nil, nil
	}
	addrs := strings.Split(f.on, ",")
	for _, addr := range addrs {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return nil, nil, usagef("--on: %w; expected addresses with ports, as in 10.0.0.1:7788,10.0.0.2:7788", err)
		}
	}
	if len(addrs) < 2 || f.secret == "" {
		return nil, nil, usageError{errors.New("--on: expected at least two machines, and --secret FILE")}
	}
	secret, err := machine.ReadSecret(f.secret)
	if err != nil {
		return nil, nil, usageError{err}
	}
	start = func() ([]runtime.Launch, error) {
		l, err := machine.NewLauncher(addrs, secret, store.Program())
		if err != nil {
			return nil, err
		}
		all := make([]runtime.Launch, len(addrs))
		for k := range all {
			all[k] = l.Machine(k)
		}
		return all, nil
	}
	return start, []string{fmt.Sprintf("engine.machines=%d", len(addrs))}, nil
}
