package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weft/internal/cleanup"
	"weft/orchestrator/deploy"
	"weft/orchestrator/lab"
	"weft/orchestrator/labfile"
	"weft/orchestrator/machine"
	"weft/orchestrator/runtime"
	"weft/orchestrator/sweep/slurm"
	"weft/orchestrator/sweep/swarm"
)

// stateDir returns the directory with the state of this user's deployed labs, and puts it into the
// environment. A process in the user namespace of elevate is root and would find another.
func stateDir() string {
	dir := deploy.DefaultRoot(os.Geteuid())
	_ = os.Setenv(deploy.RootVar, dir) // a path has no NUL
	return dir
}

// openState opens the state directory. It returns nil if there is none yet.
func openState() (*deploy.Root, error) {
	dir := stateDir()
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return deploy.OpenRoot(dir)
}

// deployOptions returns options that print messages on standard error.
func (a *app) deployOptions() deploy.Options {
	return deploy.Options{
		Say: func(line string) { fmt.Fprintln(a.stderr, line) }, Machines: standing,
		Undo: map[string]func(context.Context, string, string) error{runtime.Agents: removeAgents},
	}
}

func (a *app) deployCommand() *cobra.Command {
	var flags labFlags
	var dry, asJSON bool
	var kernel string
	var far machineFlags
	cmd := &cobra.Command{
		Use:   "deploy LAB",
		Short: "bring up a lab and leave it running",
		Long: `Bring up the network of a lab and leave it running for your own programs (see weft exec). A lab that
is up already stays as it is; if the lab file has changed, the lab is replaced. The workload, faults
and expectations of the lab are left out, which a line says. For a sweep, the first point is deployed.

With --on, the hosts are on other machines, where all verbs reach them (docs/scale-out.md says what
does not work). Docker Swarm and Slurm start agents, which end with the lab; agents at addresses
(weft machine) stay.

A supervisor process owns the lab until weft destroy. If deploying fails or is interrupted, nothing
is left behind. If only a program of the lab (run: of a host) failed at its start, the lab stays up,
and the exit code is 1; the same if the lab was up and a program or a host has failed since. What
weft node and weft link changed in a lab that is up stays, and is listed. --dry-run refuses a lab
that this machine cannot emulate, as weft deploy does, and measures what it can carry as that does.

Exit codes: 0 up; 1 not up, or a program or a host failed; 2 the command line or the lab file is
wrong; 130 interrupted.`,
		Example: `  weft deploy labs/quickstart.yaml
  weft deploy labs/quickstart.yaml --dry-run
  weft exec h0 -- ping -c3 h15
  weft destroy`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: labFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := hostKernel(kernel); err != nil {
				return err
			}
			if flags.Engine.Datapath == lab.DatapathAuto {
				return usagef("--datapath auto: a deployed lab has no end to weigh; expected fabric or kernel")
			}
			machines, set, err := far.machines(nil, nil)
			if err != nil {
				return err
			}
			flags.Set = append(flags.Set, set...)
			q, l, err := a.request(&flags, args[0])
			if err != nil {
				return err
			}
			if flags.Engine.Kind != "" && l.Engine.Both() {
				return usagef("--engine %s: a deployed lab is emulated; expected auto or emu", flags.Engine.Kind)
			}
			if q.On, q.Image = far.on, far.image; far.secret != "" {
				if q.Secret, err = filepath.Abs(far.secret); err != nil {
					return err
				}
			}
			dir := stateDir()
			if !dry {
				// Remains of a deployment whose state directory is gone cannot be found in a user
				// namespace.
				if _, err := deploy.EndStrays(cmd.Context(), l.Name, a.deployOptions()); err != nil {
					return err
				}
			}
			if machines == nil {
				if err := a.elevate(cmd.Context(), l.Engine.Runtime); err != nil {
					return err
				}
			}
			var c *deploy.Change
			if dry {
				err = a.showPlan(cmd.Context(), dir, q, asJSON)
			} else {
				c, err = deploy.Up(cmd.Context(), dir, q, a.deployOptions())
			}
			if err != nil {
				return err
			}
			if parts := l.RunOnly(); len(parts) > 0 {
				fmt.Fprintf(a.stderr, "%s: a lab that stays up leaves out %s; weft run is for these\n", l.Name,
					strings.Join(parts, ", "))
			}
			if dry {
				return nil
			}
			return a.showDeployed(c, asJSON)
		},
	}
	flags.register(cmd)
	cmd.Flags().Lookup("engine").Usage = "auto or emu: a deployed lab is emulated"
	runtimeFlag(cmd.Flags(), &flags.Engine)
	datapathFlag(cmd.Flags(), &flags.Engine, "fabric (the default) or kernel: what carries packets")
	cmd.Flags().StringVar(&kernel, "kernel", "host", "host, this machine's: User Mode Linux ends with its command")
	dilationFlag(cmd.Flags(), &flags.Engine)
	far.register(cmd)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print what would change and why, and change nothing")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// request reads the lab to deploy.
func (a *app) request(flags *labFlags, name string) (*deploy.Request, *lab.Lab, error) {
	files, err := flags.load([]string{name})
	if err != nil {
		return nil, nil, err
	}
	path := files[0].Name
	if name != labfile.Stdin {
		if path, err = filepath.Abs(path); err != nil {
			return nil, nil, err
		}
	}
	return &deploy.Request{
		File: path, Text: files[0].Text, Set: flags.Set, Engine: flags.Engine,
		Version: versionText(), Read: files[0].Read,
	}, files[0].Labs[0], nil
}

// showPlan prints what deploying would change.
func (a *app) showPlan(ctx context.Context, dir string, q *deploy.Request, asJSON bool) error {
	c, err := deploy.DryRun(ctx, dir, q, a.deployOptions())
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(a.stdout, c)
	}
	_, err = io.WriteString(a.stdout, c.Text())
	return err
}

// showDeployed prints what deploying changed.
func (a *app) showDeployed(c *deploy.Change, asJSON bool) error {
	var failed error
	if len(c.Failed) > 0 {
		failed = fmt.Errorf("lab %s is up, but not all of it runs (weft inspect shows more):\n%s", c.Lab,
			strings.Join(c.Failed, "\n"))
	}
	if asJSON {
		return cmp.Or(writeJSON(a.stdout, c), failed)
	}
	d := c.Deployment
	if c.Action == deploy.ActionNone {
		text := fmt.Sprintf("%s is up already, since %s", c.Lab, d.Began.Local().Format("15:04:05"))
		if len(c.Changed) > 0 {
			text += ", and was changed:\n" + strings.Join(c.Changed, "\n")
		}
		fmt.Fprintln(a.stdout, text)
		return failed
	}
	fmt.Fprintf(a.stdout, "%s is up after %.2f s; dilation %.15g (%s)\n", c.Lab, c.Took, d.Dilation, d.Why)
	if d.Dilation != 1 {
		fmt.Fprintf(a.stderr, "Programs in its nodes see real time: delays are %.15g times longer than in the lab, "+
			"rates %.15[1]g times lower; %s.\n", d.Dilation, d.LabTime())
	}
	return failed
}

func (a *app) destroyCommand() *cobra.Command {
	var all bool
	var name string
	cmd := &cobra.Command{
		Use:   "destroy [LAB]",
		Short: "take down a deployed lab and remove every trace of it",
		Long: `Take down a deployed lab, named by its name or file, and remove every trace of it. Without an
argument, take down the only one. A lab whose state directory is gone is found by its processes. It
is no error if the lab is not deployed.`,
		Example: "  weft destroy\n  weft destroy quickstart\n  weft destroy --all",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			lab, err := labArgument(name, args)
			if err != nil {
				return err
			}
			if all && lab != "" {
				return usagef("--all and the lab %s: choose one", lab)
			}
			names, err := a.labsToDestroy(lab, all)
			if err != nil {
				return err
			}
			if len(names) == 0 {
				fmt.Fprintln(a.stderr, "no lab is deployed")
			}
			var all cleanup.Errors
			for _, name := range names {
				all.Add(a.destroy(cmd.Context(), name))
			}
			return all.Err()
		},
	}
	deployedFlag(cmd, &name)
	cmd.Flags().BoolVar(&all, "all", false, "destroy every lab of this user")
	return cmd
}

// labsToDestroy returns the names of the labs to destroy.
func (a *app) labsToDestroy(lab string, all bool) ([]string, error) {
	if lab != "" {
		name, err := labNamed(lab)
		return []string{name}, err
	}
	names, err := deployedLabs()
	names = append(names, deploy.Strays()...)
	slices.Sort(names)
	names = slices.Compact(names)
	switch {
	case len(names) == 0:
		return nil, err
	case len(names) > 1 && !all:
		return nil, usagef("%d labs are deployed: %s; name one, or use --all", len(names), strings.Join(names, ", "))
	}
	return names, nil // without err: deploy.Down returns it too, after it ended the strays
}

// destroy takes down one lab and prints the outcome.
func (a *app) destroy(ctx context.Context, name string) error {
	began := time.Now()
	found, err := deploy.Down(ctx, stateDir(), name, a.deployOptions())
	switch {
	case err != nil:
		return err
	case !found:
		fmt.Fprintf(a.stderr, "%s is not deployed\n", name)
	default:
		fmt.Fprintf(a.stdout, "%s is down after %.2f s\n", name, time.Since(began).Seconds())
	}
	return nil
}

func (a *app) cleanCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "remove what crashed labs left behind, and only what Weft made",
		Long: `Remove what is left of labs whose deployment was killed, or whose supervisor has ended. Labs that are
up stay, unless their state directory is gone, so that no command can reach them. On a machine of a
swarm, the services and ended containers of sweeps and agents that are over are removed, and so are
Slurm's jobs of agents whose command has ended, and files that agents had for programs. Only what a
journal of Weft names or what has Weft's mark is removed. What cannot be looked for, such as
containers of an engine that does not answer, is listed as not looked at, with the reason.`,
		Example: "  weft clean\n  weft clean --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			swept, err := deploy.Clean(cmd.Context(), stateDir(), a.deployOptions())
			add := func(kind, why string) func(removed []string, unseen, failed error) {
				return func(removed []string, unseen, failed error) {
					for _, name := range removed {
						swept = append(swept, deploy.Swept{Lab: name, What: deploy.Removed, Why: why})
					}
					if unseen != nil {
						swept = append(swept, deploy.Swept{Lab: kind, What: deploy.NotLookedAt, Why: unseen.Error()})
					}
					err = cleanup.Join(err, failed)
				}
			}
			add("tasks on a swarm", "of a sweep or a lab that is over")(swarm.Clean(cmd.Context()))
			add("jobs of Slurm", "of a lab that is over")(slurm.CleanAgents(cmd.Context()))
			add("files of agents", "of an agent that has ended")(machine.CleanFiles())
			if asJSON {
				if swept == nil {
					swept = []deploy.Swept{}
				}
				return errors.Join(err, writeJSON(a.stdout, swept))
			}
			for _, s := range swept {
				fmt.Fprintln(a.stdout, s)
			}
			if len(swept) == 0 && err == nil {
				fmt.Fprintln(a.stderr, "nothing to clean")
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// deployedLabs returns the names of this user's deployed labs.
func deployedLabs() ([]string, error) {
	r, err := openState()
	if r == nil {
		return nil, err
	}
	defer r.Close()
	return r.Labs()
}

// labNamed returns the name of the lab that an argument names: the argument, or the name in that
// file.
func labNamed(arg string) (string, error) {
	if deploy.CheckName(arg) == nil {
		return arg, nil
	}
	if !strings.HasSuffix(arg, ".yaml") && !strings.HasSuffix(arg, ".yml") {
		return "", usageError{deploy.CheckName(arg)}
	}
	var flags labFlags
	files, err := flags.load([]string{arg})
	if err != nil {
		return "", err
	}
	return files[0].Labs[0].Name, nil
}

// onDeployed calls do with the deployed lab that an argument names; an empty one means the only
// lab.
func (a *app) onDeployed(arg string, do func(*deploy.Handle) error) error {
	var name string
	if arg != "" {
		var err error
		if name, err = labNamed(arg); err != nil {
			return err
		}
	} else {
		switch names, err := deployedLabs(); {
		case err != nil:
			return err
		case len(names) == 0:
			if err := deploy.Unreachable(""); err != nil {
				return err
			}
			return usagef("no lab is deployed; weft deploy LAB brings one up")
		case len(names) > 1:
			return usagef("%d labs are deployed: %s; name one with --lab", len(names), strings.Join(names, ", "))
		default:
			name = names[0]
		}
	}
	r, err := openState()
	switch {
	case err != nil:
		return err
	case r == nil:
		return deploy.Unreachable(name)
	}
	defer r.Close()
	h, err := deploy.Open(r, name)
	if err != nil {
		return err
	}
	return do(h)
}
