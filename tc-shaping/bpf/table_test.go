package bpf

import (
	"math"
	"testing"
	"time"
	"unsafe"

	"weft/tc-shaping/qdisc"
	"weft/units"
)

// The offsets of the programs are those of the fields.
func TestOffsets(t *testing.T) {
	var r row
	for _, f := range []struct {
		name string
		at   int
		is   uintptr
	}{
		{"limit", atLimit, unsafe.Offsetof(r.limit)}, {"min", atMin, unsafe.Offsetof(r.min)},
		{"max", atMax, unsafe.Offsetof(r.max)}, {"slope", atSlope, unsafe.Offsetof(r.slope)},
		{"where", atWhere, unsafe.Offsetof(r.where)}, {"loss", atLoss, unsafe.Offsetof(r.loss)},
		{"entered", atEntered, unsafe.Offsetof(r.entered)}, {"left", atLeft, unsafe.Offsetof(r.left)},
		{"enteredPackets", atEnteredPackets, unsafe.Offsetof(r.enteredPackets)},
		{"leftPackets", atLeftPackets, unsafe.Offsetof(r.leftPackets)}, {"marks", atMarks, unsafe.Offsetof(r.marks)},
		{"drops", atDrops, unsafe.Offsetof(r.drops)}, {"lost", atLost, unsafe.Offsetof(r.lost)},
		{"spoofed", atSpoofed, unsafe.Offsetof(r.spoofed)}, {"notRouted", atNotRouted, unsafe.Offsetof(r.notRouted)},
		{"longest", atLongest, unsafe.Offsetof(r.longest)}, {"free", atFree, unsafe.Offsetof(r.free)},
		{"delay", atDelay, unsafe.Offsetof(r.delay)}, {"perByte", atPerByte, unsafe.Offsetof(r.perByte)},
		{"overhead", atOverhead, unsafe.Offsetof(r.overhead)}, {"light", atLight, unsafe.Offsetof(r.light)},
		{"congested", atCongested, unsafe.Offsetof(r.congested)}, {"spread", atSpread, unsafe.Offsetof(r.spread)},
		{"spreadTable", atSpreadTable, unsafe.Offsetof(r.spreadTable)}, {"moved", atMoved, unsafe.Offsetof(r.moved)},
		{"untold", atUntold, unsafe.Offsetof(r.untold)}, {"busy", atBusy, unsafe.Offsetof(r.busy)},
		{"unrouted", atUnrouted, unsafe.Offsetof(r.unrouted)},
		{"enteredControl", atEnteredControl, unsafe.Offsetof(r.enteredControl)},
		{"leftControl", atLeftControl, unsafe.Offsetof(r.leftControl)},
	} {
		if uintptr(f.at) != f.is {
			t.Errorf("%s is at %d, programs take %d", f.name, f.is, f.at)
		}
	}
	if rowSize%64 != 0 {
		t.Errorf("rows of %d bytes share cache lines", rowSize)
	}
}

// Settings can be read back, and a difference is seen.
func TestSettings(t *testing.T) {
	p := &Port{table: &Table{rows: make([]row, 2)}, index: 1}
	for _, g := range []*qdisc.Gate{
		{Limit: 1000}, {Limit: 1 << 30, Loss: math.MaxUint32}, {Limit: 9, Loss: 7},
		{Limit: 9, Line: &qdisc.Line{Delay: time.Second, Rate: 8 * units.Mbps, Overhead: 4}},
		{Limit: 9, RED: &qdisc.RED{Min: 5, Max: 5, Pmax: 1, ECN: true, Drawn: true}},
		{Limit: 9, RED: &qdisc.RED{Min: 5, Max: 1 << 30, Pmax: 0.25, ECN: true, Drawn: true, Leaving: true}},
	} {
		if err := p.Set(g); err != nil {
			t.Fatal(err)
		}
		p.row().marks = 7
		if got := p.Gate(g); got != g {
			t.Errorf("%v became %v", g, got)
		}
		other := *g
		other.Limit++
		if got := p.Gate(&other); got == &other || got.String() != g.String() {
			t.Errorf("%v became %v", g, got)
		}
		if p.Counters().Marks != 7 || p.Gate(nil) == nil {
			t.Errorf("%+v", p.Counters())
		}
		if p.Reset(); p.Counters() != (qdisc.GateCounters{}) || p.Gate(g) != g {
			t.Errorf("reset: %+v", *p.row())
		}
	}
	if p.table.rows[0] != (row{}) {
		t.Error("the other port has changed")
	}
}
