package archtest

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The walks of docs/architecture.md name files and functions. Every file named there exists, and a
// row of a table that begins with a file names functions of that file. A row that begins with a
// package names a folder.
func TestArchitectureNamesWhatExists(t *testing.T) {
	text, err := os.ReadFile(root + "/docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	funcs := map[string]bool{} // "host/run.go Host.start"
	for _, s := range load(t) {
		for _, d := range s.tree.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				funcs[s.name+" "+receiverOf(f)+f.Name.Name] = true
			}
		}
	}
	quoted := regexp.MustCompile("`([^`]+)`")
	rows := 0
	for line := range strings.Lines(string(text)) {
		for _, m := range quoted.FindAllStringSubmatch(line, -1) {
			name, first := m[1], strings.HasPrefix(line, "| `"+m[1]+"`")
			isFile := strings.HasSuffix(name, ".go") && strings.Contains(name, "/")
			isPackage := first && !strings.Contains(name, ".")
			if _, err := os.Stat(filepath.Join(root, name)); err != nil && (isFile || isPackage) {
				t.Errorf("docs/architecture.md names %s, which does not exist: correct the page", name)
			}
			if cells := strings.Split(line, "|"); first && isFile {
				rows++
				for _, f := range quoted.FindAllStringSubmatch(cells[2], -1) {
					if !funcs[name+" "+f[1]] {
						t.Errorf("docs/architecture.md has %s in %s, where it is not: correct the page", f[1], name)
					}
				}
			}
		}
	}
	if rows < 20 {
		t.Errorf("%d rows of docs/architecture.md name functions: the walk of a packet has more", rows)
	}
}

// receiverOf returns the type of a method with a dot, or nothing for a function.
func receiverOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	of := f.Recv.List[0].Type
	if p, ok := of.(*ast.StarExpr); ok {
		of = p.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name + "."
	}
	return ""
}
