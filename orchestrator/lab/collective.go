package lab

import (
	"math"
	"slices"
	"strings"

	"weft/collectives/schedule"
	"weft/orchestrator/topology"
	"weft/units"
)

// pipelineChunk is what algorithms cut messages into that pass on what they receive.
const (
	pipelineChunk       = "128KB"
	pipelineChunkSource = "STrack paper, section 4.3 (NCCL_P2P_NET_CHUNKSIZE)"
)

var (
	collectives = choice{built: schedule.Collectives()}
	types       = choice{built: texts(schedule.Types())}
	reductions  = choice{built: texts(schedule.Reductions())}
	orders      = choice{built: []string{"around", "random"}}
)

// CollectiveKinds returns the names of every collective that a lab can ask for.
func CollectiveKinds() []string { return slices.Clone(collectives.built) }

func texts[T ~string](words []T) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return out
}

// algorithmNames returns those of all collectives, each once.
func algorithmNames() []string {
	var names []string
	seen := make(map[string]bool)
	for _, c := range schedule.Collectives() {
		for _, a := range schedule.Algorithms(c) {
			if !seen[a] {
				seen[a] = true
				names = append(names, a)
			}
		}
	}
	return names
}

// collectivesWith are the collectives of which some algorithm has a fact.
func collectivesWith(fact func(schedule.Facts) bool) (names []string) {
	for _, c := range schedule.Collectives() {
		for _, a := range schedule.Algorithms(c) {
			if f, err := schedule.About(c, a); err == nil && fact(f) {
				names = append(names, c)
				break
			}
		}
	}
	return names
}

// RootApart says that the root is another host than the ranks, which are those that send to it.
func (it *Item) RootApart() bool {
	return schedule.Of(it.Collective).RootApart
}

// Spec is the collective of so many ranks, the root included, as schedules have it; root is a rank. Of a permute it lacks the
// permutation.
func (it *Item) Spec(ranks, root int) schedule.Spec {
	return schedule.Spec{
		Collective: it.Collective, Algorithm: it.Algorithm, Ranks: ranks, Root: root, Type: it.Type, Op: it.Op,
		Size: it.Size, Chunk: it.Chunk, Flows: it.Flows, Parallel: it.Parallel, Group: it.Group, FarFirst: it.FarFirst,
	}
}

// algorithm reads one of those that the collective has; auto is the first.
func (s *section) algorithm(collective string) (string, schedule.Facts) {
	f := s.field("algorithm")
	all := schedule.Algorithms(collective)
	if all == nil {
		return "", schedule.Facts{}
	}
	name := all[0]
	if f.n != nil && f.n.kind == scalar && f.n.text == "auto" {
		if !f.written() {
			f.at.source = "auto, for " + collective
		}
		f.record(name)
	} else {
		name, _ = f.enum(choice{built: append([]string{"auto"}, all...)})
	}
	facts, err := schedule.About(collective, name)
	if err != nil {
		return "", schedule.Facts{} // reported
	}
	return name, facts
}

// elements reads what buffers are made of and how elements are reduced.
func (s *section) elements(it *Item, facts schedule.Facts) {
	kind, _ := s.field("type").enum(types)
	it.Type = schedule.Type(kind)
	op := s.field("op")
	if it.Algorithm != "" && !facts.Reduces {
		if op.written() {
			op.problem("applies to collectives that reduce, not to %s", s.named(it))
		}
		return
	}
	kind, _ = op.enum(reductions)
	it.Op = schedule.Reduction(kind)
}

// element is the size of an element; of one whose type is not known, the least.
func (it *Item) element() units.Bytes {
	if it.Type == "" {
		return 1
	}
	return it.Type.Size()
}

// named is what a problem calls a collective: by its algorithm as well where it has several.
func (s *section) named(it *Item) string {
	if len(schedule.Algorithms(it.Collective)) > 1 {
		return it.Collective + " by " + it.Algorithm
	}
	return it.Collective
}

// payloadSize reads the size of a collective in the meaning of nccl-tests: what each rank's buffer holds. For
// an incast and a parameter server it is what each sender sends. It is a whole number of elements, at least one for each rank where
// ranks share the buffer out; schedules divide the elements evenly and give the first blocks one more, so
// that none is lost.
func (f field) payloadSize(it *Item, facts schedule.Facts, ranks int) (units.Bytes, bool) {
	element := it.element()
	size, ok := quantity(f, units.ParseBytes, element, maxSize)
	least := element * units.Bytes(max(1, ranks))
	switch {
	case !ok:
	case size%element != 0:
		f.problem("%v is not a whole number of elements of %d bytes; expected %v or %v", size, element,
			max(element, size-size%element), size-size%element+element)
	case it.Type != "" && facts.Blocks && size < least:
		f.problem("%v is less than an element of %d bytes for each of %d ranks; expected at least %v", size, element, ranks, least)
	default:
		return size, true
	}
	return 0, false
}

// flows reads how many connections each sender of an incast has.
func (s *section) flows(collective string) int {
	f := s.field("flows")
	has := schedule.Of(collective).Flows
	if !f.written() && !has {
		return 1
	}
	n := f.integer(1, maxFlows)
	if n > 1 && !has && collective != "" {
		f.problem("applies to %s, not to %s", strings.Join(collectivesWith(func(f schedule.Facts) bool { return f.Flows }), ", "), collective)
	}
	return max(n, 1)
}

// parallel reads how many peers a rank exchanges with at once.
func (s *section) parallel(it *Item, facts schedule.Facts) int {
	f := s.field("parallel")
	if !f.written() && !facts.Window {
		return 0
	}
	n, limited := f.integer(0, topology.MaxHosts), collectivesWith(func(f schedule.Facts) bool { return f.Window })
	switch {
	case it.Algorithm == "":
	case n > 0 && !slices.Contains(limited, it.Collective):
		f.problem("applies to %s, not to %s", strings.Join(limited, ", "), it.Collective)
	case n > 0 && !facts.Window:
		f.problem("applies to direct and windowed, not to %s", it.Algorithm)
	case n == 0 && facts.Windowed:
		f.problem("%s needs a number of peers at once; expected one such as 16", it.Algorithm)
	}
	return n
}

// group reads how many ranks have a fast network among them.
func (s *section) group(it *Item, facts schedule.Facts, ranks int) int {
	f := s.field("group")
	switch {
	case !facts.Group && !f.written():
		return 0
	case !facts.Group && it.Algorithm != "":
		f.problem("applies to %s, not to %s", schedule.Hierarchical, s.named(it))
		return 0
	}
	n := f.integer(1, topology.MaxHosts)
	if facts.Group && n > 0 && ranks > 0 && ranks%n != 0 {
		f.problem("groups of %d do not divide %d ranks", n, ranks)
	}
	return n
}

// farFirst reads with whom ranks exchange half of the buffer: the nearest, or the farthest.
func (s *section) farFirst(it *Item, facts schedule.Facts) bool {
	f := s.field("far_first")
	switch {
	case !facts.Order && !f.written():
		return false
	case !facts.Order && it.Algorithm != "":
		f.problem("applies to %s, not to %s", schedule.HalvingDoubling, s.named(it))
		return false
	}
	return f.flag()
}

// shuffled reads in which order ranks go through their peers: around, or drawn for each.
func (s *section) shuffled(it *Item, facts schedule.Facts) bool {
	f := s.field("order")
	switch {
	case !facts.Shuffle && !f.written():
		return false
	case !facts.Shuffle && it.Algorithm != "":
		f.problem("applies to all-to-all by %s, not to %s", schedule.Direct, s.named(it))
		return false
	}
	order, _ := f.enum(orders)
	return order == "random"
}

// chunk reads what messages are cut into: off, or a size.
func (s *section) chunk(it *Item, facts schedule.Facts) units.Bytes {
	f := s.field("chunk")
	if facts.Pipelined {
		f = f.or(pipelineChunk, pipelineChunkSource)
	} else {
		f = f.or("off", "ours: nobody passes on pieces of what it receives")
	}
	if f.n != nil && f.n.kind == scalar && f.n.text == "off" {
		f.record("off")
		return 0
	}
	element := it.element()
	chunk, ok := quantity(f, units.ParseBytes, element, maxSize)
	if !ok {
		return 0
	}
	if chunk%element != 0 {
		f.problem("%v is not a whole number of elements of %d bytes; expected %v", chunk, element, chunk-chunk%element+element)
		return 0
	}
	return chunk
}

// checkSchedule refuses what the algorithm cannot do, and a collective of so many messages that no machine could hold its
// schedule.
func (it *Item) checkSchedule(s *section, facts schedule.Facts, ranks int) {
	if it.RootApart() {
		ranks++
	}
	if ranks < 2 || it.Algorithm == "" || it.Type == "" || it.Size == 0 {
		return // reported, or not known
	}
	if facts.PowerOfTwo && ranks&(ranks-1) != 0 {
		s.field("ranks").problem("%s takes a power of two of ranks; %d are none", it.Algorithm, ranks)
		return
	}
	if facts.Group && (it.Group == 0 || ranks%it.Group != 0) || facts.Windowed && it.Parallel == 0 {
		return // reported
	}
	whole := *it
	whole.Chunk = 0
	all, uncut := it.messages(facts, ranks), whole.messages(facts, ranks)
	if _, err := schedule.Tags(it.permuted(ranks)); err != nil {
		all = max(all, maxMessages+1) // to one peer, more than schedules number
	}
	if all <= maxMessages {
		return
	}
	if it.RootApart() {
		ranks--
	}
	f, way := s.field("ranks"), "fewer ranks"
	switch {
	case all > uncut:
		f, way = s.field("chunk"), "larger chunks"
	case it.Flows > 1:
		f, way = s.field("flows"), "fewer flows"
	}
	f.problem("%s of %v at %d ranks takes %.0f messages, more than %d; expected %s",
		it.Collective, it.Size, ranks, all, maxMessages, way)
}

// permuted is the spec of the collective, of a permute with some permutation.
func (it *Item) permuted(ranks int) schedule.Spec {
	s := it.Spec(ranks, 0)
	if schedule.Of(it.Collective).Permuted {
		for r := range ranks {
			s.Permute = append(s.Permute, (r+1)%ranks)
		}
	}
	return s
}

// messages returns how many messages a collective takes, give or take a factor of two.
func (it *Item) messages(facts schedule.Facts, ranks int) float64 {
	pieces := 1.0
	if it.Chunk > 0 {
		pieces = math.Ceil(float64(it.Size) / float64(it.Chunk))
	}
	switch {
	case facts.Permuted:
		return float64(ranks) * pieces
	case facts.Flows:
		return float64(ranks-1) * float64(max(1, it.Flows)) * pieces
	}
	spec := it.Spec(ranks, 0)
	if facts.Blocks { // the buffer is a block for each rank
		pieces = math.Ceil(pieces / float64(ranks))
	}
	root, err := schedule.Volume(spec, 0)
	if err != nil {
		return 2 * float64(ranks) * float64(ranks-1) * pieces // more than schedules number
	}
	other, err := schedule.Volume(spec, 1)
	if err != nil {
		panic("lab: a schedule for one rank that is none for another: " + err.Error())
	}
	if facts.Rooted {
		return float64(root.Sends) + float64(ranks-1)*float64(max(other.Sends, other.Receives))
	}
	return float64(ranks) * float64(max(root.Sends, other.Sends))
}
