package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
)

// drivers are the packages at the edge: they own sockets, devices, processes, files and the clock.
func drivers() []string {
	return []string{
		"cmd", "examples", "labs", "realtime", "sdk", "nodeimg", "internal/poller", "internal/clock",
		"orchestrator/run", "orchestrator/capture", "orchestrator/emulate", "orchestrator/kernelpath",
		"orchestrator/labfile", "orchestrator/pages", "orchestrator/runtime", "orchestrator/deploy", "orchestrator/machine",
		"orchestrator/cni", "orchestrator/doctor", "orchestrator/series", "orchestrator/together", "orchestrator/uml", "orchestrator/sweep/collect", "orchestrator/sweep/local",
		"orchestrator/sweep/manage", "orchestrator/sweep/shard", "orchestrator/sweep/slurm", "orchestrator/sweep/swarm", "results/store", "results/view",
		"tc-shaping/bpf", "tc-shaping/tcnl", "tc-shaping/probe", "tc-shaping/measure",
	}
}

// pure reports whether a package must do no I/O: everything that is no driver and no tool of the
// tests.
func pure(pkg string) bool {
	return !below(pkg, drivers()...) && !below(pkg, "internal")
}

// ioImports are the packages with which one reaches out of the process.
func ioImports() []string {
	return []string{
		"os", "net", "syscall", "log", "plugin", "io/ioutil", "embed", "database",
		"golang.org/x/sys", "golang.org/x/net", "github.com/vishvananda", "github.com/containernetworking",
		"github.com/docker", "github.com/spf13",
	}
}

// harmless are the packages below one of ioImports that do no I/O.
func harmless() []string { return []string{"net/netip", "net/url"} }

// confined names the only folders that may use a dependency, and why.
func confined() map[string]struct {
	to  []string
	why string
} {
	type where = struct {
		to  []string
		why string
	}
	return map[string]where{
		"github.com/spf13/cobra": {[]string{"cmd"},
			"commands are the business of the command line alone"},
		"charm.land/bubbletea/v2": {[]string{"cmd"},
			"the terminal is the business of the command line alone"},
		"gopkg.in/yaml.v3": {[]string{"inputs/topologies", "orchestrator/lab", "orchestrator/paper"},
			"YAML is how a lab is written, not what a lab is"},
		"google.golang.org/protobuf/encoding/protowire": {[]string{"inputs/chakra"},
			"protobuf is the form of one format of jobs"},
		"github.com/invopop/jsonschema": {[]string{"orchestrator/lab", "results/schema"},
			"schemas describe the lab file and what a run leaves"},
		"github.com/HdrHistogram/hdrhistogram-go": {[]string{"results/stats"},
			"stats.Dist is how everything else keeps a distribution"},
		"github.com/containernetworking/cni": {[]string{"orchestrator/cni"},
			"the protocol of container runtimes is spoken in one place"},
		"github.com/containernetworking/plugins": {[]string{"orchestrator/runtime", "orchestrator/doctor", "tc-shaping/probe"},
			"the network of a thread changes where nodes and scratch namespaces are made, and nowhere else"},
		"github.com/hashicorp/go-multierror": {[]string{"internal/cleanup"},
			"what fails in a clean-up is told in one form"},
		"github.com/vishvananda/netlink": {[]string{"orchestrator/runtime", "orchestrator/kernelpath",
			"orchestrator/doctor", "realtime", "nodeimg", "tc-shaping"}, "the kernel is configured at the edge"},
		"github.com/cilium/ebpf": {[]string{"tc-shaping"}, "the kernel is programmed where tc is"},
		"github.com/docker/docker": {[]string{"orchestrator/runtime/docker", "orchestrator/sweep/swarm",
			"nodeimg/image"},
			"Docker is one runtime and one scheduler among others, which keeps the image of a node"},
		"github.com/google/go-cmp": {[]string{"internal/golden"},
			"it is for tests, and panics by design"},
		"pgregory.net/rapid":                    {nil, "it is for tests"},
		"github.com/santhosh-tekuri/jsonschema": {nil, "it is for tests"},
		"gonum.org/v1/plot": {[]string{"results/plot"},
			"charts are described by results/plot, and look alike"},
		"github.com/parquet-go/parquet-go": {[]string{"results/store"},
			"how rows are kept is the business of one place"},
		"gonum.org/v1/gonum":  {[]string{"results/stats"}, "statistics are made in one place"},
		"github.com/chromedp": {nil, "it is for tests"},
		"C":                   {nil, "weft is one static binary, built without cgo"},
	}
}

// checkImports returns what is wrong with the imports of a file.
func checkImports(s *source) []string {
	var bad []string
	complain := func(format string, args ...any) { bad = append(bad, s.name+" "+fmt.Sprintf(format, args...)) }
	imports := s.imports()
	for _, name := range slices.Sorted(maps.Keys(imports)) {
		p := imports[name]
		own, internal := strings.CutPrefix(p, "weft/")
		switch {
		case p == "math/rand":
			complain("imports math/rand: its global source makes runs differ; use math/rand/v2 with a source made " +
				"from the lab's seed")
		case internal && below(own, "cmd"):
			complain("imports %s: the command line is on top of everything and beneath nothing", p)
		case internal && !s.test() && forTests(own):
			complain("imports %s: it is a tool of tests, and what is only for tests is not linked into the program", p)
		case !s.test() && pure(s.pkg) && below(p, ioImports()...) && !below(p, harmless()...):
			complain("imports %s: everything that decides is pure, so that it runs the same in the simulator and "+
				"on real sockets; I/O belongs to the drivers listed in internal/archtest", p)
		}
		for lib, rule := range confined() {
			if below(p, lib) && !s.test() && !below(s.pkg, rule.to...) {
				complain("imports %s: %s; it is confined to %v", p, rule.why, rule.to)
			}
		}
	}
	return bad
}

// checkCalls returns what a file calls and must not.
func checkCalls(s *source) []string {
	var bad []string
	complain := func(n ast.Node, format string, args ...any) {
		bad = append(bad, s.at(n)+" "+fmt.Sprintf(format, args...))
	}
	s.uses("time", func(n ast.Node, name string) {
		switch name {
		case "Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick":
			if pure(s.pkg) && !s.test() {
				complain(n, "uses time.%s: the core is told the time and never asks for it; clocks belong to the "+
					"drivers listed in internal/archtest", name)
			}
		case "Sleep":
			if pure(s.pkg) {
				complain(n, "uses time.Sleep: nothing in the core waits, and a test that sleeps is slow or flaky; "+
					"wait on an event")
			} else if s.test() && !s.commented(n) {
				complain(n, "sleeps and does not say why: wait on an event, with synctest or with quiettest.Await; "+
					"else give the reason in a comment on the line or above it")
			}
		}
	})
	s.uses("math/rand/v2", func(n ast.Node, name string) {
		switch name {
		case "New", "NewPCG", "NewChaCha8", "NewZipf", "Rand", "PCG", "ChaCha8", "Zipf", "Source":
		default:
			complain(n, "uses rand.%s: the global source cannot be seeded; use a *rand.Rand made from the lab's seed",
				name)
		}
	})
	s.uses("os", func(n ast.Node, name string) {
		if name == "Exit" && s.name != "cmd/weft/main.go" && !s.test() {
			complain(n, "uses os.Exit: only main ends the process, or clean-up is skipped; return an error")
		}
	})
	s.uses("os/exec", func(n ast.Node, name string) {
		if (name == "Command" || name == "CommandContext") && !s.test() && !below(s.pkg, "orchestrator/runtime",
			"orchestrator/deploy", "orchestrator/doctor", "orchestrator/uml", "nodeimg",
			"orchestrator/sweep/shard",    // a shard is a process, which may be killed
			"orchestrator/sweep/slurm") && // Slurm has no interface but commands, which print fields for programs
			s.name != "internal/terminal/pager.go" { // the pager, which is the user's, and is only written to
			complain(n, "uses exec.%s: programs are started by the runtime alone, and nothing parses their text; "+
				"use a library or the kernel's interface", name)
		}
	})
	s.uses("log", func(n ast.Node, name string) {
		complain(n, "uses log.%s: it writes to a global and its Fatal ends the process; take a *slog.Logger or "+
			"return an error", name)
	})
	return bad
}

// fuzzed returns the name of the parameter of a fuzz target; "": the function is none.
func fuzzed(f *ast.FuncDecl) string {
	if !strings.HasPrefix(f.Name.Name, "Fuzz") || f.Recv != nil || len(f.Type.Params.List) != 1 ||
		len(f.Type.Params.List[0].Names) != 1 {
		return ""
	}
	star, ok := f.Type.Params.List[0].Type.(*ast.StarExpr)
	if !ok {
		return ""
	}
	if t, ok := star.X.(*ast.SelectorExpr); !ok || t.Sel.Name != "F" {
		return ""
	}
	return f.Type.Params.List[0].Names[0].Name
}

// checkShape returns what is wrong with the form of a file.
func checkShape(s *source) []string {
	var bad []string
	if n := strings.Count(s.text, "\n"); n > 600 && !s.test() {
		bad = append(bad, fmt.Sprintf("%s has %d lines: over 600 a file holds more than one idea; split it", s.name, n))
	}
	for _, word := range []string{"TO" + "DO", "FIX" + "ME", "XX" + "X"} {
		if strings.Contains(s.text, word) {
			bad = append(bad, fmt.Sprintf("%s contains %s: unfinished work is tracked as issues, and what is "+
				"merged is finished", s.name, word))
		}
	}
	ast.Inspect(s.tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Name.Name == "init" && n.Recv == nil && !strings.Contains(n.Doc.Text(), "only init") {
				bad = append(bad, s.at(n)+" has an init function: it runs before anyone asked and in an order "+
					"nobody reads; construct values where they are needed, or say in its comment why only init can "+
					"do it")
			}
			if p := fuzzed(n); p != "" && !below(s.pkg, "internal/fuzztest") {
				ast.Inspect(n.Body, func(call ast.Node) bool {
					if sel, ok := call.(*ast.SelectorExpr); ok && (sel.Sel.Name == "Fuzz" || sel.Sel.Name == "Add") {
						if x, ok := sel.X.(*ast.Ident); ok && x.Name == p {
							bad = append(bad,
								s.at(call)+" uses testing.F."+sel.Sel.Name+": make test would run the seeds alone; "+
									"use fuzztest.New(f), which tries mutations of them too")
						}
					}
					return true
				})
			}
			first, last := s.lines.Position(n.Pos()).Line, s.lines.Position(n.End()).Line
			if last-first > 100 && !s.test() {
				bad = append(bad, fmt.Sprintf("%s: %s has %d lines: over 100 a function cannot be read at once; "+
					"split it", s.at(n), n.Name.Name, last-first+1))
			}
		case *ast.GoStmt:
			if pure(s.pkg) && !s.test() && s.pkg != "sim" {
				bad = append(bad, s.at(n)+" starts a goroutine: the core is sequential, so that it is "+
					"deterministic; concurrency belongs to the drivers")
			}
		}
		return true
	})
	return bad
}
