package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"weft/internal/plural"
	"weft/internal/privilege"
	"weft/orchestrator/deploy"
	"weft/orchestrator/machine"
	"weft/orchestrator/runtime"
	"weft/orchestrator/sweep/slurm"
	"weft/orchestrator/sweep/swarm"
	"weft/results/store"
)

// machineCommand returns weft machine.
func (a *app) machineCommand() *cobra.Command {
	var listen, secret, meet string
	cmd := &cobra.Command{
		Use:   "machine",
		Short: "run parts of emulated labs on this machine for weft run --on",
		Long: `Start and end the processes of a part of an emulated lab for weft run --on, until interrupted. Only
clients with the secret can use it, and what it starts ends with the connection
(docs/scale-out.md). All machines need the same build of weft, and the same secret in a file that only
its owner can read:

  openssl rand -hex 32 > secret && chmod 600 secret

weft run --on swarm:N and --on slurm:N start agents by themselves.`,
		Example: "  weft machine --listen 10.0.0.2:7788 --secret secret",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := agentSecret(secret)
			if err != nil {
				return usageError{err}
			}
			if listen == "" && meet == "" {
				return usagef("expected --listen ADDRESS:PORT")
			}
			if err := privilege.CheckNamespaces(); err != nil {
				return err
			}
			if err := a.elevate(cmd.Context(), "namespace"); err != nil {
				return err
			}
			os.Unsetenv(machine.SecretVar) // the processes of labs do not need it
			l, err := machine.Listen(cmp.Or(listen, ":0"))
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
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			reported := make(chan error, 1)
			if meet != "" {
				go func() {
					defer cancel()           // it is nobody's any more
					host, _ := os.Hostname() // for messages
					host = cmp.Or(os.Getenv("SLURMD_NODENAME"), host)
					reported <- agent.Report(ctx, meet, host, l.Addr().(*net.TCPAddr).Port)
				}()
			} else {
				reported <- nil
			}
			err = agent.Serve(ctx, l)
			return errors.Join(<-reported, err)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "address and port for weft run and the agents of other machines")
	cmd.Flags().StringVar(&secret, "secret", "", "file with the secret")
	cmd.Flags().StringVar(&meet, "meet", "", "address and port of the weft run that had an engine start this agent")
	_ = cmd.Flags().MarkHidden("meet") // the flag exists
	return cmd
}

// agentSecret returns the secret of an agent: in a file or, from Slurm, in a variable.
func agentSecret(file string) (string, error) {
	if text := os.Getenv(machine.SecretVar); file == "" && text != "" {
		return text, nil
	}
	if file == "" {
		return "", errors.New("expected --secret FILE")
	}
	return machine.ReadSecret(file)
}

// machineFlags are the flags of weft run for other machines.
type machineFlags struct {
	on     string
	secret string
	image  string
}

func (f *machineFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.on, "on", "", "have parts of the lab on other machines: swarm:N, slurm:N or the "+
		"addresses of agents (weft machine), as in A:7788,B:7788")
	cmd.Flags().StringVar(&f.secret, "secret", "", "file with the secret of the agents at the addresses of --on")
	cmd.Flags().StringVar(&f.image, "image", "",
		"swarm: image with this weft, by digest or ID (default made from this program: see weft image save)")
}

// agentEngines are the engines that --on can name.
func agentEngines() []machine.Engine { return []machine.Engine{swarm.Agents{}, new(slurm.Agents)} }

// engine returns the engine that --on names, and the number of machines; nil: it has addresses.
func (f *machineFlags) engine() (machine.Engine, int, error) {
	name, number, _ := strings.Cut(f.on, ":")
	for _, e := range agentEngines() {
		if e.Name() != name {
			continue
		}
		n, err := strconv.Atoi(number)
		if err != nil || n < 2 {
			return nil, 0, usagef("--on %s: expected a number of machines from 2 on, as in %s:4", f.on, name)
		}
		if f.secret != "" {
			return nil, 0, usagef("--secret is for agents at addresses; those of %s get a secret of their own", name)
		}
		return e, n, nil
	}
	return nil, 0, nil
}

// settings are the settings of a lab that follow from --on.
func settings(machines int) []string { return []string{fmt.Sprintf("engine.machines=%d", machines)} }

// machines returns the machines of --on and the settings of a lab that follow; nil: no --on. ahead
// is Placed.Ahead.
func (f *machineFlags) machines(say func(line string), ahead runtime.Ahead) (
	m deploy.Machines, set []string, err error,
) {
	engine, n, err := f.engine()
	switch {
	case err != nil:
		return nil, nil, err
	case f.image != "" && (engine == nil || engine.Name() != "swarm"):
		return nil, nil, usagef("--image is of the agents that a swarm starts; expected --on swarm:N")
	case f.on == "" && f.secret == "":
		return nil, nil, nil
	case f.on == "":
		return nil, nil, usagef("--secret is for agents at addresses; expected --on A:7788,B:7788")
	}
	if engine != nil {
		return &machine.Placed{Engine: engine, Build: store.Program(), Say: say, Ahead: ahead,
			Placement: machine.Placement{Count: n, Image: f.image}}, settings(n), nil
	}
	addrs, err := f.addresses()
	if err != nil {
		return nil, nil, err
	}
	if f.secret == "" {
		return nil, nil, usagef("--on %s: expected --secret FILE, with the secret of these agents", f.on)
	}
	secret, err := machine.ReadSecret(f.secret)
	if err != nil {
		return nil, nil, usageError{err}
	}
	g := &machine.Group{Addrs: addrs, Secret: secret, Build: store.Program()}
	if say != nil {
		say(strings.Join(g.Names(), ", "))
	}
	return g, settings(len(addrs)), nil
}

// addresses returns the addresses of agents in --on.
func (f *machineFlags) addresses() ([]string, error) {
	addrs := strings.Split(f.on, ",")
	for i, addr := range addrs {
		if _, port, err := net.SplitHostPort(addr); err != nil || port == "" {
			return nil, usagef("--on %s: expected swarm:N, slurm:N or addresses with ports, as in "+
				"10.0.0.1:7788,10.0.0.2:7788", f.on)
		}
		if slices.Contains(addrs[:i], addr) {
			return nil, usagef("--on %s: expected each agent once; it takes one part of a lab", f.on)
		}
	}
	if len(addrs) < 2 {
		return nil, usagef("--on %s: expected swarm:N, slurm:N or at least two addresses", f.on)
	}
	return addrs, nil
}

// where returns which machines --on would use.
func (f *machineFlags) where(ctx context.Context) (string, error) {
	engine, n, err := f.engine()
	if err != nil {
		return "", err
	}
	if engine == nil {
		addrs, err := f.addresses()
		g := machine.Group{Addrs: addrs}
		return strings.Join(g.Names(), ", "), err
	}
	hosts, err := engine.Hosts(ctx)
	if err == nil {
		err = machine.Enough(engine, hosts, n)
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s chooses %d of %s: %s; m1 is the first by name", engine.Name(), n,
		plural.Count(len(hosts), "machine"), strings.Join(machine.Names(hosts), ", ")), nil
}

// standing returns the other machines of a lab that stays up; see deploy.Options.
func standing(q *deploy.Request, say func(line string), ahead runtime.Ahead) (deploy.Machines, error) {
	f := machineFlags{on: q.On, secret: q.Secret, image: q.Image}
	m, _, err := f.machines(say, ahead)
	return m, err
}

// removeAgents undoes an operation of kind runtime.Agents.
func removeAgents(ctx context.Context, where, name string) error {
	return machine.Undo(ctx, agentEngines(), where, name)
}
