package agent

import (
	"errors"
	"math"
	"time"

	"weft/internal/poller"
)

// A driver turns the loops of one or more nodes, in one goroutine. One wake-up serves all that have something to do, and what
// they do is in the cache already when the next does it.
type driver struct {
	poll  *poller.Poller
	loops []*loop // tokens of the poller are tokens apart, in this order
}

// errKept ends the loop of a node whose own process has ended.
var errKept = errors.New("the node's process has ended")

// run waits for the start messages and drives the machines, which must be prepared, until all are told to stop. A node whose
// process has ended stops alone; any other error ends them all, and is of the node whose number is returned.
func (d *driver) run(dilation float64) (failed int, err error) {
	for !d.all(func(l *loop) bool { return l.over() || l.t0 != 0 }) {
		if err := d.poll.Wait(poller.Forever); err != nil {
			return 0, err
		}
		for _, token := range d.poll.Ready {
			if what := token % tokens; what == controlToken || what == keeperToken {
				d.loops[token/tokens].heed(what)
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

// turn waits for something to do, and has the nodes do it that it concerns.
func (d *driver) turn() error {
	wake := int64(math.MaxInt64)
	for _, l := range d.loops {
		if !l.over() {
			wake = min(wake, l.wake)
		}
	}
	clock := &d.loops[0].clock
	if err := d.poll.Wait(time.Duration(wake - clock.Now())); err != nil {
		return err
	}
	for _, token := range d.poll.Ready {
		if l := d.loops[token/tokens]; !l.over() {
			l.heed(token % tokens)
		}
	}
	now := clock.Now()
	for _, l := range d.loops {
		if !l.over() && (l.called && l.awake || l.wake <= now) {
			l.turn()
		}
		if l.over() && !l.left {
			l.left = true
			d.forget(l)
		}
	}
	return nil
}

// watch adds the node whose number is given to what is waited for.
func (d *driver) watch(i int, fds map[int32]int) error {
	d.loops[i].watched = fds
	for what, fd := range fds {
		if err := d.poll.Add(fd, int32(i)*tokens+what); err != nil {
			return err
		}
	}
	return nil
}

// forget stops waiting for what is for a node that does nothing more.
func (d *driver) forget(l *loop) {
	for _, fd := range l.watched {
		l.fail(d.poll.Remove(fd))
	}
}

func (d *driver) all(is func(*loop) bool) bool {
	for _, l := range d.loops {
		if !is(l) {
			return false
		}
	}
	return true
}

// failed returns the first node that failed, and why. Those that are no more have not.
func (d *driver) failed() (node int, err error) {
	for i, l := range d.loops {
		if l.err != nil && !errors.Is(l.err, errKept) {
			return i, l.err
		}
	}
	return 0, nil
}
