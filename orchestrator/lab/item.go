package lab

import (
	"fmt"
	"slices"
	"strings"

	"weft/collectives/schedule"
	"weft/collectives/trace"
	"weft/inputs"
	"weft/orchestrator/topology"
	"weft/params"
	"weft/units"
)

// pipelineChunk is the default chunk of algorithms that forward what they receive.
const (
	pipelineChunk       = "128KB"
	pipelineChunkSource = "STrack paper, section 4.3 (NCCL_P2P_NET_CHUNKSIZE)"
)

// previous stands for a start at the end of the item before.
const previous units.Time = -1

// An itemReader reads an item of the workload: a collective, or the collectives of a trace.
type itemReader struct {
	Item
	d     *decoder // nil: the keys are only listed
	hosts hosts

	traced  bool // the item is a trace
	flowing bool // the item is flows
	rooted  bool // a root is written

	trace   string         // name of the file
	facts   schedule.Facts // of the algorithm, once it is read
	few     fewRanks       // ranks: all, or a number
	names   []string       // ranks: a list
	drawn   drawnRanks     // ranks: a section
	chosen  *Ranks         // what the three above say; nil until somebody asks
	poisson *poisson       // nil: the item runs once
	lines   []Item         // of the trace or the job

	format string  // of the trace
	scale  float64 // of the computations of the trace

	programmed bool // the item is a program
	program    programReader

	flowFile string       // flows: the name of a file
	listed   []listedFlow // flows: a list
}

// fewRanks selects ranks that are not listed: all hosts, or the first ones.
type fewRanks struct {
	all   bool
	first int
}

// Prescan implements params.Prescanner.
func (r *itemReader) Prescan(written func(path string) (text string, ok bool)) {
	_, r.traced = written("trace")
	_, r.rooted = written("root")
	_, r.flowing = written("flows")
	_, r.programmed = written("program")
	if _, collective := written("collective"); collective || r.traced || r.programmed {
		r.flowing = false
	}
}

// Keys implements params.Section.
func (r *itemReader) Keys() []params.Key {
	listed := r.d == nil
	r.program.d, r.program.hosts = r.d, r.hosts
	programs := r.program.keys()
	if r.programmed {
		return append(programs, r.besideProgram()...)
	}
	if !listed {
		for i, k := range programs {
			if k.Name != "program" || r.traced || r.flowing {
				programs[i] = k.Elsewhere("applies to a program; add program: [CMD, ARG]")
			}
		}
	}
	return append(r.collectiveKeys(listed), programs...)
}

// besideProgram are the keys of an item that is a program, besides those that only programs have.
func (r *itemReader) besideProgram() []params.Key {
	keys := r.collectiveKeys(false)
	for i, k := range keys {
		if k.Name == "start" {
			keys[i] = params.New("start", params.Time(&r.program.Start, 0, maxStart), k.About).Default("0s", "ours")
			continue
		}
		keys[i] = k.Elsewhere("applies to a collective, not to a program; leave it out")
	}
	return keys
}

// collectiveKeys are the keys of an item that is no program. listed says that they are only listed.
func (r *itemReader) collectiveKeys(listed bool) []params.Key {
	needed := func(k params.Key) params.Key {
		k.Optional = listed // a schema says that there is a collective, a trace or a program
		return k
	}
	// of is a key that only some algorithms have. While the algorithm is not known, all have it.
	of := func(k params.Key, has func() bool, why func() string) params.Key {
		return k.Only(func() (bool, string) {
			if listed || r.Algorithm == "" || has() {
				return true, ""
			}
			return false, why()
		})
	}
	keys := append(r.traceKeys(), []params.Key{
		needed(params.New("collective", params.Word(&r.Collective, schedule.Collectives()...), "What the ranks do.")),
		params.New("algorithm", params.Lazy(func() params.Value {
			return algorithm{params.Word(&r.Algorithm, r.algorithms()...), r}
		}), "auto is the collective's first (docs/collectives.md).").
			Default("auto", "ours").Following(func() (string, string) { return "auto", "auto, for " + r.Collective }).
			Only(func() (bool, string) { return listed || r.Collective != "", "" }),
		r.ranksKey(),
		r.rootKey(),
		params.New("type", params.Word((*string)(&r.Type), schedule.Names(schedule.Types())...), "Element type.").
			Default("float32", "nccl-tests: -d float"),
		of(params.New("op", params.Word((*string)(&r.Op), schedule.Names(schedule.Reductions())...), "Reduction.").
			Default("sum", "nccl-tests: -o sum"),
			func() bool { return r.facts.Reduces },
			func() string { return "applies to collectives that reduce, not to " + r.named() }),
		needed(params.New("size", params.Lazy(func() params.Value {
			return params.Bytes(&r.Size, r.element(), maxSize)
		}), "As in nccl-tests: each rank's buffer. incast, ps: bytes per sender.")),
		r.flowsKey(),
		of(params.New("parallel", params.Integer(&r.Parallel, 0, topology.MaxHosts),
			"all-to-all (direct, windowed): concurrent peers per rank; 0: all.").
			Default("0", "PC4 paper, section IV-B: all flows at once").MayBe("0"),
			func() bool { return r.facts.Window }, func() string {
				limited := collectivesWith(func(f schedule.Facts) bool { return f.Window })
				if !slices.Contains(limited, r.Collective) {
					return "applies to " + strings.Join(limited, ", ") + ", not to " + r.Collective
				}
				return "applies to direct and windowed, not to " + r.Algorithm
			}),
		of(params.New("group", params.Integer(&r.Group, 1, topology.MaxHosts),
			"hierarchical: ranks per group.").OrNone(), func() bool { return r.facts.Group },
			r.onlyBy(func(f schedule.Facts) bool { return f.Group })),
		of(params.New("far_first", params.Flag(&r.FarFirst), "halving-doubling: start with the farthest peer.").
			Default("false", "ours: most of the data goes to the nearest"),
			func() bool { return r.facts.Order },
			r.onlyBy(func(f schedule.Facts) bool { return f.Order })),
		of(params.New("order", params.Choice(&r.Shuffled, "around", "random"),
			"all-to-all (direct): peers in ring order, or shuffled per rank.").
			Default("around", "STrack paper, section 4.3: to the next rank first, and around"),
			func() bool { return r.facts.Shuffle }, func() string {
				shuffle := func(f schedule.Facts) bool { return f.Shuffle }
				return "applies to " + with(shuffle) + " by " + by(shuffle) + ", not to " + r.named()
			}),
		params.New("chunk", params.Lazy(func() params.Value {
			return params.Bytes(&r.Chunk, r.element(), maxSize).Or("off", 0)
		}), "Pieces that messages are cut into.").Following(func() (string, string) {
			if r.facts.Pipelined {
				return pipelineChunk, pipelineChunkSource
			}
			return "off", "ours: no rank forwards what it receives"
		}),
		params.New("repeat", params.Integer(&r.Repeat, 1, maxRepeat), "Repetitions.").Default("1", "ours"),
		params.New("start", params.Time(&r.Start, 0, maxStart).Or("previous", previous),
			"Absolute, or when a rank finished the item before.").Default("0s", "ours"),
		params.New("compute", params.Time(&r.Compute, 0, maxStart), "Computation before each repetition.").
			Default("0s", "ours"),
		params.New("jitter", params.Time(&r.Jitter, 0, maxStart),
			"Extra computation, uniform from 0, per rank and repetition.").Default("0s", "ours"),
		params.Sub("poisson", func() params.Section { r.poisson = new(poisson); return r.poisson },
			"Repeat as a Poisson process, with random ranks redrawn.").OrNone(),
	}...)
	if r.flowing {
		for i, k := range keys {
			if !slices.Contains([]string{"flows", "ranks", "repeat", "start"}, k.Name) {
				keys[i] = k.Elsewhere("applies to a collective, not to flows; leave it out")
			}
		}
	}
	if r.traced {
		for i, k := range keys {
			switch {
			case k.Name == "size":
				keys[i] = k.OrNone() // of an algorithm
			case slices.Contains([]string{"trace", "format", "scale_compute", "ranks", "repeat", "start"}, k.Name):
			case trace.HasColumn(k.Name):
				keys[i] = k.Elsewhere("applies to a collective; those of a trace have theirs in the file")
			default:
				keys[i] = k.Elsewhere("applies to a collective, and those of a trace have none; leave it out")
			}
		}
	}
	return keys
}

// traceKeys are the keys of a trace.
func (r *itemReader) traceKeys() []params.Key {
	traced := func() (bool, string) { return r.d == nil || r.traced, "applies to a trace" }
	return []params.Key{
		params.New("trace", params.FileOrFolder(&r.trace, "traces/step.csv"),
			"File or folder with a job; replaces collective (docs/inputs.md).").OrNone(),
		params.New("format", params.Word(&r.format, append([]string{"auto", csv}, inputs.Formats()...)...),
			"Of the trace.").Default("auto", "its content").Only(traced),
		params.New("scale_compute", params.Decimal(&r.scale, 0.001, 1000), "Computation factor.").
			Default("1", "ours").Only(traced),
	}
}

// algorithms returns auto and the algorithms of the collective, or those of all collectives if it
// is not known.
func (r *itemReader) algorithms() []string {
	all := schedule.Algorithms(r.Collective)
	if r.Collective == "" {
		all = algorithmNames()
	}
	return append([]string{"auto"}, all...)
}

// algorithm is an algorithm of the collective; auto is its first.
type algorithm struct {
	params.Of[string]
	of *itemReader
}

// Set implements params.Value.
func (a algorithm) Set(text string, quoted bool) (string, error) {
	if text == "auto" {
		text = schedule.Algorithms(a.of.Collective)[0]
	}
	shown, err := a.Of.Set(text, quoted)
	if err == nil {
		a.of.facts, err = schedule.About(a.of.Collective, text)
	}
	return shown, err
}

// with lists the collectives that have an algorithm with the given fact.
func with(fact func(schedule.Facts) bool) string { return strings.Join(collectivesWith(fact), ", ") }

// onlyBy returns the message for a key that the item's algorithm does not have: only those with the
// given fact do.
func (r *itemReader) onlyBy(fact func(schedule.Facts) bool) func() string {
	return func() string { return "applies to " + by(fact) + ", not to " + r.named() }
}

// by lists the algorithms with the given fact.
func by(fact func(schedule.Facts) bool) string {
	var names []string
	for _, c := range schedule.Collectives() {
		for _, a := range schedule.Algorithms(c) {
			if f, err := schedule.About(c, a); err == nil && fact(f) && !slices.Contains(names, a) {
				names = append(names, a)
			}
		}
	}
	return strings.Join(names, ", ")
}

// named returns the name of the collective for a message, with its algorithm if it has several.
func (it *Item) named() string {
	if len(schedule.Algorithms(it.Collective)) > 1 {
		return it.Collective + " by " + it.Algorithm
	}
	return it.Collective
}

// Rules implements params.Ruled.
func (r *itemReader) Rules(rules params.Rules) {
	if r.programmed {
		r.program.Index = r.Index
		r.program.rules(rules)
		return
	}
	r.Ranks = r.ranks()
	r.settleRanks(rules)
	if r.Start == previous {
		if r.Start, r.Previous = 0, true; r.Index == 0 {
			rules.Refuse("start", "the first item of the workload has no previous one; expected a time such as 0s")
		}
	}
	if r.traced {
		if r.trace != "" && r.isJob() && r.format == inputs.MSCCL {
			r.readAlgorithm(rules)
			return
		}
		if rules.Written("size") {
			rules.Refuse("size", "applies to a collective; those of a trace have theirs in the file")
		}
		if r.trace != "" && r.isJob() {
			r.readTraceJob(rules)
			return
		}
		if rules.Written("scale_compute") {
			rules.Refuse("scale_compute", "applies to jobs, not to a trace of collectives; leave it out")
		}
		r.readTrace(rules)
		return
	}
	if r.flowing {
		r.readFlows(rules)
		return
	}
	if r.Flows == 0 {
		r.Flows = 1
	}
	r.checkGroups(rules)
	n := r.Ranks.count(r.hosts.count) // 0: unknown
	if r.RootApart() && r.Ranks.All {
		n--
	}
	if n == 1 && r.Collective != "" && !r.RootApart() {
		rules.Refuse("ranks", "%s of a single rank; expected at least 2", r.Collective)
	}
	r.checkSizes(rules, n)
	r.checkSchedule(rules, n)
	r.checkPoisson(rules)
}

// checkSizes rejects sizes that do not divide into elements, and ranks that do not divide into
// groups.
//
// A size means what it means in nccl-tests: the buffer of each rank. For an incast and a parameter
// server it is what each sender sends. It is a whole number of elements, with at least one for each
// rank if ranks share the buffer. Schedules divide the elements evenly and give the first blocks
// one more, so that none is lost.
func (r *itemReader) checkSizes(rules params.Rules, ranks int) {
	element, size := r.element(), r.Size
	switch least := element * units.Bytes(max(1, ranks)); {
	case size == 0: // reported
	case size%element != 0:
		rules.Refuse("size", "%v is not a whole number of elements of %d bytes; expected %v or %v", size, element,
			max(element, size-size%element), size-size%element+element)
		r.Size = 0
	case r.Type != "" && r.facts.Blocks && size < least:
		rules.Refuse("size", "%v is less than an element of %d bytes for each of %d ranks; expected at least %v",
			size, element, ranks, least)
		r.Size = 0
	}
	if r.facts.Windowed && r.Parallel == 0 && rules.Good("parallel") {
		rules.Refuse("parallel", "%s needs a number of peers at once; expected one such as 16", r.Algorithm)
	}
	switch {
	case r.facts.Group && !rules.Written("group"):
		rules.Refuse("group", "missing; expected a whole number from 1 to %d", topology.MaxHosts)
	case r.facts.Group && r.Group > 0 && ranks > 0 && ranks%r.Group != 0:
		rules.Refuse("group", "%d ranks cannot be divided into groups of %d", ranks, r.Group)
	}
	if chunk := r.Chunk; chunk%element != 0 {
		rules.Refuse("chunk", "%v is not a whole number of elements of %d bytes; expected %v", chunk, element,
			chunk-chunk%element+element)
		r.Chunk = 0
	}
}

// checkSchedule rejects what the algorithm cannot do, and a collective with more messages than any
// machine could hold the schedule of.
func (r *itemReader) checkSchedule(rules params.Rules, ranks int) {
	it, facts := &r.Item, r.facts
	if it.RootApart() {
		ranks++
	}
	if ranks < 2 || it.Algorithm == "" || it.Type == "" || it.Size == 0 {
		return // reported, or not known
	}
	if facts.PowerOfTwo && ranks&(ranks-1) != 0 {
		rules.Refuse("ranks", "%s needs a power of two of ranks, not %d", it.Algorithm, ranks)
		return
	}
	if facts.Group && (it.Group == 0 || ranks%it.Group != 0) || facts.Windowed && it.Parallel == 0 {
		return // reported
	}
	all, most := it.messages(facts, ranks)
	if _, err := schedule.Tags(it.permuted(ranks)); err != nil {
		all = max(all, maxMessages+1) // more to one peer than schedules can number
	}
	if all <= maxMessages && most <= maxRankMessages {
		return
	}
	larger := *it
	for larger.Chunk > 0 && larger.Chunk < larger.Size && !larger.fits(facts, ranks) {
		larger.Chunk *= 2
	}
	key, instead := "ranks", "fewer ranks"
	switch {
	case larger.Chunk > 0 && larger.fits(facts, ranks):
		key, instead = "chunk", fmt.Sprintf("chunks of at least %v", larger.Chunk)
	case it.Flows > 1:
		key, instead = "flows", "fewer flows"
	}
	if it.RootApart() {
		ranks--
	}
	rules.Refuse(key, "%s of %v at %d ranks takes %.0f messages, up to %.0f per rank; memory holds %d, and %d per "+
		"rank; expected %s", it.Collective, it.Size, ranks, all, most, maxMessages, maxRankMessages, instead)
}
