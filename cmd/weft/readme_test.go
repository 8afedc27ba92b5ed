package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weft/collectives/schedule"
	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
)

// The README lists exactly the topologies, transports and collectives that are registered.
func TestREADMEListsAllKinds(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "## What there is\n")
	var topologies []string
	for _, k := range topology.Kinds() {
		topologies = append(topologies, k.Name)
	}
	for title, want := range map[string][]string{
		"Topologies": topologies, "Transports": lab.Values("transport.kind"), "Collectives": schedule.Collectives(),
	} {
		_, item, found := strings.Cut(list, "\n- "+title+": ")
		item, _, _ = strings.Cut(item, "\n- ")
		item, _, _ = strings.Cut(item, ". ") // cut the sentences after the list
		var got []string
		for _, m := range regexp.MustCompile("`([a-z0-9-]+)`").FindAllStringSubmatch(item, -1) {
			got = append(got, m[1])
		}
		slices.Sort(got)
		slices.Sort(want)
		if !found || !slices.Equal(got, want) {
			t.Errorf("README.md, %s: lists %v, registered are %v", title, got, want)
		}
	}
}

// Every relative link of the README and the docs leads to a file.
func TestLinksInDocsResolve(t *testing.T) {
	pages := []string{"README.md", "CHANGELOG.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, more...)
	}
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	found := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			found++
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d links in %d pages", found, len(pages))
	}
}

// docs/command-line.md shows the output of the demo. Apart from the line about fidelity, which only
// an emulation has, it is that of a simulation, with the same numbers where they do not depend on
// time.
func TestDocsShowTheDemo(t *testing.T) {
	text, err := os.ReadFile("docs/command-line.md")
	if err != nil {
		t.Fatal(err)
	}
	code, out, _ := weft(t, orchestrated{}, "run", "labs/quickstart.yaml", "--engine", "sim", "-q", "--out", t.TempDir())
	if code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	_, sample, _ := strings.Cut(string(text), "\n    quickstart  ")
	sample, _, _ = strings.Cut(sample, "A run's directory")
	measured := regexp.MustCompile(`[0-9.]+ (ns|us|ms|s|KB|Gb/s)\b|[0-9]+\.[0-9]+`)
	lines := func(text string) (all []string) {
		for line := range strings.Lines(text) {
			words := strings.Fields(measured.ReplaceAllString(line, "N"))
			if len(words) > 0 && words[0] != "run" && words[0] != "fidelity" {
				all = append(all, strings.Join(words, " "))
			}
		}
		return all
	}
	shown := lines(regexp.MustCompile(`emu \(.*?\)`).ReplaceAllString("quickstart  "+sample, "sim"))
	if diff := cmp.Diff(lines(out), shown); diff != "" {
		t.Errorf("docs/command-line.md (+) differs from the demo (-):\n%s", diff)
	}
}
