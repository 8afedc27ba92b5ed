package dcqcn

import (
	"weft/transport/cc"
	"weft/units"
)

// Notifier is the notification point of one connection: the receiver's NIC. It implements
// cc.Receiver.
type Notifier struct {
	interval units.Time `state:"span"`
	pending  bool       // a marked packet came since the last notification
	sent     bool       // a notification has left; last is valid
	last     units.Time
}

// NewNotifier returns the receiver of a connection. p must pass Check.
func NewNotifier(p Params) *Notifier { return &Notifier{interval: p.CNPInterval} }

// OnData implements cc.Receiver (SIGCOMM 2015, section 3.2). A marked packet triggers a
// notification at once if the last one is an interval ago. Otherwise one is sent after the
// interval, if a packet in it was marked. This is checked when a packet arrives, not by a timer: a
// connection without arriving packets needs no cut. The one-way delay is for statistics only.
func (n *Notifier) OnData(now units.Time, d cc.Data) cc.Feedback {
	f := cc.Feedback{OneWay: d.At - d.SentAt - d.Baseline}
	n.pending = n.pending || d.Marked
	if n.pending && (!n.sent || now-n.last >= n.interval) {
		n.pending, n.sent, n.last = false, true, now
		f.CNP = true
	}
	return f
}

// Rest implements cc.Resting. A notification an interval ago is none.
func (n *Notifier) Rest(now units.Time) {
	if !n.sent || now-n.last >= n.interval {
		n.sent, n.last = false, units.LongAgo
	}
}
