package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
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

// others says, by file and word, where the name of a kind stands that is also the name of something
// else, where a lab is given a kind by default, and where the words of other programs are
// translated.
func others() map[string]string {
	const (
		example  = "an example of a command"
		initial  = "the default of a key or a flag"
		measured = "the network of a measurement of the machine, not a lab's"
		mode     = "a mode of the paper's Algorithm 1"
		balance  = "fabric's own: how a switch chooses among paths, of which routing names some"
		unit     = "picoseconds"
		nothing  = "nothing, in words"

		translated = "the table of a format's words for collectives"
	)
	return map[string]string{
		"clocksync/huygens/config.go huygens":           "where an error is, in the protocol's own package",
		"cmd/weft/bench.go all-reduce":                  initial,
		"cmd/weft/bench.go star":                        initial,
		"cmd/weft/describe.go transport.pc4":            example,
		"cmd/weft/deploy.go none":                       "deploy.ActionNone",
		"cmd/weft/generate.go all-reduce":               initial,
		"cmd/weft/generate.go none":                     "starter.NoWork",
		"collectives/bench/table.go none":               "what nccl-tests prints for no reduction",
		"fabric/adaptive.go spray":                      balance,
		"fabric/ccm.go ccm":                             balance,
		"fabric/queues/queues.go spray":                 balance,
		"orchestrator/experiment/network.go ccm":        balance,
		"transport/kinds.go spray":                      "a transport that is called as a routing is",
		"inputs/chakra/schema.go all-reduce":            translated,
		"inputs/chakra/schema.go reduce":                translated,
		"inputs/chakra/schema.go all-gather":            translated,
		"inputs/chakra/schema.go broadcast":             translated,
		"inputs/chakra/schema.go all-to-all":            translated,
		"inputs/chakra/schema.go reduce-scatter":        translated,
		"inputs/kineto/parse.go all-reduce":             translated,
		"inputs/kineto/parse.go reduce":                 translated,
		"inputs/kineto/parse.go all-gather":             translated,
		"inputs/kineto/parse.go broadcast":              translated,
		"inputs/kineto/parse.go all-to-all":             translated,
		"inputs/kineto/parse.go reduce-scatter":         translated,
		"inputs/msccl/parse.go all-reduce":              translated,
		"inputs/msccl/parse.go all-gather":              translated,
		"inputs/msccl/parse.go reduce-scatter":          translated,
		"inputs/msccl/parse.go all-to-all":              translated,
		"orchestrator/deploy/up.go none":                "deploy.ActionNone",
		"orchestrator/emulate/bench.go star":            measured,
		"orchestrator/emulate/bench.go pc4":             measured,
		"orchestrator/emulate/bench.go all-to-all":      measured,
		"orchestrator/emulate/bench.go direct":          measured,
		"orchestrator/launcher/kinds.go none":           "a launcher that tells programs nothing",
		"orchestrator/lab/clocks.go perfect":            initial,
		"orchestrator/lab/measure.go both":              "engine.kind: a simulation and an emulation",
		"orchestrator/lab/transport.go pc4":             initial,
		"orchestrator/runtime/docker/container.go none": "Docker's words for no network and no logs",
		"orchestrator/starter/starter.go none":          "starter.NoWork",
		"orchestrator/summary/steps.go ccm":             "the kind of an event in events.jsonl",
		"results/expect/value.go ps":                    unit,
		"units/parse.go ps":                             unit,
		"units/shown.go ps":                             unit,
		"results/report/compare.go none":                nothing,
		"tc-shaping/measure/marks.go none":              nothing,
		"tc-shaping/qdisc/compare.go none":              nothing,
		"tc-shaping/qdisc/gate.go none":                 nothing,
		"transport/cc/pc4/receiver.go all-reduce":       mode,
		"transport/cc/pc4/receiver.go all-to-all":       mode,
		"transport/cc/pc4/receiver.go all-gather":       mode,
		"transport/cc/uec/params.go both":               "UEC: a window and credits",
		"transport/cc/uec/params.go ecmp":               "UEC: a connection on one path",
	}
}

// synonyms is the file with what people type for the values of keys. Its table has names of kinds
// on both sides, and a test of its own.
const synonyms = "orchestrator/lab/synonyms.go"

func TestKindsStandInTheirPackages(t *testing.T) {
	sources := load(t)
	constants := constantsOf(sources)
	excused := others()
	used := map[string]bool{}
	for _, s := range sources {
		if s.name == synonyms {
			continue
		}
		for _, c := range checkKinds(s, constants) {
			at := s.name + " " + c.word
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

// mention is a place where a file names a kind.
type mention struct{ word, text string }

// checkKinds finds where a file outside of the package that registers a kind has the kind's name,
// in quotes or as a constant of another package, and where it asks for the type of one transport.
// Without the name no comparison, map, list or variable can tell the kind from others.
func checkKinds(s *source, constants map[string]string) (bad []mention) {
	if s.test() {
		return nil
	}
	imports := s.imports()
	all := registrations()
	named := func(at ast.Node, word string) {
		for _, r := range all {
			if slices.Contains(r.names, word) && !below(s.pkg, r.own...) {
				bad = append(bad, mention{word, fmt.Sprintf("%s names %s, %q: what others need to know of one "+
					"stands in its registration, so that a new one needs no change elsewhere; ask %s",
					s.at(at), r.what, word, r.facts)})
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
			bad = append(bad, mention{sel.Sel.Name, fmt.Sprintf("%s tells a transport by the type %s.%s: others "+
				"ask an interface that a new one may have as well, "+
				"such as transport.CoordinationOf or cc.Fitted", s.at(at), x.Name, sel.Sel.Name)})
		}
	}
	ast.Inspect(s.tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if word, ok := literal(n); ok {
				named(n, word)
				if m := ofOneSection.FindStringSubmatch(word); m != nil && !below(s.pkg, "transport", "clocksync") &&
					slices.ContainsFunc(all, func(r registered) bool { return slices.Contains(r.names, m[1]) }) {
					bad = append(bad, mention{m[0], fmt.Sprintf("%s names a key of one kind, %s: the registration or "+
						"the section knows it, and %q + Kind is right for every kind", s.at(n), m[0], m[0][:len(m[0])-len(m[1])])})
				}
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Obj == nil {
				if word, ok := constants[imports[x.Name]+"."+n.Sel.Name]; ok {
					named(n, word)
				}
			}
		case *ast.CaseClause:
			for _, e := range n.List {
				asserted(n, e)
			}
		case *ast.TypeAssertExpr:
			asserted(n, n.Type)
		}
		return true
	})
	return bad
}

// ofOneSection matches the path of a key of one transport, or of one protocol.
var ofOneSection = regexp.MustCompile(`\b(?:transport|clocks)\.([a-z0-9]+)\b`)

// ofOneTransport says that a type is that of the section or of the parameters of one transport.
func ofOneTransport(path, name string) bool {
	return path == "weft/transport" && slices.Contains([]string{"CCM", "RoCE", "STrack"}, name) ||
		strings.HasPrefix(path, "weft/transport/cc/") && name == "Params"
}

// The rule is shown files that break it and some that do not.
func TestKindsRuleBites(t *testing.T) {
	constants := map[string]string{"weft/collectives/schedule.Incast": "incast", "weft/clocksync/node.PTP": "ptp",
		"weft/fabric.Adaptive": "adaptive"}
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
		{"orchestrator/run/x.go", `package x; const k = "torus"`, "a topology"},
		{"sim/x.go", `package x; func f(m map[string]int) int { return m["ptp"] }`, "node.FactsOf"},
		{"sim/x.go", `package x; import "slices"; func f(kind string) bool { return slices.Contains([]string{"x", "pc4"}, kind) }`, "a transport"},
		// Variables, defaults of fields, elements and what is called with a name.
		{"sim/x.go", `package x; var k = "pc4"; func f(kind string) bool { return kind == k }`, "a transport"},
		{"sim/x.go", `package x; func f(kind string) bool { k := "x"; k = "torus"; return kind == k }`, "a topology"},
		{"sim/x.go", `package x; var d = struct{ kind string }{kind: "ring"}; func f(kind string) bool { return kind == d.kind }`, "a collective"},
		{"sim/x.go", `package x; var all = []string{"x", "huygens"}; func f(kind string) bool { return kind == all[1] }`, "node.FactsOf"},
		{"sim/x.go", `package x; import "weft/clocksync/node"; var k = node.PTP; func f(c node.Sync) bool { switch c { case k: return true }; return false }`, "node.FactsOf"},
		{"sim/x.go", `package x; import "strings"; func f(kind string) bool { return strings.HasPrefix(kind, "swift") }`, "a transport"},
		{"sim/x.go", `package x; import "weft/collectives/schedule"; func f() map[string]int { return map[string]int{schedule.Incast: 1} }`, "schedule.About"},
		{"sim/x.go", `package x; func f(all []int) int { const ptp = 3; return all[ptp] }`, ""},
		{"orchestrator/run/x.go", `package x; func f(kind string) string { return "the star of " + kind }`, ""},
		{"sim/x.go", `package x; const path = "transport.roce.split"`, "a key of one kind"},
		{"sim/x.go", `package x; const path = "transport.kind"`, ""},
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
