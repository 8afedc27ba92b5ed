//go:build wasip1

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

// Events, by their number in weft_event.
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

// handle passes an event to the control, and puts what follows into the mailbox. The arguments of
// an event have the layout of the struct that describes it.
func handle(event int32) {
	c, m := served.control, &mail
	args := unsafe.Pointer(&m.args)
	switch event {
	case eventInit:
		c.Init((*Link)(args), (*Values)(unsafe.Pointer(&m.args[8])))
	case eventStart:
		if served.starter != nil {
			served.starter.Start(m.now)
		}
	case eventSent:
		if served.sender != nil {
			served.sender.Sent(m.now, (*Sent)(args))
		}
	case eventAck:
		c.Ack(m.now, (*Ack)(args))
	case eventLoss:
		c.Loss(m.now, (*Loss)(args))
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

// Hop returns hop i of an acknowledgement, from 0 to a.Hops-1, in the order of the path. It is
// valid in the method Ack.
func (a *Ack) Hop(i int64) Hop { return *(*Hop)(unsafe.Pointer(&mail.args[hopsAt+4*i])) }
