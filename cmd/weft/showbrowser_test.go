package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"weft/internal/browsertest"
	"weft/results/store"
)

// picturesVar names the folder in which the test of the show leaves the pictures of docs/view.md:
// make screenshots.
const picturesVar = "WEFT_PICTURES"

// stored are the values of a port in a frame, as frames.parquet has them.
type stored struct{ queued, sent, marks, drops int64 }

// readFrames returns the instants of a run's frames in order, and the state of each port at them.
func readFrames(t *testing.T, dir string) (at []int64, states []map[string]stored) {
	t.Helper()
	type row struct {
		Time   int64  `parquet:"time_ps"`
		Port   string `parquet:"port"`
		Queued int64  `parquet:"queued_bytes"`
		Sent   int64  `parquet:"sent_bytes"`
		Marks  int64  `parquet:"ce_marks"`
		Drops  int64  `parquet:"drops"`
	}
	err := store.Scan(dir, store.FramesFile, func(rows []row) error {
		for _, r := range rows {
			if len(at) == 0 || r.Time != at[len(at)-1] {
				now := map[string]stored{}
				if len(at) > 0 {
					for port, s := range states[len(at)-1] {
						s.queued = 0 // a port without a row has no queue, and its counters stay
						now[port] = s
					}
				}
				at, states = append(at, r.Time), append(states, now)
			}
			states[len(at)-1][strings.Clone(r.Port)] = stored{r.Queued, r.Sent, r.Marks, r.Drops}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return at, states
}

// runsOf returns the directories of a lab's runs in order.
func runsOf(t *testing.T, root, lab string) (dirs []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(root, lab, "2*"))
	if err != nil || len(all) != 2 {
		t.Fatalf("%s has the runs %v (%v)", lab, all, err)
	}
	slices.Sort(all)
	return all
}

// watchShow opens the pages of the show in a browser.
func watchShow(t *testing.T, address, root string) {
	ctx := browsertest.Open(t)
	asked := browsertest.Requests(ctx, t)
	open := func(page, theme string, width, height int64, options ...chromedp.EmulateViewportOption) {
		browsertest.Prefer(ctx, t, "prefers-color-scheme", theme, "prefers-reduced-motion", "reduce")
		browsertest.Do(ctx, t, chromedp.EmulateViewport(width, height, options...), chromedp.Navigate(address+page),
			chromedp.WaitVisible("#stage canvas"))
	}
	run := func(script string) {
		t.Helper()
		browsertest.Evaluate[any](ctx, t, "(async () => { "+script+"; await new Promise(requestAnimationFrame); await new Promise(requestAnimationFrame) })()")
	}
	picture := func(name string) {
		t.Helper()
		if folder := os.Getenv(picturesVar); folder != "" {
			if err := os.WriteFile(filepath.Join(folder, name), browsertest.Picture(ctx, t), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	tab := func(name string) string {
		return fmt.Sprintf(`document.querySelector("nav button[data-tab=%s]").click()`, name)
	}

	open("queues", "light", 1280, 800)
	drawnValues(ctx, t, runsOf(t, root, "show-queues")[0])
	sameInstant(ctx, t)
	if n := browsertest.Evaluate[int](ctx, t, "document.getAnimations().length"); n > 0 {
		t.Errorf("%d animations although the user wants none", n)
	}
	open("queues", "light", 1280, 800) // at the instant of the longest queue
	run("")
	picture("view-queues.webp")
	run(tab("heat"))
	if rows := browsertest.Evaluate[int](ctx, t, `document.querySelectorAll(".heat .labels button").length`); rows != 2 {
		t.Errorf("the heat maps have %d ports, and one port of each run has a queue", rows)
	}

	open("failure", "dark", 1280, 800)
	run("weft.clock.set(340); weft.select(1, { conn: weft.runs()[1].conns.findIndex((c) => /^h[0-3]$/.test(c.src) && !/^h[0-3]$/.test(c.dst)) })")
	if n := browsertest.Evaluate[int](ctx, t, "weft.views()[1].route.size"); n != 10 { // four spines, and the hosts' links
		t.Errorf("%d ports of the followed flow's paths are shown", n)
	}
	if text := browsertest.Evaluate[string](ctx, t, `document.querySelector(".now-line").textContent`); !strings.Contains(text, "leaf0-spine0 down") {
		t.Errorf("while the link is down the page says %q", text)
	}
	picture("view-flow.webp")
	run("weft.select(1, null); " + tab("ranks"))
	if n := browsertest.Evaluate[int](ctx, t, `document.querySelectorAll(".ranks rect").length`); n < 32 {
		t.Errorf("%d bars of 32 ranks", n)
	}
	open("failure", "light", 1280, 800)
	run(tab("heat") + `; document.getElementById("projector").click()`)
	picture("view-projector.webp")

	open("clocks", "light", 1280, 920)
	run(`document.querySelectorAll("#panel figure")[1].scrollIntoView(); weft.clock.set(3000)`) // rates, and clocks below
	picture("view-clocks.webp")

	open("queues", "light", 390, 844, chromedp.EmulateMobile)
	run("")
	if wide := browsertest.Evaluate[int](ctx, t, "document.documentElement.scrollWidth"); wide > 390 {
		t.Errorf("on a phone of 390 pixels the page is %d wide", wide)
	}
	picture("view-phone.webp")

	run(`try { await fetch("http://127.0.0.1:1/") } catch {} ; await new Promise((r) => { const i = new Image(); i.onerror = r; i.src = "http://127.0.0.1:1/x.png" })`)
	for _, url := range asked() {
		if !strings.HasPrefix(url, address) && !strings.HasPrefix(url, "data:") && !strings.HasPrefix(url, "blob:") {
			t.Errorf("the page asked for %s", url)
		}
	}
}

// drawnValues compares what the page of act 1 draws at 20 random instants with what the run on its
// left stored: the numbers of every port, and on the canvas the bar of the only queue.
func drawnValues(ctx context.Context, t *testing.T, dir string) {
	at, states := readFrames(t, dir)
	network, err := store.ReadNetwork(dir)
	if err != nil {
		t.Fatal(err)
	}
	begin := browsertest.Evaluate[float64](ctx, t, "weft.runs()[0].begin")
	longest := int64(0)
	for _, state := range states {
		for _, p := range network.Ports {
			if s := state[p.Name]; !network.Nodes[p.From].Host {
				longest = max(longest, s.queued)
			}
		}
	}
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 20 {
		i := 1 + rng.IntN(len(at)-1)
		t1 := float64(at[i])/1e6 - begin
		browsertest.Evaluate[any](ctx, t, fmt.Sprintf("(async () => { weft.clock.set(%v); await new Promise(requestAnimationFrame); await new Promise(requestAnimationFrame) })()", t1+1e-6))
		got := browsertest.Evaluate[[][4]float64](ctx, t, `(r => r.ports.map((_, p) =>
			[r.queue, r.use, r.mark, r.drop].map((column) => r.value(column, r.frameAt(weft.clock.t), p))))(weft.runs()[0])`)
		for p := range network.Ports {
			port := &network.Ports[p]
			now, before := states[i][port.Name], states[i-1][port.Name]
			use := min(float64(now.sent-before.sent)*8e12/float64(port.RateBPS)/float64(at[i]-at[i-1]), 1)
			want := [4]float64{float64(now.queued), use, float64(now.marks - before.marks), float64(now.drops - before.drops)}
			for k := range want {
				if math.Abs(got[p][k]-want[k]) > 1e-4*max(1, want[k]) {
					t.Errorf("seed %d: %s at %d ps is drawn with %v, and stored are %v", seed, port.Name, at[i], got[p], want)
					break
				}
			}
		}
		// The bar begins behind the switch and is as long as its queue is of the longest.
		const bar = `((v, name) => { const r = v.run, p = r.ports.findIndex((q) => q.name === name), [ax, ay, bx, by, d] = v.ends(p);
			const start = Math.min(v.size * 1.3, d / 3), full = v.barLength(d), g = v.canvas.getContext("2d"), k = devicePixelRatio;
			const warm = (c) => Math.hypot(c[0] - 179, c[1] - 20, c[2] - 28) < 60 || Math.hypot(c[0] - 230, c[1] - 159, c[2]) < 60;
			let end = 0; // distance from the start of the last point in a colour of a queue beyond Kmin
			for (let at = 1; at < full + 12; at++) {
				const x = ax + ((bx - ax) / d) * (start + at), y = ay + ((by - ay) / d) * (start + at);
				if (warm(g.getImageData(Math.round(x * k), Math.round(y * k), 1, 1).data)) end = at;
			}
			return [end, full]; })(weft.views()[0], "switch0->h16")`
		drawn := browsertest.Evaluate[[2]float64](ctx, t, bar)
		queued := states[i]["switch0->h16"].queued
		if want := drawn[1] * float64(queued) / float64(longest); queued > 1_600_000 && math.Abs(drawn[0]-want) > 9 {
			t.Errorf("seed %d: at %d ps the bar of %d bytes of at most %d has %v pixels of %v", seed, at[i], queued, longest, drawn[0], drawn[1])
		}
	}
}

// sameInstant plays both runs and compares their instants after each repaint.
func sameInstant(ctx context.Context, t *testing.T) {
	apart := browsertest.Evaluate[[]string](ctx, t, `(async () => {
		const apart = [];
		weft.clock.set(0); weft.clock.toggle(true);
		for (let i = 0; i < 30; i++) {
			await new Promise(requestAnimationFrame);
			for (const v of weft.views()) { // each shows its last frame until then
				const f = v.run.frameAt(v.t), next = f + 1 < v.run.frames ? v.run.time(f + 1) : Infinity;
				if (v.t !== weft.views()[0].t || v.run.time(f) > v.t + 1e-6 || next <= v.t) apart.push(v.t + " " + f);
			}
		}
		const t = weft.clock.t;
		weft.clock.toggle(false);
		return t > 0 ? apart : ["the clock stands"]; })()`)
	if len(apart) > 0 {
		t.Errorf("two runs are at different instants: %v", apart)
	}
}
