package agent

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"weft/clocksync"
	"weft/clocksync/labtime"
	"weft/internal/bypass"
	"weft/internal/fuzztest"
	"weft/internal/rings"
	"weft/internal/stalls"
	"weft/results/stats"
	"weft/transport"
	"weft/transport/wire"
	"weft/units"
)

// newBypass returns a node's bypass NIC and the fabric's ends of it.
func newBypass(t *testing.T) (*bypassNIC, *rings.Consumer, *rings.Producer) {
	t.Helper()
	const frame = 1514
	layout, err := rings.For(frame)
	if err != nil {
		t.Fatal(err)
	}
	region, err := bypass.Create("test", layout.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	bell, err := bypass.NewBell()
	if err != nil {
		t.Fatal(err)
	}
	var fds []int
	for _, f := range append([]*os.File{region}, bell[:]...) {
		defer f.Close()
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		fds = append(fds, fd)
	}
	all := bells{}
	b, err := all.open(&NIC{Frame: frame, Bell: 3}, fds)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.close(); all.close() })
	b.own, b.peers = [4]byte{10, 0, 0, 1}, [][4]byte{{10, 0, 0, 1}, {10, 0, 2, 255}}
	b.scale = &labtime.Scale{T0: 1, Dilation: 1}
	in, err := rings.NewConsumer(layout, b.region, 0)
	if err != nil {
		t.Fatal(err)
	}
	out, err := rings.NewProducer(layout, b.region, 1)
	if err != nil {
		t.Fatal(err)
	}
	return b, in, out
}

// What a node sends is a frame whose headers a kernel would accept, and its receiver gets the
// datagram with both stamps.
func TestBypassFrames(t *testing.T) {
	b, in, out := newBypass(t)
	packet := transport.Outgoing{Dst: 1, SrcPort: 50001, Class: 1, ECT: true, N: 90}
	for i := range packet.N {
		packet.Header[i] = byte(i)
	}
	payload, trailer := []byte("what it carries"), []byte("when")
	body := append(append(append([]byte(nil), packet.Header[:packet.N]...), payload...), trailer...)
	for _, to := range []struct {
		port, want uint16
		class, tos byte
	}{{0, 0, 1, tosECT0}, {clocksync.EventPort, clocksync.EventPort, 0, wire.TOSControl | tosECT0}} {
		packet.DstPort, packet.Class = to.port, to.class
		if taken, err := b.send(&packet, payload, trailer, 5); !taken || err != nil {
			t.Fatal(taken, err)
		}
		f, ok, err := in.Next()
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		frame := bytes.Clone(f.Bytes)
		in.Release()
		if sum := sumOf(frame[ethLen : ethLen+ipLen]); sum != 0xffff {
			t.Errorf("the checksum of the header is wrong by %#x", sum)
		}
		if want := []byte{2, 0, 10, 0, 2, 255, 2, 0, 10, 0, 0, 1}; !bytes.Equal(frame[:12], want) {
			t.Errorf("from and to % x, want % x", frame[:12], want)
		}
		memory, err := out.Slot()
		if err != nil {
			t.Fatal(err)
		}
		out.Push(copy(memory, frame), 7, 9)
		b.own = b.peers[1]
		n, err := b.receive(func(d datagram) {
			if !bytes.Equal(d.data, body) || d.from != 0x0a000001 || d.tos != to.tos || d.port != to.want ||
				d.lab != 7 || d.mono != 9 {
				t.Errorf("got %+v", d)
			}
		})
		if b.own = b.peers[0]; n != 1 || err != nil {
			t.Errorf("%d datagrams, %v", n, err)
		}
	}
}

// sumOf returns the sum of the 16-bit words of a header with its checksum: 0xffff if that is right.
func sumOf(header []byte) uint32 {
	var sum uint32
	for i := 0; i < len(header); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(header[i:]))
	}
	return sum&0xffff + sum>>16
}

// A full NIC takes nothing, and a packet that cannot be a frame is an error.
func TestBypassIsBounded(t *testing.T) {
	b, _, _ := newBypass(t)
	packet := transport.Outgoing{Dst: 1, N: 10}
	for sent := 0; ; sent++ {
		taken, err := b.send(&packet, nil, nil, 0)
		if err != nil || sent > 1024 {
			t.Fatalf("after %d packets: %v", sent, err)
		}
		if !taken {
			break
		}
	}
	b, _, _ = newBypass(t)
	if taken, err := b.send(&packet, make([]byte, 1514), nil, 0); taken || err == nil {
		t.Errorf("taken %t, %v", taken, err)
	}
}

// The arrival of a datagram is the model's, and the node's reaction is measured from when it was
// written.
func TestBypassArrival(t *testing.T) {
	l := &loop{scale: labtime.NewClock(labtime.Scale{T0: 1000, Dilation: 10})}
	l.results.Reaction = stats.NewDist()
	l.results.Stalls = new(stalls.Log)
	l.now = l.scale.Lab(6000)
	if at := l.arrival(datagram{lab: 300 * units.Nanosecond, mono: 5000}); at != 300*units.Nanosecond {
		t.Errorf("arrived at %v", at)
	}
	if got, want := l.results.Reaction.Quantile(1), l.scale.LabSpan(1000); got < want*99/100 || got > want*101/100 {
		t.Errorf("a reaction of %v, want %v", got, want)
	}
	for _, lab := range []units.Time{math.MaxInt64, math.MinInt64} { // a fabric that nobody can explain
		if at := l.arrival(datagram{lab: lab, mono: 5000}); at < 0 || at > l.now {
			t.Errorf("arrived at %v, now is %v", at, l.now)
		}
	}
}

func FuzzParseFrame(f *testing.F) {
	corpus := fuzztest.New(f)
	own := [4]byte{10, 0, 0, 2}
	frame := make([]byte, envelope+20)
	(&bypassNIC{own: [4]byte{10, 0, 0, 1}, peers: [][4]byte{own}}).address(frame, &socketKey{port: 50000})
	if d, ok := parseFrame(frame, own); !ok || len(d.data) != 20 {
		f.Fatalf("%+v, %t", d, ok)
	}
	corpus.Add(frame)
	corpus.Add(frame[:envelope])
	corpus.Fuzz(func(t *testing.T, frame []byte) {
		if d, ok := parseFrame(frame, own); ok && len(d.data) > len(frame)-envelope {
			t.Errorf("%d bytes in a frame of %d", len(d.data), len(frame))
		}
	})
}
