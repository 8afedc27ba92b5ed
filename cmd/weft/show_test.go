package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"weft/internal/testenv"
	"weft/orchestrator/experiment"
	orchestrate "weft/orchestrator/run"
	"weft/results/record"
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
	if err := a.prepareShow(t.Context(), s, root, acts, false); err != nil {
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

// staged simulates what is to be emulated, or fails.
type staged struct {
	orchestrated
	fails *bool
}

func (e staged) Run(ctx context.Context, x *experiment.Experiment, o orchestrate.Options) (*record.Summary, error) {
	if o.Engine == "emu" {
		if *e.fails {
			return nil, errors.New("no room for nodes")
		}
		o.Engine = "sim"
	}
	return e.orchestrated.Run(ctx, x, o)
}

func (e staged) Predict(context.Context, *experiment.Experiment, orchestrate.Options) (orchestrate.Forecast, error) {
	return orchestrate.Forecast{}, nil
}

// An act is performed whenever its page is opened. If that fails, the prepared run is shown, and it
// is said; so it is if an act could only be simulated.
func TestEmulatedShow(t *testing.T) {
	s, err := view.NewServer(0)
	if err != nil {
		t.Fatal(err)
	}
	fails := false
	a := &app{stdout: io.Discard, stderr: io.Discard, engine: staged{fails: &fails}}
	if err := a.prepareShow(t.Context(), s, t.TempDir(), acts[:1], true); err != nil {
		t.Fatal(err)
	}
	get := getPages(t, s)
	if first := get(""); !strings.Contains(first, `href="live"`) || strings.Count(first, "<svg") != 1 {
		t.Errorf("the first page is\n%s", first)
	}
	if page := get("live"); !strings.Contains(page, `name="weft-live"`) || strings.Contains(get("queues"), "simulated") {
		t.Error("the pages are not those of an emulated show")
	}
	const again = "this run has ended; reload the page for another"
	failed := "the live run failed, so both sides show the prepared one: show-queues: no room for nodes"
	for i, want := range []string{again, again, failed} {
		fails = i == 2
		text := get("stream")
		last, end, _ := strings.Cut(text[strings.LastIndex(text, "event: runs"):], "event: end\ndata: ")
		right := map[bool]string{false: "live", true: "prepared"}[fails]
		if strings.TrimSpace(end) != want || !strings.Contains(last, `[{"title":"pc4, prepared"`) || !strings.Contains(last, `,{"title":"pc4, `+right+`"`) {
			t.Errorf("it ends with %q; want %q", end, want)
		}
	}
	if s, err = view.NewServer(0); err != nil {
		t.Fatal(err)
	}
	if err := a.prepareShow(t.Context(), s, t.TempDir(), acts[:1], true); err != nil {
		t.Fatal(err)
	}
	get = getPages(t, s)
	if page := get("queues"); !strings.Contains(page, "(This act is simulated.)") {
		t.Error("the page does not say that its act is simulated")
	}
	if strings.Contains(get(""), `href="live"`) {
		t.Error("an act that cannot be emulated is to be performed")
	}
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
	testenv.Background(t, s.Serve)
	return func(name string) string {
		t.Helper()
		q, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, s.URL()+name, nil)
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
