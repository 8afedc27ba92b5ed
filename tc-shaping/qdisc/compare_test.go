package qdisc

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"weft/units"
)

func TestCompareNamesWhatDiffers(t *testing.T) {
	d := Direction{Source: &Source{Addr: netip.AddrFrom4([4]byte{10, 0, 0, 1})}, Rate: 100 * units.Mbps,
		Limit: 150_000, Delay: time.Millisecond, RED: &RED{Min: 1000, Max: 2000, Pmax: 0.1, ECN: true}}
	asked, err := Plan(d, Full())
	if err != nil {
		t.Fatal(err)
	}
	if diff := Compare(asked, asked); len(diff) > 0 {
		t.Errorf("a tree differs from itself: %v", diff)
	}
	for _, c := range []struct {
		change func(*Tree)
		says   string
	}{
		{func(t *Tree) { t.Near[0].Options = HTB{Rate: 1} }, "near htb 1: rate, B/s: asked for 12500000, got 1"},
		{func(t *Tree) { t.Near[2].Options = REDStage{Min: 7, Max: 2001} },
			"near red 3: min, bytes: asked for 1000, got 7"},
		{func(t *Tree) { t.Near[1].Options = FIFO{Limit: 7} }, "near bfifo 2: limit, bytes: asked for 150000, got 7"},
		{func(t *Tree) { t.Far[0].Options = Netem{} }, "far netem 1: delay: asked for 1ms, got 0s"},
		{func(t *Tree) { t.Source = nil }, "far filters senders: asked for only from 00:00:00:00:00:00 10.0.0.1, " +
			"got from anybody"},
		{func(t *Tree) { t.Source = &Source{Foreign: "2 actions"} }, "got 2 actions"},
		{func(t *Tree) { t.Far = nil }, "far netem 1: discipline: asked for root netem"},
		{func(t *Tree) { t.Near = append(t.Near, t.Far[0]) }, "asked for none, got root netem"},
		{func(t *Tree) { t.Near[2].Handle = MakeHandle(9, 0) }, "got parent 1:3 red handle 9:"},
		{func(t *Tree) { t.Near[2].Options = Foreign{Name: "red", Why: "it averages"} }, "got it averages"},
		{func(t *Tree) { t.Near[0].Options = Foreign{Name: "htb", Why: "other classes"} }, "got other classes"},
		{func(t *Tree) { t.Near[3].Options = Foreign{Name: "bfifo", Why: "broken"} }, "got broken"},
		{func(t *Tree) { t.Far[0].Options = Foreign{Name: "netem", Why: "gaps"} }, "got gaps"},
	} {
		got := Tree{Near: append([]Qdisc(nil), asked.Near...), Far: append([]Qdisc(nil), asked.Far...),
			Source: asked.Source}
		c.change(&got)
		var lines []string
		for _, d := range Compare(asked, got) {
			lines = append(lines, d.String())
		}
		if text := strings.Join(lines, "\n"); !strings.Contains(text, c.says) {
			t.Errorf("got %q\nwant %q in it", text, c.says)
		}
	}
	if diff := Compare(Tree{Near: []Qdisc{{Options: Foreign{}}}}, Tree{Near: []Qdisc{{Options: Foreign{}}}}); len(diff) == 0 {
		t.Error("a discipline of another kind is compared and found the same")
	}
}

func TestHandles(t *testing.T) {
	for h, want := range map[Handle]string{Root: "root", MakeHandle(1, 0): "1:", MakeHandle(0x1f, 0xa): "1f:a"} {
		if got := h.String(); got != want {
			t.Errorf("handle %#x is %q, want %q", uint32(h), got, want)
		}
	}
}

func TestSummarise(t *testing.T) {
	d := Direction{Source: &Source{Addr: netip.AddrFrom4([4]byte{10, 0, 0, 1})}, Rate: 100 * units.Mbps,
		Limit: 150_000, Delay: time.Millisecond, RED: &RED{Min: 1000, Max: 2000, Pmax: 1, ECN: true}}
	tree, err := Plan(d, Full())
	if err != nil {
		t.Fatal(err)
	}
	near := []Counters{{Bytes: 10, Packets: 1, Over: 7, Backlog: 99, Waiting: 3}, {Drops: 1}, {Marks: 5}, {Marks: 8},
		{Drops: 1}}
	far := []Counters{{Packets: 4, Backlog: 6, Waiting: 1, Drops: 3}}
	want := Statistics{Sent: 10, Packets: 1, Backlog: 99, Waiting: 3, Marks: 8, MarksAtMost: 13,
		Drops: 2, Arrived: 4, InFlight: 6, OnLine: 1, Lost: 3}
	if got := tree.Summarise(near, far, nil); got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if got := tree.Summarise(nil, nil, nil); got != (Statistics{}) {
		t.Errorf("no counters are %+v", got)
	}
}
