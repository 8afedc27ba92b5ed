package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"weft/internal/browsertest"
)

// In a real browser the report fetches nothing, fits a phone and prints in full.
func TestReportInChromium(t *testing.T) {
	ctx := browsertest.Open(t)
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, []byte(renderPage(t, writeRun(t, 1, 10*us, nil))), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile), chromedp.Navigate("file://"+file)); err != nil {
		t.Fatal(err)
	}
	verdict := browsertest.Evaluate[string](ctx, t, `document.querySelector(".verdict").innerText`)
	figures := browsertest.Evaluate[int](ctx, t, `document.querySelectorAll("figure").length`)
	width := browsertest.Evaluate[int](ctx, t, `document.documentElement.scrollWidth`)
	images := browsertest.Evaluate[int](ctx, t, `[...document.images].filter(i => i.complete && i.naturalWidth > 0).length`)
	tall := browsertest.Evaluate[float64](ctx, t, `Math.min(...[...document.querySelectorAll("figure svg")].map(s => s.getBoundingClientRect().height))`)
	fetched := browsertest.Evaluate[[]string](ctx, t, `performance.getEntriesByType("resource").map(r => r.name).filter(n => !n.startsWith("data:"))`)
	pdf, err := chromedp.Run(ctx, chromedp.PrintToPDF())
	if err != nil {
		t.Fatal(err)
	}
	if len(fetched) > 0 {
		t.Errorf("it fetched %v", fetched)
	}
	if verdict != "missed 1 of 2 expectations" || figures != 8 || images != 1 {
		t.Errorf("verdict %q, %d figures, %d images", verdict, figures, images)
	}
	if width > 360 || tall < 150 {
		t.Errorf("on a phone of 360 pixels it is %d wide, and a chart %v tall", width, tall)
	}
	if pages := strings.Count(string(pdf), "/Type /Page\n") + strings.Count(string(pdf), "/Type /Page/") + strings.Count(string(pdf), "/Type /Page "); len(pdf) < 20_000 || pages < 2 {
		t.Errorf("printed it has %d bytes and %d pages", len(pdf), pages)
	}
}
