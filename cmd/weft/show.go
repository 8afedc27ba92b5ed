package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"weft/results/record"
	"weft/results/view"
)

// act is a part of the show: a lab with two points, shown side by side.
type act struct {
	lab string // inside the program
	view.Act
}

// acts are the parts of the show, in order.
var acts = []act{
	{"show/1-queues", view.Act{
		Name: "queues", Text: "1. Sixteen to one: DCQCN beside PC4",
		Note: "Press space. DCQCN's queue floods the buffer with megabytes, swings, and empties; PC4's stays at some " +
			"packets. DCQCN's flows end a fifth later: senders stay slow after the queue has drained. Click the link " +
			"from switch0 to h16 for its queue.",
	}},
	{"show/2-failure", view.Act{
		Name: "failure", Text: "2. A spine link is cut: flows by hash beside packets by path",
		Note: "Choose fault beside Go and press it. At 300 us leaf0 loses its link to spine0. A flow of PC4 that " +
			"ECMP put there waits a millisecond for a timeout; STrack's flows lose some 60 us and go on over other " +
			"paths. See the rates.",
	}},
	{"show/3-clocks", view.Act{
		Name: "clocks", Text: "3. Clocks that disagree: nobody keeps them, beside Huygens",
		Note: "PC4 reads queues from one-way delays. With clocks up to 300 ns apart it misreads them: rates fan out, " +
			"and whoever is ahead takes the link. Huygens keeps the clocks within a nanosecond, and all share it.",
	}},
}

// showCommand returns weft demo show.
func (a *app) showCommand() *cobra.Command {
	var root string
	var port int
	cmd := &cobra.Command{
		Use:   "show",
		Short: "prepare a show of ten minutes for a lecture, and serve it",
		Long: `Simulate three labs, each twice, and serve their pages on this machine until Ctrl-C: queues of
DCQCN beside PC4, a link that is cut, and clocks that drift. It needs neither root nor a network, and
takes half a minute to prepare; runs that this version of the program prepared before are used again.
Notes for the speaker are on the first page and in docs/teaching.md.`,
		Example: "  weft demo show",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := view.NewServer(port)
			if err != nil {
				return fmt.Errorf("serve the show: %w", err)
			}
			if err := a.prepareShow(cmd.Context(), s, root); err != nil {
				return err
			}
			return a.servePages(cmd.Context(), s)
		},
	}
	outFlag(cmd.Flags(), &root)
	cmd.Flags().IntVar(&port, "port", 0, "port of 127.0.0.1 to serve on; 0: any that is free")
	return cmd
}

// prepareShow runs the labs of all acts and adds their pages to a server.
func (a *app) prepareShow(ctx context.Context, s *view.Server, root string) error {
	var pages []view.Act
	for _, act := range acts {
		var loadErr error
		flags := runFlags{out: root, resume: true, quiet: true, done: func(runs []*record.Summary) {
			for _, r := range runs {
				m, err := view.Load(r.Run)
				act.Runs, loadErr = append(act.Runs, m), errors.Join(loadErr, err)
			}
		}}
		flags.lab.builtIn = true
		flags.lab.Engine.Kind = "sim"
		fmt.Fprintf(a.stderr, "preparing %s\n", act.Text)
		quiet := *a
		quiet.stdout = io.Discard
		if err := errors.Join(quiet.run(ctx, []string{act.lab}, flags), loadErr); err != nil {
			return fmt.Errorf("%s: %w", act.lab, err)
		}
		pages = append(pages, act.Act)
	}
	return s.Acts("A show of ten minutes", pages)
}
