package emulate

import (
	"errors"
	"math"
	"sync"
	"time"

	"weft/clocksync"
	oscillator "weft/clocksync/clock"
	"weft/clocksync/labtime"
	"weft/internal/clock"
	"weft/nodeimg/labclock"
	"weft/orchestrator/runtime"
	"weft/units"
)

// Clocks are the clocks of hosts' programs, each made for the first program of a node. Its methods
// are safe for concurrent use.
type Clocks struct {
	scale  labtime.Scale
	models []oscillator.Config // by host; none, or without Grid: the clock is exact
	none   string              // why there are none

	mu          sync.Mutex // guards what follows
	of          map[string]*nodeClock
	corrections map[int]clocksync.Correction // the last of each host that has one
	over        chan struct{}                // closed to end steering; nil: no clock has errors
	steer       sync.WaitGroup               // steering
}

// nodeClock is the clock of a node's programs.
type nodeClock struct {
	page  *labclock.Page
	host  int
	model *oscillator.Clock // nil: exact

	// CLOCK_MONOTONIC has the frequency of CLOCK_REALTIME but none of its steps, as in Linux. mono
	// is what it has gained since lab time 0, at lab time at.
	mono, at units.Time
}

// steerEvery is the real time between two lines of a clock with errors. Its frequency is constant
// for a second of lab time, so a line is late by at most this, once a second.
const steerEvery = 20 * time.Millisecond

// SetClock has a program in a node read the node's clocks. A node keeps its clocks when it is
// restarted. A switch has exact ones.
func (s *Deployment) SetClock(node string, command *runtime.Command) error {
	host := allHosts
	for i := range s.cluster.Nodes() {
		if s.cluster.Node(i).Name == node {
			host = i
		}
	}
	return s.clocks.set(command, node, host)
}

// set has a program in a node read the node's clocks.
func (c *Clocks) set(command *runtime.Command, node string, host int) (err error) {
	if host >= 0 && host < len(c.models) && c.models[host].Grid > 0 {
		command.Model = &c.models[host]
	}
	command.Clock, err = c.Page(node, host)
	return err
}

// NewClocks returns the clocks of hosts on this machine in a lab whose network is in parts. Other
// machines may have its other hosts.
func NewClocks(scale labtime.Scale) *Clocks { return &Clocks{scale: scale} }

// Model has the clock of a host show errors. It has no effect on a clock that a program has read.
func (c *Clocks) Model(host int, model oscillator.Config) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if more := host + 1 - len(c.models); more > 0 {
		c.models = append(c.models, make([]oscillator.Config, more)...)
	}
	c.models[host] = model
}

// Steer changes the scale of lab time from now on. No clock runs back.
func (c *Clocks) Steer(scale labtime.Scale) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := clock.Monotonic()
	old := c.scale
	c.scale = scale
	for _, n := range c.of {
		lines := c.lines(n, now)
		if n.model == nil {
			passed := float64(now-scale.T0)/scale.Dilation - float64(now-old.T0)/old.Dilation
			for _, l := range []struct {
				line  *labclock.Line
				shown int64
			}{{&lines.Mono, n.page.Mono(now)}, {&lines.Real, n.page.Real(now)}} {
				*l.line = labclock.Line{Base: now, Value: l.shown + int64(max(0, passed)), Rate: 1 / scale.Dilation}
			}
		}
		_ = n.page.Set(lines) // valid, as the first were
	}
}

// Page returns what the clocks of programs in a node show. A node keeps its clocks when it is
// restarted; a node that is no host has exact ones.
func (c *Clocks) Page(node string, host int) (*labclock.Page, error) {
	if c.none != "" {
		return nil, errors.New(c.none)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.of[node]; n != nil {
		return n.page, nil
	}
	n := &nodeClock{host: host}
	if host >= 0 && host < len(c.models) && c.models[host].Grid > 0 {
		var err error
		if n.model, err = oscillator.New(c.models[host]); err != nil {
			return nil, err
		}
		n.at = c.labAt(clock.Monotonic())
		n.mono = n.model.Mono(n.at)
	}
	var err error
	if n.page, err = labclock.NewPage(c.lines(n, clock.Monotonic())); err != nil {
		return nil, err
	}
	if c.of == nil {
		c.of = map[string]*nodeClock{}
	}
	c.of[node] = n
	if n.model != nil && c.over == nil {
		over := make(chan struct{})
		c.over = over
		c.steer.Go(func() { c.steerAll(over) })
	}
	return n.page, nil
}

// lines returns what a node's clocks show from CLOCK_MONOTONIC now on.
func (c *Clocks) lines(n *nodeClock, now int64) labclock.Lines {
	lines := labclock.Exact(c.scale.T0, c.scale.Dilation)
	if n.model == nil {
		return lines
	}
	correction := c.corrections[n.host]
	at := c.labAt(now)
	gain := n.model.Mono(at) - n.model.Mono(n.at)
	n.mono += gain + units.Time(math.Round(correction.Rate*float64(gain)))
	n.at = at
	rate := (1 + n.model.Frequency(at)) * (1 + correction.Rate) / c.scale.Dilation
	const picoseconds = 1000 // in a nanosecond
	lines.Mono = labclock.Line{Base: now, Value: lines.Mono.Value + int64(n.mono)/picoseconds, Rate: rate}
	lines.Real = labclock.Line{Base: now, Value: lines.Real.Value + int64(correction.At(n.model.Hard(at)))/picoseconds,
		Rate: rate}
	if n.page != nil { // rounded down twice, and late: it must not run back
		lines.Mono.Value = max(lines.Mono.Value, n.page.Mono(now))
	}
	return lines
}

// labAt returns lab time at CLOCK_MONOTONIC now; 0 before its start.
func (c *Clocks) labAt(now int64) units.Time { return max(0, c.scale.Lab(now)) }

// Correct changes the correction of a host's clock from now on. It returns an error if the
// correction is not usable.
func (c *Clocks) Correct(host int, correction clocksync.Correction) error {
	if err := correction.Check(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := clock.Monotonic()
	var reads []*nodeClock
	for _, n := range c.of {
		if n.host == host {
			c.lines(n, now) // mono, by the old correction until now
			reads = append(reads, n)
		}
	}
	if c.corrections == nil {
		c.corrections = map[int]clocksync.Correction{}
	}
	c.corrections[host] = correction
	for _, n := range reads {
		_ = n.page.Set(c.lines(n, now)) // valid, as the first were
	}
	return nil
}

// Offset returns by how much the clock of a host is ahead of lab time, and the state of its
// synchronization. ok is false if the clock is exact.
func (c *Clocks) Offset(host int) (by units.Time, state clocksync.State, ok bool) {
	if c.none != "" || host >= len(c.models) || c.models[host].Grid == 0 {
		return 0, 0, false
	}
	model, err := oscillator.New(c.models[host])
	if err != nil {
		return 0, 0, false
	}
	c.mu.Lock()
	correction := c.corrections[host]
	at := c.labAt(clock.Monotonic())
	c.mu.Unlock()
	return correction.At(model.Hard(at)) - at, correction.State, true
}

// steerAll gives every clock with errors its next line until over is closed.
func (c *Clocks) steerAll(over <-chan struct{}) {
	tick := time.NewTicker(steerEvery)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
		}
		c.mu.Lock()
		for _, n := range c.of {
			if n.model != nil {
				_ = n.page.Set(c.lines(n, clock.Monotonic())) // valid, as the first were
			}
		}
		c.mu.Unlock()
	}
}

// Close gives all clocks back. No program runs any more.
func (c *Clocks) Close() {
	c.mu.Lock()
	over := c.over
	c.mu.Unlock()
	if over != nil {
		close(over)
		c.steer.Wait()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.of {
		n.page.Close()
	}
	c.of = nil // corrections may still arrive
}
