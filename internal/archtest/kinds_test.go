package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"weft/clocksync/node"
	"weft/collectives/schedule"
	"weft/fabric/queues"
	"weft/orchestrator/topology"
	"weft/transport"
)

// registered is a sort of kinds that a lab names: transports, topologies, collectives,
// synchronization.
type registered struct {
	what  string
	names []string
	own   []string // packages that may tell them apart: where they are registered
	facts string   // what others ask in place of the name
}

func registrations() []registered {
	collectives := schedule.Collectives()
	for _, c := range schedule.Collectives() {
		collectives = append(collectives, schedule.Algorithms(c)...)
	}
	var topologies []string
	for _, k := range topology.Kinds() {
		topologies = append(topologies, k.Name)
	}
	return []registered{
		{"a transport", transport.Kinds(), []string{"transport"}, "transport.FactsOf"},
		{"a topology", topologies, []string{"orchestrator/topology"}, "methods of topology.Spec and of the graph"},
		{"a collective or an algorithm", collectives, []string{"collectives/schedule"},
			"schedule.About or schedule.Of"},
		{"routing", queues.Routings(), []string{"fabric"}, "methods of queues.Queues and of fabric.Balance"},
		{"synchronization", node.Kinds(), []string{"clocksync/node"}, "node.FactsOf"},
	}
}

// others says, by package and word, where the name of a kind is compared that is also the name of
// something else.
func others() map[string]string {
	return map[string]string{
		"cmd/weft both": "engine.kind: a simulation and an emulation; of the parameter server, push " +
			"and pull",
		"orchestrator/run both":        "engine.kind",
		"orchestrator/experiment both": "engine.kind",
		"fabric ccm":                   "fabric.CCM, a way to balance that a lab does not name",
		"orchestrator/deploy none":     "deploy.ActionNone",
		"orchestrator/starter none":    "starter.NoWork",
		"transport/cc/pc4 all-to-all":  "a mode of the paper's Algorithm 1",
		"transport/cc/pc4 all-gather":  "the same",
		"cmd/weft none":                "deploy.ActionNone",
		"orchestrator/lab tree":        "a key of the table of synonyms, which is of what people type and not of kinds",
		"orchestrator/lab ecmp":        "the same table",
	}
}

func TestKindsAreNotComparedElsewhere(t *testing.T) {
	sources := load(t)
	constants := constantsOf(sources)
	excused := others()
	used := map[string]bool{}
	for _, s := range sources {
		for _, c := range checkKinds(s, constants) {
			at := s.pkg + " " + c.word
			if used[at] = true; excused[at] == "" {
				t.Error(c.text)
			}
		}
	}
	for at := range excused {
		if !used[at] {
			t.Errorf("others() excuses %s, which is not there", at)
		}
	}
}

// constantsOf are the exported string constants of packages, by the import path and the name.
func constantsOf(sources []*source) map[string]string {
	values := map[string]string{}
	for _, s := range sources {
		if s.test() {
			continue
		}
		for _, d := range s.tree.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec)
				for i := range min(len(v.Names), len(v.Values)) {
					if text, ok := literal(v.Values[i]); ok {
						values["weft/"+s.pkg+"."+v.Names[i].Name] = text
					}
				}
			}
		}
	}
	return values
}

func literal(e ast.Expr) (string, bool) {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(l.Value)
	return text, err == nil
}

// comparison is a place where a file tells kinds apart by a name.
type comparison struct{ word, text string }

// checkKinds finds what a file compares with the name of a kind, or looks up by it, outside of the
// package where kinds of its sort are registered.
func checkKinds(s *source, constants map[string]string) (bad []comparison) {
	if s.test() {
		return nil
	}
	imports := s.imports()
	var name func(e ast.Expr) (string, bool)
	name = func(e ast.Expr) (string, bool) {
		switch e := e.(type) {
		case *ast.CallExpr: // a conversion, such as node.Sync("ptp")
			if len(e.Args) == 1 {
				return literal(e.Args[0])
			}
		case *ast.Ident: // a constant of the function, of the file, or of another file of the package
			if e.Obj == nil {
				text, ok := constants["weft/"+s.pkg+"."+e.Name]
				return text, ok
			}
			if v, ok := e.Obj.Decl.(*ast.ValueSpec); ok && e.Obj.Kind == ast.Con {
				for i := range min(len(v.Names), len(v.Values)) {
					if v.Names[i].Name == e.Name {
						return name(v.Values[i])
					}
				}
			}
		case *ast.SelectorExpr:
			if x, ok := e.X.(*ast.Ident); ok && x.Obj == nil {
				text, ok := constants[imports[x.Name]+"."+e.Sel.Name]
				return text, ok
			}
		}
		return literal(e)
	}
	told := func(at ast.Node, all ...ast.Expr) {
		for _, e := range all {
			word, ok := name(e)
			if !ok {
				continue
			}
			all := registrations()
			if _, constant := e.(*ast.Ident); constant && slices.ContainsFunc(all, func(r registered) bool {
				return slices.Contains(r.names, word) && below(s.pkg, r.own...)
			}) {
				continue // its own kind, which is called as one of another sort is, such as fabric.CCM
			}
			for _, r := range all {
				if slices.Contains(r.names, word) && !below(s.pkg, r.own...) {
					bad = append(bad, comparison{word, fmt.Sprintf("%s tells %s by its name, %q: what others need "+
						"to know of one stands in its registration, so that a new one needs "+
						"no change elsewhere; ask %s", s.at(at), r.what, word, r.facts)})
				}
			}
		}
	}
	asserted := func(at ast.Node, e ast.Expr) {
		if p, ok := e.(*ast.StarExpr); ok {
			e = p.X
		}
		sel, ok := e.(*ast.SelectorExpr)
		if !ok || below(s.pkg, "transport") {
			return
		}
		if x, ok := sel.X.(*ast.Ident); ok && ofOneTransport(imports[x.Name], sel.Sel.Name) {
			bad = append(bad, comparison{sel.Sel.Name, fmt.Sprintf("%s tells a transport by the type %s.%s: others "+
				"ask an interface that a new one may have as well, "+
				"such as transport.CoordinationOf or cc.Fitted", s.at(at), x.Name, sel.Sel.Name)})
		}
	}
	ast.Inspect(s.tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				told(n, n.X, n.Y)
			}
		case *ast.IndexExpr:
			told(n, n.Index)
		case *ast.CallExpr:
			sel, ok := n.Fun.(*ast.SelectorExpr)
			if !ok || len(n.Args) == 0 || !slices.Contains([]string{"Contains", "Index"}, sel.Sel.Name) {
				break
			}
			if x, ok := sel.X.(*ast.Ident); ok && imports[x.Name] == "slices" {
				if all, ok := n.Args[0].(*ast.CompositeLit); ok {
					told(n, all.Elts...)
				}
			}
		case *ast.CaseClause:
			told(n, n.List...)
			for _, e := range n.List {
				asserted(n, e)
			}
		case *ast.TypeAssertExpr:
			asserted(n, n.Type)
		case *ast.CompositeLit:
			if _, ok := n.Type.(*ast.MapType); !ok {
				break
			}
			for _, e := range n.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok {
					told(kv, kv.Key)
				}
			}
		}
		return true
	})
	return bad
}

// ofOneTransport says that a type is that of the section or of the parameters of one transport.
func ofOneTransport(path, name string) bool {
	return path == "weft/transport" && slices.Contains([]string{"CCM", "RoCE", "STrack"}, name) ||
		strings.HasPrefix(path, "weft/transport/cc/") && name == "Params"
}

// The rule is shown files that break it and some that do not.
func TestKindsRuleBites(t *testing.T) {
	constants := map[string]string{"weft/collectives/schedule.Incast": "incast", "weft/clocksync/node.PTP": "ptp",
		"weft/fabric.Adaptive": "adaptive", "weft/orchestrator/run.elsewhere": "ptp"}
	for _, c := range []struct{ name, text, says string }{
		{"orchestrator/run/x.go", `package x; func f(kind string) bool { return kind == "ccm" }`, "transport.FactsOf"},
		{"orchestrator/run/x.go", `package x; func f(kind string) bool { switch kind { case "torus", "x": return true }; return false }`, "a topology"},
		{"sim/x.go", `package x; import "weft/collectives/schedule"; func f(c string) bool { return c != schedule.Incast }`, "schedule.About"},
		{"sim/x.go", `package x; import clocks "weft/clocksync/node"; func f(c clocks.Sync) bool { return c == clocks.PTP }`, "node.FactsOf"},
		{"cmd/weft/x.go", `package x; import "weft/clocksync/node"; func f(c node.Sync) bool { return c == node.Sync("huygens") }`, "node.FactsOf"},
		{"cmd/weft/x.go", `package x; var m = map[string]int{"hpcc": 1}`, "a transport"},
		{"orchestrator/run/x.go", `package x; import "weft/transport"; func f(s transport.Section) bool { _, ok := s.(*transport.CCM); return ok }`, "transport.CoordinationOf"},
		{"orchestrator/run/x.go", `package x; import "weft/transport/cc/pc4"; func f(s any) { switch s.(type) { case pc4.Params: } }`, "cc.Fitted"},
		{"orchestrator/run/x.go", `package x; import "weft/fabric"; func f(b fabric.Balance) bool { return b == fabric.Adaptive }`, "fabric.Balance"},
		{"orchestrator/run/x.go", `package x; func f(kind string) bool { const k = "ccm"; return kind == k }`, "transport.FactsOf"},
		{"orchestrator/run/x.go", `package x; func f(kind string) bool { return kind == k }; const k = "torus"`, "a topology"},
		{"orchestrator/run/x.go", `package x; func f(kind string) bool { return kind == elsewhere }`, "node.FactsOf"},
		{"sim/x.go", `package x; func f(m map[string]int) int { return m["ptp"] }`, "node.FactsOf"},
		{"sim/x.go", `package x; import "slices"; func f(kind string) bool { return slices.Contains([]string{"x", "pc4"}, kind) }`, "a transport"},
		{"sim/x.go", `package x; func f(all []int) int { const ptp = 3; return all[ptp] }`, ""},
		{"orchestrator/run/x.go", `package x; func f(kind string) string { return "star" + kind }`, ""},
		{"orchestrator/run/x_test.go", `package x; func f(kind string) bool { return kind == "ccm" }`, ""},
		{"transport/x.go", `package x; func f(kind string) bool { return kind == "ccm" }`, ""},
		{"transport/x.go", `package x; func f(kind string) bool { return kind == "star" }`, "a topology"},
	} {
		s, err := parse(c.name, c.text)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, bad := range checkKinds(s, constants) {
			got = append(got, bad.text)
		}
		if text := strings.Join(got, "\n"); c.says == "" && text != "" || !strings.Contains(text, c.says) {
			t.Errorf("%s: %s\ngot %q, want %q", c.name, c.text, text, c.says)
		}
	}
}
