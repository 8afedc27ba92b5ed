package archtest

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestImports(t *testing.T) { each(t, checkImports) }
func TestCalls(t *testing.T)   { each(t, checkCalls) }
func TestShape(t *testing.T)   { each(t, checkShape) }

func each(t *testing.T, check func(*source) []string) {
	for _, s := range load(t) {
		for _, complaint := range check(s) {
			t.Error(complaint)
		}
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range load(t) {
		if !strings.HasSuffix(s.name, "_test.go") {
			documented[s.pkg] = documented[s.pkg] || s.tree.Doc != nil && len(s.tree.Doc.Text()) > 20
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(documented)) {
		if !documented[pkg] {
			t.Errorf("package %s has no comment: a newcomer asks what it is, what comes in, what goes out and in "+
				"which units", pkg)
		}
	}
}

func TestNoGoFilesDirectlyInTCShaping(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "tc-shaping", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) > 0 {
		t.Errorf("%v: tc-shaping is no Go identifier, so a package there would go by another name than its folder; "+
			"use a folder below", files)
	}
}

// A dependency is code that runs here and cannot be changed here: each has its reason in ADR 1, and
// none stays there after its last use.
func TestEveryDependencyHasItsReason(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/adr/0001-dependencies.md"))
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, s := range load(t) {
		for _, p := range s.imports() {
			if first, _, _ := strings.Cut(p, "/"); strings.Contains(first, ".") {
				used[strings.TrimPrefix(p, "github.com/")] = true
			}
		}
	}
	// Names such as golang.org/x/sys, and those of github.com without it.
	reasons := regexp.MustCompile("`([a-zA-Z][a-zA-Z0-9.-]*/[a-zA-Z0-9./-]+)`").FindAllStringSubmatch(string(text), -1)
	for p := range used {
		if !slices.ContainsFunc(reasons, func(r []string) bool { return below(p, r[1]) }) {
			t.Errorf("%s has no line in docs/adr/0001-dependencies.md: say what it is for, where it may be used, "+
				"and why it is not ours", p)
		}
	}
	for _, r := range reasons {
		// the folder of these rules; a tool
		ours := strings.HasPrefix(r[1], "internal/") || strings.HasPrefix(r[1], "honnef.co/")
		if !ours && !slices.ContainsFunc(slices.Collect(maps.Keys(used)),
			func(p string) bool { return below(p, r[1]) }) {
			t.Errorf("docs/adr/0001-dependencies.md gives a reason for %s, which nothing uses", r[1])
		}
	}
}

// A rule that names a folder which is gone guards nothing.
func TestRulesNameFoldersThatAreThere(t *testing.T) {
	folders := drivers()
	for _, rule := range confined() {
		folders = append(folders, rule.to...)
	}
	for _, folder := range folders {
		if _, err := os.Stat(filepath.Join(root, folder)); err != nil {
			t.Errorf("a rule names a folder that does not exist: %v", err)
		}
	}
}

// Each rule is shown a file that breaks it and one that does not.
func TestRulesBite(t *testing.T) {
	for _, c := range []struct {
		name, text string
		says       string // "" when nothing is wrong
	}{
		{"transport/x.go", `package x; import "os"; var _ = os.Args`, "everything that decides is pure"},
		{"transport/x.go", `package x; import "golang.org/x/sys/unix"`, "everything that decides is pure"},
		{"transport/x.go", `package x; import "net/netip"`, ""},
		{"orchestrator/x.go", `package x; import "weft/cmd/weft"`, "beneath nothing"},
		{"results/store/x.go", `package x; import "os"`, ""},
		{"results/table/x.go", `package x; import "gopkg.in/yaml.v3"`, "YAML is how"},
		{"orchestrator/run/x.go", `package x; import "github.com/docker/docker/client"`, "confined to"},
		{"transport/cc/cctest/x.go", `package x; import "pgregory.net/rapid"`, ""},
		{"transport/cc/x.go", `package x; import "weft/transport/cc/cctest"`, "tool of tests"},
		{"sim/x.go", `package x; import "math/rand"`, "math/rand/v2"},
		{"sim/x.go", `package x; import "math/rand/v2"; var _ = rand.IntN(3)`, "global source"},
		{"sim/x.go", `package x; import "math/rand/v2"; var _ = rand.New(rand.NewPCG(1, 2))`, ""},
		{"sim/x.go", `package x; import "time"; var _ = time.Now`, "never asks for it"},
		{"sim/x.go", `package x; import clock "time"; var _ = clock.NewTimer`, "never asks for it"},
		{"sim/x.go", `package x; import "time"; const a = time.Second`, ""},
		{"sim/x_test.go", `package x; import "time"; var _ = time.Sleep`, "sleeps"},
		{"realtime/x_test.go", `package x; import "time"; var _ = time.Sleep`, "does not say why"},
		{"realtime/x_test.go", "package x; import \"time\"; var _ = time.Sleep // the instant is random", ""},
		{"realtime/x.go", `package x; import "time"; var _ = time.Sleep`, ""},
		{"nodeimg/agent/x.go", `package x; import "time"; var _ = time.Now`, ""},
		{"cmd/weft/x.go", `package x; import "os"; func f() { os.Exit(1) }`, "only main"},
		{"cmd/weft/main.go", `package x; import "os"; func f() { os.Exit(1) }`, ""},
		{"cmd/weft/x.go", `package x; import "os/exec"; var _ = exec.Command`, "started by the runtime"},
		{"cmd/weft/x.go", `package x; import "log"; var _ = log.Fatal`, "slog"},
		{"sim/x.go", `package x; func init() {}`, "init function"},
		{"sim/x.go", "package x\n// Before main, which only init is.\nfunc init() {}", ""},
		{"host/x.go", `package x; func f() { go f() }`, "goroutine"},
		{"host/x_test.go", `package x; func f() { go f() }`, ""},
		{"host/x_test.go", `package x; import "testing"; func FuzzX(f *testing.F) { f.Fuzz(func(*testing.T, []byte) {}) }`, "fuzztest.New"},
		{"host/x_test.go", `package x; import ("testing"; "weft/internal/fuzztest"); func FuzzX(f *testing.F) { fuzztest.New(f).Fuzz(func(*testing.T, []byte) {}) }`, ""},
		{"host/x.go", "package x // TO" + "DO later", "tracked as issues"},
		{"host/x.go", "package x\nfunc f() {" + strings.Repeat("\n", 120) + "}", "over 100"},
		{"host/x.go", "package x" + strings.Repeat("\n", 620), "over 600"},
	} {
		s, err := parse(c.name, c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		got := strings.Join(slices.Concat(checkImports(s), checkCalls(s), checkShape(s)), "\n")
		if c.says == "" && got != "" || !strings.Contains(got, c.says) {
			t.Errorf("%s: %s\ngot %q, want %q", c.name, c.text, got, c.says)
		}
	}
}
