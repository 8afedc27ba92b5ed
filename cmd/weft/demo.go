package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"weft/internal/privilege"
	"weft/orchestrator/lab"
	orchestrate "weft/orchestrator/run"
	"weft/orchestrator/uml"
	"weft/results/record"
	"weft/results/table"
	"weft/transport"
	"weft/units"
)

// demoLab is the lab of weft demo, which is inside the program.
const demoLab = "quickstart"

// umlWorkload makes demoLab so small that it ends within a minute under User Mode Linux, which
// carries some hundred packets a second: 1344 packets in 110 us of lab time, at dilations of some
// 10^5.
var umlWorkload = []string{
	"workload.0.size=128KB", "workload.1.size=128KB", "workload.1.ranks=8", "workload.1.start=25us",
}

// demoCommand returns weft demo: the quickstart, from any directory.
func (a *app) demoCommand() *cobra.Command {
	flags := runFlags{lab: labFlags{builtIn: true}}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "run the quickstart lab three ways: simulator, modelled fabric, Linux",
		Long: `Run the lab quickstart three ways, one after the other, and print them side by side: in the
simulator, emulated over the modelled fabric, and emulated over Linux itself, with bridges, routes
and tc, in containers where a Docker Engine can be used and else in namespaces. Below the table is
what tc said of a switch in the middle of the run, and how well the measured links agreed with the
lab. The lab is inside the program, like all labs that come with Weft: weft run pc4/incast also
works anywhere, unless a file has that name.

If this kernel cannot be the network, or with --kernel uml, Linux is User Mode Linux, and all three
ways run a smaller workload. A way that this machine cannot run is left out, and its column says
what is missing. With --engine only that engine runs, as with weft run quickstart.

If the machine is too busy for the measured dilation, an emulation is repeated once, slower, as with
--retry-dilation, but not under User Mode Linux, where that takes a minute. --dilation or
--retry-dilation=false turns that off.`,
		Example: "  weft demo\n  weft demo --engine sim\n  weft explain quickstart",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			repeat := flags.retry // under User Mode Linux too, where it takes a minute
			if !cmd.Flags().Changed("retry-dilation") {
				flags.retry = flags.lab.Engine.Dilation == ""
			}
			if flags.lab.Engine.Kind != "" {
				return a.run(cmd.Context(), []string{demoLab}, flags)
			}
			return a.demo(cmd.Context(), flags, repeat)
		},
	}
	flags.lab.register(cmd)
	retryFlags(cmd, &flags)
	kernelFlag(cmd, &flags.kernel)
	outFlag(cmd.Flags(), &flags.out)
	quietFlag(cmd, &flags.quiet)
	cmd.Flags().BoolVar(&flags.json, "json", false, "print one JSON object per run instead of tables")
	cmd.AddCommand(a.showCommand())
	return cmd
}

// variant is one of the ways in which weft demo runs its lab.
type variant struct {
	table.Variant
	engine lab.EngineOptions
	uml    bool  // under User Mode Linux
	err    error // of the run
}

// demo runs the lab in all ways that this machine can, and prints them side by side. repeat says
// that a run under User Mode Linux may be repeated more slowly, too.
func (a *app) demo(ctx context.Context, flags runFlags, repeat bool) error {
	switch flags.kernel {
	case "host", "uml":
	default:
		return usagef("--kernel %q: expected host or uml", flags.kernel)
	}
	if err := flags.agree(); err != nil {
		return err
	}
	files, err := flags.lab.load([]string{demoLab}) // before anything is said or run
	if err != nil {
		return err
	}
	if len(files[0].Labs) > 1 {
		return usagef("the demo runs one lab in several ways, and --set makes this %d; use weft run %s",
			len(files[0].Labs), demoLab)
	}
	if err := a.elevate(ctx, "auto"); err != nil {
		return err
	}
	can := a.abilities(ctx, flags.kernel == "uml")
	smaller := ""
	if can.linux.Err == nil && can.linux.UML {
		can.linux.Err = uml.Shared(flags.out)
	}
	if can.linux.Err == nil && can.linux.UML {
		smaller = fmt.Sprintf("all ways run a smaller workload than that of %s, so that User Mode Linux ends within a "+
			"minute on an idle machine: --set %s\nUser Mode Linux: %s", demoLab, strings.Join(umlWorkload, " --set "),
			can.linux.Why)
		flags.lab.Set = slices.Concat(umlWorkload, flags.lab.Set)
	}
	if smaller != "" && !flags.quiet {
		fmt.Fprintln(a.stderr, smaller)
	}
	variants := can.variants()
	for i := range variants {
		w := &variants[i]
		flags.retry = flags.retry && (repeat || !w.uml) // it is the last
		if w.Missing != "" {
			if flags.json { // no table says so
				fmt.Fprintf(a.stderr, "%s: did not run: %s\n", w.Name, w.Missing)
			}
			continue
		}
		if !flags.quiet {
			fmt.Fprintf(a.stderr, "%d of %d, %s\n", i+1, len(variants), w.Name)
		}
		if w.err = a.runVariant(ctx, w, flags); ctx.Err() != nil {
			break
		}
	}
	for i := range variants {
		if w := &variants[i]; w.Run == nil && w.Missing == "" {
			w.Missing = "interrupted"
			if w.err != nil {
				w.Missing = w.err.Error()
			}
		}
	}
	if !flags.json && slices.ContainsFunc(variants, func(w variant) bool { return w.Run != nil }) {
		err = a.showVariants(variants, smaller)
	}
	for _, w := range variants { // the worst decides the exit code: see app.report
		err = worse(err, w.err)
	}
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

// worse returns the one of two errors that decides the exit code: a failure before an expectation
// that was missed.
func worse(a, b error) error {
	if a == nil || errors.Is(a, errMissed) && b != nil {
		return b
	}
	return a
}

// abilities are what weft demo can run on a machine.
type abilities struct {
	fabric error // why no lab can be emulated over the modelled fabric; nil: one can
	linux  orchestrate.Linux
}

// abilities returns those of the machine. With onUML Linux is User Mode Linux in any case.
func (a *app) abilities(ctx context.Context, onUML bool) abilities {
	if a.demoed != nil {
		return *a.demoed
	}
	can := abilities{fabric: privilege.CheckNamespaces()}
	if onUML {
		can.linux = orchestrate.FindUML(ctx)
	} else {
		can.linux = orchestrate.FindLinux(ctx)
	}
	return can
}

// variants returns the three ways, with what is missing for those that the machine cannot run.
func (can *abilities) variants() []variant {
	fabric := variant{Variant: table.Variant{Name: "modelled fabric"},
		engine: lab.EngineOptions{Kind: "emu", Datapath: lab.DatapathFabric, Runtime: "namespace"}}
	if can.fabric != nil {
		fabric.Missing = can.fabric.Error()
	}
	linux := variant{Variant: table.Variant{Name: "Linux, namespaces"}, uml: can.linux.UML,
		engine: lab.EngineOptions{Kind: "emu", Datapath: lab.DatapathKernel, Runtime: can.linux.Runtime}}
	switch {
	case can.linux.Err != nil:
		linux.Name, linux.Missing = "Linux", can.linux.Err.Error()
	case can.linux.UML:
		linux.Name = "User Mode Linux"
	case can.linux.Runtime == "docker":
		linux.Name = "Linux, containers"
	}
	return []variant{{Variant: table.Variant{Name: "simulator"}, engine: lab.EngineOptions{Kind: "sim"}}, fabric, linux}
}

// runVariant runs the lab in one way.
func (a *app) runVariant(ctx context.Context, w *variant, flags runFlags) error {
	if w.uml {
		return a.runUnderUML(ctx, w, flags)
	}
	dilation := flags.lab.Engine.Dilation
	flags.kernel, flags.lab.Engine = "host", w.engine
	if flags.lab.Engine.Dilation = dilation; w.engine.Kind == "sim" {
		flags.lab.Engine.Dilation, flags.retry = "", false
	}
	flags.done = func(all []*record.Summary) { w.keep(all) }
	one := *a
	if !flags.json {
		one.stdout = io.Discard
	}
	return one.run(ctx, []string{demoLab}, flags)
}

// keep keeps the summary of a run that began.
func (w *variant) keep(all []*record.Summary) {
	for _, s := range all {
		if s.Run != "" {
			w.Run = s
		}
	}
}

// runUnderUML runs the lab as weft run does under User Mode Linux.
func (a *app) runUnderUML(ctx context.Context, w *variant, flags runFlags) error {
	args := []string{"run", demoLab, "--json", "--kernel", "uml", "--out", flags.out, "--engine", w.engine.Kind,
		"--datapath", w.engine.Datapath, "--runtime", w.engine.Runtime}
	for _, set := range flags.lab.Set {
		args = append(args, "--set", set)
	}
	if d := flags.lab.Engine.Dilation; d != "" {
		args = append(args, "--dilation", d)
	}
	if flags.retry {
		args = append(args, "--retry-dilation")
	}
	if flags.quiet {
		args = append(args, "--quiet")
	}
	defer context.AfterFunc(ctx, func() { toldInterruption.Store(true) })() // by the weft in there
	var out bytes.Buffer
	code, err := a.boot(ctx, args, &out)
	if err != nil {
		return err
	}
	s := new(record.Summary)
	if err := json.Unmarshal(out.Bytes(), s); err != nil {
		return exitCode(cmp.Or(code, exitFailed)) // it said why on standard error
	}
	w.keep([]*record.Summary{s})
	if flags.json {
		if _, err := a.stdout.Write(out.Bytes()); err != nil {
			return fmt.Errorf("standard output: %w", err)
		}
	}
	switch code {
	case exitOK:
		return nil
	case exitMissed:
		return errMissed
	}
	return exitCode(code)
}

// showVariants prints the variants side by side, and what there is to know of each. smaller says
// that the workload is not that of the lab; "": it is.
func (a *app) showVariants(variants []variant, smaller string) error {
	st := style(a.stdout)
	columns := make([]table.Variant, len(variants))
	for i := range variants {
		columns[i] = variants[i].Variant
	}
	if err := table.SideBySide(a.stdout, demoLab, columns, st); err != nil {
		return err
	}
	var b strings.Builder
	b.WriteByte('\n')
	if smaller != "" {
		fmt.Fprintln(&b, smaller)
	}
	for _, w := range variants {
		if w.Run == nil {
			continue
		}
		fmt.Fprintf(&b, "%s: %s\n", w.Name, w.Run.Run)
		if w.Run.Status != record.OK && w.Run.Error != "" {
			fmt.Fprintf(&b, "  %s\n", units.Spaced(w.Run.Error))
		}
		for _, e := range w.Run.Expect {
			if !e.OK && !e.Skipped {
				fmt.Fprintf(&b, "  missed %s: %s\n", e.That, table.Found(e))
			}
		}
		for _, row := range table.Trust(w.Run) {
			if w.Run.Outcome().Doubtful() {
				fmt.Fprintf(&b, "  %s\n", strings.TrimSpace(row.Name+" "+row.Text))
			}
		}
		for _, text := range w.Run.Warnings {
			fmt.Fprintf(&b, "  %s\n", units.Spaced(text))
		}
	}
	b.WriteString("– is what does not apply or was not measured; CE marks, drops and queues are those of switches\n")
	if s := variants[0].Run; s != nil && !marks(s.Transport) {
		fmt.Fprintf(&b, "%s does without ECN: its packets cannot be marked\n", s.Transport)
	}
	for _, w := range variants {
		if w.Run == nil {
			continue
		}
		if k := w.Run.LinkCheck; k != nil {
			fmt.Fprintf(&b, "\nlinks as measured, %s: %s (%s)\n", w.Name, table.LinkCheck(k),
				filepath.Join(w.Run.Run, orchestrate.LinksFile))
		}
		text, err := switchState(w.Run.Run)
		if err != nil {
			return err
		}
		b.WriteString(text)
	}
	_, err := io.WriteString(a.stdout, b.String())
	return err
}

// marks reports whether switches may mark packets of a transport with CE, as they may a module's.
func marks(kind string) bool {
	_, ok := transport.MarkingOf(kind, func(string) (string, bool) { return "", false })
	return ok || transport.FactsOf(kind).Module
}

// switchState returns the first two paragraphs of what tc said of a switch during a run: which, and
// of one port. It is empty for a run without.
func switchState(run string) (text string, err error) {
	path := filepath.Join(run, orchestrate.TCFile)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	var b strings.Builder
	lines := bufio.NewScanner(f)
	for blank := 0; lines.Scan(); {
		if lines.Text() == "" {
			if blank++; blank == 2 {
				break
			}
		}
		fmt.Fprintf(&b, "%s\n", lines.Text())
	}
	return fmt.Sprintf("\n%sall ports: %s\n", b.String(), path), lines.Err()
}
