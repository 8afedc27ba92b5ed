package bpf

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"weft/tc-shaping/qdisc"
	"weft/units"
)

// Packets collect the times of their links, transmissions one after the other, and are stamped with
// the sum; what starts at a node has collected nothing yet. Their checksums stay right.
func TestPrivCollect(t *testing.T) {
	const longest = 200 * time.Millisecond
	table := loaded(t, 1)
	port := table.Port(0)
	port.Unit = UnitFor(longest)
	unit := time.Duration(1) << port.Unit
	if unit*maxCollected < 2*longest || unit*maxCollected > 8*longest {
		t.Errorf("units of %v", unit)
	}
	set := func(l qdisc.Line) {
		t.Helper()
		g := &qdisc.Gate{Limit: 1 << 20, Line: &l}
		if err := port.Set(g); err != nil {
			t.Fatal(err)
		}
		if got := port.Gate(g); got != g {
			t.Errorf("%v became %v", g, got)
		}
	}
	line := qdisc.Line{Delay: 5 * time.Millisecond, Rate: 8 * units.Mbps, Overhead: 40}
	set(line)
	leave, err := port.Leave(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer leave.Close()
	run := func(p *ebpf.Program, in []byte, stamp time.Duration) (id time.Duration, moved time.Duration) {
		t.Helper()
		out, context := make([]byte, len(in)+256), make([]byte, 192) // struct __sk_buff
		binary.NativeEndian.PutUint64(context[skbStamp:], uint64(stamp))
		if _, err := p.Run(&ebpf.RunOptions{Data: in, DataOut: out, Context: context, ContextOut: context}); err != nil {
			t.Fatal(err)
		}
		if sum := checksum(out[14:34]); sum != 0xffff {
			t.Errorf("checksum %04x", sum)
		}
		return time.Duration(binary.BigEndian.Uint16(out[18:])) * unit, time.Duration(binary.NativeEndian.Uint64(context[skbStamp:])) - stamp
	}
	near := func(what string, got, want time.Duration) {
		t.Helper()
		if got < want-unit || got > want+unit {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	packet := frame(anAddress(1), anAddress(2), 17, 1, 2) // 60 bytes: 100 us with overhead
	binary.BigEndian.PutUint16(packet[24:], ^checksum(packet[14:34]))
	const at, each = time.Hour, 100 * time.Microsecond
	for i := range 3 { // at once
		want := 5*time.Millisecond + time.Duration(i+1)*each
		id, moved := run(leave, packet, at)
		near("collected", id, want)
		near("stamp", moved, want)
	}
	later := append([]byte(nil), packet...)
	binary.BigEndian.PutUint16(later[18:], uint16(30*time.Millisecond/unit))
	binary.BigEndian.PutUint16(later[24:], 0)
	binary.BigEndian.PutUint16(later[24:], ^checksum(later[14:34]))
	id, moved := run(leave, later, at+time.Second)
	near("collected before", id, 35*time.Millisecond+each)
	near("stamp", moved, 35*time.Millisecond+each)
	if _, moved := run(leave, later, at-time.Hour); moved > 40*time.Millisecond {
		t.Errorf("after the machine's clock was set back packets wait %v", moved)
	}
	if id, moved := run(leave, later, 0); moved != 0 || id != 30*time.Millisecond/unit*unit {
		t.Errorf("without a stamp: %v, %v", id, moved)
	}
	// of packets that waited in the queue, none is later for the timer that let it go late
	port.Reset()
	port.row().entered = 1 << 30
	for i := range time.Duration(5) {
		late := i % 3 * 400 * time.Microsecond
		_, moved := run(leave, packet, at+i*each+late)
		near("stamp of a late packet", moved, 5*time.Millisecond+each-late)
	}
	if _, moved := run(leave, packet, at+time.Second); moved != 0 {
		t.Errorf("one that is later than its propagation takes %v", moved)
	}
	port.Reset()
	random := make([]int16, qdisc.TableSize)
	for i := range random {
		random[i] = int16(i % 3 * qdisc.TableOne)
	}
	set(qdisc.Line{Delay: 5 * time.Millisecond, Spread: 8 * time.Millisecond, Table: random})
	times := map[time.Duration]int{}
	for range 300 {
		_, moved := run(leave, packet, at)
		times[(moved-5*time.Millisecond+4*time.Millisecond)/(8*time.Millisecond)]++
	}
	for i := range time.Duration(3) {
		if n := times[i]; n < 60 || n > 140 {
			t.Errorf("%d of 300 packets take %d times the spread: %v", n, i, times)
		}
	}
	set(line)
	binary.BigEndian.PutUint16(later[18:], maxCollected)
	binary.BigEndian.PutUint16(later[24:], 0)
	binary.BigEndian.PutUint16(later[24:], ^checksum(later[14:34]))
	if id, _ := run(leave, later, at); id != maxCollected*unit {
		t.Errorf("a full field became %v", id)
	}
	enter, err := port.Enter()
	if err != nil {
		t.Fatal(err)
	}
	defer enter.Close()
	if id, moved := run(enter, later, at); id != 0 || moved != 0 {
		t.Errorf("at its start a packet has collected %v, stamp %v", id, moved)
	}
}

// checksum is the sum over an IPv4 header: 0xffff if its checksum is right.
func checksum(header []byte) uint16 {
	sum := 0
	for i := 0; i < len(header); i += 2 {
		sum += int(binary.BigEndian.Uint16(header[i:]))
	}
	return uint16(sum + sum>>16)
}
