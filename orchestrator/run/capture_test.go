package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/orchestrator/capture"
	"weft/realtime"
)

const capturedLab = "weft: 1\nname: x\ntopology: {kind: star, hosts: 2, link: {rate: 1Gbps, delay: 1us}}\nworkload: [{collective: all-to-all, size: 1KB}]\n"

// CapturePoint finds hosts and ports by name. Its error suggests a valid name.
func TestCapturePoint(t *testing.T) {
	x := build(t, capturedLab)
	if c, err := CapturePoint(x, "h1"); err != nil || c.Host != 1 || c.Port != -1 {
		t.Errorf("h1: %+v, %v", c, err)
	}
	if c, err := CapturePoint(x, "switch0->h1"); err != nil || c.Host != -1 || x.PortNames()[c.Port] != "switch0->h1" {
		t.Errorf("switch0->h1: %+v, %v", c, err)
	}
	for name, want := range map[string]string{"switch0": "'switch0->h0'", "h2": "'h0->switch0'", "h0->h1": "'switch0->h1'; weft graph"} {
		if _, err := CapturePoint(x, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	for engine, l := range map[string]string{"sim": capturedLab, "emu": capturedLab + "queues: {ecn: off}\nengine: {datapath: kernel}\n"} {
		if err := CheckCaptures(build(t, l), engine, nil); err == nil || !strings.Contains(err.Error(), "--capture") {
			t.Errorf("%s: %v", engine, err)
		}
	}
}

// Either all files of captures are created, or none, and none may exist. A run that fails before
// the first packet leaves none. A run that fails later leaves complete files.
func TestCaptureFiles(t *testing.T) {
	x := build(t, capturedLab)
	dir := t.TempDir()
	a, b, old := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "old")
	if err := os.WriteFile(old, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, second := range []Capture{{"h1", old}, {"h1", a}, {"h1", filepath.Join(dir, "none", "b")}, {"h7", b}} {
		if _, err := createCaptures(x, Options{Captures: []Capture{{"h0", a}, second}}); err == nil {
			t.Errorf("%+v was made", second)
		}
		if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
			t.Errorf("%+v: %v, %v", second, all, err)
		}
	}
	if text, err := os.ReadFile(old); string(text) != "mine" {
		t.Errorf("it holds %q now, %v", text, err)
	}
	both, err := createCaptures(x, Options{Captures: []Capture{{"h0", a}, {"h1", b}}})
	if err != nil {
		t.Fatal(err)
	}
	ask := both.start(func() { t.Error("a file cannot be written") }, func(c *captureFile) capture.Of { return capture.Of{Name: c.Point} })
	if len(ask) != 2 || ask[1].Of.Host != 1 {
		t.Errorf("%+v", ask)
	}
	r := realtime.Captured{Length: 3, Frame: []byte("abc")}
	if _, err := both[1].theirs.Write(r.Append(nil)); err != nil {
		t.Fatal(err)
	}
	var said []string
	if err := both.finish(true, func(line string) { said = append(said, line) }); err != nil || len(said) != 1 || !strings.Contains(said[0], "packets of h1 in "+b+": 1") {
		t.Errorf("%q, %v", said, err)
	}
	both.discard() // leaves captures that were started
	if _, err := os.Stat(a); err == nil {
		t.Error("an empty capture of a run that failed stays")
	}
	if text, err := os.ReadFile(b); err != nil || !strings.Contains(string(text), "abc") {
		t.Errorf("%q, %v", text, err)
	}
}
