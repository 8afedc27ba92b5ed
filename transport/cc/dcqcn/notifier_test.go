package dcqcn_test

import (
	"testing"

	"weft/params"
	"weft/transport/cc"
	"weft/transport/cc/dcqcn"
	"weft/units"
)

type packetAt struct {
	at     units.Time // us
	marked bool
	cnp    bool
}

func notify(t *testing.T, interval units.Time, packets []packetAt) {
	t.Helper()
	p := params.Defaults[dcqcn.Params]()
	p.CNPInterval = interval
	n := dcqcn.NewNotifier(p)
	for _, x := range packets {
		if got := n.OnData(x.at*us, cc.Data{Marked: x.marked}).CNP; got != x.cnp {
			t.Errorf("interval %v, packet at %d us, marked %v: notification %v", interval, x.at, x.marked, got)
		}
	}
}

// SIGCOMM 2015, section 3.2: "If a marked packet arrives for a flow, and no CNP has been sent for
// the flow in last N microseconds, a CNP is sent immediately. Then, the NIC generates at most one
// CNP packet every N microseconds for the flow, if any packet that arrives within the time window
// was marked."
func TestNotificationPoint(t *testing.T) {
	notify(t, 50*us, []packetAt{
		{0, false, false},
		{7, true, true}, // the first at once
		{8, true, false}, {56, false, false},
		{57, false, true}, // a packet in the window was marked
		{58, false, false}, {200, false, false},
		{201, true, true}, // long after the last: at once
	})
}

// Alibaba's simulator answers every marked packet.
func TestNoIntervalAnswersEveryMark(t *testing.T) {
	notify(t, 0, []packetAt{{0, true, true}, {0, true, true}, {1, false, false}, {1, true, true}})
}

// Each connection has an interval of its own.
func TestNotifiersAreIndependent(t *testing.T) {
	p := params.Defaults[dcqcn.Params]()
	a, b := dcqcn.NewNotifier(p), dcqcn.NewNotifier(p)
	if !a.OnData(0, cc.Data{Marked: true}).CNP || !b.OnData(0, cc.Data{Marked: true}).CNP {
		t.Error("the first mark of each must be answered")
	}
}
