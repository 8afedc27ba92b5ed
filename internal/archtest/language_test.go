package archtest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// Widths in columns, of which a tab takes four. A line with code and a comment counts as code.
const (
	tabWidth     = 4
	commentWidth = 100
	codeWidth    = 120
)

// A package of more than bigPackage lines, without its tests, has a package doc of at least
// teachingDoc lines.
const (
	bigPackage  = 300
	teachingDoc = 10
)

// retired maps words that have no honest use in this field to the words that replace them.
func retired() map[string]string {
	return map[string]string{
		"abroad":      "remote",
		"tally":       "counters",
		"tallies":     "counters",
		"heed":        "handle",
		"heeds":       "handles",
		"heeded":      "handled",
		"employ":      "attach",
		"employs":     "attaches",
		"employed":    "attached",
		"staff":       "the name of what it is",
		"punctual":    "on time",
		"whom":        "the noun itself",
		"so many":     "the number of",
		"by now":      "already, or nothing",
		"as wrong as": "the size of the error",
	}
}

// retiredNames maps further words that are refused as a whole identifier. In prose they have honest
// uses.
func retiredNames() map[string]string {
	return map[string]string{"way": "path or direction", "ways": "paths or directions", "noted": "the field's word"}
}

// retiredPrefixes maps words that begin no identifier to those that do in the field. Alone they are
// fine: min and max would hide the functions.
func retiredPrefixes() map[string]string {
	return map[string]string{"least": "min", "most": "max", "usual": "default"}
}

// finding is one place that breaks a rule of language.
type finding struct{ rule, text string }

// All packages follow the rules of docs/style.md that a program can check.
func TestLanguage(t *testing.T) {
	for pkg, files := range byPackage(load(t)) {
		found := checkPackageDoc(pkg, files)
		for _, s := range files {
			found = slices.Concat(found, checkDocFiles(s), checkWidths(s), checkWords(s), checkNames(s), checkDocComments(s))
		}
		for _, f := range found {
			t.Error(f.text)
		}
	}
}

func byPackage(sources []*source) map[string][]*source {
	out := map[string][]*source{}
	for _, s := range sources {
		out[s.pkg] = append(out[s.pkg], s)
	}
	return out
}

// checkPackageDoc returns a finding if a big package has a short package doc.
func checkPackageDoc(pkg string, files []*source) []finding {
	lines, doc := 0, 0
	for _, s := range files {
		if strings.HasSuffix(s.name, "_test.go") {
			continue
		}
		lines += strings.Count(s.text, "\n")
		doc = max(doc, strings.Count(s.tree.Doc.Text(), "\n"))
	}
	if lines <= bigPackage || doc >= teachingDoc {
		return nil
	}
	return []finding{{"package doc", fmt.Sprintf("package %s has %d lines and a package doc of %d: tell newcomers "+
		"what it is, what goes in and out, its one idea, "+
		"its invariants and where to start reading, in at least %d lines", pkg, lines, doc, teachingDoc)}}
}

// checkDocFiles returns the files that a package doc names and that do not exist, neither in the
// package nor by their path from the root.
func checkDocFiles(s *source) (bad []finding) {
	for _, name := range regexp.MustCompile(`[\w./*]+\.go\b`).FindAllString(s.tree.Doc.Text(), -1) {
		here, _ := filepath.Glob(filepath.Join(root, s.pkg, name))
		there, _ := filepath.Glob(filepath.Join(root, name))
		if len(here)+len(there) == 0 {
			bad = append(bad, finding{"package doc", fmt.Sprintf("%s: the package doc names %s, which does not exist: "+
				"correct it", s.name, name)})
		}
	}
	return bad
}

// checkWidths returns the lines that are too long: comments everywhere, code outside of tests.
func checkWidths(s *source) (bad []finding) {
	comment := map[int]bool{} // lines that have nothing but a comment
	for _, g := range s.tree.Comments {
		for _, c := range g.List {
			first, last := s.lines.Position(c.Pos()).Line, s.lines.Position(c.End()).Line
			for line := first; line <= last; line++ {
				comment[line] = true
			}
		}
	}
	text := map[int]bool{} // lines of raw strings of several lines
	ast.Inspect(s.tree, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			first, last := s.lines.Position(l.Pos()).Line, s.lines.Position(l.End()).Line
			for line := first; line <= last && last > first; line++ {
				text[line] = true
			}
		}
		return true
	})
	for i, line := range strings.Split(s.text, "\n") {
		width := utf8.RuneCountInString(line) + (tabWidth-1)*strings.Count(line, "\t")
		code := strings.TrimSpace(line)
		only := comment[i+1] && (strings.HasPrefix(code, "//") || strings.HasPrefix(code, "/*"))
		switch {
		case text[i+1] || strings.HasPrefix(line, "//go:"):
		case only && width > commentWidth:
			bad = append(bad, finding{"width", fmt.Sprintf("%s:%d is a comment of %d columns: wrap it at %d", s.name,
				i+1, width, commentWidth)})
		case !only && width > codeWidth && !s.test():
			bad = append(bad, finding{"width", fmt.Sprintf("%s:%d is code of %d columns: at most %d fit", s.name, i+1,
				width, codeWidth)})
		}
	}
	return bad
}

// checkWords returns the retired words in comments.
func checkWords(s *source) (bad []finding) {
	words := slices.Sorted(maps.Keys(retired()))
	pattern := regexp.MustCompile(`(?i)\b(` + strings.ReplaceAll(strings.Join(words, "|"), " ", `\s+(?://\s*)?`) + `)\b`)
	for _, g := range s.tree.Comments {
		text := g.Text()
		for _, word := range pattern.FindAllString(text, -1) {
			plain := strings.Join(strings.Fields(strings.ToLower(word)), " ")
			bad = append(bad, finding{"words", fmt.Sprintf("%s says %q, which nobody in the field does: say %s", s.at(g), plain, retired()[plain])})
		}
	}
	return bad
}

// checkNames returns the identifiers with a retired word that a file declares.
func checkNames(s *source) (bad []finding) {
	part := regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)
	seen := map[string]bool{}
	check := func(id *ast.Ident) {
		if seen[id.Name] {
			return
		}
		seen[id.Name] = true
		word, better := strings.ToLower(id.Name), ""
		parts := part.FindAllString(id.Name, -1)
		if len(parts) > 1 {
			better = retiredPrefixes()[parts[0]]
		}
		if better = cmp.Or(better, retiredNames()[word]); better == "" {
			for _, p := range parts {
				if r := retired()[strings.ToLower(p)]; r != "" {
					word, better = strings.ToLower(p), r
				}
			}
		}
		if better != "" {
			bad = append(bad, finding{"names", fmt.Sprintf("%s names something %s: %q is retired; say %s", s.at(id), id.Name, word, better)})
		}
	}
	ast.Inspect(s.tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			check(n.Name)
		case *ast.TypeSpec:
			check(n.Name)
		case *ast.ValueSpec:
			for _, id := range n.Names {
				check(id)
			}
		case *ast.Field:
			for _, id := range n.Names {
				check(id)
			}
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				if id, ok := e.(*ast.Ident); ok && n.Tok == token.DEFINE {
					check(id)
				}
			}
		case *ast.RangeStmt:
			for _, e := range []ast.Expr{n.Key, n.Value} {
				if id, ok := e.(*ast.Ident); ok && n.Tok == token.DEFINE {
					check(id)
				}
			}
		}
		return true
	})
	return bad
}

// checkDocComments returns the doc comments, outside of tests, that do not begin with the name of
// what they document. That of a type may have an article before the name; that of several names
// begins with one of them.
func checkDocComments(s *source) (bad []finding) {
	if strings.HasSuffix(s.name, "_test.go") {
		return nil
	}
	check := func(doc *ast.CommentGroup, names ...*ast.Ident) {
		text := doc.Text()
		if text == "" {
			return
		}
		for _, id := range names {
			if regexp.MustCompile(`^(A |An |The )?` + regexp.QuoteMeta(id.Name) + `\b`).MatchString(text) {
				return
			}
		}
		first, _, _ := strings.Cut(text, "\n")
		bad = append(bad, finding{"doc comment", fmt.Sprintf("%s: the comment of %s begins %q: begin with its name, so that go doc reads as sentences", s.at(doc), names[0].Name, first)})
	}
	for _, d := range s.tree.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			check(d.Doc, d.Name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					check(docOf(d, spec.Doc), spec.Name)
				case *ast.ValueSpec:
					check(docOf(d, spec.Doc), spec.Names...)
				}
			}
		}
	}
	return bad
}

// docOf returns the doc comment of a spec: its own, or that of the declaration if the spec is alone
// in it.
func docOf(d *ast.GenDecl, own *ast.CommentGroup) *ast.CommentGroup {
	if own == nil && !d.Lparen.IsValid() {
		return d.Doc
	}
	return own
}

// Each rule is shown a file that breaks it and one that does not.
func TestLanguageRulesBite(t *testing.T) {
	long := strings.Repeat("word ", 30)
	for _, c := range []struct{ text, says string }{
		{"package x\n\n// " + long, "a comment of"},
		{"package x\n\nvar _ = 1 // " + long, "code of"},
		{"package x\n\n// " + long[:90], ""},
		{"package x\n\nvar _ = `\n" + long + "`", ""},
		{"package x\n\n// It counts so\n// many packets.\nvar _ = 1", `"so many"`},
		{"package x\n\n// The host to whom it goes.\nvar _ = 1", `"whom"`},
		{"package x\n\nvar portAbroad int", "say remote"},
		{"package x\n\nfunc f(way int) {}", "say path"},
		{"package x\n\nfunc f(oneWay int) {}", ""},
		{"package x\n\nconst mostHosts = 3", "say max"},
		{"package x\n\nfunc f(least int) {}", ""},
		{"package x\n\n// Returns x.\nfunc f() {}", "begin with its name"},
		{"package x\n\n// A thing is one.\ntype thing int", ""},
		{"package x\n\n// Things of a sort.\nconst (\n\ta = 1\n\tb = 2 // two\n)", ""},
		{"// Package x is short.\npackage x\n" + strings.Repeat("\n", bigPackage), "package doc of 1"},
		{"// Package x begins in gone.go.\npackage x", "names gone.go, which does not exist"},
		{"// Package x begins in host.go, not in fabric/network.go.\npackage x", ""},
		{strings.Repeat("// Package x teaches.\n", teachingDoc) + "package x\n" + strings.Repeat("\n", bigPackage), ""},
	} {
		s, err := parse("host/x.go", c.text)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range slices.Concat(checkPackageDoc(s.pkg, []*source{s}), checkDocFiles(s), checkWidths(s), checkWords(s), checkNames(s), checkDocComments(s)) {
			got = append(got, f.text)
		}
		if text := strings.Join(got, "\n"); c.says == "" && text != "" || !strings.Contains(text, c.says) {
			t.Errorf("%s\ngot %q, want %q", c.text, text, c.says)
		}
	}
}
