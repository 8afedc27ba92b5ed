package tcnl

import (
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"

	"weft/internal/fuzztest"
	"weft/tc-shaping/qdisc"
)

// answer returns a discipline's message as the kernel sends it.
func answer(o qdisc.Options) []byte {
	b := (&nl.TcMsg{Ifindex: 7, Handle: 0x10000, Parent: 0xffffffff}).Serialize()
	b = append(b, attribute(nl.TCA_KIND, nl.ZeroTerminated(o.Kind()))...)
	attr, err := options(o)
	if err != nil {
		panic(err)
	}
	b = append(b, attr.Serialize()...)
	stats := append(attribute(1, append(nl.Uint64Attr(4200), u32s(42, 0)...)), attribute(3, u32s(3, 3000, 5, 0, 9))...)
	stats = append(stats, attribute(4, u32s(1, 2, 0, 11))...)
	stats = append(stats, attribute(8, nl.Uint64Attr(1<<33))...)
	return append(b, attribute(nl.TCA_STATS2, stats)...)
}

func TestParse(t *testing.T) {
	m, err := parse(answer(qdisc.REDStage{Min: 1, Max: 2, MaxP: 3}))
	if err != nil {
		t.Fatal(err)
	}
	want := qdisc.Counters{Bytes: 4200, Packets: 1 << 33, Waiting: 3, Backlog: 3000, Drops: 5, Over: 9, Marks: 11}
	if m.device != 7 || m.kind != "red" || m.unknown != "" || m.counters != want || m.qdisc.Parent != qdisc.Root {
		t.Errorf("got %+v\nwant counters %+v", m, want)
	}
	if m, err = parse(answer(qdisc.FIFO{})); err != nil || m.counters.Marks != 0 {
		t.Errorf("a fifo with marks: %+v, %v", m, err)
	}
}

// Settings that no plan uses are recognised, with a reason.
func TestForeignSettings(t *testing.T) {
	red := func(p []byte, flags uint32) []byte {
		b := attribute(redParms, p)
		b = append(b, attribute(redMaxP, u32s(1))...)
		return append(b, attribute(redFlags, u32s(flags, 15))...)
	}
	for _, c := range []struct {
		kind string
		b    []byte
		says string
	}{
		{"hfsc", nil, "not a kind"},
		{"bfifo", []byte{1}, "too short"},
		{"htb", nil, "too short"},
		{"htb", attribute(htbInit, u32s(3, 10, 0x30, 0, 0)), "default class is 30"},
		{"htb", attribute(htbInit, u32s(3, 10, 3, 0, 0)), "direct_qlen"},
		{"red", nil, "too short"},
		{"red", attribute(redParms, make([]byte, 16)), "TCA_RED_MAX_P"},
		{"red", red(append(u32s(0, 1, 2), 9, 0, 0, 0), 9), "Wlog 9"},
		{"red", red(append(u32s(0, 1, 2), 0, 0, 0, 0), 1), "flags are 0x1"},
		{"red", red(append(u32s(5, 1, 2), 0, 0, 0, 0), 9), "a queue of its own, of 5 bytes"},
		{"netem", nil, "too short"},
		{"netem", u32s(0, 0, 0, 3, 0, 0), "gaps of 3"},
		{"netem", append(u32s(0, 0, 0, 0, 0, 0), 1), "attribute of 1 bytes"},
		{"htb", []byte{200, 0, 1, 0}, "says it has 200 bytes"},
		{"red", []byte{1}, "attribute of 1"},
	} {
		if o, err := settings(c.kind, c.b); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %x: %v, %v; want an error with %q", c.kind, c.b, o, err, c.says)
		}
	}
	if _, err := parse(make([]byte, 19)); err == nil {
		t.Error("a message of 19 bytes was taken")
	}
	if _, err := parse(append(make([]byte, 20), 1)); err == nil {
		t.Error("a broken attribute was taken")
	}
	if _, err := parse(append(make([]byte, 20), attribute(nl.TCA_STATS2, []byte{1})...)); err == nil {
		t.Error("broken statistics were taken")
	}
}

func TestInOrder(t *testing.T) {
	at := func(parent, handle qdisc.Handle) message {
		return message{qdisc: qdisc.Qdisc{Parent: parent, Handle: handle}}
	}
	h := qdisc.MakeHandle
	row := inOrder([]message{at(h(3, 1), h(4, 0)), at(h(1, 3), h(3, 0)), at(netlink.HANDLE_CLSACT, h(0xffff, 0)),
		at(h(1, 2), h(9, 0)), at(qdisc.Root, h(1, 0))})
	if len(row) != 4 || row[0].qdisc.Handle != h(1, 0) || row[1].qdisc.Handle != h(9, 0) ||
		row[2].qdisc.Handle != h(3, 0) || row[3].qdisc.Handle != h(4, 0) {
		t.Errorf("order %v", row)
	}
	loop := inOrder([]message{at(qdisc.Root, h(1, 0)), at(h(1, 1), h(1, 0))})
	if len(loop) > 2 {
		t.Errorf("a loop of %d", len(loop))
	}
}

// No message panics, and every decoded message encodes to what was read.
func FuzzParse(f *testing.F) {
	corpus := fuzztest.New(f)
	for _, o := range everyKind() {
		corpus.Add(answer(o))
	}
	for _, cl := range classesOf(qdisc.HTB{Rate: 1 << 33}) {
		corpus.Add(slices.Concat((&nl.TcMsg{}).Serialize(), attribute(nl.TCA_KIND, nl.ZeroTerminated("htb")),
			cl.options().Serialize()))
	}
	corpus.Fuzz(func(t *testing.T, b []byte) {
		_, _, _ = parseClass(b)
		m, err := parse(b)
		if err != nil || m.unknown != "" {
			return
		}
		attr, err := options(m.qdisc.Options)
		if err != nil {
			t.Fatal(err)
		}
		again, err := settings(m.kind, attr.Serialize()[4:])
		if err != nil {
			t.Fatalf("%v was read, written, and not read again: %v", m.qdisc.Options, err)
		}
		tree := func(o qdisc.Options) qdisc.Tree { return qdisc.Tree{Near: []qdisc.Qdisc{{Options: o}}} }
		if d := qdisc.Compare(tree(m.qdisc.Options), tree(again)); len(d) > 0 {
			t.Fatalf("read %v, written and read again %v: %v", m.qdisc.Options, again, d)
		}
	})
}
