package experiment

import (
	"errors"
	"fmt"

	"weft/collectives/schedule"
	"weft/host"
	"weft/internal/splitmix"
	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
	"weft/transport"
	"weft/units"
)

// Workload is the work of the hosts.
type Workload struct {
	Programs []Program   // in the order of the lab file
	Items    []host.Item // by position in the lab's workload, as any rank has them: without a rank's own connections
	Packets  float64     // number of data packets that all messages take, if none is sent again
	Links    int         // number of links of the longest path of a connection
}

// Begins returns when the first item or program begins; ok is false without any.
func (w *Workload) Begins() (first units.Time, ok bool) {
	first = units.Never
	for i := range w.Items {
		first = min(first, w.Items[i].Start)
	}
	for i := range w.Programs {
		first = min(first, w.Programs[i].Begin)
	}
	return first, len(w.Items)+len(w.Programs) > 0
}

// addWorkload turns every item of the workload into connections and into each host's part of it.
func (x *compiler) addWorkload() error {
	x.shared = map[wireKey]transport.ConnID{}
	var errs []error
	for i := range x.Lab.Workload {
		if err := x.addItem(i); err != nil {
			errs = append(errs, x.Lab.Errorf(fmt.Sprintf("workload.%d", x.Lab.Workload[i].Index), "%v", err))
		}
	}
	if len(errs) == 0 && !x.sketch {
		errs = append(errs, x.planAcross())
	}
	return errors.Join(errs...)
}

// addItem adds one item of the workload: its connections, and a host.Item for every rank.
func (x *compiler) addItem(index int) error {
	it := &x.Lab.Workload[index]
	ranks, root, err := x.ranksOf(it)
	if err != nil {
		return err
	}
	base := host.Item{
		Index: index, Name: itemName(it), Collective: it.Collective, Algorithm: it.Algorithm, Type: it.Type,
		Op: it.Op, Ranks: ranks, Root: root,
		Size: it.Size, Chunk: it.Chunk, Parallel: it.Parallel, Group: it.Group, FarFirst: it.FarFirst,
		Repeat: it.Repeat,
		Start:  it.Start, Previous: it.Previous, Flows: it.Flows, Compute: it.Compute, Jitter: it.Jitter,
		Given: it.Given, Called: it.Called,
	}
	base.QPs, base.Split, _ = transport.QueuePairs(x.Lab.Transport.Section)
	if it.Shuffled {
		base.Shuffle = itemSeed(x.Lab.Seed, index) | 1
	}
	if base.Permute, err = x.permutation(it, index, len(ranks)); err != nil {
		return err
	}
	x.Items = append(x.Items, base)
	spec := base.Spec()
	if err := x.count(&spec, base.Repeat); err != nil {
		return err
	}
	if x.sketch {
		return x.sketchItem(&spec, ranks)
	}
	items := make([]host.Item, len(ranks))
	for r := range items {
		items[r] = base
		items[r].Rank = r
	}
	rates, err := x.plannedRates(&base)
	if err != nil {
		return err
	}
	for r := range ranks {
		sends, err := sendsTo(&spec, r)
		if err != nil {
			return err
		}
		for _, to := range sends {
			for lane := range schedule.Lanes(spec, r, to) * max(1, base.QPs) {
				id := x.connect(ranks[r], ranks[to], lane, it, rates[to])
				items[r].Conns = append(items[r].Conns, host.Peer{Rank: to, Lane: lane, Conn: id})
				items[to].Expect = append(items[to].Expect, host.Peer{Rank: r, Lane: lane, Conn: id})
			}
		}
	}
	for r, h := range ranks {
		x.Plans[h].Items = append(x.Plans[h].Items, items[r])
	}
	return nil
}

// count adds the packets of a collective.
func (x *compiler) count(s *schedule.Spec, repeat int) error {
	for r := range s.Ranks {
		v, err := schedule.Volume(*s, r)
		if err != nil {
			return err
		}
		packets := max(float64(v.Sent)/float64(x.Lab.Topology.MTU), float64(v.Sends))
		if schedule.Of(s.Collective).Permuted { // ranks are alike, and checked: see checkedBefore
			x.Packets += packets * float64(s.Ranks*repeat)
			return nil
		}
		x.Packets += packets * float64(repeat)
	}
	return nil
}

// sendsTo returns the ranks that a rank of a collective sends to. Call it for the ranks in order.
func sendsTo(s *schedule.Spec, r int) ([]int, error) {
	if checkedBefore(s, r) {
		return s.Permute[r : r+1], nil
	}
	sends, _, err := schedule.Peers(*s, r)
	return sends, err
}

// checkedBefore reports whether rank 0 has had the whole permutation of s checked. Checking it
// again in each of 8192 ranks took most of the time of building an experiment. Each rank of a
// permutation sends to one rank and receives from one.
func checkedBefore(s *schedule.Spec, r int) bool { return schedule.Of(s.Collective).Permuted && r > 0 }

// permutation returns the destination of each rank in a permute; nil in other collectives.
func (x *compiler) permutation(it *lab.Item, index, ranks int) ([]int, error) {
	switch {
	case !schedule.Of(it.Collective).Permuted:
		return nil, nil
	case it.Line != nil:
		return schedule.Shift(ranks, it.Line.Shift)
	}
	return schedule.Derangement(ranks, itemSeed(x.Lab.Seed, index))
}

// wireKey identifies a connection of a trace. The collectives of a trace share connections, as
// those of a communicator do.
type wireKey struct {
	trace      int // position in the lab file's workload
	src, dst   transport.HostID
	lane       int
	collective string // PC4's receivers have rules for each
}

// connect returns a connection between two hosts for an item. It is a new one, except that
// collectives of a trace reuse those of earlier ones. initial is the rate at which a controller
// would start it.
func (x *compiler) connect(src, dst transport.HostID, lane int, it *lab.Item,
	initial units.Bandwidth) transport.ConnID {
	key := wireKey{it.Index, src, dst, lane, it.Collective}
	if id, ok := x.shared[key]; ok && it.Line != nil {
		return id
	}
	id := transport.ConnID(len(x.Conns))
	s := x.between(src, dst)
	s.ID, s.SrcPort, s.Collective, s.Initial = id, sourcePort(x.Lab.Seed, id, paths(&x.Lab.Transport)), it.Collective,
		initial
	x.Conns = append(x.Conns, s)
	x.reach.note(&s, x.Lab.Topology.MTU)
	if it.Line != nil {
		x.shared[key] = id
	}
	return id
}

// itemSeed returns the seed of the random choices of one item of the workload.
func itemSeed(seed uint64, index int) uint64 {
	return (seed+1)*0xd1342543de82ef95 ^ uint64(index+1)*splitmix.Gamma
}

// Item returns an item of the workload, by its position.
func (w *Workload) Item(index int) *host.Item { return &w.Items[index] }

// sketchItem includes the connections of an item in the reach, and keeps none.
func (x *compiler) sketchItem(spec *schedule.Spec, ranks []transport.HostID) error {
	for r := range ranks {
		sends, err := sendsTo(spec, r)
		if err != nil {
			return err
		}
		for _, to := range sends {
			if x.reach.unseen(ranks[r], ranks[to]) {
				s := x.between(ranks[r], ranks[to])
				x.reach.note(&s, x.Lab.Topology.MTU)
			}
		}
	}
	return nil
}

// length returns a rough lower bound of the run's duration: every repetition of an item takes as
// long as sending its buffer. 0: the lab does not say.
func (x *compiler) length() units.Time {
	var end, last units.Time
	for i := range x.Items {
		it := &x.Items[i]
		start := it.Start
		if it.Previous {
			start = max(start, last)
		}
		rate := x.NICRate(0)
		for _, r := range it.Ranks {
			rate = min(rate, x.NICRate(topology.NodeID(r)))
		}
		last = start + units.Time(it.Repeat)*(it.Compute+rate.TransmitTime(it.Size))
		end = max(end, last)
	}
	if len(x.Programs) > 0 {
		end = max(end, programLength)
	}
	return max(end, x.Lab.Clocks.For)
}

// programLength is length for a program, whose duration nobody knows. Our own choice: with it
// Huygens has windows of a millisecond, and at a dilation of 1000 a program begins after eight
// seconds instead of three minutes.
const programLength = 3 * units.Millisecond
