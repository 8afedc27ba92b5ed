package view

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"weft/internal/browsertest"
	"weft/internal/quiettest"
	"weft/results/record"
)

// A page from disk shows the stored values at every instant, two runs at one instant, and what was
// clicked, with the mouse or the keyboard, and fetches nothing.
func TestViewInChromium(t *testing.T) {
	ctx := browsertest.Open(t)
	fault := record.Fault{Link: "h0-switch0", What: record.LinkDown, FromUS: 20, UntilUS: 30}
	a, b := mustLoad(t, writeRun(t, 50, fault)), mustLoad(t, writeRun(t, 40))
	page, err := Page("two", "", []*Model{a, b})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "view.html")
	if err := os.WriteFile(file, page, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1280, 800), chromedp.Navigate("file://"+file),
		chromedp.WaitVisible("#stage canvas")); err != nil {
		t.Fatal(err)
	}
	const port = 3 // switch0->h1
	for _, frame := range []int{0, 1, 7, 19, 31, 49} {
		browsertest.Evaluate[any](ctx, t, "weft.clock.set("+strconv.Itoa(frame+1)+"), null")
		queue := browsertest.Evaluate[float64](ctx, t, "(r => r.value(r.queue, r.frameAt(weft.clock.t), 3))(weft.runs()[0])")
		use := browsertest.Evaluate[float64](ctx, t, "(r => r.value(r.use, r.frameAt(weft.clock.t), 3))(weft.runs()[0])")
		if queue != float64(1000*frame) || math.Abs(use-0.5) > 1e-6 {
			t.Errorf("frame %d of port %d: %v bytes, use %v", frame, port, queue, use)
		}
	}
	browsertest.Evaluate[any](ctx, t, "weft.clock.set(25), null")
	if got := browsertest.Evaluate[[]float64](ctx, t, "weft.runs().map(r => r.time(r.frameAt(weft.clock.t)))"); got[0] != 25 || got[1] != 25 {
		t.Errorf("the runs are at %v", got)
	}
	if n := browsertest.Evaluate[int](ctx, t, "weft.runs()[0].faultsAt(25).length * 10 + weft.runs()[0].faultsAt(31).length"); n != 10 {
		t.Errorf("faults at 25 and 31 us: %d", n)
	}
	if series := browsertest.Evaluate[[]float64](ctx, t, "(s => [s.window.length, s.rate.at(-1)[1]])(weft.runs()[0].connSeries(0))"); series[0] != 50 || math.Abs(series[1]-50) > 1e-6 {
		t.Errorf("window and rate of the connection: %v", series)
	}
	if err := chromedp.Do(ctx, chromedp.KeyEvent("\u0020")); err != nil {
		t.Fatal(err)
	}
	if !browsertest.Evaluate[bool](ctx, t, "weft.clock.playing") {
		t.Error("the space bar does not play")
	}
	browsertest.Evaluate[any](ctx, t, "weft.clock.toggle(false), weft.select(0, {port: 3}), null")
	if got := browsertest.Evaluate[string](ctx, t, `document.querySelector("#panel h3").textContent`); got != "small sim: switch0\u00a0\u2192\u00a0h1" {
		t.Errorf("selected is %q", got)
	}
	for _, tab := range []string{"overview", "heat", "ranks", "selected"} {
		browsertest.Evaluate[any](ctx, t, `document.querySelector("nav button[data-tab=`+tab+`]").click(), null`)
		if n := browsertest.Evaluate[int](ctx, t, `document.querySelectorAll("#panel figure").length`); n == 0 {
			t.Errorf("%s has no figure", tab)
		}
	}
	browsertest.Evaluate[any](ctx, t, `document.querySelector("nav button[data-tab=overview]").click(), null`)
	if titles := browsertest.Evaluate[string](ctx, t, `[...document.querySelectorAll("#panel figcaption")].map(f => f.textContent).join("; ")`); !strings.Contains(titles, "Rates of flows") {
		t.Errorf("the overview has %s", titles)
	}
	if fetched := browsertest.Evaluate[[]string](ctx, t, `performance.getEntriesByType("resource").map(r => r.name).filter(n => !n.startsWith("blob:"))`); len(fetched) > 0 {
		t.Errorf("it fetched %v", fetched)
	}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile)); err != nil {
		t.Fatal(err)
	}
	if wide := browsertest.Evaluate[int](ctx, t, `document.documentElement.scrollWidth`); wide > 360 {
		t.Errorf("on a phone of 360 pixels it is %d wide", wide)
	}
}

// Of a run of programs, whose connections and ranks are not known, the page shows what hosts sent.
func TestProgramsInChromium(t *testing.T) {
	ctx := browsertest.Open(t)
	m := mustLoad(t, writeRun(t, 50))
	m.Conns, m.Parts = nil, nil
	m.ended(record.Outcome{Status: record.OK, Fidelity: record.Invalid})
	page, err := Page("mine", "", []*Model{m})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "view.html")
	if err := os.WriteFile(file, page, 0o644); err != nil {
		t.Fatal(err)
	}
	browsertest.Do(ctx, t, chromedp.Navigate("file://"+file), chromedp.WaitVisible("#stage canvas"), chromedp.KeyEvent("3"))
	for script, want := range map[string]string{
		`document.querySelector("nav button[aria-selected=true]").textContent`:     "Overview",
		`String(document.querySelector("nav button[data-tab=ranks]").hidden)`:      "true",
		`document.querySelector("#panel figcaption").firstChild.textContent`:       "Sent by all hosts",
		`weft.runs()[0].sentByHosts().at(-1).map((v) => v.toFixed(3)).join(" ")`:   "50.000 100.000",
		`[...document.querySelectorAll(".status")].map((s) => s.className).join()`: "status bad",
	} {
		if got := browsertest.Evaluate[string](ctx, t, script); got != want {
			t.Errorf("%s is %q, want %q", script, got, want)
		}
	}
}

// A browser shows quantities as Go does: by the cases of units.TestShown.
func TestQuantitiesInChromium(t *testing.T) {
	ctx := browsertest.Open(t)
	page, err := Page("small", "", []*Model{mustLoad(t, writeRun(t, 5))})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "view.html")
	if err := os.WriteFile(file, page, 0o644); err != nil {
		t.Fatal(err)
	}
	cases, err := os.ReadFile("../../units/testdata/shown.json")
	if err != nil {
		t.Fatal(err)
	}
	browsertest.Do(ctx, t, chromedp.Navigate("file://"+file), chromedp.WaitVisible("#stage canvas"))
	wrong := browsertest.Evaluate[[]string](ctx, t, string(cases)+`.filter((c) => weft.quantity(c.value, c.unit) !== c.shown)
		.map((c) => weft.quantity(c.value, c.unit) + "; want " + c.shown)`)
	if len(wrong) > 0 {
		t.Errorf("shown are %q", wrong)
	}
	if text := browsertest.Evaluate[string](ctx, t, `weft.quantity(5000, "us", true)`); text != "5.000 ms" {
		t.Errorf("a value that changes is shown as %q", text)
	}
}

// Everything can be done by keyboard, also by those who want no motion.
func TestKeyboardInChromium(t *testing.T) {
	ctx := browsertest.Open(t)
	page, err := Page("small", "", []*Model{mustLoad(t, writeRun(t, 50))})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "view.html")
	if err := os.WriteFile(file, page, 0o644); err != nil {
		t.Fatal(err)
	}
	browsertest.Prefer(ctx, t, "prefers-reduced-motion", "reduce")
	browsertest.Do(ctx, t, chromedp.EmulateViewport(1280, 800), chromedp.Navigate("file://"+file), chromedp.WaitVisible("#stage canvas"))
	if browsertest.Evaluate[bool](ctx, t, "weft.clock.playing || document.getAnimations().length > 0") {
		t.Error("it moves by itself")
	}
	for _, c := range []struct{ keys, script, want string }{
		{kb.Home, "String(weft.clock.t)", "0"},
		{kb.ArrowRight + kb.ArrowRight + kb.ArrowLeft, "String(weft.clock.t)", "1"},
		{kb.End, "String(weft.clock.t === weft.clock.end)", "true"},
		{"2", `document.querySelector("nav button[aria-selected=true]").textContent`, "Queues"},
		{"3", `document.querySelector("nav button[aria-selected=true]").textContent`, "Ranks"},
		{"p", `document.documentElement.className`, "projector"},
		{"p", `document.documentElement.className`, ""},
		{"z", "String(weft.views()[0].zoom)", "1.5"},
		{"?", `String(document.getElementById("help").open)`, "true"},
		{kb.Escape, `String(document.getElementById("help").open)`, "false"},
		// From the heat map's first port to the charts of that port.
		{"2", `document.querySelector(".heat .labels button").focus(), document.activeElement.textContent`, "switch0\u00a0\u2192\u00a0h1"},
		{kb.Enter, `document.querySelector("#panel h3").textContent`, "switch0\u00a0\u2192\u00a0h1"},
		{kb.Escape, `document.querySelector("nav button[aria-selected=true]").textContent`, "Overview"},
	} {
		for _, key := range c.keys {
			browsertest.Do(ctx, t, chromedp.KeyEvent(string(key)))
		}
		if got := browsertest.Evaluate[string](ctx, t, c.script); got != c.want {
			t.Errorf("after %q, %s is %q; expected %q", c.keys, c.script, got, c.want)
		}
	}
	reached := map[string]bool{}
	for range 30 {
		browsertest.Do(ctx, t, chromedp.KeyEvent(kb.Tab))
		reached[browsertest.Evaluate[string](ctx, t, `document.activeElement.id || document.activeElement.dataset.tab || document.activeElement.localName`)] = true
	}
	for _, id := range []string{"projector", "keys", "play", "back", "forward", "slower", "faster", "kind", "event", "slider", "overview", "heat", "ranks"} {
		if !reached[id] {
			t.Errorf("Tab does not reach %s", id)
		}
	}
}

// A page of a run that goes on follows it, and says when it has ended.
func TestLiveViewInChromium(t *testing.T) {
	ctx := browsertest.Open(t)
	s, _ := serve(t, func(s *Server) error { return s.Live("small", "") })
	if err := s.Publish([]*Model{mustLoad(t, writeRun(t, 5))}); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(ctx, chromedp.Navigate(s.URL()), chromedp.WaitVisible("#stage canvas")); err != nil {
		t.Fatal(err)
	}
	if n := browsertest.Evaluate[int](ctx, t, "weft.runs()[0].frames"); n != 5 {
		t.Errorf("%d frames", n)
	}
	if err := s.Publish([]*Model{mustLoad(t, writeRun(t, 9))}); err != nil {
		t.Fatal(err)
	}
	s.End("the run has ended")
	quiettest.Await(t, func() error {
		if at := browsertest.Evaluate[[]float64](ctx, t, "[weft.runs()[0].frames, weft.clock.t]"); at[0] != 9 || at[1] != 9 {
			return fmt.Errorf("%v frames, at %v us; expected the last of 9", at[0], at[1])
		}
		return nil
	})
}

// Buttons of a deployed lab ask for what the verbs do, and say what came of it.
func TestActionsInChromium(t *testing.T) {
	ctx := browsertest.Open(t)
	asked := make(chan Action, 8)
	s, _ := serve(t, func(s *Server) error {
		return s.Control("small", "", func(a Action) error {
			asked <- a
			if a.Args[0] == "h2" {
				return errors.New("h2 is dead")
			}
			return nil
		})
	})
	m := mustLoad(t, writeRun(t, 5))
	m.Links = []string{"h0-switch0", "h1-switch0", "h2-switch0"}
	if err := s.Publish([]*Model{m}); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(ctx, chromedp.Navigate(s.URL()), chromedp.WaitVisible("#stage canvas")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ what, button, want, says string }{
		{"{port: 3}", "link down", "link [h1-switch0 down]", "link h1-switch0 down: done"},
		{"{node: 0}", "pause", "node [h0 pause]", "node h0 pause: done"},
		{"{node: 2}", "kill", "node [h2 kill]", "h2 is dead"},
	} {
		browsertest.Evaluate[any](ctx, t, fmt.Sprintf(`weft.select(0, %s), [...document.querySelectorAll(".acts-row button")].find(b => b.textContent === %q).click(), null`, c.what, c.button))
		if a := <-asked; fmt.Sprint(a.Verb, " ", a.Args) != c.want {
			t.Errorf("%s asks for %v, want %s", c.button, a, c.want)
		}
		quiettest.Await(t, func() error {
			if said := browsertest.Evaluate[string](ctx, t, `document.getElementById("note").textContent`); said != c.says {
				return fmt.Errorf("it says %q, want %q", said, c.says)
			}
			return nil
		})
	}
}
