package dcqcn

import (
	"weft/transport/cc"
	"weft/units"
)

// Notifier is the notification point of one connection: the receiver's NIC. It implements cc.Receiver.
type Notifier struct {
	interval units.Time
	pending  bool // a marked packet came since the last notification
	sent     bool
	last     units.Time
}

// NewNotifier returns the receiver half of a connection. p must pass Check.
func NewNotifier(p Params) *Notifier { return &Notifier{interval: p.CNPInterval} }

// OnData lets a notification leave (SIGCOMM 2015, section 3.2) at once for a marked packet when none left for an
// interval; else once the interval is over, if a packet in it was marked. We look when a packet arrives
// rather than by a timer: a connection on which nothing arrives needs no cut. The delay is for whoever watches.
func (n *Notifier) OnData(now units.Time, d cc.Data) cc.Feedback {
	f := cc.Feedback{OneWay: d.At - d.SentAt - d.Baseline}
	n.pending = n.pending || d.Marked
	if n.pending && (!n.sent || now-n.last >= n.interval) {
		n.pending, n.sent, n.last = false, true, now
		f.CNP = true
	}
	return f
}
