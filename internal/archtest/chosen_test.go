package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// choice is a pattern by which a command of the Makefile or of .ci chooses tests.
type choice struct {
	flag     string // run, skip or bench
	pattern  string
	packages []string // where; empty: in all
}

var (
	variable = regexp.MustCompile(`(?m)^([A-Z_]+) *[:?]?= *(.*)$`)
	command  = regexp.MustCompile(`\$\(TEST\)|\bgo test\b`)
	flagged  = regexp.MustCompile(`-(run|skip|bench)[ =]('[^']*'|"[^"]*"|[^ ;|&]+)`)
	packaged = regexp.MustCompile(`(?:^| )\./([a-z0-9/-]+)`)
	group    = regexp.MustCompile(`\(([^()]*)\)`)
	comment  = regexp.MustCompile(`(?m)^#.*$`)
)

// choices returns the patterns in the text of the Makefile, or of a script.
func choices(text string) (all []choice) {
	text = strings.ReplaceAll(comment.ReplaceAllString(text, ""), "\\\n", " ")
	values := map[string]string{}
	for _, m := range variable.FindAllStringSubmatch(text, -1) {
		values[m[1]] = m[2]
	}
	expand := func(pattern string) string {
		pattern = regexp.MustCompile(`\$\((\w+)\)`).ReplaceAllStringFunc(strings.Trim(pattern, `'"`), func(v string) string {
			return values[v[2:len(v)-1]]
		})
		return strings.ReplaceAll(pattern, "$$", "$")
	}
	for line := range strings.Lines(text) {
		starts := command.FindAllStringIndex(line, -1)
		for n, at := range starts {
			one := line[at[0]:]
			if n+1 < len(starts) {
				one = line[at[0]:starts[n+1][0]]
			}
			var packages []string
			for _, m := range packaged.FindAllStringSubmatch(one, -1) {
				packages = append(packages, m[1])
			}
			for _, m := range flagged.FindAllStringSubmatch(one, -1) {
				if p := expand(m[2]); p != "^$" {
					all = append(all, choice{m[1], p, packages})
				}
			}
		}
	}
	return all
}

// alternatives splits a pattern at its alternations, those in groups too.
func alternatives(pattern string) (all []string) {
	m := group.FindStringSubmatchIndex(pattern)
	if m == nil {
		return strings.Split(pattern, "|")
	}
	for one := range strings.SplitSeq(pattern[m[2]:m[3]], "|") {
		all = append(all, alternatives(pattern[:m[0]]+one+pattern[m[1]:])...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// fits reports whether the choice takes a test or benchmark of a package.
func (c choice) fits(pkg, name, pattern string) bool {
	kind := strings.HasPrefix(name, "Benchmark")
	if kind != (c.flag == "bench") || !kind && !strings.HasPrefix(name, "Test") || name == "TestMain" {
		return false
	}
	return (len(c.packages) == 0 || slices.Contains(c.packages, pkg)) && regexp.MustCompile(pattern).MatchString(name)
}

// useless returns the alternatives that match no test of their packages, and the packages in which
// a choice matches no test.
func useless(all []choice, names map[string][]string) (bad []string) {
	for _, c := range all {
		for _, one := range alternatives(c.pattern) {
			found := false
			for pkg, tests := range names {
				found = found || slices.ContainsFunc(tests, func(name string) bool { return c.fits(pkg, name, one) })
			}
			if !found {
				bad = append(bad, fmt.Sprintf("no test of %v fits %q of -%s: correct it", c.packages, one, c.flag))
			}
		}
		for _, pkg := range c.packages {
			if !slices.ContainsFunc(names[pkg], func(name string) bool { return c.fits(pkg, name, c.pattern) }) {
				bad = append(bad, fmt.Sprintf("-%s %q takes no test of %s: leave it out", c.flag, c.pattern, pkg))
			}
		}
	}
	return bad
}

// The Makefile and .ci choose tests by patterns, which tests that get other names do not fit.
func TestChosenTestsExist(t *testing.T) {
	scripts, _ := filepath.Glob(root + "/.ci/*")
	names := map[string][]string{}
	for pkg, files := range testFiles(t) {
		eachFunc(files, func(_ *source, f *ast.FuncDecl) { names[pkg] = append(names[pkg], f.Name.Name) })
	}
	found := 0
	for _, file := range append(scripts, root+"/Makefile") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all := choices(string(text))
		found += len(all)
		for _, complaint := range useless(all, names) {
			t.Errorf("%s: %s", file, complaint)
		}
	}
	if found < 20 {
		t.Errorf("%d patterns were found: the Makefile has more", found)
	}
}

// make test-docker takes every test that uses an engine, but for those in a machine of their own.
func TestTestsOfDockerAreChosen(t *testing.T) {
	makefile, err := os.ReadFile(root + "/Makefile")
	if err != nil {
		t.Fatal(err)
	}
	_, recipe, ok := strings.Cut(string(makefile), "\ntest-docker:")
	if recipe, _, _ = strings.Cut(recipe, "\n\n"); !ok {
		t.Fatal("the Makefile has no target test-docker")
	}
	all := choices(recipe)
	files := testFiles(t)
	for _, pkg := range slices.Sorted(maps.Keys(files)) {
		uses := reaching(files[pkg], func(pkg, name string) bool {
			return pkg == "dockertest" && (name == "Host" || name == "Start")
		})
		for _, name := range slices.Sorted(maps.Keys(uses)) {
			if strings.HasPrefix(name, "Test") && name != "TestMain" && !strings.HasPrefix(name, "TestUML") &&
				!slices.ContainsFunc(all, func(c choice) bool { return c.fits(pkg, name, c.pattern) }) {
				t.Errorf("%s of %s uses an engine, and make test-docker leaves it out: add it there", name, pkg)
			}
		}
	}
}

func TestUselessPatternsAreFound(t *testing.T) {
	names := map[string][]string{"e2e": {"TestPrivA", "TestUMLB", "helperC"}, "sim": {"BenchmarkD", "TestD"}}
	for text, want := range map[string]int{
		"x:\n\tgo test -run 'A|B' ./e2e":                                  0,
		"x:\n\tgo test -run 'A|B|D' ./e2e":                                1,
		"x:\n\tgo test -run A ./sim; go test -run D ./sim ./e2e":          3,
		"x:\n\tgo test ./sim; go test -run '^Test(Priv|UML)A$$' ./e2e":    1,
		"x:\n\tgo test -run 'C|(Priv|UML)(A|B)|D' ./e2e \\\n\t  ./sim":    3,
		"ONE := A|E\nx:\n\t$(TEST) -skip '$(ONE)|B' ./...":                1,
		"x:\n\tgo test -run '^$$' -bench D ./sim; go test -bench A ./e2e": 2,
	} {
		if bad := useless(choices(text), names); len(bad) != want {
			t.Errorf("%s: %q, want %d", text, bad, want)
		}
	}
}
