// Package browsertest opens pages in Chromium for tests.
//
// Open skips the test where there is no Chromium. All else fails the test with what went wrong.
package browsertest

import (
	"context"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"weft/internal/quiettest"
)

// Open starts a browser that ends with the test, and returns the context of a page in it. Without
// Chromium it skips the test.
func Open(t testing.TB) context.Context {
	t.Helper()
	paths := []string{"/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"}
	i := slices.IndexFunc(paths, func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	})
	if i < 0 {
		t.Skip("no chromium here: sudo apt-get install chromium")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*quiettest.Patience) // for all that a test does with it
	t.Cleanup(cancel)
	ctx, stop := chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(paths[i]), chromedp.NoSandbox, chromedp.Headless,
		chromedp.WSURLReadTimeout(quiettest.Patience))...)
	t.Cleanup(stop)
	ctx, done := chromedp.NewContext(ctx)
	t.Cleanup(done)
	return ctx
}

// Do runs actions on the page.
func Do(ctx context.Context, t testing.TB, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// Evaluate runs JavaScript in the page and returns its value. A promise is awaited.
func Evaluate[T any](ctx context.Context, t testing.TB, script string) T {
	t.Helper()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return v
}

// Prefer makes the page see preferences of a user: pairs of a feature of CSS media queries and its
// value, such as prefers-color-scheme and dark.
func Prefer(ctx context.Context, t testing.TB, pairs ...string) {
	t.Helper()
	p := emulation.SetEmulatedMediaParams{}
	for pair := range slices.Chunk(pairs, 2) {
		p.Features = append(p.Features, &emulation.MediaFeature{Name: pair[0], Value: pair[1]})
	}
	Do(ctx, t, command(emulation.SetEmulatedMedia, p))
}

// command returns an action that is one command of the protocol without an answer.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, t *chromedp.Target) (v chromedp.Void, err error) {
		_, err = cdp.Call(ctx, t, c, params)
		return v, err
	}
}

// Requests records the addresses that the page asks for from now on, and that its content policy
// lets it ask for. The function that it returns lists them.
func Requests(ctx context.Context, t testing.TB) func() []string {
	t.Helper()
	var mu sync.Mutex
	all := map[network.RequestID]string{}
	err := chromedp.Listen(ctx, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			all[e.RequestID] = e.Request.URL
		case *network.EventLoadingFailed:
			if e.BlockedReason == network.BlockedReasonCsp {
				delete(all, e.RequestID)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	Do(ctx, t, command(network.Enable, network.EnableParams{}))
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Sorted(maps.Values(all))
	}
}

// Picture returns what the page looks like as a WebP.
func Picture(ctx context.Context, t testing.TB) []byte {
	t.Helper()
	quality := int64(82)
	picture, err := chromedp.Run(ctx, func(ctx context.Context, target *chromedp.Target) ([]byte, error) {
		r, err := cdp.Call(ctx, target, page.CaptureScreenshot, page.CaptureScreenshotParams{
			Format: page.CaptureScreenshotFormatWebp, Quality: &quality,
		})
		if err != nil {
			return nil, err
		}
		return r.Data, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return picture
}
