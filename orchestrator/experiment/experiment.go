package experiment

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"weft/collectives/schedule"
	"weft/fabric"
	"weft/host"
	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
	"weft/transport"
	"weft/transport/wire"
	"weft/units"
)

// Experiment is a lab made concrete: the network and what every host does on it. It is pure data, the same
// for every engine.
type Experiment struct {
	Lab    *lab.Lab
	Graph  *topology.Graph
	Fabric fabric.Config
	Plans  []host.Plan                  // by host
	Conns  []transport.Spec             // by ConnID
	Items  []host.Item                  // by position in the workload, as any rank has them: without a rank's own connections
	shared map[wireKey]transport.ConnID // of traces

	reach  reach // of the connections
	sketch bool  // only to be checked: connections are noted in reach and not kept

	Changes []fabric.Change // what faults make of the network, by their instants
	Watched int             // port whose queue is followed event by event, -1 for none
	Subnet  topology.Subnet // of its addresses

	// BaseRTT is the longest idle round trip among hosts that talk to each other: a full data packet there,
	// its acknowledgement back, store and forward.
	BaseRTT units.Time
}

// Build makes the experiment of a lab.
func Build(l *lab.Lab) (*Experiment, error) {
	g, err := NetworkOf(l)
	if err != nil {
		return nil, err
	}
	return BuildOn(l, g, false)
}

// BuildOn makes the experiment of a lab whose network is g. A sketch has all that checks look at, but neither connections
// nor what each rank does: those of a large all-to-all take seconds and hundreds of megabytes.
func BuildOn(l *lab.Lab, g *topology.Graph, sketch bool) (*Experiment, error) {
	if err := Runnable(l); err != nil {
		return nil, err
	}
	cfg, slow, err := checkNetwork(l, g)
	errs := []error{err, checkCircles(l, g)}
	x := &Experiment{Lab: l, Graph: g, sketch: sketch, reach: newReach(g)}
	if x.Fabric = cfg; !sketch || l.Engine.Datapath == OnKernel {
		addRoutes(&x.Fabric, l, g)
	}
	err = x.addWorkload()
	errs = append(errs, err)
	if x.BaseRTT = x.reach.rtt; x.BaseRTT == 0 {
		x.BaseRTT = g.BaseRTT(dataWire(l.Topology.MTU), ackWire)
	}
	sound := err == nil && !slow // else what follows from connections is not known
	errs = append(errs, x.addClocks(sound))
	x.tune()
	if sound {
		errs = append(errs, x.checkTransport())
	}
	x.Changes, err = x.changes()
	errs = append(errs, x.corrupt(), x.addHalts(), err)
	x.Watched, err = x.watchedPort()
	if err = errors.Join(append(errs, err)...); err == nil {
		err = x.checkKernel()
	}
	if err != nil {
		return nil, err
	}
	return x, nil
}

// watchedPort is the port that measure.queue_events names, -1 for none.
func (x *Experiment) watchedPort() (int, error) {
	name := x.Lab.Measure.Events
	if name == "" {
		return -1, nil
	}
	for i, n := range x.PortNames() {
		if n != name {
			continue
		}
		if int(x.Fabric.Ports[i].From) < x.Graph.Hosts {
			return 0, x.Lab.Errorf("measure.queue_events", "%s is a host's; expected a switch's, such as switch0->h0", name)
		}
		return i, nil
	}
	return 0, x.Lab.Errorf("measure.queue_events", "no port is named %q; expected a switch and a node that a link joins, such as switch0->h0", name)
}

// FaultPath is the path of a fault's setting in the lab.
func FaultPath(i int, key string) string { return fmt.Sprintf("faults.%d.%s", i, key) }

// dataWire is the size on the wire of a data packet that carries payload bytes and no telemetry.
func dataWire(payload units.Bytes) units.Bytes { return payload + wire.DataSize + wire.Overhead }

// ackWire is the size on the wire of an acknowledgement without telemetry.
const ackWire units.Bytes = wire.AckSize + wire.Overhead

// replyWire is the size on the wire of what answers a data packet of a connection.
func replyWire(s *transport.Spec) units.Bytes {
	if s.Recovery == transport.SelectiveRepeat {
		return wire.SackSize + wire.Overhead
	}
	return ackWire + transport.FactsOf(s.Kind).Reply(switchesOn(s.Forward))
}

// beside is what lies behind the headers of a connection's data packets.
func beside(s *transport.Spec) units.Bytes {
	return transport.FactsOf(s.Kind).Data(switchesOn(s.Forward))
}

// switchesOn is how many switches a path crosses.
func switchesOn(p transport.Path) int { return len(p.Rates) - 1 }

// addWorkload turns every item of the workload into connections and into each host's part of it.
func (x *Experiment) addWorkload() error {
	x.shared = map[wireKey]transport.ConnID{}
	x.addHosts()
	var errs []error
	for i := range x.Lab.Workload {
		if err := x.addItem(i); err != nil {
			errs = append(errs, x.Lab.Errorf(fmt.Sprintf("workload.%d", x.Lab.Workload[i].Index), "%v", err))
		}
	}
	return errors.Join(errs...)
}

// addItem adds one item of the workload: its connections, and a host.Item for every rank.
func (x *Experiment) addItem(index int) error {
	it := &x.Lab.Workload[index]
	ranks, root, err := x.ranksOf(it)
	if err != nil {
		return err
	}
	base := host.Item{
		Index: index, Name: itemName(it), Collective: it.Collective, Algorithm: it.Algorithm, Type: it.Type, Op: it.Op, Ranks: ranks, Root: root,
		Size: it.Size, Chunk: it.Chunk, Parallel: it.Parallel, Group: it.Group, FarFirst: it.FarFirst, Repeat: it.Repeat,
		Start: it.Start, Previous: it.Previous, Flows: it.Flows, Compute: it.Compute, Jitter: it.Jitter,
	}
	base.QPs, base.Split = transport.QueuePairs(x.Lab.Transport.Section)
	if it.Shuffled {
		base.Shuffle = itemSeed(x.Lab.Seed, index) | 1
	}
	if base.Permute, err = x.permutation(it, index, len(ranks)); err != nil {
		return err
	}
	x.Items = append(x.Items, base)
	spec := base.Spec()
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
			for lane := range max(1, base.Flows) * max(1, base.QPs) {
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

// sendsTo is whom a rank of a collective sends to. Ranks are gone through in order.
func sendsTo(s *schedule.Spec, r int) ([]int, error) {
	if checkedBefore(s, r) {
		return s.Permute[r : r+1], nil
	}
	sends, _, err := schedule.Peers(*s, r)
	return sends, err
}

// checkedBefore says that rank 0 has had the whole permutation of s checked, which in each of 8192 ranks took most of the time that it takes
// to build an experiment. Each rank of one sends to one, and has one that sends to it.
func checkedBefore(s *schedule.Spec, r int) bool { return schedule.Of(s.Collective).Permuted && r > 0 }

// tune sets what connections have of the network as a whole, and hands them to their hosts.
func (x *Experiment) tune() {
	net := x.Graph.BaseRTT(dataWire(x.Lab.Topology.MTU), ackWire)
	base := x.BaseRTT
	if transport.FactsOf(x.Lab.Transport.Kind).NetRTT {
		base = net
	}
	own := x.Lab.Transport.Section.Retries()
	for i := range x.Conns {
		s := &x.Conns[i]
		s.NetRTT = base
		if s.RTOMin = max(s.RTOMin, units.Time(own.RTORTTs)*s.NetRTT); s.RTOMin == 0 {
			s.RTOMin = max(transport.DefaultRTOMin, 4*net+x.Drain(s))
		}
		if s.Selective.Threshold == 0 && manyPaths(x.Lab) {
			s.Selective.Threshold = x.overtaking(s, net)
		}
		x.Plans[s.Src].Conns = append(x.Plans[s.Src].Conns, *s)
		x.Plans[s.Dst].Conns = append(x.Plans[s.Dst].Conns, *s)
	}
}

// manyPaths says whether packets of one connection take several paths: switches choose them, or the source takes another port (PLB).
func manyPaths(l *lab.Lab) bool {
	return balance(l) != fabric.ECMP || transport.Repaths(l.Transport.Section)
}

// overtaking is how many packets of a connection may overtake one of it, where it takes several paths, before that is
// thought lost: what is sent in two round trips, and while a queue empties that switches move flows away from
// (docs/adr/0091, 11).
func (x *Experiment) overtaking(s *transport.Spec, net units.Time) int {
	line := s.Forward.Rates[0]
	size := line.BytesIn(2 * net)
	if c := transport.CoordinationOf(x.Lab.Transport.Section); c != nil {
		size += c.Congested.On(line, line.BytesIn(net))
	} else {
		size += x.Lab.Queues.Light.On(line, line.BytesIn(net))
	}
	return int(size / dataWire(x.Lab.Topology.MTU))
}

// permutation is who sends to whom in a permute; nil in others.
func (x *Experiment) permutation(it *lab.Item, index, ranks int) ([]int, error) {
	switch {
	case !schedule.Of(it.Collective).Permuted:
		return nil, nil
	case it.Line != nil:
		return schedule.Shift(ranks, it.Line.Shift)
	}
	return schedule.Derangement(ranks, itemSeed(x.Lab.Seed, index))
}

// wireKey is what tells the connections of a trace apart. Its collectives share them, as those of a communicator do.
type wireKey struct {
	trace      int // position in the lab file's workload
	src, dst   transport.HostID
	lane       int
	collective string // PC4's receivers have rules for each
}

// connect returns a connection between two hosts for an item: a new one, but for collectives of a trace, whose
// connections stay for those after it. initial is the rate that a controller would start it at.
func (x *Experiment) connect(src, dst transport.HostID, lane int, it *lab.Item, initial units.Bandwidth) transport.ConnID {
	key := wireKey{it.Index, src, dst, lane, it.Collective}
	if id, ok := x.shared[key]; ok && it.Line != nil {
		return id
	}
	id := transport.ConnID(len(x.Conns))
	s := x.between(src, dst)
	s.ID, s.SrcPort, s.Collective, s.Initial = id, sourcePort(x.Lab.Seed, id, paths(&x.Lab.Transport)), it.Collective, initial
	x.Conns = append(x.Conns, s)
	x.reach.note(&s, x.Lab.Topology.MTU)
	if it.Line != nil {
		x.shared[key] = id
	}
	return id
}

// checkQPs refuses queue pairs that nothing would go over: messages take turns, and no connection has a second.
func (x *Experiment) checkQPs() error {
	qps, whole := transport.QueuePairs(x.Lab.Transport.Section)
	if qps <= 1 || whole {
		return nil
	}
	for i := range x.Items {
		if more, err := moreThanOne(&x.Items[i]); more || err != nil {
			return err
		}
	}
	return x.Lab.Errorf("transport.roce.split", "round-robin has messages take turns, but no connection of this workload carries a second: "+
		"%d queue pairs would not be used; split: messages cuts each message over all, and chunk makes more messages", qps)
}

// moreThanOne tells whether a rank sends more than one message on some connection.
func moreThanOne(it *host.Item) (bool, error) {
	tags, err := schedule.Tags(it.Spec())
	return int(tags) > max(1, it.Flows), err
}

// sourcePort spreads connections over the dynamic port range (RFC 6335, section 6): it is the entropy that
// ECMP hashes. Every path has a port; it is the first.
func sourcePort(seed uint64, id transport.ConnID, paths int) uint16 {
	r := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15^uint64(id)))
	return uint16(49152 + r.IntN(16384-(paths-1)))
}

// paths is over how many a connection of a transport sends.
func paths(t *lab.Transport) int { return transport.PathsOf(t.Section.Control()) }

// plannedRates are the rates, by rank, that a controller which knows the collective would start connections to it at: its line
// rate shared among the flows that come to it at once (PC4, Table I); with base_rate: table among all that come to it.
func (x *Experiment) plannedRates(it *host.Item) ([]units.Bandwidth, error) {
	rates, spec := make([]units.Bandwidth, len(it.Ranks)), it.Spec()
	if x.ratesByTable() {
		spec.Parallel = len(it.Ranks) // nobody waits for its turn
	}
	for r, h := range it.Ranks {
		n := 1
		if !checkedBefore(&spec, r) {
			var err error
			if n, err = schedule.Inflow(spec, r); err != nil {
				return nil, err
			}
		}
		rates[r] = x.NicRate(topology.NodeID(h)) / units.Bandwidth(max(1, n)*max(1, it.QPs))
	}
	return rates, nil
}

// ratesByTable tells whether base rates are those of Table I, also while fewer flows are active than a collective has.
func (x *Experiment) ratesByTable() bool {
	_, section := transport.InsideOf(x.Lab.Transport.Section)
	p, ok := section.Control().(interface{ RatesByTable() bool })
	return ok && p.RatesByTable()
}

// itemSeed is the seed of the random choices of one item of the workload.
func itemSeed(seed uint64, index int) uint64 {
	return (seed+1)*0xd1342543de82ef95 ^ uint64(index+1)*0x9e3779b97f4a7c15
}

// Item returns an item of the workload, by its position.
func (x *Experiment) Item(index int) *host.Item { return &x.Items[index] }
