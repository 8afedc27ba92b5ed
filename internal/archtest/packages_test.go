package archtest

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// entry lists the packages of this module that a package may import.
type entry struct {
	pkg  string
	uses string // packages above in the list, separated by spaces
	why  string // what it uses them for
}

// packages lists every package from the bottom up. A package imports only those that stand before
// it, so that no import runs back up, and exactly those that its entry names. For entries with a
// "*" see expand.
func packages() []entry {
	return []entry{
		{"units", "", "what everything shares: time, bytes, rates"},
		{"internal/splitmix", "", "hashes and random numbers"},
		{"internal/prefetch", "", "asks the processor for memory"},
		{"eventqueue", "internal/prefetch internal/splitmix units",
			"instants are lab time; a hash orders those at one instant; entities are asked for ahead"},
		{"internal/state", "units", "compares machines at instants; types say what a field is, and tags mark exceptions"},
		{"internal/clip", "", "shortens text, whatever it says"},
		{"internal/shell", "", "quotes words, whatever they say"},
		{"params", "internal/clip units", "values of keys have units; messages show parts of them"},

		{"internal/archtest", "", "its tests read source and the tables of kinds"},
		{"internal/bypass", "", "makes shared memory and what wakes its users, whatever is in it"},
		{"internal/cleanup", "", "collects errors, whatever they are of"},
		{"internal/clock", "", "reads the machine's clocks in nanoseconds"},
		{"internal/control", "internal/clip", "messages and descriptors between processes, whatever is in them"},
		{"internal/crew", "", "workers for any rounds of work"},
		{"internal/fuzztest", "", "seeds and mutations for any fuzz target"},
		{"internal/losttest", "", "what a reader says of files with records left out, repeated or added"},
		{"internal/golden", "", "compares text with files"},
		{"internal/mac", "", "MAC addresses of nodes"},
		{"internal/natural", "", "orders names"},
		{"internal/nearest", "", "compares words"},
		{"internal/plural", "", "writes counts, whatever is counted"},
		{"internal/poller", "", "waits for descriptors and instants, whatever they are of"},
		{"internal/remote", "", "connections with other machines, whatever crosses them"},
		{"internal/rings", "", "moves frames through memory, whatever is in them"},
		{"internal/terminal", "", "terminals, whatever runs on them"},
		{"internal/thread", "", "a thread for a function"},
		{"internal/stalls", "units", "when processes were behind, in lab time"},
		{"internal/quiettest", "internal/thread", "measures time in tests, on a thread of its own"},
		{"internal/browsertest", "internal/quiettest", "opens pages for tests, whatever they show"},
		{"internal/regular", "", "opens files, whatever is in them"},
		{"internal/sandbox", "internal/clip", "runs modules, whatever they compute"},
		{"internal/sockbuf", "", "sizes buffers of sockets, whatever crosses them"},
		{"internal/sandbox/sandboxtest", "", "writes modules for tests"},
		{"internal/sample", "", "chooses cases of tests"},
		{"internal/privilege", "", "finds out what this process may do, whatever it wants to do"},
		{"internal/dockertest", "internal/privilege", "a Docker Engine for tests, which they can reach"},
		{"internal/testenv", "internal/privilege", "the environment of tests, and what they need of it"},

		{"fabric", "eventqueue internal/prefetch internal/splitmix units",
			"a machine of events; ECMP hashes and lossy links draw numbers; ports and packets are asked for ahead"},
		{"fabric/queues", "fabric params units", "keys of queues, for the ports of the fabric"},

		{"transport/cc", "units", "what controllers are told: times, bytes, rates"},
		{"transport/cc/cctest", "transport/cc units", "tries any controller"},
		{"transport/cc/*", "internal/clip params transport/cc units", "a controller with keys"},
		{"transport/cc/ccm", "transport/cc transport/cc/dcqcn transport/cc/pc4 transport/cc/swift units",
			"holds back the schemes that the draft names"},
		{"transport/cc/wasm", "internal/clip internal/sandbox params transport/cc units",
			"a controller whose keys and decisions are a module's, which runs in a sandbox"},
		{"sdk/cc", "", "what modules are written against: imports nothing, so that a copy stands alone"},
		{"sdk", "", "holds the source of sdk/cc"},
		{"examples", "", "holds the program that weft new begins with"},
		{"examples/cc/*", "sdk/cc", "a module"},
		{"transport/path", "internal/splitmix units", "paths are drawn; congested ones are left for a time"},
		{"transport/wire", "units", "headers carry times and sizes"},
		{"transport/wire/dissector", "transport/wire", "is made from the layout of headers"},
		{"transport", "internal/prefetch internal/splitmix params transport/cc transport/cc/* transport/path " +
			"transport/wire units",
			"registers every controller, chooses paths, writes headers; connections are asked for ahead"},

		{"collectives/schedule", "units", "messages have sizes"},
		{"collectives/schedule/scheduletest", "collectives/schedule units", "makes specs of schedules"},
		{"collectives/bench", "collectives/schedule units", "bandwidths of a collective by its kind"},
		{"collectives/buffer", "collectives/schedule internal/splitmix units",
			"executes steps on bytes, with random input"},
		{"collectives/check", "collectives/schedule units", "executes schedules"},
		{"collectives/symbolic", "collectives/schedule internal/splitmix units",
			"executes steps on hashes of contributions"},
		{"collectives/trace", "collectives/schedule internal/clip units", "names collectives and their sizes"},
		{"collectives/graph", "collectives/schedule internal/plural units", "makes programs of operations of ranks"},

		{"inputs/source", "collectives/graph internal/clip", "errors have places as in jobs"},
		{"inputs/chakra", "collectives/graph inputs/source internal/clip units", "reads a format of jobs"},
		{"inputs/flows", "collectives/graph inputs/source internal/clip units", "reads a format of jobs"},
		{"inputs/goal", "collectives/graph inputs/source internal/clip units", "reads a format of jobs"},
		{"inputs/kineto", "collectives/graph inputs/source internal/clip units", "reads a format of jobs"},
		{"inputs/msccl", "collectives/check collectives/graph collectives/schedule inputs/source internal/clip units",
			"makes programs of a format of algorithms, and proves them"},
		{"inputs/topologies", "collectives/graph inputs/source internal/clip params units",
			"reads formats of networks, whose links are bounded as those of labs"},
		{"inputs", "collectives/graph inputs/chakra inputs/flows inputs/goal inputs/kineto inputs/msccl " +
			"inputs/source inputs/topologies internal/natural internal/plural units",
			"chooses the format; files are in the order of their numbers; describes jobs with counts"},

		{"clocksync", "units", "clocks show lab time"},
		{"clocksync/clock", "units", "clocks show lab time"},
		{"clocksync/internal/testnet", "clocksync units", "runs protocols"},
		{"clocksync/labtime", "units", "clocks show lab time"},
		{"clocksync/metrics", "units", "errors are times"},
		{"clocksync/noise", "internal/splitmix units", "draws errors of stamps"},
		{"clocksync/servo", "units", "offsets are times"},
		{"clocksync/vote", "units", "claims are intervals of time"},
		{"clocksync/*", "clocksync clocksync/servo clocksync/vote params units", "a protocol that steers a clock"},
		{"clocksync/node", "clocksync clocksync/* internal/plural params transport/wire units",
			"a host's clock, its noise and its protocol, with keys; probes are packets of the transport; messages " +
				"list kinds"},

		{"host", "clocksync clocksync/node collectives/schedule internal/prefetch internal/splitmix transport " +
			"transport/wire units",
			"executes programs over an endpoint, with the host's clock; what packets touch is asked for ahead"},

		{"results/record", "units", "shapes of results, with units in the names of fields"},
		{"results/frames", "fabric units", "states of the fabric's ports, and of connections, at instants"},
		{"results/stats", "internal/splitmix results/record units", "fills distributions of a record"},

		{"sim", "clocksync clocksync/node clocksync/ptp eventqueue fabric internal/prefetch internal/state " +
			"results/stats transport transport/wire units",
			"carries packets over the fabric in the order of events; switches hold PTP clocks; delays become " +
				"distributions; what was executed before is skipped; hosts are asked for ahead"},
		{"realtime", "clocksync clocksync/labtime clocksync/ptp eventqueue fabric internal/bypass internal/clip internal/clock " +
			"internal/control internal/poller internal/rings internal/splitmix internal/stalls results/frames results/record results/stats " +
			"transport/wire units",
			"drives the fabric by the machine's clock as a process that is told its part, over TAPs and shared " +
				"memory; switches hold PTP clocks"},

		{"nodeimg/agent", "clocksync clocksync/labtime clocksync/node collectives/buffer host " +
			"internal/bypass internal/clock internal/control internal/poller internal/rings internal/sandbox " +
			"internal/stalls results/frames results/stats transport transport/cc/wasm transport/wire units",
			"drives a host by the machine's clock, over sockets or shared memory, with real buffers"},
		{"nodeimg/labclock", "internal/clip internal/clock internal/control",
			"changes the clocks of programs in a process that is told whose; reads the machine's"},
		{"nodeimg/tcp", "internal/clip params units", "settings of the kernel's TCP are keys of a lab"},
		{"nodeimg/boot", "internal/control internal/mac internal/plural internal/poller internal/sockbuf internal/thread " +
			"nodeimg/labclock nodeimg/tcp units",
			"becomes a node as it is told over a socket, or a program in one with lab time"},
		{"nodeimg/image", "internal/cleanup", "makes the image that nodes have in Docker"},

		{"tc-shaping/qdisc", "units", "rates and delays of links"},
		{"tc-shaping/ports", "fabric internal/mac tc-shaping/qdisc transport/wire units",
			"what a port of the fabric, with headers of the transport, is in the kernel"},
		{"tc-shaping/bpf", "fabric internal/cleanup internal/splitmix tc-shaping/qdisc transport/wire units",
			"programs for what disciplines cannot do, and switches of the fabric would"},
		{"tc-shaping/tcnl", "internal/cleanup tc-shaping/bpf tc-shaping/qdisc transport/wire units",
			"puts disciplines and programs on devices"},
		{"tc-shaping/measure", "internal/sockbuf tc-shaping/qdisc units", "compares links with their disciplines"},
		{"tc-shaping/probe", "tc-shaping/bpf tc-shaping/qdisc tc-shaping/tcnl", "tries disciplines in a namespace of its own"},

		{"results/expect", "internal/nearest results/record results/stats units",
			"compares numbers of a record; suggests names"},
		{"results/names", "results/record units", "writes settings of a record as words"},
		{"results/plot", "units", "draws numbers, in the units that people read"},
		{"results/store", "internal/clip internal/natural internal/nearest internal/regular results/frames results/record results/stats units",
			"writes and reads records, and suggests names of runs"},
		{"results/view", "results/frames results/names results/record results/store transport units", "shows what is stored in a browser"},
		{"results/watch", "results/expect results/frames results/record units", "shows a run that goes on as text"},
		{"results/schema", "results/record results/store", "describes what is stored"},
		{"results/table", "internal/clip internal/plural results/record units", "shows records"},
		{"results/junit", "results/record results/table", "shows records as table does"},
		{"results/report", "internal/clip internal/natural internal/plural internal/shell results/expect results/names results/plot results/record results/stats results/store results/table transport units",
			"draws what is stored and says what was expected"},

		{"orchestrator/topology", "fabric fabric/queues internal/clip internal/plural params units",
			"has the shapes of network with their keys; makes a graph of a section"},
		{"orchestrator/launcher", "", "what programs are told about each other, in text"},
		{"orchestrator/together", "orchestrator/launcher", "runs what a launcher asks for"},
		{"orchestrator/lab", "clocksync clocksync/clock clocksync/node clocksync/noise collectives/schedule " +
			"collectives/graph collectives/trace fabric/queues inputs inputs/flows inputs/source inputs/topologies " +
			"internal/clip internal/nearest internal/plural internal/splitmix nodeimg/tcp orchestrator/launcher " +
			"orchestrator/topology params results/expect results/record transport units",
			"collects the keys that the core declares; checks expectations and names of charts; suggests names"},
		{"orchestrator/catalogue", "internal/nearest orchestrator/lab", "reads names of labs; suggests them"},
		{"orchestrator/paper", "results/expect units", "claims are expectations"},
		{"orchestrator/pcapng", "units", "frames have times"},
		{"orchestrator/capture", "internal/sockbuf orchestrator/pcapng realtime", "writes what the fabric process copies"},
		{"orchestrator/topology/render", "internal/plural orchestrator/topology units", "draws a graph"},
		{"orchestrator/experiment", "clocksync clocksync/clock clocksync/node clocksync/noise collectives/buffer " +
			"collectives/schedule " +
			"fabric fabric/queues host internal/clip internal/plural internal/splitmix orchestrator/lab " +
			"orchestrator/topology params results/record " +
			"tc-shaping/ports tc-shaping/qdisc transport transport/cc transport/wire units",
			"a lab's network and what each host does on it, worked out and checked; no engine, so that any machine " +
				"can ask what a lab comes to"},
		{"orchestrator/experiment/experimenttest", "orchestrator/experiment orchestrator/lab",
			"makes experiments from the text of labs"},
		{"orchestrator/summary", "clocksync clocksync/metrics clocksync/node collectives/bench " +
			"collectives/schedule fabric host " +
			"internal/clip internal/plural orchestrator/experiment orchestrator/lab orchestrator/topology " +
			"results/expect results/frames results/plot results/record results/stats transport transport/wire units",
			"what a run came to, from its experiment and what an engine brought back; no engine and no files, so " +
				"that the same outcome has the same record"},
		{"orchestrator/failure", "collectives/schedule fabric host internal/plural orchestrator/experiment " +
			"orchestrator/summary orchestrator/topology transport transport/wire units",
			"which faults of a lab explain that a run failed, from its experiment and what an engine brought back; " +
				"no engine, which says what failed"},
		{"orchestrator/pages", "internal/regular orchestrator/experiment orchestrator/lab orchestrator/paper " +
			"orchestrator/topology orchestrator/topology/render results/expect results/frames results/names " +
			"results/plot results/record results/report results/store results/table results/view units",
			"draws a run's network from its lab, its connections from its experiment, and a paper's figures, beside the " +
				"pages and charts of what is stored"},
		{"orchestrator/uml", "internal/poller units", "waits for a kernel's process; memory has units"},
		{"orchestrator/uml/umltest", "internal/quiettest internal/sample internal/testenv orchestrator/uml",
			"runs tests under another kernel"},

		{"orchestrator/runtime", "clocksync/clock internal/cleanup internal/control internal/poller internal/stalls internal/thread " +
			"nodeimg/boot nodeimg/labclock units",
			"what runtimes share: starting boot in processes, talking to them, taking them down, lab time of programs"},
		{"orchestrator/runtime/runtimetest", "nodeimg/boot orchestrator/runtime", "labs that all runtimes start in tests"},
		{"orchestrator/runtime/docker", "internal/cleanup internal/control internal/poller internal/privilege " +
			"nodeimg/boot nodeimg/image nodeimg/labclock orchestrator/runtime",
			"a runtime"},
		{"orchestrator/runtime/namespace", "internal/cleanup internal/control internal/privilege internal/terminal " +
			"internal/thread nodeimg/boot nodeimg/labclock orchestrator/runtime units",
			"a runtime"},

		{"orchestrator/kernelpath", "clocksync/labtime fabric internal/cleanup internal/clock internal/control internal/plural " +
			"internal/poller internal/sockbuf nodeimg/boot orchestrator/runtime realtime results/record results/stats tc-shaping/bpf " +
			"tc-shaping/measure tc-shaping/ports tc-shaping/probe tc-shaping/qdisc tc-shaping/tcnl transport/wire units",
			"the kernel as a fabric: switches are nodes of a runtime with disciplines on their ports, described as " +
				"realtime describes its own"},
		{"orchestrator/doctor", "internal/bypass internal/plural internal/poller internal/privilege internal/sockbuf " +
			"internal/thread nodeimg/labclock orchestrator/runtime/docker orchestrator/runtime/namespace " +
			"orchestrator/uml " +
			"tc-shaping/probe tc-shaping/qdisc units",
			"tries every runtime, kernel and kind of NIC"},
		{"orchestrator/emulate", "clocksync clocksync/clock clocksync/labtime clocksync/node collectives/schedule fabric host " +
			"internal/bypass internal/cleanup internal/clip internal/clock internal/control internal/plural internal/poller " +
			"internal/regular " +
			"internal/rings internal/stalls nodeimg/agent nodeimg/boot nodeimg/labclock nodeimg/tcp " +
			"orchestrator/kernelpath orchestrator/launcher orchestrator/runtime orchestrator/runtime/namespace " +
			"orchestrator/together orchestrator/uml realtime results/frames results/record results/stats tc-shaping/ports tc-shaping/qdisc " +
			"transport transport/cc/pc4 transport/cc/wasm transport/wire units",
			"starts agents and a network in a runtime, chooses a dilation, collects what they did"},
		{"orchestrator/plan", "internal/plural nodeimg/boot orchestrator/emulate " +
			"orchestrator/runtime orchestrator/topology/render tc-shaping/qdisc units",
			"lists the steps that nodes take, of the value that emulate launches"},
		{"orchestrator/machine", "clocksync clocksync/clock clocksync/labtime internal/cleanup internal/clip internal/clock " +
			"internal/control internal/plural internal/remote internal/terminal nodeimg/agent nodeimg/boot " +
			"nodeimg/labclock orchestrator/capture orchestrator/emulate orchestrator/runtime realtime units",
			"a part of an emulation on another machine: starts it there, and passes its messages on"},

		{"orchestrator/run", "collectives/symbolic fabric host internal/clip internal/crew " +
			"internal/plural internal/privilege orchestrator/capture orchestrator/emulate " +
			"orchestrator/experiment orchestrator/failure orchestrator/kernelpath orchestrator/lab orchestrator/launcher " +
			"orchestrator/plan orchestrator/runtime orchestrator/runtime/docker " +
			"orchestrator/summary orchestrator/topology orchestrator/topology/render orchestrator/uml realtime " +
			"results/expect results/frames results/record results/stats results/store sim tc-shaping/qdisc transport units",
			"chooses an engine for an experiment, runs it and keeps what comes of it"},
		{"orchestrator/deploy/probe", "internal/sockbuf", "sends packets of its own format between two processes"},
		{"orchestrator/deploy", "fabric internal/cleanup internal/clip internal/control internal/plural " +
			"internal/stalls nodeimg/boot orchestrator/deploy/probe " +
			"orchestrator/emulate orchestrator/experiment orchestrator/lab orchestrator/run orchestrator/runtime " +
			"orchestrator/runtime/docker orchestrator/runtime/namespace orchestrator/together orchestrator/topology " +
			"realtime results/record units",
			"keeps an emulated network up, in a runtime, with a journal, and probes it"},
		{"orchestrator/deploy/monitor", "orchestrator/deploy results/frames results/record results/view units",
			"reads states of a deployed lab, and makes frames and a page's model of them"},
		{"orchestrator/cni", "orchestrator/deploy", "asks a deployed lab for an interface"},

		{"labs", "", "files"},
		{"orchestrator/benchmark", "collectives/bench collectives/schedule collectives/trace " +
			"internal/plural orchestrator/experiment orchestrator/lab orchestrator/topology " +
			"results/plot results/record results/table transport units",
			"writes labs of collectives and reads them as every lab is; reads their records into tables and a chart, " +
				"with what results/table says of their fidelity"},
		{"orchestrator/starter", "examples orchestrator/experiment orchestrator/lab orchestrator/topology sdk transport",
			"writes labs and a program to start from, and what their transports need, which their experiments tell"},
		{"orchestrator/labfile", "inputs internal/clip internal/regular labs orchestrator/catalogue " +
			"orchestrator/experiment orchestrator/lab results/expect results/store",
			"finds a lab, also inside the program, checks its text, network and expectations, and gives runs its files"},
		{"orchestrator/series", "internal/plural orchestrator/emulate orchestrator/experiment orchestrator/lab " +
			"orchestrator/labfile orchestrator/pages orchestrator/run results/expect results/record results/report " +
			"results/store results/table results/view",
			"runs the points of labs as run does, leaves their pages, and judges and draws what is across them"},
		{"orchestrator/sweep", "orchestrator/lab", "a submission has the options of its lab"},
		{"orchestrator/sweep/shard", "internal/regular internal/shell orchestrator/experiment orchestrator/lab orchestrator/labfile " +
			"orchestrator/pages orchestrator/run orchestrator/runtime orchestrator/sweep results/record results/store results/table",
			"runs points as run does, leaves their pages, reads its lab from a submission, and keeps what a process said last"},
		{"orchestrator/sweep/local", "orchestrator/sweep orchestrator/sweep/shard", "starts shards as processes"},
		{"orchestrator/sweep/collect", "internal/clip internal/regular internal/remote orchestrator/sweep " +
			"orchestrator/sweep/shard results/record results/store",
			"puts the runs of tasks without a shared directory where shards put theirs, once they are runs of the sweep"},
		{"orchestrator/sweep/slurm", "internal/cleanup internal/clip internal/regular internal/shell internal/thread orchestrator/machine orchestrator/runtime " +
			"orchestrator/sweep orchestrator/sweep/shard", "starts shards, and agents of one lab, as tasks of Slurm"},
		{"orchestrator/sweep/swarm", "internal/cleanup internal/clip nodeimg/image orchestrator/machine " +
			"orchestrator/runtime orchestrator/sweep orchestrator/sweep/collect orchestrator/sweep/shard",
			"starts shards, and agents of one lab, as tasks of a Docker Swarm, from the image of this program"},
		{"orchestrator/sweep/manage", "internal/clip orchestrator/lab orchestrator/labfile orchestrator/series orchestrator/sweep " +
			"orchestrator/sweep/collect orchestrator/sweep/shard results/record results/store results/table",
			"reads a lab, writes its submission, starts shards, and reads and describes their results"},
		{"cmd/weft", "collectives/bench collectives/graph collectives/schedule inputs internal/cleanup " +
			"internal/clip internal/control internal/nearest internal/plural " +
			"internal/privilege internal/regular internal/shell internal/terminal labs " +
			"nodeimg/boot nodeimg/image orchestrator/benchmark orchestrator/capture orchestrator/catalogue " +
			"orchestrator/cni orchestrator/deploy orchestrator/deploy/monitor orchestrator/deploy/probe orchestrator/doctor orchestrator/emulate " +
			"orchestrator/experiment orchestrator/lab orchestrator/labfile orchestrator/launcher " +
			"orchestrator/machine orchestrator/pages orchestrator/paper " +
			"orchestrator/plan orchestrator/run orchestrator/runtime orchestrator/runtime/docker " +
			"orchestrator/runtime/namespace orchestrator/series orchestrator/starter orchestrator/together " +
			"orchestrator/sweep orchestrator/sweep/collect orchestrator/sweep/local orchestrator/sweep/manage orchestrator/sweep/shard " +
			"orchestrator/sweep/slurm orchestrator/sweep/swarm " +
			"orchestrator/topology orchestrator/topology/render orchestrator/uml results/expect " +
			"results/frames results/junit results/record results/report results/schema results/store " +
			"results/table results/view results/watch transport transport/cc/wasm transport/wire/dissector units",
			"commands: each asks the package that it is about"},
		{"e2e", "", "its tests run the program"},
	}
}

// checkPackages returns what is wrong with a list of entries, given what each package imports of
// this module.
func checkPackages(list []entry, imports map[string][]string) (bad []string) {
	complain := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	const table = "packages() of internal/archtest/packages_test.go"
	list = expand(list, imports)
	place := map[string]int{}
	for i, e := range list {
		if place[e.pkg] = i + 1; e.why == "" {
			complain("the entry of %s in %s gives no reason", e.pkg, table)
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(imports)) {
		if place[pkg] == 0 {
			complain("%s has no entry in %s: add {%q, %q, \"what it uses them for\"} behind the packages that it "+
				"imports and before those that import it, "+
				"and say in docs/architecture.md what it is", pkg, table, pkg, strings.Join(imports[pkg], " "))
		}
	}
	for _, e := range list {
		used, there := imports[e.pkg]
		if !there {
			complain("%s has an entry for %s, which does not exist: remove it", table, e.pkg)
			continue
		}
		var more, less []string
		uses := strings.Fields(e.uses)
		for _, p := range used {
			if place[p] > place[e.pkg] {
				complain("%s imports %s, which stands above it: no import runs back up; move what both need to a "+
					"package below both", e.pkg, p)
			}
			if !slices.Contains(uses, p) {
				more = append(more, p)
			}
		}
		for _, p := range uses {
			if !slices.Contains(used, p) {
				less = append(less, p)
			}
		}
		if len(more)+len(less) > 0 {
			complain("%s imports %q, which its entry in %s does not name, and not %q, which it names: a package "+
				"imports what it is for (%s); if it does, its entry has %q",
				e.pkg, more, table, less, e.why, strings.Join(used, " "))
		}
	}
	return bad
}

// expand replaces patterns in a list of entries. An entry "dir/*" stands for each package directly
// below dir that has none of its own, and allows it to import any of what it names. "dir/*" in what
// an entry uses stands for all packages directly below dir. So a new controller, or a new protocol
// for clocks, needs no entry.
func expand(list []entry, imports map[string][]string) (expanded []entry) {
	below := func(pattern, pkg string) bool { return path.Base(pattern) == "*" && path.Dir(pattern) == path.Dir(pkg) }
	own := map[string]bool{}
	for _, e := range list {
		own[e.pkg] = true
	}
	for _, e := range list {
		uses := strings.Fields(e.uses)
		of := func(pkg string, optional bool) entry {
			var exact []string
			for _, u := range uses {
				switch {
				case path.Base(u) == "*":
					for _, p := range imports[pkg] {
						if below(u, p) && !slices.Contains(exact, p) && !slices.Contains(uses, p) {
							exact = append(exact, p)
						}
					}
				case !optional || slices.Contains(imports[pkg], u):
					exact = append(exact, u)
				}
			}
			return entry{pkg, strings.Join(exact, " "), e.why}
		}
		if path.Base(e.pkg) != "*" {
			expanded = append(expanded, of(e.pkg, false))
			continue
		}
		for _, pkg := range slices.Sorted(maps.Keys(imports)) {
			if below(e.pkg, pkg) && !own[pkg] {
				expanded = append(expanded, of(pkg, true))
			}
		}
	}
	return expanded
}

// importsOf returns the packages of this module that each package imports, without its tests.
func importsOf(sources []*source) map[string][]string {
	imports := map[string][]string{}
	for _, s := range sources {
		all := imports[s.pkg]
		if !strings.HasSuffix(s.name, "_test.go") {
			for _, p := range s.imports() {
				if own, is := strings.CutPrefix(p, "weft/"); is && !slices.Contains(all, own) {
					all = append(all, own)
				}
			}
		}
		slices.Sort(all)
		imports[s.pkg] = all
	}
	return imports
}

func TestPackages(t *testing.T) {
	for _, text := range checkPackages(packages(), importsOf(load(t))) {
		t.Error(text)
	}
}

// A folder of the first level stands above or below each other one, with all of its packages.
func TestFoldersDoNotUseEachOther(t *testing.T) {
	uses := map[string]map[string]string{} // by folder and folder: an example
	for pkg, all := range importsOf(load(t)) {
		from, _, _ := strings.Cut(pkg, "/")
		for _, p := range all {
			if to, _, _ := strings.Cut(p, "/"); to != from {
				if uses[from] == nil {
					uses[from] = map[string]string{}
				}
				uses[from][to] = pkg + " imports " + p
			}
		}
	}
	var visit func(at string, path []string)
	visit = func(at string, path []string) {
		for to, example := range uses[at] {
			if i := slices.Index(path, to); i >= 0 {
				t.Errorf("folders use each other: %v, since %s", append(path[i:], to), example)
			} else {
				visit(to, append(path, to))
			}
		}
	}
	for _, from := range slices.Sorted(maps.Keys(uses)) {
		visit(from, []string{from})
	}
}

// Each way to break the list is found, and what it says helps.
func TestPackagesBite(t *testing.T) {
	imports := map[string][]string{"units": nil, "fabric": {"units"}, "sim": {"fabric", "units"}}
	list := []entry{{"units", "", "shared"}, {"fabric", "units", "time"}, {"sim", "fabric units", "carries packets"}}
	if bad := checkPackages(list, imports); len(bad) > 0 {
		t.Fatal(bad)
	}
	for _, c := range []struct {
		pkg  string
		uses []string // in place of what pkg imports; nil: pkg is not there
		says string
	}{
		{"fabric", []string{"sim", "units"}, "fabric imports sim, which stands above it"},
		{"fabric", []string{}, `and not ["units"], which it names`},
		{"fabric", nil, "an entry for fabric, which does not exist"},
		{"host", []string{"units"}, `add {"host", "units", "what it uses them for"}`},
	} {
		changed := maps.Clone(imports)
		if changed[c.pkg] = c.uses; c.uses == nil {
			delete(changed, c.pkg)
		}
		if text := strings.Join(checkPackages(list, changed), "\n"); !strings.Contains(text, c.says) {
			t.Errorf("got %q, want %q", text, c.says)
		}
	}
	// A new package below a pattern needs no entry, and imports no more than the pattern names.
	list[2].uses, list = "fabric units", append([]entry{list[0], {"cc", "units", "controllers"},
		{"cc/*", "cc units", "a controller"}}, list[1:]...)
	imports["cc"], imports["cc/toy"] = []string{"units"}, []string{"cc"}
	if bad := checkPackages(list, imports); len(bad) > 0 {
		t.Error(bad)
	}
	imports["cc/toy"] = []string{"cc", "fabric"}
	if text := strings.Join(checkPackages(list, imports), "\n"); !strings.Contains(text, `cc/toy imports ["fabric"], which its entry`) {
		t.Error(text)
	}
	delete(imports, "cc/toy")
	list = append(list[:1], list[3:]...)
	delete(imports, "cc")
	list[2].uses, list[1].why = "units", ""
	text := strings.Join(checkPackages(list, imports), "\n")
	for _, says := range []string{`sim imports ["fabric"], which its entry`, "the entry of fabric in", "gives no reason", `its entry has "fabric units"`} {
		if !strings.Contains(text, says) {
			t.Errorf("got %q, want %q", text, says)
		}
	}
}
