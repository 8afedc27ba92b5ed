package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// pagesOfDocs returns the text of the README, the changes and all pages of docs, by name.
func pagesOfDocs(t *testing.T) map[string]string {
	t.Helper()
	tellDirectory()
	pages := map[string]string{}
	for _, pattern := range []string{"README.md", "CHANGELOG.md", "docs/*.md", "docs/*/*.md"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			pages[name] = string(text)
		}
	}
	return pages
}

// anchorsOf returns the anchors of a page's headings, as GitHub makes them.
func anchorsOf(page string) (anchors []string) {
	code := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		if heading := strings.TrimLeft(line, "#"); !code && heading != line && strings.HasPrefix(heading, " ") {
			heading = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`).ReplaceAllString(strings.ToLower(heading), "$1")
			heading = regexp.MustCompile(`[^\p{L}\p{N}_ -]`).ReplaceAllString(strings.TrimSpace(heading), "")
			anchors = append(anchors, strings.ReplaceAll(heading, " ", "-"))
		}
	}
	return anchors
}

// namesOnPages calls check with all matches of a pattern on pages, and returns their number.
func namesOnPages(pages map[string]string, pattern string, check func(page string, match []string)) int {
	n := 0
	for page, text := range pages {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			n++
			check(page, m)
		}
	}
	return n
}

// Each test, make target, path and decision that a page names exists, and so does each heading to
// which one links.
func TestDocsNameWhatExists(t *testing.T) {
	pages := pagesOfDocs(t)
	var tests []string
	in := map[string][]string{} // by package
	err := filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)`).FindAllStringSubmatch(string(text), -1) {
			tests = append(tests, m[1])
			in[filepath.Dir(path)] = append(in[filepath.Dir(path)], m[1])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	ignored, err := os.ReadFile(".gitignore")
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var rooms []string
	for _, e := range here {
		made := strings.Contains("\n"+string(ignored), "\n/"+e.Name()+"/\n") // runs, where somebody used Weft here
		if e.IsDir() && !made {
			rooms = append(rooms, regexp.QuoteMeta(e.Name()))
		}
	}
	for _, kind := range []struct {
		name, pattern string
		least         int
		exists        func(page, name string) bool
	}{
		{"test", `\b((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9]+)`, 30, func(_, name string) bool { // or the beginning of several
			return slices.ContainsFunc(tests, func(test string) bool { return strings.HasPrefix(test, name) })
		}},
		{"target", "(?m)(?:`|^    |^\\$ (?:sudo )?)make ([a-z][a-z0-9-]+)", 20, func(_, name string) bool {
			return regexp.MustCompile(`(?m)^` + name + `:`).Match(makefile)
		}},
		{"file or package", "(?:`|\\b)((?:" + strings.Join(rooms, "|") + ")(?:/[A-Za-z0-9_.*-]+)+)`", 100, func(page, name string) bool {
			name = regexp.MustCompile(`\.[A-Z]\w*$`).ReplaceAllString(name, "")                                     // a symbol of a package
			for _, path := range []string{name, strings.TrimSuffix(name, "/..."), name + ".yaml", "labs/" + name} { // as weft labs has it
				if found, err := filepath.Glob(path); err == nil && len(found) > 0 {
					return true
				}
			}
			return strings.HasPrefix(page, "docs/add-a-") || strings.Contains(name, "NAME") // what a reader is to make
		}},
		{"decision", `\bADR ([0-9]+)\b`, 100, func(_, name string) bool {
			found, err := filepath.Glob("docs/adr/" + strings.Repeat("0", 4-len(name)) + name + "-*.md")
			return err == nil && len(found) == 1
		}},
		{"heading", `\]\(([^):\s]*#[^)]+)\)`, 30, func(page, name string) bool {
			file, anchor, _ := strings.Cut(name, "#")
			if file == "" {
				return slices.Contains(anchorsOf(pages[page]), anchor)
			}
			return slices.Contains(anchorsOf(pages[filepath.Join(filepath.Dir(page), file)]), anchor)
		}},
	} {
		n := namesOnPages(pages, kind.pattern, func(page string, match []string) {
			if !kind.exists(page, match[1]) {
				t.Errorf("%s names the %s %s, which does not exist", page, kind.name, match[1])
			}
		})
		if n < kind.least {
			t.Errorf("pages name %d of kind %s; expected %d", n, kind.name, kind.least)
		}
	}
	run := "go test (?:-[a-z]+ )*\\./([a-z0-9/]+?)(/\\.\\.\\.)? [^`\n]*-run '?([A-Za-z|]+)"
	n := namesOnPages(pages, run, func(page string, match []string) {
		for word := range strings.SplitSeq(match[3], "|") {
			chosen := 0
			for pkg, tests := range in {
				if pkg == match[1] || match[2] != "" && strings.HasPrefix(pkg, match[1]) {
					chosen += strings.Count(strings.Join(tests, " "), word)
				}
			}
			if chosen == 0 && word != "xxx" { // -run xxx: benchmarks alone
				t.Errorf("%s: %s chooses no test of ./%s", page, word, match[1]+match[2])
			}
		}
	})
	if n < 5 {
		t.Errorf("pages choose tests %d times; expected 5", n)
	}
}

// Each command line of weft on a page has a verb and flags that exist.
func TestCommandsOnPagesExist(t *testing.T) {
	pages := pagesOfDocs(t)
	delete(pages, "CHANGELOG.md") // which has what is no more
	n := namesOnPages(pages, "(?m)(?:`|^    |^\\$ )(?:sudo |PATH=\\S+ |bin/)?(weft [^`\n]*)", func(page string, match []string) {
		line := match[1]
		for _, end := range []string{" -- ", "#", "|", ";", "&", ">"} {
			line, _, _ = strings.Cut(line, end)
		}
		words := strings.Fields(line)[1:]
		if len(words) == 0 || words[0] == strings.ToUpper(words[0]) { // weft COMMAND
			return
		}
		cmd, rest, err := (&app{}).root().Find(words)
		if err != nil || cmd.Name() == "weft" && !strings.HasPrefix(words[0], "-") {
			t.Errorf("%s: weft has no such command: %s", page, line)
			return
		}
		for _, word := range rest {
			if name, _, _ := strings.Cut(word, "="); !hasFlag(cmd, name) {
				t.Errorf("%s: %s has no flag %s: %s", page, cmd.CommandPath(), name, line)
			}
		}
	})
	if n < 200 {
		t.Errorf("only %d commands", n)
	}
}

// hasFlag reports whether a command has the flag that a word names; true for words that name none.
func hasFlag(cmd *cobra.Command, word string) bool {
	for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.InheritedFlags(), cmd.PersistentFlags()} {
		name, long := strings.CutPrefix(word, "--")
		short, is := strings.CutPrefix(word, "-")
		switch {
		case !is || short == "" || name == "help" || short == "h":
			return true
		case long && flags.Lookup(name) != nil, !long && flags.ShorthandLookup(short[:1]) != nil:
			return true
		}
	}
	return false
}

// Each flag of weft that a message names exists: in sentences, that is, texts with blanks.
func TestFlagsInMessagesExist(t *testing.T) {
	flags := map[string]bool{"help": true}
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		for _, set := range []*pflag.FlagSet{c.Flags(), c.PersistentFlags()} {
			set.VisitAll(func(f *pflag.Flag) { flags[f.Name] = true })
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit((&app{}).root())
	for _, other := range []string{ // of timeout, systemd-run, docker images, apt-get, linux.uml and unshare
		"foreground", "user", "scope", "digests", "reinstall", "version", "map-root-user",
	} {
		flags[other] = true
	}
	text, flag := regexp.MustCompile(`"(?:[^"\\]|\\.)* (?:[^"\\]|\\.)*"`), regexp.MustCompile(`(?:^|[\s"])--([a-z][a-z-]+)`)
	n := 0
	err := filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for line := range strings.Lines(string(source)) {
			if strings.HasPrefix(strings.TrimSpace(line), "//") {
				continue
			}
			for _, message := range text.FindAllString(line, -1) {
				for _, m := range flag.FindAllStringSubmatch(message, -1) {
					if n++; !flags[m[1]] {
						t.Errorf("%s: no command has the flag --%s: %s", path, m[1], message)
					}
				}
			}
		}
		return err
	})
	if err != nil || n < 100 {
		t.Errorf("%d flags: %v", n, err)
	}
}
