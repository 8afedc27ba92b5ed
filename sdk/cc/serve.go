package cc

import "unsafe"

// mailbox is the memory through which Weft and a module exchange values: docs/module-abi.md.
type mailbox struct {
	window, rate     float64
	timer, notBefore Time
	now              Time
	args             [123]uint64
}

var mail mailbox

// header is what weft_cc returns the address of.
type header struct {
	version, mail, state, stateSize, text, textSize uint32
}

var about header

// Events, as weft_event is told them.
const (
	eventInit = iota
	eventStart
	eventSent
	eventAck
	eventLoss
	eventCNP
	eventTimer
)

// hopsAt is the index in args of the first hop of an acknowledgement, of four words each.
const hopsAt = 9

// describe fills about.
func describe() {
	about = header{Version, address(unsafe.Pointer(&mail)), address(served.state), uint32(served.size), 0,
		uint32(len(served.text))}
	if len(served.text) > 0 {
		about.text = address(unsafe.Pointer(&served.text[0]))
	}
}

func address(p unsafe.Pointer) uint32 { return uint32(uintptr(p)) }

func (m *mailbox) time(i int) Time     { return Time(m.args[i]) }
func (m *mailbox) int(i int) int64     { return int64(m.args[i]) }
func (m *mailbox) bool(i int) bool     { return m.args[i] != 0 }
func (m *mailbox) float(i int) float64 { return *(*float64)(unsafe.Pointer(&m.args[i])) }

// handle passes an event to the control, and puts what follows into the mailbox.
func handle(event int32) {
	c, m := served.control, &mail
	switch event {
	case eventInit:
		l := Link{m.float(0), m.int(1), m.int(2), m.time(3), m.time(4), m.time(5), int(m.args[6]), m.args[7]}
		c.Init(l, *(*Values)(unsafe.Pointer(&m.args[8])))
	case eventStart:
		if served.starter != nil {
			served.starter.Start(m.now)
		}
	case eventSent:
		if served.sender != nil {
			served.sender.Sent(m.now, Sent{m.int(0), m.int(1), m.bool(2)})
		}
	case eventAck:
		flags := m.args[6]
		c.Ack(m.now, Ack{Size: m.int(0), Packets: int(m.args[1]), InFlight: m.int(2), SentAt: m.time(3), RTT: m.time(4),
			OneWay: m.time(5), Marked: flags&1 != 0, AppLimited: flags&2 != 0, Probe: flags&4 != 0,
			Path: int(m.args[7]), hops: int(m.args[8])})
	case eventLoss:
		c.Loss(m.now, Loss{Kind(m.args[0]), m.int(1), int(m.args[2])})
	case eventCNP:
		if served.notified != nil {
			served.notified.Notify(m.now)
		}
	case eventTimer:
		if served.timed != nil {
			served.timed.Expire(m.now)
		}
	}
	m.window, m.rate, m.timer, m.notBefore = c.Window(), 0, Never, 0
	if served.paced != nil {
		m.rate = served.paced.Rate()
	}
	if served.timed != nil {
		m.timer = served.timed.Timer()
	}
	if served.held != nil {
		m.notBefore = served.held.NotBefore()
	}
}

// Hops returns the number of hops of an acknowledgement, in the method Ack.
func (a *Ack) Hops() int { return a.hops }

// Hop returns hop i of an acknowledgement, in the order of the path. It is valid in the method Ack.
func (a *Ack) Hop(i int) Hop {
	at := hopsAt + 4*i
	return Hop{mail.time(at), mail.int(at + 1), mail.int(at + 2), mail.float(at + 3)}
}
