package host

import (
	"container/heap"
	"fmt"
	"testing"

	"weft/collectives/buffer"
	"weft/collectives/schedule"
	"weft/collectives/symbolic"
	"weft/transport"
	"weft/transport/cc/pc4"
	"weft/units"
)

const (
	lineRate = 100 * units.Gbps
	oneWay   = units.Microsecond
	mtu      = 4096
)

// packet is a packet in flight.
type packet struct {
	at, seq int64
	src     int
	dst     int
	data    bool
	header  []byte
	size    units.Bytes
	payload []byte
}

type packets []packet

func (p packets) Len() int { return len(p) }
func (p packets) Less(i, j int) bool {
	return p[i].at < p[j].at || p[i].at == p[j].at && p[i].seq < p[j].seq
}
func (p packets) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p *packets) Push(x any)   { *p = append(*p, x.(packet)) }
func (p *packets) Pop() any     { n := len(*p) - 1; x := (*p)[n]; *p = (*p)[:n]; return x }

// network joins hosts by links without queues: a NIC of lineRate each, and a fixed delay to
// anybody.
type network struct {
	hosts    []*Host
	now      units.Time
	seq      int64
	free     []units.Time // when each NIC can take the next packet
	wake     []bool       // whether it is to be asked then
	inFlight packets
	lose     func(p *packet) bool // nil: nothing is lost
	touch    func(p *packet)      // nil: payload arrives as it was sent
	refused  int
}

// newNetwork returns a network for n hosts, without the hosts.
func newNetwork(n int) *network {
	return &network{free: make([]units.Time, n), wake: make([]bool, n)}
}

// transmit lets host i send all it may send now.
func (n *network) transmit(i int) {
	var out transport.Outgoing
	defer func() { n.wake[i] = n.free[i] > n.now }()
	for n.free[i] <= n.now && n.hosts[i].Transmit(n.now, &out) {
		n.free[i] = n.now + lineRate.TransmitTime(out.Size)
		n.seq++
		p := packet{at: int64(n.free[i] + oneWay), seq: n.seq, src: i, dst: int(out.Dst), data: out.Payload > 0, size: out.Payload}
		p.header = append(p.header, out.Header[:out.N]...)
		p.payload = append(p.payload, n.hosts[i].Payload(&out, nil)...)
		if n.lose == nil || !n.lose(&p) {
			heap.Push(&n.inFlight, p)
		}
	}
}

// step runs the next event. It returns false if there is none.
func (n *network) step() bool {
	next, who := units.Never, -1
	for i, h := range n.hosts {
		at, ok := h.Deadline()
		if n.wake[i] && (!ok || n.free[i] < at) {
			at, ok = n.free[i], true
		}
		if at = max(at, n.now); ok && at < next {
			next, who = at, i
		}
	}
	if len(n.inFlight) > 0 && units.Time(n.inFlight[0].at) <= next {
		p := heap.Pop(&n.inFlight).(packet)
		n.now = units.Time(p.at)
		if n.touch != nil {
			n.touch(&p)
		}
		n.deliver(&p)
		n.transmit(p.dst)
		return true
	}
	if who < 0 {
		return false
	}
	n.now = next
	n.hosts[who].Advance(n.now)
	n.transmit(who)
	return true
}

// deliver hands a packet to its destination.
func (n *network) deliver(p *packet) {
	h := n.hosts[p.dst]
	in := transport.Incoming{At: n.now, Src: transport.HostID(p.src), Header: p.header, Payload: p.size}
	pl, err := h.Receive(n.now, &in)
	if err != nil {
		n.refused++
		return
	}
	h.Deliver(n.now, pl, p.payload)
}

// run runs until all hosts are done or one has failed.
func (n *network) run(t testing.TB) {
	t.Helper()
	for i, h := range n.hosts {
		h.Start(n.now)
		n.transmit(i)
	}
	for steps := 0; ; steps++ {
		done := true
		for _, h := range n.hosts {
			if h.Failed() != nil {
				return
			}
			done = done && h.Done()
		}
		if done {
			return
		}
		if !n.step() || steps > 5_000_000 || n.now > 10*units.Second {
			for _, h := range n.hosts {
				t.Log(h.Waiting())
			}
			t.Fatalf("stalled at %.3f us after %d steps", n.now.Microseconds(), steps)
		}
	}
}

// kinds of memory.
const (
	noMemory = iota
	realMemory
	symbolicMemory
)

// job is an item of the workload before it is split into the items of hosts.
type job struct {
	schedule.Spec
	ranks    []int // hosts; nil: all in order
	repeat   int   // 0: 1
	start    units.Time
	previous bool
	compute  units.Time
	jitter   units.Time
	qps      int // 0: 1
	split    bool
	called   bool
}

// plansOf splits jobs over n hosts. A pair of hosts has one connection for all jobs.
func plansOf(t testing.TB, n int, jobs []job) []Plan {
	t.Helper()
	all := make([]Plan, n)
	for h := range all {
		all[h] = Plan{
			Host: transport.HostID(h), Name: fmt.Sprintf("h%d", h),
			Endpoint: transport.Config{Host: transport.HostID(h), MTU: mtu, LineRate: lineRate},
		}
	}
	path := transport.Path{Propagation: oneWay, Rates: []units.Bandwidth{lineRate}}
	open := map[[3]int]transport.ConnID{}
	conn := func(src, dst, lane int, collective string) transport.ConnID {
		id, ok := open[[3]int{src, dst, lane}]
		if !ok {
			id = transport.ConnID(100 - len(open)%7*3 + len(open)*10) // neither dense nor in order
			open[[3]int{src, dst, lane}] = id
			s := transport.Spec{
				ID: id, Src: transport.HostID(src), Dst: transport.HostID(dst), SrcPort: uint16(id), Forward: path, Reverse: path,
				Kind: "pc4", CC: pc4.Defaults(), Collective: collective, RTOMin: 50 * units.Microsecond,
			}
			all[src].Conns = append(all[src].Conns, s)
			all[dst].Conns = append(all[dst].Conns, s)
		}
		return id
	}
	for index, j := range jobs {
		j := j
		if j.ranks == nil {
			for h := range n {
				j.ranks = append(j.ranks, h)
			}
		}
		j.Ranks, j.repeat = len(j.ranks), max(1, j.repeat)
		var hosts []transport.HostID
		for _, h := range j.ranks {
			hosts = append(hosts, transport.HostID(h))
		}
		for r, h := range j.ranks {
			item := Item{
				Index: index, Collective: j.Collective, Algorithm: j.Algorithm, Ranks: hosts, Rank: r, Root: j.Root, Size: j.Size,
				Type: j.Type, Op: j.Op, Chunk: j.Chunk, Flows: j.Flows, QPs: j.qps, Split: j.split, Parallel: j.Parallel,
				Group: j.Group, FarFirst: j.FarFirst, Repeat: j.repeat, Start: j.start, Previous: j.previous,
				Compute: j.compute, Jitter: j.jitter, Permute: j.Permute,
				Given: j.Given, Called: j.called,
			}
			sends, receives, err := schedule.Peers(j.Spec, r)
			if err != nil {
				t.Fatal(err)
			}
			for lane := range max(1, j.Flows) * max(1, j.qps) {
				for _, peer := range sends {
					item.Conns = append(item.Conns, Peer{peer, lane, conn(h, j.ranks[peer], lane, j.Collective)})
				}
				for _, peer := range receives {
					item.Expect = append(item.Expect, Peer{peer, lane, conn(j.ranks[peer], h, lane, j.Collective)})
				}
			}
			all[h].Items = append(all[h].Items, item)
		}
	}
	return all
}

// buildNetwork returns a network of n hosts that run the jobs.
func buildNetwork(t testing.TB, n, kind int, jobs ...job) *network {
	t.Helper()
	net := newNetwork(n)
	x := symbolic.New(5)
	for _, p := range plansOf(t, n, jobs) {
		var mem Memory
		switch kind {
		case realMemory:
			mem = buffer.New(5, nil)
		case symbolicMemory:
			mem = x.Memory()
		}
		h, err := New(p, mem, nil)
		if err != nil {
			t.Fatal(err)
		}
		net.hosts = append(net.hosts, h)
	}
	return net
}

// ringAllReduce returns an all-reduce along a ring.
func ringAllReduce(size, chunk units.Bytes) schedule.Spec {
	return schedule.Spec{Collective: schedule.AllReduce, Algorithm: schedule.Ring, Size: size, Chunk: chunk}
}

// allToAll returns an all-to-all with the given number of concurrent messages.
func allToAll(size units.Bytes, parallel int) schedule.Spec {
	return schedule.Spec{Collective: schedule.AllToAll, Algorithm: schedule.Direct, Size: size, Parallel: parallel}
}

// incast returns a collective in which all ranks send to root.
func incast(size units.Bytes, root int) schedule.Spec {
	return schedule.Spec{Collective: schedule.Incast, Algorithm: schedule.Direct, Size: size, Root: root}
}

// permutation returns a collective in which each rank sends to one other, drawn at random.
func permutation(t testing.TB, n int, size units.Bytes) schedule.Spec {
	to, err := schedule.Derangement(n, 1)
	if err != nil {
		t.Fatal(err)
	}
	return schedule.Spec{Collective: schedule.Permute, Algorithm: schedule.Direct, Size: size, Permute: to}
}

// verify checks that every repetition of every job came out right on every host.
func (n *network) verify(t testing.TB, wantDones int) {
	t.Helper()
	dones, checked := 0, int64(0)
	for _, h := range n.hosts {
		if err := h.Failed(); err != nil {
			t.Fatal(err)
		}
		if w := h.Waiting(); w != "" {
			t.Errorf("done, but waiting: %s", w)
		}
		for _, d := range h.Dones() {
			dones++
			checked += d.Checked
			if d.Wrong != 0 || d.End < d.Start {
				t.Errorf("%s: %+v", h.plan.Name, d)
			}
			if h.memory == nil && d.Checked != 0 {
				t.Errorf("%s: checked without memory: %+v", h.plan.Name, d)
			}
		}
		for _, f := range h.Flows() {
			if f.Acked <= f.Start || f.Size < 1 || f.Src != h.plan.Host {
				t.Errorf("%s: %+v", h.plan.Name, f)
			}
		}
		if done, total := h.Progress(); done != total {
			t.Errorf("%s: %d of %d bytes", h.plan.Name, done, total)
		}
		if h.expected != 0 {
			t.Errorf("%s: %d flows are still expected", h.plan.Name, h.expected)
		}
	}
	if dones != wantDones {
		t.Errorf("%d repetitions done, want %d", dones, wantDones)
	}
	if n.hosts[0].memory != nil && checked == 0 {
		t.Error("nothing was verified")
	}
	if n.refused > 0 {
		t.Errorf("%d packets refused", n.refused)
	}
}
