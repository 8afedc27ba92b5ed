package archtest

import (
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// needy reports whether a call says what a test needs of the machine and the user.
func needy(pkg, name string) bool {
	return pkg == "testenv" && strings.HasPrefix(name, "Need") ||
		pkg == "dockertest" && (name == "Host" || name == "Start") ||
		pkg == "umltest" && name == "Outside"
}

// reaching returns the functions of a package's tests in which there is such a call, wherever it
// is: in the function itself or in those that it calls, by their names. The package "" is the
// tests' own.
func reaching(files []*source, such func(pkg, name string) bool) map[string]bool {
	calls, reach := map[string]map[string]bool{}, map[string]bool{}
	eachFunc(files, func(s *source, f *ast.FuncDecl) {
		name := f.Name.Name
		if calls[name] == nil {
			calls[name] = map[string]bool{}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				calls[name][n.Name] = true
				if such("", n.Name) {
					reach[name] = true
				}
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && such(x.Name, n.Sel.Name) {
					reach[name] = true
				}
			}
			return true
		})
	})
	for changed := true; changed; {
		changed = false
		for name, callees := range calls {
			for callee := range callees {
				if reach[callee] && !reach[name] {
					reach[name], changed = true, true
				}
			}
		}
	}
	return reach
}

// eachFunc calls do for every function of a package's files.
func eachFunc(files []*source, do func(s *source, f *ast.FuncDecl)) {
	for _, s := range files {
		for _, d := range s.tree.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				do(s, f)
			}
		}
	}
}

// silent returns the functions of a package's tests that say nothing of what they need although
// their names, TestPriv or TestUML and the like, promise that they need something.
func silent(files []*source) (bad []string) {
	says := reaching(files, func(pkg, name string) bool {
		return needy(pkg, name) || pkg == "" && name == "Outside" // umltest's, in its own tests
	})
	at := map[string]string{}
	eachFunc(files, func(s *source, f *ast.FuncDecl) { at[f.Name.Name] = s.at(f) })
	for _, name := range slices.Sorted(maps.Keys(at)) {
		kind := strings.TrimPrefix(strings.TrimPrefix(name, "Test"), "Benchmark")
		if kind != name && (strings.HasPrefix(kind, "Priv") || strings.HasPrefix(kind, "UML")) && !says[name] {
			bad = append(bad, at[name]+" "+name+" does not say what it needs, and fails or waits where it is missing: call "+
				"testenv.NeedRoot, NeedNamespaces, NeedEmulation or NeedProgram, dockertest.Host, or umltest.Outside; a test "+
				"that needs nothing has another name")
		}
	}
	return bad
}

// checkSkips returns where a test decides by itself that this user or machine lacks something.
func checkSkips(s *source) (bad []string) {
	if !strings.HasSuffix(s.name, "_test.go") {
		return nil
	}
	ast.Inspect(s.tree, func(n ast.Node) bool {
		c, ok := n.(*ast.IfStmt)
		if !ok {
			return true
		}
		asks := mentions(c.Cond, "os.Geteuid", "os.Getuid", "exec.LookPath", "privilege.NeedsUserNS",
			"privilege.CheckNamespaces")
		if c.Init != nil {
			asks = asks || mentions(c.Init, "exec.LookPath", "privilege.CheckNamespaces")
		}
		if asks && mentions(c.Body, "t.Skip", "t.Skipf", "b.Skip", "b.Skipf", "tb.Skip", "tb.Skipf") {
			bad = append(bad, s.at(c)+" skips a test for lack of a right or a program in its own words: call a function of "+
				"testenv, which says it as everywhere else")
		}
		return true
	})
	return bad
}

// mentions reports whether a part of a file has one of the names, such as os.Geteuid; d.t.Skip is
// t.Skip.
func mentions(part ast.Node, names ...string) (found bool) {
	ast.Inspect(part, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x := ""
		switch of := sel.X.(type) {
		case *ast.Ident:
			x = of.Name
		case *ast.SelectorExpr:
			x = of.Sel.Name
		}
		found = found || slices.Contains(names, x+"."+sel.Sel.Name)
		return true
	})
	return found
}

// testFiles returns the files of tests by package.
func testFiles(t *testing.T) map[string][]*source {
	t.Helper()
	files := map[string][]*source{}
	for _, s := range load(t) {
		if strings.HasSuffix(s.name, "_test.go") {
			files[path.Dir(s.name)] = append(files[path.Dir(s.name)], s)
		}
	}
	return files
}

func TestTestsSayWhatTheyNeed(t *testing.T) {
	each(t, checkSkips)
	files := testFiles(t)
	for _, pkg := range slices.Sorted(maps.Keys(files)) {
		for _, complaint := range silent(files[pkg]) {
			t.Error(complaint)
		}
	}
}

func TestSilentTestsAreFound(t *testing.T) {
	for text, want := range map[string]bool{
		`func TestPrivA(t *testing.T) { testenv.NeedRoot(t) }`:                                                false,
		`func TestPrivA(t *testing.T) { up(t) }; func up(t *testing.T) { dockertest.Host(t) }`:                false,
		`func TestPrivA(t *testing.T) { newDesk(t).up() }; func (d *desk) up() { testenv.NeedNamespaces(d) }`: false,
		`func TestUMLA(t *testing.T) { if umltest.Outside(t) { return } }`:                                    false,
		`func TestA(t *testing.T) { up(t) }`:                                                                  false,
		`func TestPrivA(t *testing.T) { up(t) }`:                                                              true,
		`func BenchmarkPrivA(b *testing.B) { testenv.Main(nil) }`:                                             true,
		`func TestA(t *testing.T) { if os.Geteuid() != 0 { t.Skip("not root") } }`:                            true,
		`func TestA(d *desk) { if _, err := exec.LookPath("x"); err != nil { d.t.Skip(err) } }`:               true,
		`func TestA(t *testing.T) { if os.Geteuid() != 0 { want = 3 } }`:                                      false,
	} {
		s, err := parse("e2e/x_test.go", "package x\n"+text)
		if err != nil {
			t.Fatal(err)
		}
		if bad := append(silent([]*source{s}), checkSkips(s)...); len(bad) > 0 != want {
			t.Errorf("%s: %q", text, bad)
		}
	}
}
