package host

import (
	"testing"

	"weft/transport"
	"weft/units"
)

// haltedHost returns a host without work that stands still at the given times.
func haltedHost(t *testing.T, halts ...Halt) *Host {
	t.Helper()
	h, err := New(Plan{
		Name: "h0", Endpoint: transport.Config{MTU: 1000, LineRate: units.Gbps}, Until: 100 * units.Microsecond, Halts: halts,
	}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	h.Start(0)
	return h
}

func (h *Host) wantDeadline(t *testing.T, want units.Time, ok bool) {
	t.Helper()
	if at, armed := h.Deadline(); armed != ok || ok && at != want {
		t.Errorf("deadline %v %v, want %v %v", at, armed, want, ok)
	}
}

func TestHostStandsStillAndGoesOn(t *testing.T) {
	const us = units.Microsecond
	h := haltedHost(t, Halt{10 * us, 20 * us}, Halt{150 * us, units.Never})
	h.wantDeadline(t, 10*us, true) // it has to notice
	h.Advance(10 * us)
	h.wantDeadline(t, 20*us, true)
	if at, ok := h.Resumes(); !ok || at != 20*us {
		t.Errorf("resumes at %v, %v", at, ok)
	}
	if h.Transmit(15*us, new(transport.Outgoing)) || h.TransmitControl(15*us, new(transport.Outgoing)) {
		t.Error("it sends while it stands still")
	}
	if pl, err := h.Receive(15*us, &transport.Incoming{Header: []byte("no header of ours")}); err != nil || pl != (transport.Placement{}) {
		t.Errorf("what arrives is not lost: %+v, %v", pl, err)
	}
	h.Advance(20 * us)
	if _, err := h.Receive(21*us, &transport.Incoming{Header: []byte("no header of ours")}); err == nil {
		t.Error("it does not take packets again")
	}
	h.wantDeadline(t, 100*us, true)
	h.Advance(100 * us)
	if !h.Done() {
		t.Error("a halt that is to come keeps the host from being done")
	}
	h.wantDeadline(t, 150*us, true)
}

func TestHostThatIsKilledIsDone(t *testing.T) {
	h := haltedHost(t, Halt{10 * units.Microsecond, units.Never})
	if h.Done() {
		t.Error("it is done before its time")
	}
	h.Advance(10 * units.Microsecond)
	h.wantDeadline(t, 0, false)
	if _, ok := h.Resumes(); ok || !h.Done() || !h.Resting() || h.Awaits() != nil {
		t.Error("a host that was killed is not done")
	}
}

func TestHaltsInDisorderAreRefused(t *testing.T) {
	for _, halts := range [][]Halt{{{-1, 2}}, {{5, 5}}, {{5, 9}, {8, 12}}, {{5, units.Never}, {8, 12}}} {
		if _, err := New(Plan{Halts: halts, Endpoint: transport.Config{MTU: 1000, LineRate: units.Gbps}}, nil, nil); err == nil {
			t.Errorf("%v was accepted", halts)
		}
	}
}
