package realtime

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"weft/clocksync"
	"weft/fabric"
	"weft/internal/clock"
	"weft/internal/quiettest"
	"weft/transport/wire"
	"weft/units"
)

// datagramLeavingAt returns a datagram to a port that carries the instant of its departure.
func datagramLeavingAt(port uint16, body []byte, at units.Time) []byte {
	b := make([]byte, udpLen, 200)
	b = wire.AppendDeparture(append(b, body...), at)
	binary.BigEndian.PutUint16(b[2:], port)
	binary.BigEndian.PutUint16(b[udpLengthAt:], uint16(len(b)))
	return udpFrame(addrOf(0), addrOf(1), 2, b)
}

// A stamp of an imperfect clock is no instant: the packet leaves when it says behind all that it
// carries, which nobody sees.
func TestDepartureIsCutOffAndKept(t *testing.T) {
	quiettest.Check(t, 3, func() error {
		const dilation = 20000
		l := startLab(t, Config{
			Network: twoHosts(), Dilation: dilation, Hosts: []Address{addrOf(0), addrOf(1)}, Ahead: 10 * units.Microsecond, Departs: true,
		})
		scale := l.begin(dilation)
		at := scale.Lab(clock.Monotonic()) + 5*units.Microsecond
		header := make([]byte, wire.DataSize)
		(&wire.Data{Flags: wire.Announce, Payload: 1, Size: 1, SentAt: at - units.Millisecond}).Encode(header)
		l.write(0, datagramLeavingAt(wire.Port, header, at))
		got := l.read(1)
		arrived := scale.Lab(clock.Monotonic())
		if udp := udpOf(got); !bytes.Equal(udp[udpLen:], header) || int(binary.BigEndian.Uint16(udp[udpLengthAt:])) != len(udp) {
			t.Errorf("what arrived is %d bytes of UDP, want the header alone", len(udp))
		}
		if sum := onesSum(got[ethLen : ethLen+ipMin]); sum != 0xffff {
			t.Errorf("the sum over the IPv4 header is %#x", sum)
		}
		want := at + 2*(units.Microsecond+(10*units.Gbps).TransmitTime(units.Bytes(len(got)+fcsLen)))
		r := l.finish()
		if late := arrived - want; late < 0 || late > r.Delivery.Quantile(1)+units.Microsecond {
			return fmt.Errorf("arrived %d ps after %d", late, want)
		}
		if r.Departure.Count() != 1 || r.QueueDelay.Count() != 1 {
			t.Errorf("%d departures, %d delays, want one of each", r.Departure.Count(), r.QueueDelay.Count())
		}
		return nil
	})
}

func TestOrdinaryTrafficSaysNoDeparture(t *testing.T) {
	l := &loop{cfg: Config{Departs: true}}
	for name, frame := range map[string][]byte{
		"short":   udpFrame(addrOf(0), addrOf(1), 2, make([]byte, udpLen)),
		"another": udpFrame(addrOf(0), addrOf(1), 2, make([]byte, 200)),
		"cut":     datagramLeavingAt(9, nil, 5)[:ethLen+ipMin+udpLen+4],
	} {
		d, ok := parseIPv4(frame)
		p := &fabric.Packet{Header: bytes.Clone(frame), Size: units.Bytes(len(frame))}
		if c, sound := read(p.Header, &d); ok && sound {
			if _, cut := l.cut(p, c); cut || !bytes.Equal(p.Header, frame) {
				t.Errorf("%s: a departure was found, or the frame changed", name)
			}
		}
	}
	frame := datagramLeavingAt(9, nil, 5)
	c, _ := parseFrame(t, frame)
	p := &fabric.Packet{Header: frame, Size: units.Bytes(len(frame))}
	if at, ok := l.cut(p, c); !ok || at != 5 || int(p.Size) != len(frame)+fcsLen-wire.DepartureSize {
		t.Errorf("%d, %v, %d bytes left", at, ok, p.Size)
	}
}

// What PFC held back is stamped as much later as it is late, by the sender's clock.
func TestLateDepartureMovesTheStamp(t *testing.T) {
	l := &loop{cfg: Config{Departs: true}}
	header := make([]byte, wire.DataSize)
	(&wire.Data{Flags: wire.Announce, Payload: 1, Size: 1, SentAt: 7_000_000}).Encode(header)
	frame := datagramLeavingAt(wire.Port, header, 1000)
	c, _ := parseFrame(t, frame)
	p := &fabric.Packet{Header: frame}
	if _, ok := l.cut(p, c); !ok {
		t.Fatal("no departure was found")
	}
	l.restamp(c, p.Header, 1500)
	var got wire.Data
	if err := got.Decode(udpOf(p.Header)[udpLen:]); err != nil || got.SentAt != 7_000_500 {
		t.Errorf("stamped %d, %v; want 500 ps later", got.SentAt, err)
	}
}

// A transparent clock adds the time in its queues to PTP's event messages; here nothing queues.
func TestTransparentClocksLeaveIdleMessagesAlone(t *testing.T) {
	quiettest.Check(t, 3, func() error {
		const dilation = 20000
		l := startLab(t, Config{
			Network: twoHosts(), Dilation: dilation, Hosts: []Address{addrOf(0), addrOf(1)}, Ahead: 10 * units.Microsecond, Departs: true, Transparent: true,
		})
		scale := l.begin(dilation)
		sync := make([]byte, 44)
		sync[1] = 2
		l.write(0, datagramLeavingAt(clocksync.EventPort, sync, scale.Lab(clock.Monotonic())+5*units.Microsecond))
		if got := udpOf(l.read(1))[udpLen:]; !bytes.Equal(got, sync) {
			return fmt.Errorf("an idle path changed a Sync to %x", got)
		}
		if r := l.finish(); r.QueueDelay.Count() != 0 {
			t.Error("a message of synchronization counts among the delays of data")
		}
		return nil
	})
}
