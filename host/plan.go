package host

import (
	"fmt"

	"weft/clocksync/node"
	"weft/collectives/schedule"
	"weft/transport"
	"weft/transport/wire"
	"weft/units"
)

// Plan is everything one host needs to know to take part in a run. It is plain data: the simulator hands it
// over in memory, the orchestrator sends it to a node as JSON.
type Plan struct {
	Host     transport.HostID
	Name     string
	Endpoint transport.Config
	Conns    []transport.Spec // every connection that begins or ends here
	Items    []Item           // in the order of the lab file; only those this host takes part in
	Seed     uint64

	Clock      *node.Config `json:",omitempty"` // of the host; nil: it shows lab time, and measures what is
	Background *Background  `json:",omitempty"` // nil: none
	Until      units.Time   `json:",omitempty"` // the host is not done before, whatever its items do
	Halts      []Halt       `json:",omitempty"` // when it stands still, in order

	// Corrupt are instants, in order: the first data packet that comes from each on has a byte that is wrong, unnoticed by the
	// transport, as by a network card or a memory at fault.
	Corrupt []units.Time `json:",omitempty"`
}

// InterfaceMTU returns the MTU that the interfaces of hosts need: room for a full data packet of any plan. Where a host's clock
// is not lab time, packets also say when they leave.
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

// Item is one collective of the workload as one host sees it.
type Item struct {
	Index      int                // its number in the lab; a host has its items in this order
	Name       string             // what messages call it; "": item and its Index
	Collective string             // one of schedule.Collectives
	Algorithm  string             // ring, direct, ...; resolved, never "auto"
	Type       schedule.Type      // of the elements; "": float32
	Op         schedule.Reduction // "": sum
	Ranks      []transport.HostID // host of each rank
	Rank       int                // this host's rank
	Root       int                // of collectives that have one: its rank
	Size       units.Bytes        // of the buffer, in the meaning of nccl-tests
	Chunk      units.Bytes        // pieces a message is cut into for pipelining; 0: not cut
	Flows      int                // incast: messages of Size from each sender, each on connections of its own; 0: one
	QPs        int                // connections that the messages of a flow are spread over; 0: one
	Split      bool               // each message is cut over all of them; otherwise each goes to the next
	Parallel   int                // all-to-all: peers exchanged with at once; 0: all
	Group      int                // hierarchical: ranks per group
	FarFirst   bool               // halving-doubling: the farthest peer first
	Shuffle    uint64             // all-to-all, direct: what each rank's order of its peers is drawn with; 0: around
	Repeat     int                // at least 1
	Start      units.Time         // earliest start
	Previous   bool               // start when this host's part of the item before it is done, and not before Start
	Compute    units.Time         // how long the host computes before each repetition
	Jitter     units.Time         // and how much longer at most: drawn uniformly from [0, Jitter] for each rank and repetition
	Conns      []Peer             // the connections to each peer this rank sends to
	Expect     []Peer             // the connections from each peer this rank receives from
	Permute    []int              // permute: rank r sends to Permute[r]
}

// name is what messages call the item.
func (it *Item) name() string {
	if it.Name != "" {
		return it.Name
	}
	return fmt.Sprintf("item %d", it.Index)
}

// Spec is the item as schedules have it.
func (it *Item) Spec() schedule.Spec {
	return schedule.Spec{
		Collective: it.Collective, Algorithm: it.Algorithm, Ranks: len(it.Ranks), Type: it.Type, Op: it.Op, Root: it.Root,
		Size: it.Size, Chunk: it.Chunk, Flows: it.Flows, Parallel: it.Parallel, Group: it.Group, FarFirst: it.FarFirst,
		Shuffle: it.Shuffle, Permute: it.Permute,
	}
}

// Peer names a connection to or from a rank. Two ranks have QPs of them for each flow between them: connection q of
// flow f is lane f·QPs+q.
type Peer struct {
	Rank int
	Lane int `json:",omitempty"`
	Conn transport.ConnID
}

// Flow is the record of one message, from the sender's side except where said. Credits are not recorded.
type Flow struct {
	Item, Repeat int32 // there are millions of these
	Conn         transport.ConnID
	Message      uint32
	Src, Dst     transport.HostID
	Size         units.Bytes
	Start        units.Time // handed to the transport
	Acked        units.Time // last byte acknowledged at the sender; 0 if it never was
}

// Done is the record of one rank's part in one repetition of one item.
type Done struct {
	Item, Repeat, Rank int
	Start, End         units.Time // Start is when computing was over
	Wrong              int64      // elements of the result that differ from the reference
	Checked            int64      // elements compared
	Blame              *Blame     `json:",omitempty"` // of wrong elements, if it is known
}

// Blame is where a result went wrong.
type Blame struct {
	Off  units.Bytes // the first byte of the result that is wrong
	Step int         // of the rank's program: that received it; -1: none did
	Peer int         // rank that sent it
}
