package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"weft/internal/browsertest"
	"weft/results/record"
	"weft/results/view"
)

// BenchmarkView opens the page of a permutation over a fat-tree in Chromium, and plays it: how soon
// it shows the network (first-paint-ms), how often it is drawn anew while playing (frames/s), and
// how long its script takes for that (ms/frame).
func BenchmarkView(b *testing.B) {
	for _, k := range []int{8, 16, 32} {
		b.Run(fmt.Sprintf("hosts=%d", k*k*k/4), func(b *testing.B) { benchmarkView(b, k) })
	}
}

func benchmarkView(b *testing.B, k int) {
	ctx := browsertest.Open(b)
	dir := b.TempDir()
	lab := filepath.Join(dir, "lab.yaml")
	text := fmt.Sprintf("weft: 1\nname: bench\ntopology: {kind: fat-tree, k: %d, link: {rate: 100Gbps, delay: 1us}}\n"+
		"transport: {kind: pc4}\nqueues: {buffer: 5bdp}\nworkload: [{collective: permute, ranks: all, size: 200KB}]\n", k)
	if err := os.WriteFile(lab, []byte(text), 0o644); err != nil {
		b.Fatal(err)
	}
	var models []*view.Model
	a := &app{stdout: io.Discard, stderr: io.Discard, engine: orchestrated{}}
	flags := runFlags{out: dir, quiet: true, done: func(runs []*record.Summary) {
		m, err := view.Load(runs[0].Run)
		if err != nil {
			b.Fatal(err)
		}
		models = append(models, m)
	}}
	flags.lab.Engine.Kind = "sim"
	if err := a.run(b.Context(), []string{lab}, flags); err != nil {
		b.Fatal(err)
	}
	page, err := view.Page("bench", "", models)
	if err != nil {
		b.Fatal(err)
	}
	file := filepath.Join(dir, "view.html")
	if err := os.WriteFile(file, page, 0o644); err != nil {
		b.Fatal(err)
	}
	var first, fps, script float64
	for b.Loop() {
		browsertest.Do(ctx, b, chromedp.EmulateViewport(1280, 800), chromedp.Navigate("file://"+file), chromedp.WaitVisible("#stage canvas"))
		first += browsertest.Evaluate[float64](ctx, b, `(async () => {
			while (performance.getEntriesByName("weft-shown").length === 0) await new Promise(requestAnimationFrame);
			return performance.getEntriesByName("weft-shown")[0].startTime; })()`)
		played := browsertest.Evaluate[[2]float64](ctx, b, `(async () => {
			let drawn = 0, script = 0;
			for (const v of weft.views()) {
				const draw = v.draw.bind(v);
				v.draw = () => { const t = performance.now(); draw(); script += performance.now() - t; drawn++; };
			}
			weft.clock.set(0); weft.clock.toggle(true);
			const from = performance.now();
			while (performance.now() - from < 2000) await new Promise(requestAnimationFrame);
			weft.clock.toggle(false);
			return [drawn / 2, script / drawn]; })()`)
		fps, script = fps+played[0], script+played[1]
	}
	b.ReportMetric(first/float64(b.N), "first-paint-ms")
	b.ReportMetric(fps/float64(b.N), "frames/s")
	b.ReportMetric(script/float64(b.N), "ms/frame")
}
