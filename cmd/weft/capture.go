package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weft/internal/plural"
	"weft/internal/regular"
	"weft/orchestrator/capture"
	"weft/orchestrator/deploy"
	orchestrate "weft/orchestrator/run"
	"weft/orchestrator/series"
)

// captureFlags are the flags of weft capture.
type captureFlags struct {
	lab, file string
	snap      int
	count     int64
	limit     time.Duration
}

func (a *app) captureCommand() *cobra.Command {
	var flags captureFlags
	cmd := &cobra.Command{
		Use:   "capture NODE|PORT -w FILE",
		Short: "write packets of a node or port of a deployed lab to a pcapng file",
		Long: `Write the packets that a node sends and receives, or that a port of a switch or NIC sends, until
Ctrl-C. Wireshark, tshark and tcpdump read the file; - is standard output. Timestamps are lab time:
for a port, when the first bit of a packet leaves; for a node, when the network takes or delivers it.
weft schema dissector lets Wireshark decode Weft's own headers.

Exit codes: 0 done, or Ctrl-C; 1 failed, or --for or the lab ended before --count packets came; 2 the
command line is wrong.`,
		Example: "  weft capture h0 -w h0.pcapng\n  weft capture 'edge0->agg1' -w port.pcapng --count 100",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case flags.file == "":
				return usagef("expected -w FILE, or -w - for standard output")
			case flags.snap < 0 || flags.count < 0 || flags.limit < 0:
				return usagef("--snap, --count and --for must not be negative")
			}
			return a.onDeployed(flags.lab, func(h *deploy.Handle) error {
				return a.capture(cmd.Context(), h, args[0], &flags)
			})
		},
	}
	f := cmd.Flags()
	deployedFlag(cmd, &flags.lab)
	f.StringVarP(&flags.file, "write", "w", "", "file to write; - for standard output")
	f.IntVar(&flags.snap, "snap", 0, "maximum bytes to keep of each packet (default all)")
	f.Int64Var(&flags.count, "count", 0, "stop after this number of packets")
	f.DurationVar(&flags.limit, "for", 0, "stop after this real time, such as 10s")
	return cmd
}

// capture copies frames to a file until --count or --for is reached, or ctx or the lab ends.
func (a *app) capture(ctx context.Context, h *deploy.Handle, what string, flags *captureFlags) (err error) {
	ours, theirs, err := capture.Messages()
	if err != nil {
		return err
	}
	defer ours.Close()
	is, err := h.Capture(deploy.Capture{What: what, Snap: flags.snap}, theirs)
	theirs.Close()
	if err != nil {
		return err
	}
	out, err := a.createCapture(flags.file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	asked := ctx // ends if the user ends the capture
	if flags.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, flags.limit)
		defer cancel()
	}
	stop := context.AfterFunc(ctx, func() { ours.SetReadDeadline(time.Now()) })
	defer stop()
	fmt.Fprintf(a.stderr, "capturing %s of %s; Ctrl-C stops\n", is.Name, is.Lab)
	if is.Silent != "" {
		fmt.Fprintf(a.stderr, "note: %s\n", is.Silent)
	}
	n, lost, err := capture.Copy(out, ours, capture.Of{
		Lab: is.Lab, Name: is.Name, Port: is.Port, Dilation: is.Dilation, Snap: flags.snap,
		Program: "weft " + versionText(), Count: flags.count, Live: flags.file == "-",
	})
	fmt.Fprintf(a.stderr, "%s captured\n", plural.Count(n, "packet"))
	if lost > 0 {
		fmt.Fprintf(a.stderr, "%s missing: they could not be written in time\n", plural.Count(lost, "packet"))
	}
	if err == nil && ctx.Err() == nil && (flags.count == 0 || n < flags.count) {
		err = brokenBy(h)
	}
	if err == nil && n < flags.count && asked.Err() == nil {
		end := "before lab " + is.Lab + " ended"
		if ctx.Err() != nil {
			end = fmt.Sprintf("within %v", flags.limit)
		}
		err = fmt.Errorf("%d of %s of %s came %s", n, plural.Count(flags.count, "packet"), is.Name, end)
	}
	return err
}

// brokenBy returns an error if a lab has not ended but broken or crashed, whose captures end by
// themselves.
func brokenBy(h *deploy.Handle) error {
	const patience = 2 * time.Second // the supervisor may learn of it later
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		state, err := h.State()
		over := time.Now().After(end)
		switch {
		case errors.Is(err, deploy.ErrCrashed) && !over: // it is being destroyed, or its supervisor was killed
		case errors.Is(err, deploy.ErrCrashed):
			return h.Crashed()
		case err != nil: // it has ended
			return nil
		case state.Broken != "":
			return fmt.Errorf("lab %s is broken: %s", h.Name(), state.Broken)
		case over:
			return fmt.Errorf("the network of lab %s no longer sends packets; weft inspect shows its state", h.Name())
		}
	}
}

// createCapture opens the file of a capture; - is standard output.
func (a *app) createCapture(name string) (io.WriteCloser, error) {
	if name == "-" {
		return struct {
			io.Writer
			io.Closer
		}{a.stdout, io.NopCloser(nil)}, nil
	}
	return regular.OpenOutput(name, os.O_TRUNC)
}

// runCaptureFlag adds --capture to a command that runs labs.
func runCaptureFlag(cmd *cobra.Command, written *[]string) {
	cmd.Flags().StringArrayVar(written, "capture", nil,
		"POINT=FILE: write the packets of a host, or of a port such as 'leaf0->spine1', to a new pcapng file; "+
			"emulation only (repeatable)")
}

// captures parses --capture. Captures need exactly one run, which is emulated.
func (f *runFlags) captures(jobs []series.Job) (all []orchestrate.Capture, err error) {
	if len(f.capture) == 0 {
		return nil, nil
	}
	for _, text := range f.capture {
		point, file, ok := strings.Cut(text, "=")
		switch {
		case !ok || point == "" || file == "":
			return nil, usagef("--capture %q: expected POINT=FILE, such as h0=h0.pcapng or 'leaf0->spine1=port.pcapng'",
				text)
		case file == "-":
			return nil, usagef("--capture %s: standard output is for the results of the run; name a file", text)
		}
		all = append(all, orchestrate.Capture{Point: point, File: file})
	}
	switch {
	case f.resume:
		return nil, usagef("--capture: runs that --resume skips have no packets; remove --resume")
	case len(jobs) == 2 && jobs[0].Compare:
		return nil, usagef("--capture: the simulator's packets have no bytes to write; use --engine emu")
	case len(jobs) != 1:
		return nil, usagef("--capture works on one run, and these labs are %d; "+
			"name one lab file, and choose a point of a sweep with --set", len(jobs))
	}
	x, err := jobs[0].Experiment()
	if err != nil {
		return nil, usageError{err}
	}
	if err := orchestrate.CheckCaptures(x, jobs[0].Engine, all); err != nil {
		return nil, usageError{err}
	}
	return all, nil
}
