package realtime

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"weft/clocksync/labtime"
	"weft/eventqueue"
	"weft/fabric"
	"weft/internal/clock"
	"weft/internal/control"
	"weft/internal/poller"
	"weft/results/stats"
	"weft/units"
)

// maxBurst is the most frames read from one port before the others have their turn.
const maxBurst = 32

// loop is the engine: one goroutine that owns the network, the event queue and the descriptors.
type loop struct {
	cfg   Config
	conn  *control.Conn
	clock clocked
	scale labtime.Scale
	poll  *poller.Poller
	rest  rest

	events  *eventqueue.Queue
	net     *fabric.Network
	held    eventqueue.ID // entity of host 0's held packets; the other hosts' follow
	sampler eventqueue.ID
	script  eventqueue.ID   // armed for the next of the changes
	changes []fabric.Change // that are left

	ports    []port
	byIP     map[uint32]fabric.HostID
	switchIP uint32          // Config.Switch
	bySwitch map[uint32]bool // addresses of Config.Switches
	bridges  *bridges        // nil: see Config.PeerDelay
	steps    []fabric.Step   // not sent yet
	seen     []byte          // frame of frameOf
	followed int             // steps so far
	notice   [128]byte       // frame of a notice
	refusals []Refusals      // by host
	beside   []int64         // by host: packets carried that are neither Weft's own nor among answers
	answers  []int64         // by host: ICMP errors carried about packets that were carried to it
	quotes   []quotes        // by host: of the last packets to it
	own      []int64         // by host: those that are, or pretend to be
	report   Report

	samples  []Sample
	captures []*capture // nil: nobody captures
	beat     int64      // when to say next that the process is alive, CLOCK_MONOTONIC
	stop     bool
	err      error // the first that ends the loop
}

// clocked is the clock that the loop goes by: CLOCK_MONOTONIC in nanoseconds.
type clocked interface{ Now() int64 }

func newLoop(cfg Config, conn *control.Conn) (*loop, error) {
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
		conn:     conn,
		clock:    clock.NewClock(),
		events:   eventqueue.New(0),
		ports:    make([]port, len(cfg.Hosts)),
		refusals: make([]Refusals, len(cfg.Hosts)),
		beside:   make([]int64, len(cfg.Hosts)),
		answers:  make([]int64, len(cfg.Hosts)),
		quotes:   make([]quotes, len(cfg.Hosts)),
		own:      make([]int64, len(cfg.Hosts)),
		byIP:     make(map[uint32]fabric.HostID, len(cfg.Hosts)),
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
	if l.net, err = fabric.New(cfg.Network, l.events, l); err != nil {
		return nil, err
	}
	if cfg.Switch != [4]byte{} {
		l.switchIP = binary.BigEndian.Uint32(cfg.Switch[:])
		if h, taken := l.byIP[l.switchIP]; taken {
			return nil, fmt.Errorf("the switches and host %d have the same address %v", h, cfg.Switch)
		}
		l.net.Observers.Pauses(l.pauses)
	}
	if err := errors.Join(l.nameSwitches(), l.coordinate()); err != nil {
		return nil, err
	}
	if err := l.attachBridges(); err != nil {
		return nil, err
	}
	l.held = l.events.Grow(len(cfg.Hosts))
	l.sampler, l.script = l.events.Grow(1), l.events.Grow(1)
	l.changes = cfg.Changes
	l.rest = newRest(l)
	l.poll, err = poller.New(len(cfg.Hosts) + 1)
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
	fd, err := l.conn.Descriptor()
	if err != nil {
		return err
	}
	if err := l.poll.Add(fd, controlToken); err != nil {
		return err
	}
	for !l.stop {
		l.fire(l.labNow())
		if len(l.steps) >= maxSamples {
			l.fail(l.sendSteps())
		}
		l.fail(l.turn())
		if l.err != nil {
			return l.err
		}
	}
	return l.end()
}

func (l *loop) fail(err error) {
	if l.err == nil {
		l.err = err
	}
}

// controlToken marks the control connection among the hosts.
const controlToken = -1

// turn says now and then that the process is alive, waits for input and takes it.
func (l *loop) turn() error {
	if l.scale.T0 != 0 && l.clock.Now() >= l.beat {
		l.beat = l.clock.Now() + int64(AliveEvery)
		l.fail(l.conn.SendValue(KindAlive, nil))
		l.remind()
		l.forgetCaptures()
	}
	if err := l.wait(); err != nil {
		return err
	}
	for _, h := range l.poll.Ready {
		if h == controlToken {
			if err := l.obey(); err != nil {
				return err
			}
			continue
		}
		if err := l.read(fabric.HostID(h)); err != nil {
			return fmt.Errorf("read from port of host %d: %w", h, err)
		}
	}
	return nil
}

// obey takes a message from the orchestrator.
func (l *loop) obey() error {
	m, fds, err := l.conn.Recv()
	if err != nil {
		return fmt.Errorf("the orchestrator is gone: %w", err)
	}
	switch m.Kind {
	case KindChange, KindHalt, KindPlug, KindCapture, KindLook:
		return l.serve(m, fds)
	case KindStart:
		var s Start
		if err := m.Decode(&s); err != nil {
			return err
		}
		l.begin(s.T0)
		return nil
	case KindStop:
		l.stop = true
		return nil
	}
	return fmt.Errorf("%q was not expected", m.Kind)
}

// begin fixes lab time. Until t0 it is negative, and frames are still early.
func (l *loop) begin(t0 int64) {
	l.scale = labtime.Scale{T0: t0, Dilation: l.cfg.Dilation}
	if l.cfg.Sample > 0 {
		l.events.Set(l.sampler, l.cfg.Sample)
	}
	l.armScript()
	l.report.CPU = -poller.CPU()
}

func (l *loop) armScript() {
	if len(l.changes) > 0 {
		l.events.Set(l.script, l.changes[0].At)
	}
}

// change makes the next change of the network.
func (l *loop) change(at units.Time) {
	c := &l.changes[0]
	l.changes = l.changes[1:]
	l.fail(c.Make(at, l.net))
	l.armScript()
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
		id, at, ok := l.events.Next()
		if !ok || at > now {
			break
		}
		l.events.Pop()
		switch {
		case l.net.Owns(id):
			l.net.Fire(at, id)
		case id == l.sampler:
			l.fail(l.sample(at))
		case id == l.script:
			l.change(at)
		default:
			l.release(at, fabric.HostID(id-l.held))
		}
	}
}

// maxSamples is how many samples are sent at once: few enough that sending them makes nothing late.
const maxSamples = 64

// sample records the queues and arms the next sample.
func (l *loop) sample(at units.Time) error {
	l.events.Set(l.sampler, at+l.cfg.Sample)
	l.net.Sample(at, func(port int, queued units.Bytes) {
		c := l.net.PortCounters(port)
		l.samples = append(l.samples, Sample{At: at, Port: port, Queued: queued, Marks: c.Marks, Drops: c.Drops})
	})
	if len(l.samples) < maxSamples {
		return nil
	}
	return l.sendSamples()
}

func (l *loop) sendSamples() error {
	if len(l.samples) == 0 {
		return nil
	}
	err := l.conn.SendValue(KindSamples, l.samples)
	l.samples = l.samples[:0]
	return err
}

// end completes the report and sends it.
func (l *loop) end() error {
	if err := errors.Join(l.sendSamples(), l.sendSteps()); err != nil {
		return err
	}
	l.report.CPU += poller.CPU()
	l.report.Elapsed = max(l.labNow(), 0)
	l.report.Network, l.report.Ports = l.net.Counters(), make([]fabric.PortCounters, l.net.Ports())
	for i := range l.report.Ports {
		l.report.Ports[i] = l.net.PortCounters(i)
	}
	if err := l.net.CheckConservation(); err != nil {
		l.report.Broken = err.Error()
	}
	if l.bridges != nil {
		c := l.bridges.Counters()
		l.report.Bridges = &c
	}
	l.report.Refusals, l.report.Beside, l.report.Answers = l.refusals, l.beside, l.answers
	for i := range l.ports {
		l.report.Refused += l.ports[i].drops()
	}
	return l.conn.SendValue(KindReport, &l.report)
}
