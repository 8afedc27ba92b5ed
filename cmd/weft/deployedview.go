package main

import (
	"context"
	"fmt"
	"time"

	"weft/orchestrator/deploy"
	"weft/orchestrator/deploy/monitor"
	"weft/results/view"
)

// lookEvery is the time between two looks at a deployed lab that is watched. Our own choice.
const lookEvery = 300 * time.Millisecond

// viewDeployed serves a page that shows a deployed lab, with buttons that do what weft link and
// weft node do, until the context ends or the lab is destroyed.
func (a *app) viewDeployed(ctx context.Context, lab string, port int) error {
	return a.onDeployed(lab, func(h *deploy.Handle) error {
		first, err := h.State()
		if err != nil {
			return err
		}
		s, err := view.NewServer(port)
		if err != nil {
			return fmt.Errorf("serve the page: %w", err)
		}
		about := "a deployed lab: click a link or a host for its buttons"
		if err := s.Control(first.Lab, about, func(v view.Action) error { return perform(h, v) }); err != nil {
			return err
		}
		serving, stop := context.WithCancel(ctx)
		defer stop()
		go followDeployed(serving, h, monitor.New(first, lookEvery), s)
		return a.servePages(ctx, s)
	})
}

// changer is the part of a deploy.Handle that changes a lab.
type changer interface {
	Link(deploy.Link) error
	Node(deploy.Node) error
}

// perform does what a page asks for: what the verb of the command line does.
func perform(h changer, v view.Action) error {
	switch v.Verb {
	case "link":
		k, err := linkChange(v.Args)
		if err != nil {
			return err
		}
		return h.Link(k)
	case "node":
		n, err := nodeChange(v.Args)
		if err != nil {
			return err
		}
		return h.Node(n)
	}
	return usagef("unknown action %q; expected link or node", v.Verb)
}

// followDeployed publishes the state of a lab until the context ends or the lab does.
func followDeployed(ctx context.Context, h *deploy.Handle, w *monitor.Monitor, s *view.Server) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		now, err := h.State()
		if err != nil {
			s.End("the lab has ended: " + err.Error())
			return
		}
		w.Add(now)
		_ = s.Publish([]*view.Model{w.Model(now)}) // a page that misses an update gets the next one
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
