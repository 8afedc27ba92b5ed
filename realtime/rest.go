package realtime

import (
	"math/bits"
	"time"

	"weft/eventqueue"
	"weft/internal/poller"
	"weft/units"
)

// rest decides how long the loop sleeps. Waking up is dear: it takes longer than carrying a packet, for the
// processor that arms the timer or sends the interrupt and for the one that wakes. So the loop
//
//   - sleeps until something can be delivered, not until something happens inside the network: what is due
//     before is done then, at its own instants, and nobody can tell the difference;
//   - turns round and looks again when that is sooner than a sleep would take, also at the end of a sleep;
//   - and, the more there is to do, pauses after each wake-up and takes what has come by then together (as a
//     network card's interrupts are moderated).
type rest struct {
	links []eventqueue.ID // of the lines that lead to hosts, and of the pauses on their way to them
	delay units.Time      // the least time from the last switch to a host
	most  int64           // longest pause, nanoseconds
	woke  int64           // when the loop woke last, CLOCK_MONOTONIC

	pause  int64 // by what there was to do in the last window; 0: none
	frames int64 // read or written in this window
	window int64 // when it began
}

// Up to fewFrames read or written in a window there is no pause: a wake-up for each takes half of a processor. From
// there it grows, until with manyFrames, which two processors just carry, it is as long as it may be.
const (
	windowLength = 1_000_000 // nanoseconds
	fewFrames    = 40
	manyFrames   = 160
)

// tooShort is how short a wait does not pay for a sleep, in nanoseconds. Measured: a sleep of 20 us takes 14 us
// of processor time, and ends 14 us late.
const tooShort = 25_000

// maxPause bounds the pause in real nanoseconds: beyond, there is little left to gain.
const maxPause = 100_000

// newRest prepares for the network in l.
func newRest(l *loop) rest {
	r := rest{delay: units.Never, most: min(maxPause, int64(float64(l.cfg.Pause.Nanoseconds())*l.cfg.Dilation))}
	for i, p := range l.cfg.Network.Ports {
		if int(p.To) < l.cfg.Network.Hosts {
			r.links = append(r.links, l.net.PortEntity(i))
			r.delay = min(r.delay, p.Delay)
		}
		if id, ok := l.net.PauseEntity(i); ok && int(p.From) < l.cfg.Network.Hosts && l.cfg.Switch != [4]byte{} {
			r.links = append(r.links, id) // a host that is paused must know
			r.delay = min(r.delay, p.Delay)
		}
	}
	if id, ok := l.net.LateEntity(); ok {
		r.links = append(r.links, id) // what comes late, and came to the end of its line before, may be at its host when it is due
	}
	return r
}

// nextDelivery returns an instant before which nothing is delivered.
func (l *loop) nextDelivery() units.Time {
	_, next, ok := l.events.Next()
	if !ok {
		return units.Never
	}
	at := units.Never
	if next < units.Never-l.rest.delay {
		at = next + l.rest.delay // whatever happens next leads to no delivery before
	}
	for _, id := range l.rest.links {
		if arrival, ok := l.events.At(id); ok {
			at = min(at, arrival)
		}
	}
	return at
}

// wait sleeps until there is something to do, and leaves in the poller what has come.
func (l *loop) wait() error {
	if l.scale.T0 == 0 {
		return l.poll.Wait(poller.Forever)
	}
	now := l.clock.Now()
	l.rest.look(now)
	if until := l.rest.until(); now < until {
		poller.Sleep(until)
		l.rest.woke = l.clock.Now()
		return l.poll.Wait(0)
	}
	at := l.nextDelivery()
	if at == units.Never {
		return l.poll.Wait(time.Duration(max(0, l.beat-now)))
	}
	timeout := time.Duration(min(l.scale.Mono(at), l.beat) - now)
	if timeout <= tooShort {
		return l.poll.Wait(0)
	}
	if l.rest.pause == 0 {
		timeout -= tooShort // there is time to be exact: turn round for the rest
	}
	err := l.poll.Wait(timeout)
	l.rest.woke = l.clock.Now()
	return err
}

// until returns the end of a pause: an instant, near that at which it would end, that nodes wake at too. The more
// processes wait for the same instant the fewer interrupts there are. Each takes some microseconds in a virtual machine.
func (r *rest) until() int64 {
	if r.pause == 0 {
		return 0
	}
	grid := int64(1) << (bits.Len64(uint64(2*r.pause)) - 1) // so that a pause lasts up to twice as long, and not less than nothing
	grid = min(grid, longestGrid)
	return (r.woke + r.pause + grid/2) &^ (grid - 1)
}

// longestGrid is that of the nodes (package agent), in nanoseconds.
const longestGrid = 1 << 17

// look closes a window that is over.
func (r *rest) look(now int64) {
	if now-r.window < windowLength {
		return
	}
	frames := r.frames * windowLength / (now - r.window)
	r.pause = r.most * max(0, min(frames, manyFrames)-fewFrames) / (manyFrames - fewFrames)
	r.frames, r.window = 0, now
}
