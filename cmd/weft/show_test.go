package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"weft/results/view"
)

// The show has a page for each act, with both runs, and expectations of its labs are met. In a
// browser its pages show what the runs stored.
func TestShow(t *testing.T) {
	root := t.TempDir()
	s, err := view.NewServer(0)
	if err != nil {
		t.Fatal(err)
	}
	a := &app{stdout: io.Discard, stderr: io.Discard, engine: orchestrated{}}
	if err := a.prepareShow(t.Context(), s, root); err != nil {
		t.Fatal(err)
	}
	get := getPages(t, s)
	first := get("")
	for _, act := range acts {
		if !strings.Contains(first, `href="`+act.Name+`"`) {
			t.Errorf("the first page has no link to %s", act.Name)
		}
		if page := get(act.Name); len(page) < 100_000 || !strings.Contains(page, `id="data"`) {
			t.Errorf("%s: %d bytes", act.Name, len(page))
		}
	}
	t.Run("Chromium", func(t *testing.T) { watchShow(t, s.URL(), root) })
}

// A run with --view publishes its frames while it runs.
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
	text := getPages(t, s)("stream")
	if !strings.HasPrefix(text, `event: runs`) || !strings.Contains(text, `"status":"running"`) || flags.live.run == "" {
		t.Errorf("run %q, the stream has %.100s", flags.live.run, text)
	}
}

// getPages serves a server's pages until the end of the test, and returns a function that gets one.
func getPages(t *testing.T, s *view.Server) func(name string) string {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return func(name string) string {
		t.Helper()
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
}
