package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weft/internal/regular"
	"weft/orchestrator/experiment"
	"weft/orchestrator/pages"
	"weft/results/frames"
	"weft/results/record"
	"weft/results/view"
)

// maxViewed is the largest number of runs on one page.
const maxViewed = 4

// viewCommand returns weft view.
func (a *app) viewCommand() *cobra.Command {
	var root, file string
	var port int
	var deployed bool
	cmd := &cobra.Command{
		Use:   "view {RUN... | --deployed [LAB]}",
		Short: "watch runs in a browser: the network over time, one run or several side by side",
		Long: `Show runs in a browser, as they were at every instant: use of links, queues, marks, drops, pauses
and faults; rates and windows of connections, ranks and clocks. Several runs share one clock and one
scale.

The page is served on this machine's loopback only, to anyone with the printed address, until
Ctrl-C. With --file it is written to a file instead, which opens from disk and needs nothing
else.

A run has frames to show unless its lab says measure.view: off. To watch a run while it runs:
weft run LAB --view.

With --deployed, show a lab that is up (default the only one). Click a link or a host for buttons:
link down, up and set, node pause, resume, kill and restart. They do what weft link and weft node do.`,
		Example: `  weft view quickstart
  weft view runs/pc4-incast-vs/20260101T000000-1 runs/pc4-incast-vs/20260101T000000-5
  weft view quickstart --file view.html
  weft view --deployed quickstart`,
		Args: cobra.MaximumNArgs(maxViewed),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case deployed && (len(args) > 1 || file != ""):
				return usagef("--deployed shows one lab, and is served: name at most one, without --file")
			case deployed:
				return a.viewDeployed(cmd.Context(), first(args), port)
			case len(args) == 0:
				return usagef("expected the name of a run, or --deployed; `weft results ls` lists runs")
			}
			models, about, err := loadModels(root, args)
			if err != nil {
				return err
			}
			title := viewTitle(models)
			if file != "" {
				text, err := view.Page(title, about, models)
				if err != nil {
					return err
				}
				return regular.WriteOutput(file, text)
			}
			s, err := view.NewServer(port)
			if err != nil {
				return fmt.Errorf("serve the page: %w", err)
			}
			if err := s.Show("", title, about, models); err != nil {
				return err
			}
			return a.servePages(cmd.Context(), s)
		},
	}
	f := cmd.Flags()
	outFlag(f, &root)
	f.StringVar(&file, "file", "", "write the page to this file instead of serving it")
	f.IntVar(&port, "port", 0, "port of 127.0.0.1 to serve on; 0: any that is free")
	f.BoolVar(&deployed, "deployed", false, "show a deployed lab, with buttons to change it")
	return cmd
}

// servePages prints the address of a server, and serves until the context ends.
func (a *app) servePages(ctx context.Context, s *view.Server) error {
	fmt.Fprintln(a.stdout, s.URL())
	fmt.Fprintln(a.stderr, "open this address in a browser on this machine; Ctrl-C ends it")
	return s.Serve(ctx)
}

// viewTitle returns the title of a page of runs.
func viewTitle(models []*view.Model) string {
	if len(models) == 1 {
		return models[0].Name()
	}
	names := make([]string, len(models))
	for i, m := range models {
		names[i] = m.Title
	}
	return strings.Join(names, " beside ")
}

// loadModels returns the models of runs, and a line about them.
func loadModels(root string, names []string) (models []*view.Model, about string, err error) {
	var dirs []string
	for _, name := range names {
		if strings.HasSuffix(name, ".yaml") {
			return nil, "", usagef("%s is a lab, not a run; weft run %s --view runs it and shows it", name, name)
		}
		found, err := runsNamed(root, name)
		if err != nil {
			return nil, "", err
		}
		dirs = append(dirs, found.Runs...)
	}
	if len(dirs) > maxViewed {
		return nil, "", usagef("%d runs are too many for one page; name at most %d of them: `weft results ls` "+
			"lists runs with what tells them apart", len(dirs), maxViewed)
	}
	var errs []error
	var shown []string
	for _, dir := range dirs {
		m, err := view.Load(dir)
		errs = append(errs, err)
		models = append(models, m)
		shown = append(shown, filepath.Base(filepath.Dir(dir))+"/"+filepath.Base(dir))
	}
	return models, strings.Join(shown, " · "), errors.Join(errs...)
}

// liveEvery is the time between two updates of a page. Our own choice.
const liveEvery = 400 * time.Millisecond

// liveView sends the frames of a run to a page while it runs.
type liveView struct {
	server *view.Server
	beside []*view.Model // runs that have ended, shown before it
	title  string        // empty: the lab's name
	last   time.Time
	run    string // directory of the run
}

// runWatched runs a lab as run does, and serves a page that shows the run, until Ctrl-C.
func (a *app) runWatched(ctx context.Context, names []string, flags runFlags) error {
	s, err := view.NewServer(0)
	if err != nil {
		return fmt.Errorf("serve the page: %w", err)
	}
	if err := s.Live(strings.Join(names, " "), ""); err != nil {
		return err
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	served := make(chan error, 1)
	go func() { served <- s.Serve(serving) }()
	fmt.Fprintf(a.stderr, "watch at %s\n", s.URL())
	flags.live = &liveView{server: s}
	err = a.run(ctx, names, flags)
	if flags.live.run == "" || ctx.Err() != nil {
		return err
	}
	if m, loadErr := view.Load(flags.live.run); loadErr == nil {
		err = errors.Join(err, s.Publish([]*view.Model{m}))
	}
	s.End("the run has ended")
	fmt.Fprintf(a.stderr, "the page stays at %s until Ctrl-C\n", s.URL())
	select {
	case <-ctx.Done():
	case serveErr := <-served:
		err = errors.Join(err, serveErr)
	}
	return err
}

// update publishes the frames of a run, at most every liveEvery. The run calls it.
func (v *liveView) update(x *experiment.Experiment, run string, n *record.NetworkMap, all []frames.Frame) {
	v.run = run
	if now := time.Now(); now.Sub(v.last) < liveEvery {
		return
	}
	m := pages.Live(x, n, all)
	m.Title = cmp.Or(v.title, m.Title)
	_ = v.server.Publish(append(slices.Clip(v.beside), m)) // a page that misses an update gets the next one
	v.last = time.Now()
}
