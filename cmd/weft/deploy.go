package main

import (
	"context"
	"errors"
	"fmt"
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
	orchestrate "weft/orchestrator/run"
)

// stateDir is the state directory of this user. In the user namespace that elevate entered everybody is root, so it is
// settled before, for what is executed there too.
func stateDir() string {
	dir := deploy.DefaultRoot(os.Geteuid())
	_ = os.Setenv(deploy.RootVar, dir) // it has no NUL
	return dir
}

func (a *app) deployOptions() deploy.Options {
	return deploy.Options{Say: func(line string) { fmt.Fprintln(a.stderr, line) }}
}

func (a *app) deployCommand() *cobra.Command {
	var flags labFlags
	var dry, asJSON bool
	var kernel string
	cmd := &cobra.Command{
		Use:   "deploy LAB",
		Short: "bring a lab up and leave it running",
		Long: "Bring up the network of a lab and leave it running, for programs of your own: see weft exec. What is up already\n" +
			"stays as it is; another version of the lab is replaced. The lab's workload and faults are not run. Of a sweep\n" +
			"the first point is deployed.\n\n" +
			"A supervisor process owns the lab until weft destroy. When deploying fails or is interrupted, nothing is left.",
		Example: "  weft deploy labs/quickstart.yaml\n  weft deploy labs/quickstart.yaml --dry-run\n" +
			"  weft exec h0 -- ping -c3 h15\n  weft destroy",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: labFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := hostKernel(kernel); err != nil {
				return err
			}
			q, l, err := a.request(&flags, args[0])
			if err != nil {
				return err
			}
			if dry {
				if err := orchestrate.Deployable(l); err != nil {
					return err
				}
				return a.showPlan(q, asJSON)
			}
			dir := stateDir()
			// What is left of an earlier deployment that has lost its folder cannot be judged from within a user namespace.
			if _, err := deploy.EndStrays(cmd.Context(), dir, l.Name, a.deployOptions()); err != nil {
				return err
			}
			if err := a.elevate(l.Engine.Runtime); err != nil {
				return err
			}
			c, err := deploy.Up(cmd.Context(), dir, q, a.deployOptions())
			if err != nil {
				return err
			}
			return a.showDeployed(c, asJSON)
		},
	}
	flags.register(cmd)
	cmd.Flags().StringVar(&flags.Engine.Runtime, "runtime", "", "auto, namespace or docker: where nodes live")
	cmd.Flags().StringVar(&kernel, "kernel", "host", "host: the kernel that the network runs on")
	cmd.Flags().StringVar(&flags.Engine.Dilation, "dilation", "", "auto or a number from 1: how much slower than the lab its network runs")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "say what would change and why, and change nothing")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// request reads a lab that is to be deployed.
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
		File: path, Text: files[0].Text, Set: flags.Set, Engine: flags.Engine, Version: versionText(), Read: files[0].Read,
	}, files[0].Labs[0], nil
}

// deployPlan says what deploying would do.
func deployPlan(q *deploy.Request) (*deploy.Change, error) {
	dir := stateDir()
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return deploy.Fresh(q)
	}
	r, err := deploy.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return deploy.Plan(r, q)
}

// showPlan says what would change.
func (a *app) showPlan(q *deploy.Request, asJSON bool) error {
	c, err := deployPlan(q)
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(a.stdout, c)
	}
	words := map[string]string{
		deploy.ActionDeploy: "would be deployed", deploy.ActionReplace: "would be taken down and deployed anew",
		deploy.ActionRepair: "would be cleaned up and deployed anew", deploy.ActionNone: "would be left as it is",
	}
	fmt.Fprintf(a.stdout, "%s %s: %s\n", c.Lab, words[c.Action], c.Why)
	for _, d := range c.Differences {
		fmt.Fprintf(a.stdout, "  %s\n", d)
	}
	return nil
}

// showDeployed says what Up did.
func (a *app) showDeployed(c *deploy.Change, asJSON bool) error {
	if asJSON {
		return writeJSON(a.stdout, c)
	}
	d := c.Deployment
	if c.Action == deploy.ActionNone {
		fmt.Fprintf(a.stdout, "%s is up already, since %s\n", c.Lab, d.Began.Local().Format("15:04:05"))
		return nil
	}
	fmt.Fprintf(a.stdout, "%s is up after %.2f s; dilation %g (%s)\n", c.Lab, c.Took, d.Dilation, d.Why)
	if d.Dilation != 1 {
		fmt.Fprintf(a.stderr, "Programs in its nodes see real time: delays are %g times the lab's, rates %g times smaller.\n", d.Dilation, d.Dilation)
	}
	return nil
}

func (a *app) destroyCommand() *cobra.Command {
	var all bool
	var name string
	cmd := &cobra.Command{
		Use:     "destroy [LAB]",
		Short:   "take a deployed lab down and remove every trace of it",
		Long:    "Take a deployed lab down, by its name or its file, and remove every trace of it; without a name the only one. A lab\nwhose state directory is gone is found by its processes. One that is not deployed is no error.",
		Example: "  weft destroy\n  weft destroy quickstart\n  weft destroy --all",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			lab, err := oneLab(name, args)
			if err != nil {
				return err
			}
			if all && lab != "" {
				return usagef("--all and lab %s; choose one", lab)
			}
			names, err := a.toDestroy(lab, all)
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
	cmd.Flags().BoolVar(&all, "all", false, "every lab of this user")
	return cmd
}

// toDestroy are the names of the labs that are meant.
func (a *app) toDestroy(lab string, all bool) ([]string, error) {
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
	return names, nil // a state directory that cannot be opened keeps no stray alive: deploy.Down ends it and returns err
}

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
		Short: "remove whatever crashed labs left, and only what Weft made",
		Long: "Remove what is left of labs whose deployment was killed, or whose supervisor is no more. Labs that are up stay,\n" +
			"unless their state directory is gone, so that nothing leads to them. Only what a journal of Weft names, or what carries its\n" +
			"mark, is touched.",
		Example: "  weft clean\n  weft clean --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			swept, err := deploy.Clean(cmd.Context(), stateDir(), a.deployOptions())
			if asJSON {
				if swept == nil {
					swept = []deploy.Swept{}
				}
				return errors.Join(err, writeJSON(a.stdout, swept))
			}
			for _, s := range swept {
				line := s.Lab + ": " + s.What
				if s.Why != "" {
					line += " (" + s.Why + ")"
				}
				fmt.Fprintln(a.stdout, line)
			}
			if len(swept) == 0 && err == nil {
				fmt.Fprintln(a.stderr, "there is nothing to clean")
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// deployedLabs lists the labs of this user, by name.
func deployedLabs() ([]string, error) {
	dir := stateDir()
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	r, err := deploy.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.Labs()
}

// labNamed is the name of the lab that an argument means: a name, or a file with one in it.
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

// onDeployed does something with the deployed lab that an argument means, or, with none, with the only one.
func (a *app) onDeployed(arg string, do func(*deploy.Handle) error) error {
	name := ""
	if arg != "" {
		var err error
		if name, err = labNamed(arg); err != nil {
			return err
		}
	}
	if name == "" {
		names, err := deployedLabs()
		switch {
		case err != nil:
			return err
		case len(names) == 0:
			return usagef("no lab is deployed; weft deploy LAB brings one up")
		case len(names) > 1:
			return usagef("%d labs are deployed: %s; name one by --lab", len(names), strings.Join(names, ", "))
		}
		name = names[0]
	}
	dir := stateDir()
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("lab %s: %w", name, deploy.ErrNotDeployed)
	}
	r, err := deploy.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer r.Close()
	h, err := deploy.Open(r, name)
	if err != nil {
		return err
	}
	return do(h)
}
