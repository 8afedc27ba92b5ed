package agent

import (
	"errors"
	"math"
	"time"

	"weft/internal/bypass"
	"weft/internal/poller"
	"weft/internal/rings"
)

// A driver turns the loops of one or more nodes, in one goroutine. One wake-up serves all nodes
// with something to do, and finds their shared code and data in the cache.
type driver struct {
	poll  *poller.Poller
	loops []*loop        // node i's poller tokens begin at i*tokens
	bells []*bypass.Bell // of bypass NICs; the token of bell k is -1-k

	bypasses bool  // all nodes have bypass NICs: what is urgent comes through rings
	asked    int64 // when the poller was last asked, CLOCK_MONOTONIC in ns
	woke     int64 // when the last wait ended, CLOCK_MONOTONIC in ns; 0: none has
	least    int64 // length of the shortest stall that is recorded, in real ns
}

// askEvery is how often busy nodes with bypass NICs ask the poller, in nanoseconds. Ours: a system
// call in each turn would take a twentieth of their processor time.
const askEvery = 50_000

// alone reports whether an error ends one node and leaves the others of its process: its own
// process has ended, or its bypass NIC is not usable.
func alone(err error) bool { return errors.Is(err, errKept) || errors.Is(err, rings.ErrLie) }

// errKept ends the loop of a node whose own process has ended.
var errKept = errors.New("the node's process has ended")

// run waits for the start messages and drives the machines, which must be prepared, until all are
// told to stop. A node whose process has ended stops alone. Any other error ends all of them, and
// failed is the index of its node.
func (d *driver) run(dilation float64) (failed int, err error) {
	for !d.all(func(l *loop) bool { return l.over() || l.t0 != 0 }) {
		if err := d.poll.Wait(poller.Forever); err != nil {
			return 0, err
		}
		for _, token := range d.poll.Ready {
			if token < 0 {
				d.bells[-1-token].Clear()
				continue
			}
			if what := token % tokens; what == controlToken || what == keeperToken {
				d.loops[token/tokens].handle(what)
			}
		}
		if failed, err := d.failed(); err != nil {
			return failed, err
		}
	}
	before := poller.CPU()
	for _, l := range d.loops {
		if !l.over() {
			l.begin(dilation)
			d.least = l.scale.RealSpan(l.results.Stalls.Least)
		}
	}
	for !d.all((*loop).over) {
		if err := d.turn(); err != nil {
			return 0, err
		}
		if failed, err := d.failed(); err != nil {
			return failed, err
		}
	}
	each := (poller.CPU() - before) / int64(len(d.loops))
	for _, l := range d.loops {
		l.results.CPU = each
	}
	return 0, nil
}

// turn waits for events and lets the affected nodes handle them. The order matters: first all that
// has arrived is received, then each node whose machine has something to do takes one turn, so that
// acknowledgements answer what is there already. A node that ended leaves the poller last.
func (d *driver) turn() error {
	wake := int64(math.MaxInt64)
	for _, l := range d.loops {
		if !l.over() {
			wake = min(wake, l.wake)
		}
	}
	if err := d.wait(wake); err != nil {
		return err
	}
	d.woke = d.loops[0].clock.Now()
	for _, token := range d.poll.Ready {
		if token < 0 {
			d.bells[-1-token].Clear()
			continue
		}
		if l := d.loops[token/tokens]; !l.over() {
			l.handle(token % tokens)
		}
	}
	if len(d.bells) > 0 {
		for _, l := range d.loops {
			if l.bypass != nil && !l.over() && l.bypass.in.Ready() {
				l.called = true
				l.receive(l.bypass)
			}
		}
	}
	now := d.loops[0].clock.Now()
	for _, l := range d.loops {
		if !l.over() && (l.called && l.awake || l.wake <= now) {
			l.turn()
		}
		if l.over() && !l.left {
			l.left = true
			d.forget(l)
			if errors.Is(l.err, rings.ErrLie) {
				_ = l.lost(l.err) // losing the orchestrator ends the process elsewhere
			}
		}
	}
	return nil
}

// wait waits for events until an instant. With bypass NICs it first says until when this process
// sleeps, so that the fabric rings only for what is due before, and then looks at the rings once
// more: what was pushed in between rings nobody.
func (d *driver) wait(wake int64) error {
	now := d.loops[0].clock.Now()
	d.worked(now)
	ns := wake - now
	if d.bypasses && ns <= 0 && now-d.asked < askEvery {
		d.poll.Ready = d.poll.Ready[:0]
		return nil
	}
	d.asked = now
	if len(d.bells) == 0 || ns <= 0 {
		return d.poll.Wait(time.Duration(ns))
	}
	for _, b := range d.bells {
		b.Sleep(wake)
	}
	for _, l := range d.loops {
		if l.bypass != nil && !l.over() && l.bypass.in.Ready() {
			ns = 0 // pushed before the fabric process could know that it should ring
			break
		}
	}
	err := d.poll.Wait(time.Duration(ns))
	for _, b := range d.bells {
		b.Awake()
	}
	return err
}

// worked records that the process has been busy since the last wait until now. It was behind if
// that took long: answers to what it had taken by then waited.
func (d *driver) worked(now int64) {
	if l := d.loops[0]; d.woke != 0 && now-d.woke > d.least && l.scale.T0 != 0 {
		l.results.Stalls.Record(l.scale.Lab(d.woke), l.scale.Lab(now))
	}
}

// listen adds a bell to the poller.
func (d *driver) listen(bell *bypass.Bell) error {
	d.bells = append(d.bells, bell)
	return d.poll.Add(bell.FD, -int32(len(d.bells)))
}

// watch adds the descriptors of node i to the poller.
func (d *driver) watch(i int, fds map[int32]int) error {
	d.loops[i].watched = fds
	for what, fd := range fds {
		if err := d.poll.Add(fd, int32(i)*tokens+what); err != nil {
			return err
		}
	}
	return nil
}

// forget removes the descriptors of a node that has ended.
func (d *driver) forget(l *loop) {
	for _, fd := range l.watched {
		l.fail(d.poll.Remove(fd))
	}
}

// all reports whether all nodes are in a state.
func (d *driver) all(is func(*loop) bool) bool {
	for _, l := range d.loops {
		if !is(l) {
			return false
		}
	}
	return true
}

// failed returns the first node that failed, and its error, unless that ends the node alone.
func (d *driver) failed() (node int, err error) {
	for i, l := range d.loops {
		if l.err != nil && !alone(l.err) {
			return i, l.err
		}
	}
	return 0, nil
}
