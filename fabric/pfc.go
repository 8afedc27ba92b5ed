package fabric

import (
	"slices"

	"weft/units"
)

// Priority flow control (IEEE 802.1Qbb). A switch counts, class by class, the bytes that arrived by
// each of its links and wait (account). Above a threshold it pauses that class at the far end of
// the link, and later resumes it. A frame of 64 bytes says so. It takes effect when it has passed
// the link, and takes no time on the link itself: it is sent ahead of everything. The packet that
// is being transmitted then is finished; no other packet of the class is started.
//
// A pause lasts until the frame that ends it. A real pause lasts 65,535 quanta, 335 µs at 100 Gb/s,
// and is renewed before that; nothing here loses the renewal. A link that goes down ends its
// pauses. One that comes up starts with those that its far end has in force.
//
// A port that gives memory back at the start of a transmission must do so on time. So the ports of
// a switch with accounts ("accounted") have an event for the end of a transmission when packets
// wait.

// PFCConfig is when the switch at the far end of a link pauses one class of the port.
type PFCConfig struct {
	On bool `json:"on,omitempty"`

	// Alpha makes the threshold dynamic: Alpha times the free shared memory, compared with what the
	// port's packets use of it. The class is resumed when they use none of it, or Offset less than
	// the threshold.
	Alpha  float64     `json:"alpha,omitempty"`
	Offset units.Bytes `json:"offset,omitempty"`

	// Xoff is the threshold if Alpha is 0. The class is resumed when at most Xon is used.
	Xoff units.Bytes `json:"xoff,omitempty"`
	Xon  units.Bytes `json:"xon,omitempty"`

	// Reserve is memory of the port's own that is used first and does not count against the
	// threshold. Headroom is for packets that are in flight when the threshold is reached: see
	// CheckLossless.
	Reserve  units.Bytes `json:"reserve,omitempty"`
	Headroom units.Bytes `json:"headroom,omitempty"`

	// Response is the time that the far end takes to obey a pause after it has arrived, in addition
	// to finishing its packet.
	Response units.Time `json:"response_ps,omitempty"`
}

// AlphaAt returns the alpha of a port that is faster than the NICs for which alpha is meant: it
// doubles with each doubling of the rate (alibaba ns-3, third.cc).
func AlphaAt(alpha float64, nic, port units.Bandwidth) float64 {
	for rate := 2 * nic; rate <= port; rate *= 2 {
		alpha *= 2
	}
	return alpha
}

// frame is a pause or resume in flight to a port.
type frame struct {
	at    units.Time // when it takes effect
	class uint8
	pause bool
}

// frames is the frames in flight to one port, in order of arrival.
type frames struct {
	list []frame
	head int
}

func (f *frames) empty() bool   { return f.head == len(f.list) }
func (f *frames) front() *frame { return &f.list[f.head] }
func (f *frames) last() *frame  { return &f.list[len(f.list)-1] }
func (f *frames) clear()        { f.list, f.head = f.list[:0], 0 }

func (f *frames) push(e frame) {
	if f.head > len(f.list)/2 {
		n := copy(f.list, f.list[f.head:])
		f.list, f.head = f.list[:n], 0
	}
	f.list = append(f.list, e)
}

func (f *frames) pop() frame {
	e := f.list[f.head]
	if f.head++; f.empty() {
		f.clear()
	}
	return e
}

// flowControl is PFC and the memory of the switches that account for it.
type flowControl struct {
	memories []memory  // by switch
	accounts []account // by port and class: at the switch at the port's far end
	frames   []frames  // by port: in flight to it
}

func (f *flowControl) account(port int32, class uint8) *account {
	return &f.accounts[int(port)*Classes+int(class)]
}

// newFlowControl returns nil if no switch accounts for its memory.
func newFlowControl(cfg *Config) *flowControl {
	if !slices.Contains(cfg.accounting(), true) {
		return nil
	}
	f := &flowControl{
		memories: make([]memory, len(cfg.Switches)),
		accounts: make([]account, len(cfg.Ports)*Classes),
		frames:   make([]frames, len(cfg.Ports)),
	}
	for s := range cfg.Switches {
		b := cfg.Switches[s].Buffer
		f.memories[s] = memory{shared: boundless, alpha: b.Alpha}
		if b.Total > 0 {
			f.memories[s].shared = b.Total
		}
	}
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		if cfg.isHost(p.To) {
			continue
		}
		s := int(p.To) - cfg.Hosts
		for class := range p.PFC {
			a := f.account(int32(i), uint8(class))
			*a = newAccount(p.PFC[class])
			a.memory = int32(s)
			if a.footing == lossless {
				f.memories[s].shared -= a.reserve + a.headroom
			} else if class > 0 && cfg.Switches[s].Buffer.Total > 0 {
				a.footing = lossy
			}
		}
	}
	return f
}

func newAccount(c PFCConfig) account {
	if !c.On {
		return account{}
	}
	return account{
		footing: lossless, reserve: c.Reserve, headroom: c.Headroom,
		alpha: c.Alpha, offset: c.Offset, xoff: c.Xoff, xon: c.Xon, response: c.Response,
	}
}

// admit puts e, which arrived by port from, into the queue of an accounted port if it fits, and
// drops it otherwise.
func (f *flowControl) admit(n *Network, now units.Time, o *port, from int32, e *Packet) {
	a := f.account(from, e.Class)
	m := &f.memories[a.memory]
	size, queue := e.Size, o.classes[e.Class].bytes
	switch a.footing {
	case lossless:
		if !a.admits(m, size) {
			n.total.Overflows++
			n.refuse(o, e)
			return
		}
		a.add(m, size)
	case lossy:
		if !m.admits(queue, size) || queue+size > o.buffer {
			n.refuse(o, e)
			return
		}
		m.used += size
	case uncounted:
		if queue+size > o.buffer {
			n.refuse(o, e)
			return
		}
	}
	if o.is(marksSoon) {
		o.mark(n, e)
	}
	e.ingress = from
	o.wait(now, e)
	if o.index == n.Observers.watched {
		n.Observers.watch(now, o.queued())
	}
	if o.farEnd != within {
		n.exchange.remember(o)
	}
	o.armTransmitter(n)
	if a.footing == lossless && !a.paused && a.mustPause(m) {
		f.signal(n, now, from, e.Class, true)
	}
}

// release gives back the memory of e, which leaves its queue, and resumes the port by which it
// arrived if that is due.
func (f *flowControl) release(n *Network, now units.Time, e *Packet) {
	a := f.account(e.ingress, e.Class)
	m := &f.memories[a.memory]
	switch a.footing {
	case lossless:
		a.remove(m, e.Size)
		if a.paused && a.mayResume(m) {
			f.signal(n, now, e.ingress, e.Class, false)
		}
	case lossy:
		m.used -= e.Size
	case uncounted:
	}
}

// signal sends a frame to port i, unless its link is down.
func (f *flowControl) signal(n *Network, now units.Time, i int32, class uint8, pause bool) {
	a := f.account(i, class)
	a.paused = pause
	o := &n.ports[i]
	if n.cold[i].down {
		return
	}
	if pause {
		n.total.Pauses++
	}
	sent := frame{now + o.delay + a.response, class, pause}
	if far := n.of(i); far != n {
		n.exchange.postFrame(i, sent)
		return
	}
	f.expect(n, i, sent)
}

// expect adds a frame to those in flight to port i.
func (f *flowControl) expect(n *Network, i int32, e frame) {
	waiting := &f.frames[i]
	if !waiting.empty() {
		e.at = max(e.at, waiting.last().at)
	}
	waiting.push(e)
	if waiting.front().at == e.at {
		n.events.Set(n.entities.of(frameEnd, int(i)), e.at)
	}
}

// apply makes the first frame in flight to port i take effect. A transmitter that becomes free at
// that same instant starts first.
func (f *flowControl) apply(n *Network, now units.Time, i int32) {
	waiting := &f.frames[i]
	e := waiting.pop()
	if !waiting.empty() {
		n.events.Set(n.entities.of(frameEnd, int(i)), waiting.front().at)
	}
	n.ports[i].catchUp(n, now)
	f.hold(n, now, i, e.class, e.pause)
}

// hold pauses or resumes a class of port i.
func (f *flowControl) hold(n *Network, now units.Time, i int32, class uint8, pause bool) {
	o, t := &n.ports[i], &n.cold[i]
	bit := uint8(1) << class
	if pause == (o.held&bit != 0) {
		return
	}
	o.held ^= bit
	if o.is(nic) {
		n.NICs.busy[o.host(n)] ^= bit
	}
	if pause {
		t.pauses[class]++
		t.since[class] = now
		n.Observers.paused(n, now, o, class, true)
		return
	}
	t.paused[class] += now - t.since[class]
	o.restart(n, now)
	n.Observers.paused(n, now, o, class, false)
}
