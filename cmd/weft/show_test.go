package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"weft/results/view"
)

// The show has a page for each act, with both runs, and expectations of its labs are met.
func TestShow(t *testing.T) {
	s, err := view.NewServer(0)
	if err != nil {
		t.Fatal(err)
	}
	a := &app{stdout: io.Discard, stderr: io.Discard, engine: orchestrated{}}
	if err := a.prepareShow(t.Context(), s, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	get := func(name string) string {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+name, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v", name, answer.Status, err)
		}
		return string(text)
	}
	first := get("")
	for _, act := range acts {
		if !strings.Contains(first, `href="`+act.Name+`"`) {
			t.Errorf("the first page has no link to %s", act.Name)
		}
		if page := get(act.Name); len(page) < 100_000 || !strings.Contains(page, `id="data"`) {
			t.Errorf("%s: %d bytes", act.Name, len(page))
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A run with --view publishes its frames while it goes on.
func TestRunPublishesFrames(t *testing.T) {
	s, err := view.NewServer(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Live("quickstart", ""); err != nil {
		t.Fatal(err)
	}
	a := &app{stdout: io.Discard, stderr: io.Discard, engine: orchestrated{}}
	flags := runFlags{out: t.TempDir(), quiet: true, live: &liveView{server: s}}
	flags.lab.builtIn = true
	flags.lab.Engine.Kind = "sim"
	if err := a.run(t.Context(), []string{"quickstart"}, flags); err != nil {
		t.Fatal(err)
	}
	s.End("it has ended")
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+"stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil || !strings.HasPrefix(string(text), `event: runs`) || !strings.Contains(string(text), `"status":"running"`) ||
		flags.live.run == "" {
		t.Errorf("%v, run %q, the stream has %.100s", err, flags.live.run, text)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
