package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"

	"weft/results/record"
	"weft/results/report"
	"weft/results/store"
	"weft/results/view"
)

// act is a part of the show: a lab with two points, shown side by side.
type act struct {
	lab   string // inside the program
	chart string // in the list of acts: see report.Overlay
	view.Act
}

// acts are the parts of the show, in order.
var acts = []act{
	{"show/1-queues", "queues", view.Act{
		Name: "queues", Text: "1. Sixteen to one: DCQCN beside PC4",
		Note: "Press space. DCQCN's queue floods the buffer with megabytes, swings, and empties; PC4's stays at some " +
			"packets. DCQCN's flows end a fifth later: senders stay slow after the queue has drained. Click the link " +
			"from switch0 to h16 for its queue.",
	}},
	{"show/2-failure", "fct", view.Act{
		Name: "failure", Text: "2. A spine link is cut: flows by hash beside packets by path",
		Note: "Choose fault beside Go and press it. At 300 us leaf0 loses its link to spine0. A flow of PC4 that " +
			"ECMP put there waits a millisecond for a timeout; STrack's flows go on over other paths, and the last " +
			"ends 67 us later than without the cut. See the rates.",
	}},
	{"show/3-clocks", "slowdown", view.Act{
		Name: "clocks", Text: "3. Clocks that disagree: nobody keeps them, beside Huygens",
		Note: "PC4 reads queues from one-way delays. With clocks up to 300 ns apart it misreads them: rates fan out, " +
			"and whoever is ahead takes the link. Huygens keeps the clocks within 20 ns, and all share it.",
	}},
}

// showCommand returns weft demo show.
func (a *app) showCommand() *cobra.Command {
	var root string
	var port int
	var emulated bool
	cmd := &cobra.Command{
		Use:   "show",
		Short: "prepare a show of ten minutes for a lecture, and serve it",
		Long: `Run three labs, each twice, and serve their pages on this machine until Ctrl-C: queues of DCQCN
beside PC4, a link that is cut, and clocks that drift. The labs are simulated, which takes half a
minute and needs neither root nor a network.

With --emulated they are emulated, in some minutes, and a fourth page performs the first act again
whenever it is opened, beside the run that was prepared. What cannot be emulated when the show is
prepared is simulated, and if the performance fails the page shows the prepared run; both are said.

Runs that this version of the program prepared before are used again. Notes for the speaker are on
the first page and in docs/teaching.md.`,
		Example: "  weft demo show\n  sudo weft demo show --emulated",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if emulated {
				if err := a.elevate(cmd.Context(), "auto"); err != nil {
					return err
				}
			}
			s, err := view.NewServer(port)
			if err != nil {
				return fmt.Errorf("serve the show: %w", err)
			}
			if err := a.prepareShow(cmd.Context(), s, root, acts, emulated); err != nil {
				return err
			}
			return a.servePages(cmd.Context(), s)
		},
	}
	outFlag(cmd.Flags(), &root)
	cmd.Flags().IntVar(&port, "port", 0, "port of 127.0.0.1 to serve on; 0: any that is free")
	cmd.Flags().BoolVar(&emulated, "emulated", false, "emulate the acts, and perform one while it is watched")
	return cmd
}

// prepareShow runs the labs of all acts and adds their pages to a server.
func (a *app) prepareShow(ctx context.Context, s *view.Server, root string, acts []act, emulated bool) error {
	pages := make([]view.Act, len(acts))
	live := emulated // the first act can be performed
	for i := range acts {
		act := &acts[i]
		fmt.Fprintf(a.stderr, "preparing %s\n", act.Text)
		pages[i] = act.Act
		var runs []*record.Summary
		var err error
		if emulated {
			runs, err = a.actRuns(ctx, act.lab, "emu", runFlags{out: root, resume: true})
			if err != nil && ctx.Err() == nil {
				fmt.Fprintf(a.stderr, "it cannot be emulated, so it is simulated: %v\n", err)
				pages[i].Note += " (This act is simulated.)"
				live = live && i > 0
			}
		}
		if ctx.Err() == nil && (!emulated || err != nil) {
			runs, err = a.actRuns(ctx, act.lab, "sim", runFlags{out: root, resume: true})
		}
		if err == nil {
			err = fill(&pages[i], runs, act.chart)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", act.lab, err)
		}
	}
	switch {
	case live:
		pages = append(pages, a.stage(ctx, s, root, acts[0].lab, pages[0].Runs[len(pages[0].Runs)-1]))
	case emulated:
		fmt.Fprintln(a.stderr, "the show has no live act, since the first one cannot be emulated")
	}
	fmt.Fprintf(a.stderr, "the runs are in %s\n", filepath.Join(cmp.Or(root, store.DefaultRoot()), "show-*"))
	return s.Acts("A show of ten minutes", pages)
}

// actRuns runs the lab of an act on an engine and returns what came of it. An emulation may miss
// expectations, which its page shows, but its fidelity must not be invalid.
func (a *app) actRuns(ctx context.Context, lab, engine string, flags runFlags) (runs []*record.Summary, err error) {
	flags.quiet = engine == "sim" // which takes seconds
	flags.lab.builtIn, flags.pageless = true, true
	flags.lab.Engine.Kind = engine
	flags.done = func(all []*record.Summary) { runs = all }
	quiet := *a
	quiet.stdout = io.Discard
	err = quiet.run(ctx, []string{lab}, flags)
	if engine == "emu" && errors.Is(err, errMissed) {
		err = nil
	}
	for _, r := range runs {
		if err == nil && r.Fidelity.Invalid() {
			err = errors.New("its fidelity is invalid")
		}
	}
	return runs, err
}

// fill adds the runs of an act, and a chart of them.
func fill(page *view.Act, runs []*record.Summary, chart string) error {
	var loaded []*report.Run
	var titles []string
	for _, r := range runs {
		m, err := view.Load(r.Run)
		if err != nil {
			return err
		}
		one, err := report.Load(r.Run)
		if err != nil {
			return err
		}
		page.Runs, loaded, titles = append(page.Runs, m), append(loaded, one), append(titles, m.Title)
	}
	c, err := report.Overlay(loaded, titles, chart)
	if err != nil {
		return err
	}
	c.Width, c.Height = 360, 220 // as wide as its place, so that its text has its own size
	svg, err := c.SVG()
	page.Picture = report.Inline(svg)
	return err
}

// stage returns the act that is performed while it is watched: the lab of an act with the transport
// pc4, emulated beside the run of it that was prepared.
func (a *app) stage(ctx context.Context, s *view.Server, root, lab string, prepared *view.Model) view.Act {
	var mu sync.Mutex
	going := false
	return view.Act{
		Name: "live", Text: "Live. Act 1 now, beside the prepared run",
		Note: "At the left is the run that was prepared, at the right PC4 now, on this machine. Reload the page to " +
			"perform it again.",
		Begin: func() {
			mu.Lock()
			defer mu.Unlock()
			if going {
				return
			}
			going = true
			s.Restart()
			go func() {
				why := a.performAct(ctx, s, root, lab, prepared)
				mu.Lock()
				defer mu.Unlock()
				going = false
				s.End(why)
			}()
		},
	}
}

// performAct emulates the lab of an act beside a prepared run of it, and publishes both. It returns
// what is said at the end. If the emulation fails, the prepared run takes its place.
func (a *app) performAct(ctx context.Context, s *view.Server, root, lab string, prepared *view.Model) string {
	left, right := *prepared, *prepared
	left.Title += ", prepared"
	live := &liveView{server: s, beside: []*view.Model{&left}, title: prepared.Title + ", live"}
	publish := func(m *view.Model) error { return s.Publish([]*view.Model{&left, m}) }
	err := publish(view.NewModel(live.title, prepared.Network, nil)) // nodes start for a second or two
	if err == nil {
		flags := runFlags{out: root, live: live}
		flags.lab.Set = []string{"transport.kind=pc4"}
		_, err = a.actRuns(ctx, lab, "emu", flags)
	}
	if err == nil {
		var m *view.Model
		if m, err = view.Load(live.run); err == nil {
			m.Title = live.title
			err = publish(m)
		}
	}
	if err == nil {
		return "this run has ended; reload the page for another"
	}
	right.Title += ", prepared"
	_ = publish(&right) // it was published at the left
	return fmt.Sprintf("the live run failed, so both sides show the prepared one: %v", err)
}
