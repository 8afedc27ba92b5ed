package realtime

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"weft/clocksync/labtime"
	"weft/fabric"
	"weft/internal/poller"
	"weft/results/stats"
	"weft/timeline"
	"weft/units"
)

// maxBurst is the most frames read from one port before the others have their turn.
const maxBurst = 32

// loop is the engine: one thread that owns the network, the timeline and the descriptors. Other goroutines
// reach it through start, stop and the poller's Wake alone.
type loop struct {
	cfg   Config
	clock labtime.Clock
	scale labtime.Scale
	poll  *poller.Poller

	timeline *timeline.Queue
	net      *fabric.Network
	held     timeline.ID // entity of host 0's held packets; the other hosts' follow
	sampler  timeline.ID

	ports  []port
	byIP   map[uint32]fabric.HostID
	report Report

	start atomic.Int64 // CLOCK_MONOTONIC of lab time 0; 0: not known yet
	stop  atomic.Bool

	samples []Sample
	outbox  chan []Sample // to whoever sends them on
}

func newLoop(cfg Config) (*loop, error) {
	if !(cfg.Dilation > 0) || math.IsInf(cfg.Dilation, 0) {
		return nil, fmt.Errorf("dilation %g", cfg.Dilation)
	}
	if len(cfg.Hosts) != cfg.Network.Hosts {
		return nil, fmt.Errorf("addresses of %d hosts, the network has %d", len(cfg.Hosts), cfg.Network.Hosts)
	}
	if cfg.MaxFrame == 0 {
		cfg.MaxFrame = 10 << 10
	}
	l := &loop{
		cfg:      cfg,
		clock:    labtime.NewClock(),
		timeline: timeline.New(0),
		ports:    make([]port, len(cfg.Hosts)),
		byIP:     make(map[uint32]fabric.HostID, len(cfg.Hosts)),
		outbox:   make(chan []Sample, 64),
		report: Report{
			Delivery: stats.NewDist(), Departure: stats.NewDist(), QueueDelay: stats.NewDist(),
		},
	}
	for h, a := range cfg.Hosts {
		ip := binary.BigEndian.Uint32(a.IP[:])
		if other, taken := l.byIP[ip]; taken {
			return nil, fmt.Errorf("hosts %d and %d have the same address %v", other, h, a.IP)
		}
		l.byIP[ip] = fabric.HostID(h)
		l.ports[h].fd = -1
	}
	var err error
	if l.net, err = fabric.New(cfg.Network, l.timeline, l); err != nil {
		return nil, err
	}
	l.held = l.timeline.Grow(len(cfg.Hosts))
	l.sampler = l.timeline.Grow(1)
	l.poll, err = poller.New(len(cfg.Hosts))
	return l, err
}

// attach gives a host its port.
func (l *loop) attach(host int, p Port) error {
	if err := l.ports[host].attach(p); err != nil {
		return fmt.Errorf("port of host %d: %w", host, err)
	}
	return l.poll.Add(p.FD, int32(host))
}

// run carries frames until stop. Before the start of lab time it answers ARP and drops the rest.
func (l *loop) run() error {
	for l.start.Load() == 0 && !l.stop.Load() {
		if err := l.turn(poller.Forever); err != nil {
			return err
		}
	}
	l.begin()
	for !l.stop.Load() {
		l.fire(l.labNow())
		if err := l.turn(l.untilNext()); err != nil {
			return err
		}
	}
	l.end()
	return nil
}

// begin fixes lab time. Until T0 it is negative, and frames are still early.
func (l *loop) begin() {
	l.scale = labtime.Scale{T0: l.start.Load(), Dilation: l.cfg.Dilation}
	if l.cfg.Sample > 0 {
		l.timeline.Set(l.sampler, l.cfg.Sample)
	}
	l.report.CPU = -poller.CPU()
}

// turn waits for input and takes it.
func (l *loop) turn(timeout time.Duration) error {
	if _, err := l.poll.Wait(timeout); err != nil {
		return err
	}
	for _, h := range l.poll.Ready {
		if err := l.read(fabric.HostID(h)); err != nil {
			return fmt.Errorf("read from port of host %d: %w", h, err)
		}
	}
	return nil
}

// labNow returns the present lab time; negative before the start.
func (l *loop) labNow() units.Time {
	if l.scale.T0 == 0 {
		return -1
	}
	return l.scale.Lab(l.clock.Now())
}

// fire does everything that is due at now or before, each at its own instant.
func (l *loop) fire(now units.Time) {
	for {
		id, at, ok := l.timeline.Next()
		if !ok || at > now {
			break
		}
		l.timeline.Pop()
		switch {
		case l.net.Owns(id):
			l.net.Fire(at, id)
		case id == l.sampler:
			l.sample(at)
		default:
			l.release(at, fabric.HostID(id-l.held))
		}
	}
}

// untilNext returns the real time until something is due.
func (l *loop) untilNext() time.Duration {
	_, at, ok := l.timeline.Next()
	if !ok {
		return poller.Forever
	}
	return time.Duration(l.scale.Mono(at) - l.clock.Now())
}

// sample records the queues and arms the next sample.
func (l *loop) sample(at units.Time) {
	l.timeline.Set(l.sampler, at+l.cfg.Sample)
	l.net.Sample(at, func(port int, queued units.Bytes) {
		l.samples = append(l.samples, Sample{At: at, Port: port, Queued: queued})
	})
	if len(l.samples) >= 500 {
		l.flushSamples()
	}
}

// flushSamples hands the samples over without waiting; those that find no room are counted.
func (l *loop) flushSamples() {
	if len(l.samples) == 0 {
		return
	}
	select {
	case l.outbox <- l.samples:
	default:
		l.report.Unsent += int64(len(l.samples))
	}
	l.samples = nil
}

// end completes the report.
func (l *loop) end() {
	l.flushSamples()
	l.report.CPU += poller.CPU()
	l.report.Elapsed = max(l.labNow(), 0)
	l.report.Network = l.net.Counters()
	if err := l.net.CheckConservation(); err != nil {
		l.report.Broken = err.Error()
	}
	for i := range l.ports {
		l.report.Refused += l.ports[i].drops()
	}
}
