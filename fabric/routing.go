package fabric

import (
	"math/bits"
	"slices"

	"weft/internal/splitmix"
)

// routing is the forwarding tables of all switches, flat.
//
// A switch sends most blocks of consecutive hosts to the same group. Its table has one entry per
// block, and spells out only blocks whose hosts differ. Groups count from the switch's own first,
// so that switches in like places have like tables, and chunks of blocks that are the same are
// stored once. That keeps the tables of a large network in the processor's cache.
type routing struct {
	hosts  int
	dests  int      // destinations in the tables: hosts, and with CCM switches
	chunks int      // in the table of one switch
	seeds  []uint64 // by switch: its seed, mixed
	// chunk is [switch][chunk]: where in table the chunk begins.
	chunk []uint32
	// table is, by block of a chunk, the number of a group of the switch; or, with the bit spelled,
	// the index in single at which the block begins.
	table   []uint32
	single  []uint32 // groups of the hosts of blocks that are spelled out
	groups  []group  // of all switches; the first of each is for unreachable destinations
	members []int32  // ports of the groups that are up; noPort for a group without any

	all    []int32 // members when every port is up
	counts []int32 // by group: its number of members in all
	begin  []int32 // by switch: its first group; the last element is the end
}

const (
	blockBits = 3
	blockSize = 1 << blockBits // hosts
	chunkBits = 4
	chunkSize = 1 << chunkBits // blocks
	spelled   = 1 << 31
)

// group is a set of equally good ports.
type group struct {
	first int32 // index in members
	n     int32 // number of ports that are up, or its complement (^n) if the switch balances
	only  step  // the step onto the first port that is up
}

// size returns the number of ports that are up, at least 1.
func (g *group) size() int32 {
	if g.n < 0 {
		return ^g.n
	}
	return g.n
}

func newRouting(hosts int, switches []SwitchConfig) routing {
	r := routing{hosts: hosts, dests: hosts, all: []int32{noPort}}
	if len(switches) > 0 {
		r.dests = len(switches[0].Route)
	}
	r.chunks = (r.dests + blockSize*chunkSize - 1) / (blockSize * chunkSize)
	t := tables{&r, map[[chunkSize]uint32]uint32{}, map[[blockSize]uint32]uint32{}}
	for s := range switches {
		sw := &switches[s]
		r.begin = append(r.begin, int32(len(r.groups)))
		r.seeds = append(r.seeds, splitmix.Mix(sw.Seed))
		r.groups, r.counts = append(r.groups, group{0, 1, unroutable}), append(r.counts, 1)
		for _, ports := range sw.Groups {
			r.addGroup(ports, sw.Balance == CCM || sw.Balance.PerPacket() && (len(ports) > 1 || sw.Aside != nil))
		}
		for route := range slices.Chunk(sw.Route, blockSize*chunkSize) {
			r.chunk = append(r.chunk, t.addChunk(route))
		}
	}
	r.begin = append(r.begin, int32(len(r.groups)))
	r.members = append(r.members, r.all...)
	return r
}

func (r *routing) addGroup(ports []int32, perPacket bool) {
	k := group{int32(len(r.all)), int32(len(ports)), join(ports[0])}
	if perPacket {
		k.n = ^k.n
	}
	r.groups = append(r.groups, k)
	r.counts = append(r.counts, int32(len(ports)))
	r.all = append(r.all, ports...)
}

// exclude sets the live ports of the groups of switch s: all that are not down.
func (r *routing) exclude(s int, down func(port int32) bool) {
	for g := r.begin[s] + 1; g < r.begin[s+1]; g++ {
		k := &r.groups[g]
		live := r.members[k.first:k.first]
		for _, port := range r.all[k.first : k.first+r.counts[g]] {
			if !down(port) {
				live = append(live, port)
			}
		}
		if len(live) == 0 {
			live = append(live, noPort)
		}
		k.only = join(live[0])
		if n := int32(len(live)); k.n < 0 {
			k.n = ^n
		} else {
			k.n = n
		}
	}
}

// tables adds to the tables of a routing what is not in them yet.
type tables struct {
	*routing
	chunks map[[chunkSize]uint32]uint32 // where they begin in table
	blocks map[[blockSize]uint32]uint32 // where they begin in single
}

// addChunk returns where in table the chunk begins that sends consecutive hosts to the groups of
// route.
func (t tables) addChunk(route []int32) uint32 {
	var chunk [chunkSize]uint32
	k := 0
	for block := range slices.Chunk(route, blockSize) {
		chunk[k] = t.addBlock(block)
		k++
	}
	at, known := t.chunks[chunk]
	if !known {
		at = uint32(len(t.table))
		t.chunks[chunk] = at
		t.table = append(t.table, chunk[:]...)
	}
	return at
}

// addBlock returns the entry for a block of hosts.
func (t tables) addBlock(route []int32) uint32 {
	var block [blockSize]uint32
	same := true
	for i, g := range route { // -1: unreachable
		block[i] = uint32(g + 1)
		same = same && g == route[0]
	}
	if same {
		return block[0]
	}
	at, known := t.blocks[block]
	if !known {
		at = uint32(len(t.single))
		t.blocks[block] = at
		t.single = append(t.single, block[:]...)
	}
	return spelled | at
}

// next returns what happens to e at node to. It depends on the tables alone, so it is looked up
// when e starts on the link to that node, where e is in the cache anyway.
func (r *routing) next(to NodeID, e *Packet) step {
	s := int(to) - r.hosts
	if s < 0 {
		if HostID(to) != e.Dst {
			return unroutable // hosts do not forward
		}
		return arrives
	}
	k := r.group(s, e.Dst)
	switch {
	case k.n > 1:
		return step(r.members[k.first+choose(e.flow, r.seeds[s], k.n)])<<stepBits | joins
	case k.n < 0:
		return balanced
	case k.only == unroutable && HostID(to) == e.Dst:
		return terminates
	}
	return k.only
}

// group returns the group of switch s towards a destination.
func (r *routing) group(s int, dst HostID) *group {
	g := r.table[r.chunk[s*r.chunks+int(dst>>(blockBits+chunkBits))]+uint32(dst>>blockBits&(chunkSize-1))]
	if g&spelled != 0 {
		g = r.single[g&^spelled+uint32(dst&(blockSize-1))]
	}
	return &r.groups[r.begin[s]+int32(g)]
}

// choose is ECMP: it returns one of n, the same for every packet of a flow at a switch. seed is the
// switch's seed, mixed. Flow and seed are mixed together, so that switches with different seeds
// choose independently: flows that one switch has sent to the same port spread evenly over the
// ports of the next switch.
func choose(flow uint32, seed uint64, n int32) int32 {
	hi, _ := bits.Mul64(splitmix.Mix(uint64(flow)^seed), uint64(n))
	return int32(hi)
}

// Choose returns which of n equal ports a switch with this seed takes for a flow (Packet.FlowHash).
func Choose(flowHash, seed uint64, n int) int {
	return int(choose(uint32(splitmix.Mix(flowHash)), splitmix.Mix(seed), int32(n)))
}

// FlowHash returns the hash of a UDP flow between two hosts, for Packet.FlowHash.
func FlowHash(src, dst HostID, srcPort, dstPort uint16) uint64 {
	hosts, ports := uint64(uint32(src))<<32|uint64(uint32(dst)), uint64(srcPort)<<16|uint64(dstPort)
	return splitmix.Mix(splitmix.Mix(hosts) ^ ports)
}
