package testnet

import (
	"container/heap"
	"math/rand/v2"

	"weft/clocksync"
	"weft/units"
)

// Config configures a world.
type Config struct {
	Nodes      int
	Seed       uint64
	Grid       units.Time // of the clocks; 0: 100 us
	Oscillator func(n clocksync.Node) Oscillator
	Start      func(n clocksync.Node) clocksync.Protocol // makes the protocol of a node
	Path       func(r *rand.Rand) Path                   // makes the path of each ordered pair of nodes
	// PathOf replaces Path if the path depends on its ends.
	PathOf  func(from, to clocksync.Node, r *rand.Rand) Path
	Gap     units.Time // between messages of one NIC; 0: 10 ns
	Loss    float64    // share of messages that are lost
	Twice   float64    // share of messages that arrive twice
	Late    float64    // share of messages that take LateBy longer, so that others overtake them
	LateBy  units.Time
	Blocked func(from, to clocksync.Node, t units.Time) bool // whether a message is lost; nil: never
	OnWire  func(t units.Time, from clocksync.Node, m *clocksync.Outgoing)
}

// Path is the path between two nodes. Delay returns the delay of a message that leaves at t; calls
// have increasing t. It may change the message, as a transparent clock does.
type Path interface {
	Delay(t units.Time, m *clocksync.Outgoing) units.Time
}

// World is a network of nodes in virtual time.
type World struct {
	cfg    Config
	Now    units.Time // true time
	random *rand.Rand
	nodes  []node
	paths  map[[2]clocksync.Node]Path // never ranged over: the order would be random
	events events
	count  uint64              // number of events so far
	spare  *clocksync.Outgoing // for the next message
	Errors map[string]int      // number of errors of Receive, by text
}

// node is a node of a World.
type node struct {
	clock    *clock
	protocol clocksync.Protocol // nil: crashed
	life     int                // number of starts and crashes: events of an earlier life are void
	free     units.Time         // when the NIC becomes free
	armed    units.Time         // the deadline for which the timer is set
	timer    uint64             // number of the valid timer event
}

// event is a function to call, or a message to deliver.
type event struct {
	at      units.Time
	number  uint64 // decides ties
	do      func()
	to      clocksync.Node
	message *clocksync.Outgoing // nil: call do
	from    clocksync.Node
}

// events is a heap of events.
type events []*event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].number < e[j].number
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(*event)) }
func (e *events) Pop() any {
	old := *e
	x := old[len(old)-1]
	*e = old[:len(old)-1]
	return x
}

// New returns a world whose nodes have started.
func New(cfg Config) *World {
	if cfg.Grid == 0 {
		cfg.Grid = 100 * units.Microsecond
	}
	if cfg.Gap == 0 {
		cfg.Gap = 10 * units.Nanosecond
	}
	w := &World{cfg: cfg, random: rand.New(rand.NewPCG(cfg.Seed, 2)), paths: map[[2]clocksync.Node]Path{},
		Errors: map[string]int{},
		nodes:  make([]node, cfg.Nodes), spare: new(clocksync.Outgoing)}
	for i := range w.nodes {
		n := clocksync.Node(i)
		w.nodes[i].clock = newClock(cfg.Oscillator(n), cfg.Grid, cfg.Seed*1000+uint64(i))
	}
	for i := range w.nodes {
		w.Restart(clocksync.Node(i))
	}
	return w
}

// At calls f at a true time.
func (w *World) At(t units.Time, f func()) {
	w.count++
	heap.Push(&w.events, &event{at: t, number: w.count, do: f})
}

// Every calls f at a true time, and then at every interval.
func (w *World) Every(from, interval units.Time, f func()) {
	w.At(from, func() {
		f()
		w.Every(from+interval, interval, f)
	})
}

// Run processes the events up to a true time.
func (w *World) Run(until units.Time) {
	for len(w.events) > 0 && w.events[0].at <= until {
		e := heap.Pop(&w.events).(*event)
		w.Now = e.at
		if e.message == nil {
			e.do()
			continue
		}
		w.deliver(e)
	}
	w.Now = until
}

// Crash removes a node's protocol; Restart gives it a new one.
func (w *World) Crash(n clocksync.Node) {
	w.nodes[n].protocol = nil
	w.nodes[n].life++
}

// Restart starts a new protocol at a node.
func (w *World) Restart(n clocksync.Node) {
	x := &w.nodes[n]
	x.life++
	x.armed, x.timer = units.Never, 0
	x.protocol = w.cfg.Start(n)
	x.protocol.Start(x.clock.now(w.Now))
	w.pump(n)
}

// Step steps a hardware clock.
func (w *World) Step(n clocksync.Node, by units.Time) { w.nodes[n].clock.hard += by }

// Protocol returns a node's protocol, nil while it is down.
func (w *World) Protocol(n clocksync.Node) clocksync.Protocol { return w.nodes[n].protocol }

// Time returns synchronized time at a node now.
func (w *World) Time(n clocksync.Node) units.Time {
	x := &w.nodes[n]
	return x.protocol.Correction().At(x.clock.now(w.Now).Hard)
}

// Bound returns the bound that a node publishes now; ok is false if it is in state clocksync.Free.
func (w *World) Bound(n clocksync.Node) (bound units.Time, ok bool) {
	x := &w.nodes[n]
	c := x.protocol.Correction()
	return c.BoundAt(x.clock.now(w.Now).Hard), c.State != clocksync.Free
}

// Inject delivers a message now, as an attacker or a fault would.
func (w *World) Inject(to clocksync.Node, m clocksync.Message) error {
	x := &w.nodes[to]
	m.Stamp = x.clock.stamp(w.Now)
	err := x.protocol.Receive(x.clock.now(w.Now), &m)
	w.pump(to)
	return err
}

// pump lets a node send, and sets its timer.
func (w *World) pump(n clocksync.Node) {
	x := &w.nodes[n]
	if x.protocol == nil {
		return
	}
	for w.Now >= x.free {
		out := w.spare
		*out = clocksync.Outgoing{}
		if !x.protocol.Transmit(x.clock.now(w.Now), out) {
			break
		}
		w.spare = new(clocksync.Outgoing)
		x.free = w.Now + w.cfg.Gap
		if out.Event {
			x.protocol.Sent(x.clock.now(w.Now), out.ID, x.clock.stamp(w.Now))
		}
		w.send(n, out)
		w.later(n, x.free)
	}
	at, ok := x.protocol.Deadline()
	if !ok {
		at = units.Never
	}
	if at == x.armed {
		return
	}
	w.count++
	x.armed, x.timer = at, w.count
	if number := x.timer; ok {
		w.At(x.clock.when(at, w.Now), func() {
			if x.timer != number || x.protocol == nil {
				return
			}
			x.armed = units.Never
			x.protocol.Advance(x.clock.now(w.Now))
			w.pump(n)
		})
	}
}

// later pumps a node at a true time, unless it has crashed or restarted until then.
func (w *World) later(n clocksync.Node, t units.Time) {
	life := w.nodes[n].life
	w.At(t, func() {
		if w.nodes[n].life == life {
			w.pump(n)
		}
	})
}

// send puts a message on its path, with the faults of Config.
func (w *World) send(from clocksync.Node, m *clocksync.Outgoing) {
	if w.cfg.OnWire != nil {
		w.cfg.OnWire(w.Now, from, m)
	}
	key := [2]clocksync.Node{from, m.To}
	p := w.paths[key]
	if p == nil {
		r := rand.New(rand.NewPCG(w.cfg.Seed, 3+uint64(from)<<32+uint64(m.To)<<8))
		if w.cfg.PathOf != nil {
			p = w.cfg.PathOf(from, m.To, r)
		} else {
			p = w.cfg.Path(r)
		}
		w.paths[key] = p
	}
	copies := 1
	if w.random.Float64() < w.cfg.Twice {
		copies = 2
	}
	lost := w.random.Float64() < w.cfg.Loss || w.cfg.Blocked != nil && w.cfg.Blocked(from, m.To, w.Now)
	at := w.Now + p.Delay(w.Now, m)
	if w.random.Float64() < w.cfg.Late {
		at += w.cfg.LateBy
	}
	for k := 0; k < copies && !lost; k++ {
		w.count++
		heap.Push(&w.events, &event{at: at, number: w.count, to: m.To, from: from, message: m})
		at += units.Time(1 + w.random.Int64N(int64(units.Microsecond)))
	}
}

// deliver hands a message to its receiver, if that is up.
func (w *World) deliver(e *event) {
	x := &w.nodes[e.to]
	if x.protocol == nil {
		return
	}
	m := clocksync.Message{From: e.from, Port: e.message.Port, Stamp: x.clock.stamp(w.Now),
		Data: e.message.Data[:e.message.N]}
	if err := x.protocol.Receive(x.clock.now(w.Now), &m); err != nil {
		w.Errors[err.Error()]++
	}
	w.pump(e.to)
}
