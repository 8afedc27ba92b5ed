package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// source is one Go file of the module.
type source struct {
	pkg   string // folder, relative to the root: "realtime"; "." for the root
	name  string // path relative to the root
	text  string
	lines *token.FileSet
	tree  *ast.File
}

// test reports whether the file is part of tests only.
func (s *source) test() bool { return strings.HasSuffix(s.name, "_test.go") || forTests(s.pkg) }

// forTests reports whether a package is a tool of tests, by its name: cctest, testnet.
func forTests(pkg string) bool {
	base := path.Base(pkg)
	return strings.HasSuffix(base, "test") || strings.HasPrefix(base, "test") || base == "golden" || base == "sample"
}

// at says where in the module a node is.
func (s *source) at(n ast.Node) string {
	p := s.lines.Position(n.Pos())
	return fmt.Sprintf("%s:%d", s.name, p.Line)
}

// commented reports whether there is a comment on the line of a node or on the line above it.
func (s *source) commented(n ast.Node) bool {
	line := s.lines.Position(n.Pos()).Line
	return slices.ContainsFunc(s.tree.Comments, func(c *ast.CommentGroup) bool {
		end := s.lines.Position(c.End()).Line
		return end == line || end == line-1
	})
}

// imports lists what the file imports, by the name under which the file knows it where that is
// given or is the last element of the path.
func (s *source) imports() map[string]string {
	out := map[string]string{}
	for _, i := range s.tree.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			panic(err) // the parser accepted it
		}
		name := path.Base(p)
		if name == "v2" {
			name = path.Base(path.Dir(p))
		}
		if i.Name != nil {
			name = i.Name.Name
		}
		if name == "_" || name == "." {
			name += p
		}
		out[name] = p
	}
	return out
}

// uses calls found for every mention of a name of the package with the given import path: time.Now,
// say.
func (s *source) uses(importPath string, found func(n ast.Node, name string)) {
	local := ""
	for name, p := range s.imports() {
		if p == importPath {
			local = name
		}
	}
	if local == "" {
		return
	}
	ast.Inspect(s.tree, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		// A package name resolves to nothing in the file; a variable of the same name has an
		// object.
		if x, ok := sel.X.(*ast.Ident); ok && x.Name == local && x.Obj == nil {
			found(n, sel.Sel.Name)
		}
		return true
	})
}

// parse reads one file given as text.
func parse(name, text string) (*source, error) {
	lines := token.NewFileSet()
	tree, err := parser.ParseFile(lines, name, text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	return &source{pkg: path.Dir(name), name: name, text: text, lines: lines, tree: tree}, nil
}

// root is the folder of the module, seen from this package.
const root = "../.."

// load reads every Go file of the module.
func load(t *testing.T) []*source {
	t.Helper()
	var out []*source
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		base := path.Base(name)
		if d.IsDir() && name != "." && (strings.HasPrefix(base, ".") || base == "testdata" || base == "bin") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		s, err := parse(name, string(text))
		if err != nil {
			return err
		}
		out = append(out, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 20 {
		t.Fatalf("only %d Go files under %s: the rules would hold of nothing", len(out), root)
	}
	return out
}

// below reports whether a package is one of the folders or lies inside one.
func below(pkg string, folders ...string) bool {
	for _, f := range folders {
		if pkg == f || strings.HasPrefix(pkg, f+"/") {
			return true
		}
	}
	return false
}
