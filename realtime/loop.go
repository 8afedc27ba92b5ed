package realtime

import (
	"encoding/binary"
	"errors"
	"fmt"

	"weft/clocksync/labtime"
	"weft/eventqueue"
	"weft/fabric"
	"weft/internal/clock"
	"weft/internal/control"
	"weft/internal/poller"
	"weft/results/frames"
	"weft/results/stats"
	"weft/units"
)

// maxBurst is the largest number of frames read from one port before the other ports have their
// turn. Our own choice.
const maxBurst = 32

// loop is the fabric process: one goroutine that owns the network, the event queue and the
// descriptors.
type loop struct {
	cfg   Config
	conn  *control.Conn // to the orchestrator
	clock clocked       // CLOCK_MONOTONIC, replaced in tests
	scale labtime.Clock // from CLOCK_MONOTONIC to lab time
	poll  *poller.Poller
	rest  rest // when the loop sleeps

	events  *eventqueue.Queue
	net     *fabric.Network
	part    *part           // nil: the network is in one piece
	held    eventqueue.ID   // entity of the packets that host 0 holds until departure; those of other hosts follow
	sampler eventqueue.ID   // entity of queue samples
	framer  eventqueue.ID   // entity of frames
	script  eventqueue.ID   // entity of the next of changes
	changes []fabric.Change // planned changes to come

	ports    []port
	bells    bells // of bypass NICs
	byIP     map[uint32]fabric.HostID
	switchIP uint32          // Config.Switch; 0: none
	bySwitch map[uint32]bool // addresses of Config.Switches
	bridges  *bridges        // nil: see Config.PeerDelay
	steps    []fabric.Step   // of CCM, not sent yet
	seen     []byte          // storage of the frame that frameOf returns
	followed int             // number of steps so far
	notice   [128]byte       // storage of the frame that noticeFrame returns
	refusals []Refusals      // by host
	beside   []int64         // by host: packets carried that are neither Weft's own nor among answers
	answers  []int64         // by host: ICMP errors carried about packets that were carried to the host
	quotes   []quotes        // by host: the last packets carried to it
	own      []int64         // by host: packets carried that are, or claim to be, Weft's own
	report   Report
	behind   behind // when it was

	samples  []Sample       // not sent yet
	frames   []frames.Frame // not sent yet
	sent     []units.Bytes  // by port: see fabric.Network.Survey
	captures []*capture     // nil: none is in progress
	beat     int64          // when to send the next KindAlive, CLOCK_MONOTONIC in ns
	stop     bool           // the orchestrator said stop
	err      error          // the first error; it ends the loop
}

// clocked is the clock of the loop: CLOCK_MONOTONIC in nanoseconds.
type clocked interface{ Now() int64 }

func newLoop(cfg Config, conn *control.Conn) (*loop, error) {
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
		behind: newBehind(&cfg),
	}
	for h, a := range cfg.Hosts {
		l.byIP[binary.BigEndian.Uint32(a.IP[:])] = fabric.HostID(h)
		l.ports[h].fd = -1
	}
	if err := l.build(); err != nil {
		return nil, err
	}
	if cfg.Switch != [4]byte{} {
		l.switchIP = binary.BigEndian.Uint32(cfg.Switch[:])
		l.net.Observers.Pauses(l.pauses)
	}
	l.nameSwitches()
	l.coordinate()
	if err := l.attachBridges(); err != nil {
		return nil, err
	}
	l.held = l.events.Grow(len(cfg.Hosts))
	l.sampler, l.script, l.framer = l.events.Grow(1), l.events.Grow(1), l.events.Grow(1)
	l.changes = cfg.Changes
	l.rest = newRest(l)
	var err error
	l.poll, err = poller.New(len(cfg.Hosts) + 1 + cfg.NICs.bells() + l.part.others())
	return l, err
}

// build makes the network, or the part of it that this process carries.
func (l *loop) build() (err error) {
	if l.cfg.Part != nil {
		return l.buildPart()
	}
	l.net, err = fabric.New(l.cfg.Network, l.events, l)
	return err
}

// attach gives a host its port.
func (l *loop) attach(host int, p Port) error {
	if err := l.ports[host].attach(p); err != nil {
		return fmt.Errorf("port of host %d: %w", host, err)
	}
	return l.poll.Add(p.FD, int32(host))
}

// run carries frames until the orchestrator says stop. Before the start of lab time it answers ARP
// and drops all other frames.
func (l *loop) run() error {
	fd, err := l.conn.Descriptor()
	if err != nil {
		return err
	}
	if err := l.poll.Add(fd, controlToken); err != nil {
		return err
	}
	l.conn.Postpone(maxKept)
	defer l.conn.Postpone(0)
	for !l.stop {
		now := l.labNow()
		l.fire(now)
		l.fail(l.part.send(l, now))
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

// fail keeps the first error, which ends the loop.
func (l *loop) fail(err error) {
	if l.err == nil {
		l.err = err
	}
}

// maxKept is how much waits for an orchestrator that does not read, in bytes: the frames of half a
// minute. Ours.
const maxKept = 64 << 20

// controlToken is the poller's token of the control connection. Those of ports are the numbers of
// hosts.
const controlToken = -1

// turn reports every AliveEvery that the process is alive, waits for input, and handles it.
func (l *loop) turn() error {
	if l.scale.T0 != 0 && l.clock.Now() >= l.beat {
		l.beat = l.clock.Now() + int64(AliveEvery)
		l.fail(l.sendAlive())
		l.repeatNotices()
		l.forgetCaptures()
	}
	if err := l.wait(); err != nil {
		return err
	}
	l.behind.awake(l)
	for _, h := range l.poll.Ready {
		if h == controlToken {
			if err := l.handle(); err != nil {
				return err
			}
			continue
		}
		if peer := l.part.peer(h); peer != nil {
			l.fail(peer.take(l))
			continue
		}
		if h <= bellToken {
			l.bells.all[bellToken-h].Clear()
			continue
		}
		if err := l.read(fabric.HostID(h)); err != nil {
			return fmt.Errorf("read from port of host %d: %w", h, err)
		}
	}
	return l.readNICs()
}

// sendAlive reports that the process is alive.
func (l *loop) sendAlive() error {
	if l.part == nil { // frames that are few wait for this, no longer
		return errors.Join(l.sendFrames(), l.conn.SendValue(KindAlive, nil))
	}
	now := l.labNow()
	l.fire(now)
	err := errors.Join(l.sendSamples(), l.sendFrames(), l.sendSteps())
	return errors.Join(err, l.conn.SendValue(KindAlive, Alive{At: max(0, now)}))
}

// handle reads a message from the orchestrator and obeys it.
func (l *loop) handle() error {
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
	case labtime.KindScale:
		var s labtime.Scale
		if err := m.Decode(&s); err != nil {
			return err
		}
		return l.scale.Follow(s, l.clock.Now())
	case KindStop:
		l.stop = true
		return nil
	}
	return fmt.Errorf("unexpected message %q from the orchestrator", m.Kind)
}

// begin starts lab time at t0. Until then lab time is negative, and frames are early.
func (l *loop) begin(t0 int64) {
	l.scale = labtime.NewClock(labtime.Scale{T0: t0, Dilation: l.cfg.Dilation})
	if l.cfg.Sample > 0 {
		l.events.Set(l.sampler, l.cfg.Sample)
	}
	if l.cfg.Frames.Every > 0 {
		l.sent = make([]units.Bytes, len(l.cfg.Network.Ports))
		l.events.Set(l.framer, l.cfg.Frames.After(l.cfg.Frames.From))
	}
	l.armScript()
	l.report.CPU = -poller.CPU()
	l.behind.begin(l)
}

// armScript arms the entity of the next planned change.
func (l *loop) armScript() {
	if len(l.changes) > 0 {
		l.events.Set(l.script, l.changes[0].At)
	}
}

// change makes the next planned change of the network.
func (l *loop) change(at units.Time) {
	c := &l.changes[0]
	l.changes = l.changes[1:]
	l.fail(c.Make(at, l.net))
	l.armScript()
}

// labNow returns the current lab time. It is negative before the start.
func (l *loop) labNow() units.Time {
	if l.scale.T0 == 0 {
		return -1
	}
	return l.scale.Now(l.clock.Now())
}

// fire handles every event due at now or before, each at its own instant.
func (l *loop) fire(now units.Time) {
	l.fail(l.part.takeDue(l, now))
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
		case id == l.framer:
			l.fail(l.frame(at))
		case id == l.script:
			l.change(at)
		default:
			l.release(at, fabric.HostID(id-l.held))
		}
	}
}

// maxSamples is the number of samples in a message: few enough that sending them delays nothing.
const maxSamples = 64

// sample records the length of the queues and arms the next sample.
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

// sendSamples sends the samples that were not sent yet.
func (l *loop) sendSamples() error {
	if len(l.samples) == 0 {
		return nil
	}
	err := l.conn.SendValue(KindSamples, l.samples)
	l.samples = l.samples[:0]
	return err
}

// frame records the network and arms the next frame.
func (l *loop) frame(at units.Time) error {
	l.events.Set(l.framer, l.cfg.Frames.After(at))
	f := frames.Frame{At: at}
	l.net.Survey(at, l.sent, func(port int, p fabric.PortState) {
		f.Ports = append(f.Ports, frames.PortAt(port, p))
	})
	l.frames = append(l.frames, f)
	rows := 0
	for i := range l.frames {
		rows += 1 + len(l.frames[i].Ports)
	}
	if rows < maxSamples {
		return nil
	}
	return l.sendFrames()
}

// sendFrames sends the frames that were not sent yet.
func (l *loop) sendFrames() error {
	if len(l.frames) == 0 {
		return nil
	}
	err := l.conn.SendValue(KindFrames, l.frames)
	l.frames = l.frames[:0]
	return err
}

// end completes the report and sends it.
func (l *loop) end() error {
	if err := errors.Join(l.sendSamples(), l.sendFrames(), l.sendSteps()); err != nil {
		return err
	}
	l.fail(l.part.send(l, l.events.Last()))
	l.report.Crossings = l.part.crossings()
	l.report.Stalls = []Stalls{l.behind.Stalls}
	l.report.CPU += poller.CPU()
	l.report.Elapsed = max(l.labNow(), 0)
	l.conn.Postpone(0)
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
