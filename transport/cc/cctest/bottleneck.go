package cctest

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"weft/transport/cc"
	"weft/units"
)

// Bottleneck is a network of hosts with a NIC each, one switch port that all packets share, and a
// receiver behind it. It loses nothing, and acknowledgements are never delayed by queues.
type Bottleneck struct {
	Line   units.Bandwidth // of the port and of every NIC
	Delay  units.Time      // one way, of the links
	Packet units.Bytes     // every packet, on the wire
	Mark   func(queued units.Bytes, draw float64) bool
	Seed   uint64 // of draw, uniform in [0,1)
}

// Flow is a connection across a Bottleneck.
type Flow struct {
	Controller cc.Controller
	Receiver   cc.Receiver // if nil, acknowledgements carry nothing
	Start      units.Time
	Packets    int // 0: endless

	Delivered int        // packets
	Done      units.Time // when the last one was acknowledged; 0 if it is not
	Delays    units.Time // sum of all RTTs

	sent     int
	acked    int
	inFlight units.Bytes
	free     units.Time // when the NIC is idle
	last     units.Time // departure of the last packet
	wake     units.Time // earliest pending call of serve
}

// Link returns what a controller knows about a path across b.
func (b Bottleneck) Link() cc.Link {
	one := b.Delay + 2*b.Line.TransmitTime(b.Packet)
	return cc.Link{Line: b.Line, MTU: b.Packet, Packet: b.Packet, Baseline: one, BaseRTT: one + b.Delay, Hops: 2}
}

// Start returns an endless flow for each instant, with a controller of its own.
func (b Bottleneck) Start(controller func(cc.Link) cc.Controller, at ...units.Time) []*Flow {
	var all []*Flow
	for _, t := range at {
		all = append(all, &Flow{Controller: controller(b.Link()), Start: t})
	}
	return all
}

// Net runs flows over a Bottleneck.
type Net struct {
	Bottleneck
	Flows []*Flow
	Now   units.Time

	Queued   units.Bytes // waiting at the port
	MaxQueue units.Bytes // since it was last set to 0

	rng    *rand.Rand
	events events
	seq    int
	queue  []*packet
	busy   bool
	sent   units.Bytes
}

type packet struct {
	flow   *Flow
	sentAt units.Time
	marked bool
	hop    cc.Hop
}

// NewNet returns a network in which the flows start at their instants.
func NewNet(b Bottleneck, flows ...*Flow) *Net {
	n := &Net{Bottleneck: b, Flows: flows, rng: rand.New(rand.NewPCG(b.Seed, 0))}
	for _, f := range flows {
		f.wake = units.Never
		n.at(f.Start, func() {
			f.Controller.OnStart(n.Now)
			n.serve(f)
		})
	}
	return n
}

// Run executes all events up to until.
func (n *Net) Run(until units.Time) {
	for len(n.events) > 0 && n.events[0].at <= until {
		e := heap.Pop(&n.events).(event)
		n.Now = e.at
		e.do()
	}
	n.Now = until
}

// serve runs the timers of a flow, sends the packets that may leave, and schedules its next call.
func (n *Net) serve(f *Flow) {
	next := units.Never
	if t, ok := f.Controller.(cc.Timed); ok {
		if at, ok := t.Deadline(); ok && at <= n.Now {
			t.Advance(n.Now)
		}
		if at, ok := t.Deadline(); ok {
			next = at
		}
	}
	for (f.Packets == 0 || f.sent < f.Packets) && f.inFlight < f.Controller.Window() {
		at := f.free
		if r := f.Controller.PacingRate(); r > 0 && f.sent > 0 {
			at = max(at, f.last+r.TransmitTime(n.Packet))
		}
		if h, ok := f.Controller.(cc.Held); ok {
			at = max(at, h.NotBefore())
		}
		if at > n.Now {
			next = min(next, at)
			break
		}
		n.send(f)
	}
	if next < f.wake && f.Done == 0 {
		f.wake = next
		n.at(next, func() {
			if f.wake == next {
				f.wake = units.Never
				n.serve(f)
			}
		})
	}
}

func (n *Net) send(f *Flow) {
	f.sent++
	f.inFlight += n.Packet
	f.last, f.free = n.Now, n.Now+n.Line.TransmitTime(n.Packet)
	p := &packet{flow: f, sentAt: n.Now}
	f.Controller.OnSent(n.Now, cc.Sent{Size: n.Packet, InFlight: f.inFlight})
	n.at(f.free+n.Delay/2, func() { n.arrive(p) })
}

func (n *Net) arrive(p *packet) {
	if n.busy {
		n.queue = append(n.queue, p)
		n.Queued += n.Packet
		n.MaxQueue = max(n.MaxQueue, n.Queued)
		return
	}
	n.transmit(p)
}

// transmit begins to transmit p: it marks p by the queue behind it and writes its telemetry.
func (n *Net) transmit(p *packet) {
	n.busy = true
	draw := n.rng.Float64()
	p.marked = n.Mark != nil && n.Mark(n.Queued, draw)
	p.hop = cc.Hop{At: n.Now, Sent: n.sent, Queued: n.Queued, Rate: n.Line}
	n.sent += n.Packet
	end := n.Now + n.Line.TransmitTime(n.Packet)
	n.at(end, func() {
		n.busy = false
		if len(n.queue) > 0 {
			next := n.queue[0]
			n.queue = n.queue[1:]
			n.Queued -= n.Packet
			n.transmit(next)
		}
	})
	n.at(end+n.Delay-n.Delay/2, func() { n.deliver(p) })
}

func (n *Net) deliver(p *packet) {
	f := p.flow
	f.Delivered++
	var fb cc.Feedback
	if f.Receiver != nil {
		fb = f.Receiver.OnData(n.Now, cc.Data{At: n.Now, SentAt: p.sentAt, Size: n.Packet, Marked: p.marked})
	}
	n.at(n.Now+n.Delay, func() { n.ack(p, fb) })
}

func (n *Net) ack(p *packet, fb cc.Feedback) {
	f := p.flow
	f.acked++
	f.inFlight -= n.Packet
	f.Delays += n.Now - p.sentAt
	if fb.CNP {
		f.Controller.(cc.Notified).OnCNP(n.Now)
	}
	f.Controller.OnAck(n.Now, cc.Ack{
		Size: n.Packet, Packets: 1, InFlight: f.inFlight, SentAt: p.sentAt, RTT: n.Now - p.sentAt,
		OneWay: fb.OneWay, BaseRate: fb.BaseRate, Marked: p.marked, INT: []cc.Hop{p.hop},
	})
	if f.acked == f.Packets {
		f.Done = n.Now
	}
	n.serve(f)
}

// Trace runs until an instant and returns a table with a row per step: the time and the queue, and
// for each flow its window, its pacing rate ("-" without one) and its goodput in the step.
func (n *Net) Trace(until, step units.Time) string {
	var w strings.Builder
	fmt.Fprintf(&w, "%7s  %9s  %11s", "", "", "")
	for i := range n.Flows {
		fmt.Fprintf(&w, "  | %-35s", fmt.Sprintf("flow %d", i+1))
	}
	fmt.Fprintf(&w, "  |\n%7s  %9s  %11s", "time us", "queue B", "max queue B")
	for range n.Flows {
		fmt.Fprintf(&w, "  | %8s  %11s  %12s", "window B", "pacing Mb/s", "goodput Mb/s")
	}
	w.WriteString("  |\n")
	before := make([]int, len(n.Flows))
	for n.Now < until {
		n.MaxQueue = n.Queued
		n.Run(n.Now + step)
		fmt.Fprintf(&w, "%7d  %9d  %11d", n.Now/units.Microsecond, n.Queued, n.MaxQueue)
		for i, f := range n.Flows {
			window := "-"
			if b := f.Controller.Window(); b < 1<<40 {
				window = fmt.Sprint(int64(b))
			}
			got := units.Rate(units.Bytes(f.Delivered-before[i])*n.Packet, step)
			pacing := "-"
			if r := f.Controller.PacingRate(); r > 0 {
				pacing = fmt.Sprint(int64(r / units.Mbps))
			}
			fmt.Fprintf(&w, "  | %8s  %11s  %12d", window, pacing, got/units.Mbps)
			before[i] = f.Delivered
		}
		w.WriteString("  |\n")
	}
	return w.String()
}

// Fairness runs until an instant and returns Jain's index of the bytes that the flows delivered,
// and the share of the line rate that they used.
func (n *Net) Fairness(until units.Time) (jain, used float64) {
	before := make([]int, len(n.Flows))
	for i, f := range n.Flows {
		before[i] = f.Delivered
	}
	start := n.Now
	n.Run(until)
	var sum, squares float64
	for i, f := range n.Flows {
		x := float64(f.Delivered - before[i])
		sum, squares = sum+x, squares+float64(x*x)
	}
	return sum * sum / (float64(len(n.Flows)) * squares), sum * float64(8*n.Packet) / (float64(n.Line) * (until - start).Seconds())
}

func (n *Net) at(at units.Time, do func()) {
	n.seq++
	heap.Push(&n.events, event{max(at, n.Now), n.seq, do})
}

type event struct {
	at  units.Time
	seq int
	do  func()
}

type events []event

func (q events) Len() int      { return len(q) }
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q events) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q *events) Push(x any) { *q = append(*q, x.(event)) }
func (q *events) Pop() any {
	old := *q
	e := old[len(old)-1]
	*q = slices.Delete(old, len(old)-1, len(old))
	return e
}
