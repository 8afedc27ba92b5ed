package host

import (
	"slices"
	"testing"

	"weft/units"
)

func TestFlowLogKeepsOrder(t *testing.T) {
	var l flowLog
	for i := range uint32(3000) {
		l.add(Flow{Message: i})
	}
	at, room := uint32(0), 0
	for _, part := range l {
		room += cap(part)
		for _, f := range part {
			if f.Message != at {
				t.Fatalf("record %d is in place %d", f.Message, at)
			}
			at++
		}
	}
	if l.count() != 3000 || at != 3000 || room >= 3000+maxPart {
		t.Errorf("%d records, %d found, room for %d", l.count(), at, room)
	}
}

// Records that are taken are those that there were, and are taken once.
func TestTakeFlows(t *testing.T) {
	net := buildNetwork(t, 2, realMemory, job{Spec: incast(80*units.KB, 1), repeat: 40})
	net.run(t)
	h := net.hosts[0]
	want := h.Flows()
	if len(want) != 40 || h.FlowCount() != 40 {
		t.Fatalf("%d flows, counted %d", len(want), h.FlowCount())
	}
	if got := h.TakeFlows(nil); !slices.Equal(got, want) || len(h.TakeFlows(nil)) != 0 || h.FlowCount() != 0 {
		t.Errorf("took %d of %d flows, and %d are left", len(got), len(want), h.FlowCount())
	}
}
