package host

import (
	"fmt"
	"slices"

	"weft/clocksync/node"
	"weft/collectives/schedule"
	"weft/transport"
	"weft/transport/wire"
	"weft/units"
)

// Plan is all that one host needs to take part in a run. It is plain data: the simulator passes it
// in memory, the orchestrator sends it to a node as JSON.
type Plan struct {
	Host     transport.HostID
	Name     string
	Endpoint transport.Config
	Conns    []transport.Spec // every connection that starts or ends here
	Items    []Item           // the items in which this host takes part, in the order of the lab file
	Seed     uint64           // of draws: computation times, background traffic, source ports

	// Clock is the host's clock. nil: it shows lab time and measures exactly.
	Clock      *node.Config `json:",omitempty"`
	Background *Background  `json:",omitempty"` // nil: none
	Until      units.Time   `json:",omitempty"` // the host is not done before, even if its items are
	Halts      []Halt       `json:",omitempty"` // when it stands still, in order

	// Corrupt are instants, in order. The first data packet that arrives at or after each has a
	// wrong byte that the transport does not notice, as from a faulty network card or memory.
	Corrupt []units.Time `json:",omitempty"`
}

// Alone returns the plan without the programs of other hosts' ranks, to be sent to the host. In a
// simulation, the plans share them.
func (p Plan) Alone() Plan {
	p.Items = slices.Clone(p.Items)
	for i := range p.Items {
		if it := &p.Items[i]; it.Given != nil {
			it.Given = it.Given.Only(it.Rank)
		}
	}
	return p
}

// InterfaceMTU returns the MTU that the interfaces of hosts need: room for a full data packet of
// any plan, with its departure instant if a host's clock is not lab time. It is at least 1500.
func InterfaceMTU(plans []Plan) units.Bytes {
	const ipAndUDP, least = 28, 1500
	var payload, departure units.Bytes
	for i := range plans {
		payload = max(payload, plans[i].Endpoint.MTU)
		if plans[i].Clock != nil {
			departure = wire.DepartureSize
		}
	}
	return max(payload+transport.MaxHeader+departure+ipAndUDP, least)
}

// Item is one collective of the workload as one host sees it, or a job: a graph of computations,
// messages and collectives, which are the items after it.
type Item struct {
	Index      int                // its number in the lab, by which the items of a host are sorted
	Name       string             // in messages; "": item and its Index
	Collective string             // one of schedule.Collectives
	Algorithm  string             // ring, direct, ...; never "auto"
	Type       schedule.Type      // of the elements; "": float32
	Op         schedule.Reduction // of the elements; "": sum
	Ranks      []transport.HostID // host of each rank
	Rank       int                // this host's rank
	Root       int                // of collectives that have one: rank of the root
	Size       units.Bytes        // of the buffer, as nccl-tests defines it
	Chunk      units.Bytes        // size of the pieces into which a message is cut for pipelining; 0: it is not cut
	Flows      int                // incast: messages of Size from each sender, each on connections of its own; 0: one
	QPs        int                // number of connections over which the messages of a flow are spread; 0: one
	Split      bool               // each message is cut into parts over all of them; else each takes the next one
	Parallel   int                // all-to-all: number of peers that are served at once; 0: all
	Group      int                // hierarchical: ranks per group
	FarFirst   bool               // halving-doubling: the farthest peer first
	// Shuffle is the seed of each rank's order of its peers, for all-to-all, direct. 0: in turn
	// from its own.
	Shuffle  uint64
	Repeat   int        // number of repetitions, at least 1
	Start    units.Time // earliest start
	Previous bool       // start when this host's part of the previous item is done, and not before Start
	Compute  units.Time // computation time before each repetition
	Jitter   units.Time // maximum of an additional time, drawn uniformly from [0, Jitter] for each rank and repetition
	Conns    []Peer     // connections to the peers that this rank sends to
	Expect   []Peer     // connections from the peers that this rank receives from
	Permute  []int      // permute: rank r sends to Permute[r]

	// Given has the programs of a job, at least that of Rank; nil: the algorithm makes them.
	Given *schedule.Given `json:",omitempty"`
	// Called means that each repetition begins when an op of an earlier item calls it: the item
	// with the number Index-1-Tag of that op.
	Called bool `json:",omitempty"`
}

// name returns what messages call the item.
func (it *Item) name() string {
	if it.Name != "" {
		return it.Name
	}
	return fmt.Sprintf("item %d", it.Index)
}

// Spec returns the item as package schedule describes it.
func (it *Item) Spec() schedule.Spec {
	return schedule.Spec{
		Collective: it.Collective, Algorithm: it.Algorithm, Ranks: len(it.Ranks),
		Type: it.Type, Op: it.Op, Root: it.Root,
		Size: it.Size, Chunk: it.Chunk, Flows: it.Flows, Parallel: it.Parallel, Group: it.Group, FarFirst: it.FarFirst,
		Shuffle: it.Shuffle, Permute: it.Permute, Given: it.Given,
	}
}

// Peer is a connection to or from a rank. Two ranks have Item.QPs connections for each flow between
// them: connection q of flow f is lane f·QPs+q.
type Peer struct {
	Rank int
	Lane int `json:",omitempty"`
	Conn transport.ConnID
}

// Flow is the record of one message, as the sender sees it. Credits are not recorded.
type Flow struct {
	Item, Repeat int32 // int32, because there are millions of records
	Conn         transport.ConnID
	Message      uint32
	Src, Dst     transport.HostID
	Size         units.Bytes
	Start        units.Time // when it was handed to the transport
	Acked        units.Time // when its last byte was acknowledged; 0: it never was
}

// Done is the record of one rank's part in one repetition of an item.
type Done struct {
	Item, Repeat, Rank int
	Start, End         units.Time // Start is the end of the computation
	Wrong              int64      // elements of the result that differ from the reference
	Checked            int64      // elements compared
	Alike              bool       `json:",omitempty"` // not executed: a step that was is identical
	Blame              *Blame     `json:",omitempty"` // origin of wrong elements; nil: unknown or none
}

// Blame is the origin of a wrong result.
type Blame struct {
	Off  units.Bytes // first byte of the result that is wrong
	Step int         // step of the rank's program that received the byte; -1: none did
	Peer int         // rank that sent it
}
