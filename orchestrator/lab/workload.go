package lab

import (
	"math"
	"strings"

	"weft/units"
)

// Bounds of the workload section.
const (
	maxItems    = 1000
	maxRepeat   = 100_000
	maxFlows    = 10_000
	maxSize     = 1000 * units.GB
	maxStart    = 1000 * units.Second
	maxMessages = 1 << 26 // of one repetition of one collective, over all ranks: an all-to-all of 8192

	// element is the size of what buffers are made of, float32 as in nccl-tests.
	element units.Bytes = 4

	// ringChunk is what a ring cuts its blocks into.
	ringChunk       = "128KB"
	ringChunkSource = "STrack paper, section 4.3 (NCCL_P2P_NET_CHUNKSIZE)"
)

var collectives = choice{
	built: []string{"all-reduce", "all-to-all", "permute", "incast"},
	later: []string{"all-gather", "reduce-scatter", "broadcast", "reduce", "ps", "flows"},
}

// algorithms lists those of each collective, the one that auto chooses first.
var algorithms = map[string]choice{
	"all-reduce": {built: []string{"ring"}, later: []string{"halving-doubling", "double-binary-tree"}},
	"all-to-all": {built: []string{"direct"}},
	"permute":    {built: []string{"direct"}},
	"incast":     {built: []string{"direct"}},
}

func (d *decoder) workload(f field, t Topology) []Item {
	var items []Item
	hosts := hostsOf(t)
	for i, item := range f.items(maxItems) {
		items = append(items, item.open().item(i, hosts))
	}
	return items
}

// item reads one collective.
func (s *section) item(index int, hosts hosts) Item {
	defer s.close()
	it := Item{Repeat: 1}
	collective := s.field("collective")
	var known bool
	it.Collective, known = collective.enum(collectives)
	it.Algorithm = s.algorithm(it.Collective)
	ranks := s.field("ranks")
	it.Ranks = ranks.ranks(hosts)
	n := it.Ranks.count(hosts.count) // 0: unknown
	it.Root = s.root(&it, hosts)
	if it.Collective == "incast" && it.Ranks.All {
		n--
	}
	if n == 1 && known && it.Collective != "incast" {
		ranks.problem("%s of a single rank; expected at least 2", it.Collective)
	}
	it.Size, _ = s.field("size").payloadSize(it.Collective, n)
	it.Flows = s.flows(it.Collective)
	it.Parallel = s.parallel(it.Collective)
	it.Chunk = s.chunk(it.Algorithm)
	it.checkMessages(s, n)
	it.Repeat = s.field("repeat").integer(1, maxRepeat)
	it.Start, it.Previous = s.field("start").start(index)
	return it
}

func (s *section) algorithm(collective string) string {
	f := s.field("algorithm")
	all, ok := algorithms[collective]
	if !ok {
		return ""
	}
	if f.n != nil && f.n.kind == scalar && f.n.text == "auto" {
		if !f.written() {
			f.at.source = "auto, for " + collective
		}
		f.record(all.built[0])
		return all.built[0]
	}
	name, _ := f.enum(choice{built: append([]string{"auto"}, all.built...), later: all.later})
	return name
}

// ranks reads which hosts take part: all, the first so many, a list of names, or so many at random.
func (f field) ranks(hosts hosts) Ranks {
	const expected = "all, a number of hosts, a list of hosts such as [h0, h3], or {random: 8}"
	switch {
	case f.n == nil || f.n.null():
		f.problem("has no value; expected %s", expected)
	case f.n.kind == list:
		return Ranks{Names: f.names(hosts)}
	case f.n.kind == mapping:
		s := f.open()
		defer s.close()
		random, groups := s.field("random"), s.field("groups")
		s.field("size")
		if groups.n != nil {
			groups.problem("groups of ranks are not yet supported; expected %s", expected)
			return Ranks{}
		}
		return Ranks{Random: random.hostCount(hosts)}
	case f.n.text == "all":
		f.record("all")
		return Ranks{All: true}
	case digits(f.n.text):
		return Ranks{First: f.hostCount(hosts)}
	default:
		f.problem("%q is not understood; expected %s", clip(f.n.text), expected)
	}
	return Ranks{}
}

// hostCount reads a number of hosts. The topology limits it if it was understood.
func (f field) hostCount(hosts hosts) int {
	most := hosts.count
	if most == 0 {
		most = maxHosts
	}
	return f.integer(1, most)
}

// names reads a list of hosts.
func (f field) names(hosts hosts) []string {
	var names []string
	seen := make(map[string]bool)
	items := f.items(maxHosts)
	if len(items) == 0 {
		f.problem("an empty list; expected at least one host")
	}
	for _, item := range items {
		text, ok := item.text("the name of a host")
		switch {
		case !ok:
			continue
		case seen[text]:
			item.problem("%q is there twice; expected each host once", clip(text))
		case hosts.count != 0 && !hosts.has(text):
			item.problem("no host is named %q%s", clip(text), hosts.hint(f.d, text))
		}
		seen[text] = true
		names = append(names, text)
	}
	f.record("[" + strings.Join(names, ", ") + "]")
	return names
}

// count is how many hosts r selects of n, 0 if that is not known.
func (r Ranks) count(n int) int {
	switch {
	case r.All:
		return n
	case len(r.Names) > 0:
		return len(r.Names)
	case r.Random > 0:
		return r.Random
	}
	return r.First
}

// root reads the receiver of an incast. Unless it is written, it is the first host that is not a rank.
func (s *section) root(it *Item, hosts hosts) string {
	f := s.field("root")
	if it.Collective != "incast" {
		if f.written() && it.Collective != "" {
			f.problem("applies to incast, not to %s", it.Collective)
		}
		return ""
	}
	if hosts.count == 0 {
		return ""
	}
	if !it.Ranks.All && it.Ranks.count(hosts.count) == hosts.count {
		s.field("ranks").problem("all %d hosts are senders; expected one to be left as the root, or ranks: all", hosts.count)
		return ""
	}
	taken := it.Ranks.members(hosts)
	if !f.written() {
		if it.Ranks.Random > 0 {
			return "" // known once the ranks are drawn
		}
		free := 0
		for taken[hosts.name(free)] {
			free++
		}
		source := "the first host that is not a rank"
		if it.Ranks.All {
			source = "the first host; all others are ranks"
		}
		f = f.or(hosts.name(free), source)
	}
	root, ok := f.text("the name of a host")
	switch {
	case !ok:
		return ""
	case !hosts.has(root):
		f.problem("no host is named %q%s", clip(root), hosts.hint(s.d, root))
	case taken[root]:
		f.problem("%q is also one of the ranks, which are the senders; expected another host", root)
	default:
		f.record(root)
	}
	return root
}

// members returns the hosts that r certainly selects besides the root of an incast.
func (r Ranks) members(hosts hosts) map[string]bool {
	members := make(map[string]bool)
	for _, name := range r.Names {
		members[name] = true
	}
	for i := range r.First {
		members[hosts.name(i)] = true
	}
	return members
}

// payloadSize reads the size of a collective in the meaning of nccl-tests: what each rank's buffer holds. For
// an incast it is what each sender sends. It is a whole number of elements, at least one for each rank where
// ranks share the buffer out; schedules divide the elements evenly and give the first blocks one more, so
// that none is lost.
func (f field) payloadSize(collective string, ranks int) (units.Bytes, bool) {
	size, ok := quantity(f, units.ParseBytes, element, maxSize)
	least := element * units.Bytes(max(1, ranks))
	switch {
	case !ok:
	case size%element != 0:
		f.problem("%v is not a whole number of elements of %d bytes; expected %v or %v", size, element,
			max(element, size-size%element), size-size%element+element)
	case (collective == "all-reduce" || collective == "all-to-all") && size < least:
		f.problem("%v is less than an element of %d bytes for each of %d ranks; expected at least %v", size, element, ranks, least)
	default:
		return size, true
	}
	return 0, false
}

// flows reads how many connections each sender of an incast has.
func (s *section) flows(collective string) int {
	f := s.field("flows")
	if !f.written() && collective != "incast" {
		return 1
	}
	n := f.integer(1, maxFlows)
	if n > 1 && collective != "incast" && collective != "" {
		f.problem("applies to incast, not to %s", collective)
	}
	return max(n, 1)
}

func (s *section) parallel(collective string) int {
	f := s.field("parallel")
	if !f.written() && collective != "all-to-all" {
		return 0
	}
	n := f.integer(0, maxHosts)
	if n > 0 && collective != "all-to-all" && collective != "" {
		f.problem("applies to all-to-all, not to %s", collective)
	}
	return n
}

// chunk reads what messages are cut into: off, or a size.
func (s *section) chunk(algorithm string) units.Bytes {
	f := s.field("chunk")
	if algorithm == "ring" {
		f = f.or(ringChunk, ringChunkSource)
	} else {
		f = f.or("off", "ours: only a ring forwards pieces of what it receives")
	}
	if f.n != nil && f.n.kind == scalar && f.n.text == "off" {
		f.record("off")
		return 0
	}
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

// checkMessages refuses a collective of so many messages that no machine could hold its schedule.
func (it *Item) checkMessages(s *section, ranks int) {
	n := float64(max(1, ranks))
	messages, each := n*float64(max(1, it.Flows)), it.Size // one message to each peer
	switch it.Collective {
	case "all-to-all":
		messages, each = n*(n-1), it.Size/units.Bytes(n)
	case "all-reduce":
		messages, each = 2*n*(n-1), it.Size/units.Bytes(n)
	}
	pieces := 1.0
	if it.Chunk > 0 {
		pieces = max(1, math.Ceil(float64(each)/float64(it.Chunk)))
	}
	if messages*pieces <= maxMessages {
		return
	}
	f, way := s.field("ranks"), "fewer ranks"
	switch {
	case pieces > 1:
		f, way = s.field("chunk"), "larger chunks"
	case it.Flows > 1:
		f, way = s.field("flows"), "fewer flows"
	}
	f.problem("%s of %v at %d ranks takes %.0f messages, more than %d; expected %s",
		it.Collective, it.Size, ranks, messages*pieces, maxMessages, way)
}

// start reads a time since the start of the run, or previous.
func (f field) start(index int) (units.Time, bool) {
	if f.n != nil && f.n.kind == scalar && f.n.text == "previous" {
		if index == 0 {
			f.problem("the first item of the workload has no previous one; expected a time such as 0s")
		}
		f.record("previous")
		return 0, true
	}
	at, _ := quantity(f, units.ParseTime, 0, maxStart)
	return at, false
}
