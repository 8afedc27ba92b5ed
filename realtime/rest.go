package realtime

import (
	"math/bits"
	"time"

	"weft/eventqueue"
	"weft/internal/clock"
	"weft/internal/poller"
	"weft/units"
)

// rest decides how long the loop sleeps. Waking up is expensive: for the processor that arms the
// timer or sends the interrupt and for the one that wakes, it costs more than carrying a packet. So
// the loop
//
//   - sleeps until a frame can be delivered, not until something happens inside the network: events
//     due earlier are handled then, at their own instants, and nothing outside can tell the
//     difference;
//   - in a network in parts, also wakes for what may send a packet to another part, but not at
//     once: a quarter of the slack is spent here, so that packets cross together;
//   - polls without sleeping when that instant is closer than a sleep takes, also at the end of a
//     sleep;
//   - and, the more there is to do, pauses after each wake-up and handles what has arrived until
//     then together, as network cards moderate interrupts.
type rest struct {
	links   []eventqueue.ID // of links to hosts, and of pauses on their way to hosts
	delay   units.Time      // minimum time from the last switch to a host
	cross   units.Time      // how long a packet for another part may wait; Never: there is no other
	longest int64           // longest pause, in ns
	woke    int64           // when the loop last woke, CLOCK_MONOTONIC in ns

	pause  int64 // current pause in ns, by the frames of the last window; 0: none
	frames int64 // read or written in this window
	window int64 // start of this window, CLOCK_MONOTONIC in ns
}

// There is no pause with up to fewFrames frames read or written in a window: waking up for each of
// them takes half a processor. With more frames the pause grows, to its maximum with manyFrames,
// which two processors can just carry.
const (
	windowLength = 1_000_000 // ns
	fewFrames    = 40
	manyFrames   = 160
)

// tooShort is the wait, in nanoseconds, below which a sleep does not pay. Measured: a sleep of 20
// us takes 14 us of processor time and ends 14 us late.
const tooShort = 25_000

// maxPause is the longest pause, in nanoseconds of real time. A longer one would gain little.
const maxPause = 100_000

// newRest returns the rest for the network in l.
func newRest(l *loop) rest {
	longest := min(maxPause, int64(float64(l.cfg.Pause.Nanoseconds())*l.cfg.Dilation))
	r := rest{delay: units.Never, cross: units.Never, longest: longest}
	for i, p := range l.cfg.Network.Ports {
		if int(p.To) < l.cfg.Network.Hosts {
			r.links = append(r.links, l.net.PortEntity(i))
			r.delay = min(r.delay, p.Delay)
		}
		if id, ok := l.net.PauseEntity(i); ok && int(p.From) < l.cfg.Network.Hosts && l.cfg.Switch != [4]byte{} {
			r.links = append(r.links, id) // a host must learn in time that it is paused
			r.delay = min(r.delay, p.Delay)
		}
	}
	if l.part != nil {
		r.cross = l.cfg.Network.Slack(l.cfg.Part.Of) / 4
	}
	if id, ok := l.net.LateEntity(); ok {
		r.links = append(r.links, id) // a packet that is late has passed its link: it may be at its host when it is due
	}
	return r
}

// nextDelivery returns an instant before which nothing is delivered to a host, and nothing that
// leaves for another part has waited for too long.
func (l *loop) nextDelivery() units.Time {
	at := units.Never
	_, next, ok := l.events.Next()
	if l.part != nil {
		first := l.part.leaves()
		if ok {
			first = min(first, next) // whatever happens may send a packet to another part
		}
		if first < units.Never-l.rest.cross {
			at = first + l.rest.cross
		}
	}
	if !ok {
		return at
	}
	if next < units.Never-l.rest.delay {
		at = min(at, next+l.rest.delay) // no event before the next one can deliver anything before this
	}
	for _, id := range l.rest.links {
		if arrival, ok := l.events.At(id); ok {
			at = min(at, arrival)
		}
	}
	return at
}

// wait sleeps until there is something to do. The poller then holds what is ready.
func (l *loop) wait() error {
	if l.scale.T0 == 0 {
		return l.sleep(poller.Forever)
	}
	now := l.clock.Now()
	l.behind.worked(l, now)
	l.rest.look(now)
	if until := l.rest.until(); now < until {
		l.behind.until = until
		poller.Sleep(clock.Kernel(until))
		l.rest.woke = l.clock.Now()
		return l.poll.Wait(0)
	}
	l.behind.until = l.behind.nap(now, l.beat)
	if at := l.nextDelivery(); at != units.Never {
		l.behind.until = min(l.behind.until, l.scale.Mono(at))
	}
	timeout := time.Duration(l.behind.until - now)
	if timeout <= tooShort {
		return l.poll.Wait(0)
	}
	if l.rest.pause == 0 {
		timeout -= tooShort // there is time to be exact: poll for the rest
	}
	err := l.sleep(timeout)
	l.rest.woke = l.clock.Now()
	return err
}

// until returns the end of the current pause: an instant close to it, on a grid on which nodes wake
// too. The more processes wait for the same instant, the fewer interrupts there are; each takes
// some microseconds in a virtual machine.
func (r *rest) until() int64 {
	if r.pause == 0 {
		return 0
	}
	// With this grid a pause lasts at most twice as long, and at least nothing.
	grid := int64(1) << (bits.Len64(uint64(2*r.pause)) - 1)
	grid = min(grid, maxGrid)
	return (r.woke + r.pause + grid/2) &^ (grid - 1)
}

// maxGrid is the grid of the nodes (package agent), in nanoseconds.
const maxGrid = 1 << 17

// look ends the window if it is over, and computes the pause for the next one.
func (r *rest) look(now int64) {
	if now-r.window < windowLength {
		return
	}
	frames := r.frames * windowLength / (now - r.window)
	r.pause = r.longest * max(0, min(frames, manyFrames)-fewFrames) / (manyFrames - fewFrames)
	r.frames, r.window = 0, now
}
