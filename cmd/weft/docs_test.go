package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"weft/results/store"
)

// docCommand is a command line on a page, with the output that the page shows below it.
type docCommand struct{ line, output string }

// commandsOf returns the indented commands of weft on a page, each once. A command that runs in a
// container is returned as one of this machine.
func commandsOf(t *testing.T, page string) (all []docCommand) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	container := regexp.MustCompile(`^docker run .* weft:VERSION (.*)`)
	last := -1
	for line := range strings.Lines(string(text)) {
		code, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "    ")
		if inside := container.FindStringSubmatch(code); inside != nil { // simulated: the tests of the image emulate
			code = "weft " + strings.NewReplacer("/labs/", "labs/", "--engine emu", "--engine sim").Replace(inside[1])
		}
		command, isCommand := strings.CutPrefix(code, "weft ")
		switch {
		case !ok:
			if strings.TrimSpace(line) != "" {
				last = -1
			}
		case isCommand:
			command = strings.TrimSpace(command)
			if last = slices.IndexFunc(all, func(c docCommand) bool { return c.line == command }); last < 0 {
				all = append(all, docCommand{line: command})
				last = len(all) - 1
			}
		case last >= 0:
			all[last].output += code + "\n"
		}
	}
	return all
}

// shellWords returns the words of a command line, as a shell splits them.
func shellWords(t *testing.T, line string) []string {
	t.Helper()
	words, err := exec.CommandContext(t.Context(), "sh", "-c", `printf '%s\n' `+line).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(words), "\n"), "\n")
}

// labOnPage returns the first lab that a page shows.
func labOnPage(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	example, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatalf("%s shows no lab", page)
	}
	return example
}

// The commands on these pages work, and exit and print as the pages say.
func TestCommandsOfDocsWork(t *testing.T) {
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		page     string
		commands int
		codes    map[string]int // codes other than 0, by a part of the command
	}{
		{"ci.md", 4, nil},
		{"teaching-worksheet.md", 8, map[string]int{"queues.pfc=off": exitMissed}},
		{"faults.md", 2, map[string]int{"down: 1s}]": exitFailed}},
	} {
		t.Run(c.page, func(t *testing.T) {
			commands := commandsOf(t, filepath.Join(root, "docs", c.page))
			if len(commands) < c.commands {
				t.Fatalf("%d commands; want %d", len(commands), c.commands)
			}
			t.Chdir(t.TempDir())
			t.Setenv(store.RootVar, "")
			if err := os.Symlink(filepath.Join(root, "labs"), "labs"); err != nil {
				t.Fatal(err)
			}
			for _, command := range commands {
				code, out, told := weft(t, orchestrated{}, shellWords(t, command.line)...)
				want := exitOK
				for part, other := range c.codes {
					if strings.Contains(command.line, part) {
						want = other
					}
				}
				if code != want {
					t.Errorf("weft %s: exit code %d, want %d\n%s%s", command.line, code, want, out, told)
				}
				for shown := range strings.Lines(command.output) {
					if shown = strings.TrimSuffix(strings.TrimSpace(shown), "..."); !strings.Contains(out, shown) {
						t.Errorf("weft %s does not print %q:\n%s", command.line, shown, out)
					}
				}
			}
		})
	}
}

// The commands, flags of weft run and make targets that docs/ci.md mentions exist, and its
// comparison works.
func TestCIPageIsTrue(t *testing.T) {
	text, err := os.ReadFile("docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	_, flags, _ := weft(t, &fake{}, "run", "--help")
	_, gate, _ := weft(t, &fake{}, "results", "compare", "--help")
	matrix, err := os.ReadFile(".ci/matrix")
	if err != nil {
		t.Fatal(err)
	}
	flags += gate + string(matrix)
	dir := t.TempDir()
	code, _, _ := weft(t, orchestrated{}, "run", "labs/smoke/star.yaml", "--engine", "sim", "--out", dir, "-q")
	if code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	runs := filepath.Join(dir, "smoke-star")
	checked := 0
	for _, m := range regexp.MustCompile("`(weft|make) ([^`]+)`|`(--[a-z-]+)|(?m)^    make ([a-z]+)").FindAllStringSubmatch(string(text), -1) {
		checked++
		switch target := m[2] + m[4]; {
		case m[3] != "":
			if !strings.Contains(flags, m[3]) && m[3] != "--user" && m[3] != "--security-opt" && m[3] != "--cap-add" { // those are Docker's
				t.Errorf("none of weft run, weft results compare and .ci/matrix has %s", m[3])
			}
		case m[1] != "weft":
			if !strings.Contains(string(makefile), "\n"+target+":") {
				t.Errorf("there is no target %q", target)
			}
		case strings.Contains(target, "BASE NEW"):
			args := strings.Fields(strings.NewReplacer("BASE", runs, "NEW", runs).Replace(target))
			code, _, told := weft(t, orchestrated{}, args...)
			if code != exitOK {
				t.Errorf("weft %s: exit code %d: %s", target, code, told)
			}
		default:
			code, _, told := weft(t, orchestrated{}, append(strings.Fields(target), "--help")...)
			if code != exitOK {
				t.Errorf("weft %s: exit code %d: %s", target, code, told)
			}
		}
	}
	if checked < 12 {
		t.Errorf("only %d commands, flags and targets", checked)
	}
}
