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

// docCommand is a command line of a page, with the output that the page shows below it.
type docCommand struct{ line, output string }

// commandsOf returns the indented commands of weft on a page, each once. Those of a container are
// taken for the program in it.
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
		if inside := container.FindStringSubmatch(code); inside != nil { // simulated: tests of the image emulate
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

// What these pages tell to type works, and ends and prints as they say.
func TestCommandsOfDocsWork(t *testing.T) {
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		page     string
		commands int
		codes    map[string]int // other than 0, by a part of the command
	}{
		{"ci.md", 2, nil},
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
				words, err := exec.CommandContext(t.Context(), "sh", "-c", `printf '%s\n' `+command.line).Output()
				if err != nil {
					t.Fatal(err)
				}
				var out, told strings.Builder
				code, want := run(t.Context(), strings.Split(strings.TrimSuffix(string(words), "\n"), "\n"), &out, &told), exitOK
				for part, other := range c.codes {
					if strings.Contains(command.line, part) {
						want = other
					}
				}
				if code != want {
					t.Errorf("weft %s: exit code %d, want %d\n%s%s", command.line, code, want, out.String(), told.String())
				}
				for shown := range strings.Lines(command.output) {
					if shown = strings.TrimSuffix(strings.TrimSpace(shown), "..."); !strings.Contains(out.String(), shown) {
						t.Errorf("weft %s does not print %q:\n%s", command.line, shown, out.String())
					}
				}
			}
		})
	}
}

// What docs/ci.md says in passing is there: commands, flags of weft run, and targets of make. The
// comparison that it tells of runs.
func TestCIPageNamesWhatThereIs(t *testing.T) {
	text, err := os.ReadFile("docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	_, flags, _ := weft(t, &fake{}, "run", "--help")
	dir := t.TempDir()
	if code := run(t.Context(), []string{"run", "labs/smoke/star.yaml", "--engine", "sim", "--out", dir, "-q"}, new(strings.Builder), new(strings.Builder)); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	runs := filepath.Join(dir, "smoke-star")
	checked := 0
	for _, m := range regexp.MustCompile("`(weft|make) ([^`]+)`|`(--[a-z-]+)|(?m)^    make ([a-z]+)").FindAllStringSubmatch(string(text), -1) {
		checked++
		var out, told strings.Builder
		switch target := m[2] + m[4]; {
		case m[3] != "":
			if !strings.Contains(flags, m[3]) && m[3] != "--user" && m[3] != "--security-opt" && m[3] != "--cap-add" { // those are Docker's
				t.Errorf("weft run has no %s", m[3])
			}
		case m[1] != "weft":
			if !strings.Contains(string(makefile), "\n"+target+":") {
				t.Errorf("there is no target %q", target)
			}
		case strings.Contains(target, "BASE NEW"):
			args := strings.Fields(strings.NewReplacer("BASE", runs, "NEW", runs).Replace(target))
			if code := run(t.Context(), args, &out, &told); code != exitOK {
				t.Errorf("weft %s: exit code %d: %s", target, code, told.String())
			}
		default:
			if code := run(t.Context(), append(strings.Fields(target), "--help"), &out, &told); code != exitOK {
				t.Errorf("weft %s: exit code %d: %s", target, code, told.String())
			}
		}
	}
	if checked < 12 {
		t.Errorf("only %d commands, flags and targets", checked)
	}
}
