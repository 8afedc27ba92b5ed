package emulate

import (
	"errors"
	"sync"
	"time"

	oscillator "weft/clocksync/clock"
	"weft/clocksync/labtime"
	"weft/internal/clock"
	"weft/nodeimg/labclock"
)

// hostClocks are what the programs of a deployed lab read, made when the first one of a node asks.
type hostClocks struct {
	scale labtime.Scale
	free  []oscillator.Config // by host; nil: clocks are exact
	none  string              // why there are none

	mu    sync.Mutex // guards what follows
	of    map[string]*nodeClock
	over  chan struct{}  // closed to end steering
	steer sync.WaitGroup // steering
}

// nodeClock is what the programs of a node read.
type nodeClock struct {
	page  *labclock.Page
	model *oscillator.Clock // nil: exact
}

// steerEvery is the real time between two lines of a clock with errors. Its frequency is constant
// for a second of lab time, so a line is late by at most this, once a second.
const steerEvery = 20 * time.Millisecond

// Clock returns what the clocks of programs in a node show. A node keeps its clocks when it is
// restarted. A switch has exact ones.
func (s *Deployment) Clock(node string) (*labclock.Page, error) {
	host := allHosts
	for i := range s.cluster.Nodes() {
		if s.cluster.Node(i).Name == node {
			host = i
		}
	}
	return s.clocks.page(node, host)
}

func (c *hostClocks) page(node string, host int) (*labclock.Page, error) {
	if c.none != "" {
		return nil, errors.New(c.none)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.of[node]; n != nil {
		return n.page, nil
	}
	n := new(nodeClock)
	if c.free != nil && host >= 0 {
		var err error
		if n.model, err = oscillator.New(c.free[host]); err != nil {
			return nil, err
		}
	}
	var err error
	if n.page, err = labclock.NewPage(c.lines(n, clock.Monotonic())); err != nil {
		return nil, err
	}
	if c.of == nil {
		c.of, c.over = map[string]*nodeClock{}, make(chan struct{})
		if c.free != nil {
			c.steer.Go(c.steerAll)
		}
	}
	c.of[node] = n
	return n.page, nil
}

// lines returns what a node's clocks show from CLOCK_MONOTONIC now on.
func (c *hostClocks) lines(n *nodeClock, now int64) labclock.Lines {
	lines := labclock.Exact(c.scale.T0, c.scale.Dilation)
	if n.model == nil {
		return lines
	}
	at := max(0, c.scale.Lab(now))
	rate := (1 + n.model.Frequency(at)) / c.scale.Dilation
	const picoseconds = 1000 // in a nanosecond
	lines.Mono = labclock.Line{Base: now, Value: lines.Mono.Value + int64(n.model.Mono(at))/picoseconds, Rate: rate}
	lines.Real = labclock.Line{Base: now, Value: lines.Real.Value + int64(n.model.Hard(at))/picoseconds, Rate: rate}
	if n.page != nil { // rounded down twice, and late: it must not run back
		lines.Mono.Value = max(lines.Mono.Value, n.page.Mono(now))
	}
	return lines
}

// steerAll gives every clock its next line until close.
func (c *hostClocks) steerAll() {
	tick := time.NewTicker(steerEvery)
	defer tick.Stop()
	for {
		select {
		case <-c.over:
			return
		case <-tick.C:
		}
		c.mu.Lock()
		for _, n := range c.of {
			_ = n.page.Set(c.lines(n, clock.Monotonic())) // valid, as the first were
		}
		c.mu.Unlock()
	}
}

// close gives all clocks back. No program runs any more.
func (c *hostClocks) close() {
	c.mu.Lock()
	none := c.of == nil
	c.mu.Unlock()
	if none {
		return
	}
	close(c.over)
	c.steer.Wait()
	for _, n := range c.of {
		n.page.Close()
	}
}
