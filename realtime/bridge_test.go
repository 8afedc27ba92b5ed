package realtime

import (
	"encoding/binary"
	"testing"

	"weft/clocksync"
	"weft/clocksync/ptp"
	"weft/internal/clock"
	"weft/units"
)

// transparentBridge returns two hosts and a switch that is a peer-to-peer transparent clock and
// measures once in a lab second, one link after the other.
func transparentBridge() Config {
	cfg := twoHosts()
	cfg.Stations = clocksync.EventPort
	return Config{
		Network: cfg, Dilation: 20000, Hosts: []Address{addrOf(0), addrOf(1)}, Ahead: 100 * units.Microsecond, Departs: true,
		Transparent: true, PeerDelay: units.Second, Switches: [][4]byte{{10, 128, 0, 1}},
	}
}

// parsePTP returns the PTP message in a frame and its addresses.
func parsePTP(t *testing.T, frame []byte) (m ptp.Message, from, to [4]byte) {
	t.Helper()
	d, ok := parseIPv4(frame)
	if !ok || d.dport != d.sport && d.src>>16&0xff == 128 || onesSum(frame[ethLen:ethLen+ipMin]) != 0xffff {
		t.Fatalf("% x is no datagram", frame)
	}
	if err := m.Decode(udpOf(frame)[udpLen:]); err != nil {
		t.Fatal(err)
	}
	binary.BigEndian.PutUint32(from[:], d.src)
	binary.BigEndian.PutUint32(to[:], d.dst)
	return m, from, to
}

// ptpFrameTo returns a frame of host 0 with a PTP message that leaves at an instant.
func ptpFrameTo(dst [4]byte, m ptp.Message, at units.Time) []byte {
	var buf [ptp.MaxSize]byte
	frame := datagramLeavingAt(clocksync.EventPort, buf[:m.Encode(buf[:])], at)
	udp := append(make([]byte, 0, 200), udpOf(frame)...)
	return udpFrame(addrOf(0), Address{IP: dst}, 0, udp)
}

// Switches ask hosts and answer them in datagrams from their own addresses; what they have measured
// is in the Syncs that pass, and what is for another switch, or cut short, goes nowhere.
func TestSwitchesMeasureTheirLinks(t *testing.T) {
	cfg := transparentBridge()
	own := cfg.Switches[0]
	l := startLab(t, cfg)
	scale := l.begin(cfg.Dilation)
	const line = units.Microsecond + 80*units.Nanosecond // of 100 bytes at 10 Gb/s

	q, from, to := parsePTP(t, l.read(0)) // it left at 0
	if q.Type != ptp.PDelayReq || from != own || to != addrOf(0).IP || q.Source != (ptp.PortIdentity{Clock: ptp.IdentityOf(2), Port: 1}) {
		t.Fatalf("%+v from %v to %v", q, from, to)
	}
	at := scale.Lab(clock.Monotonic()) + 20*units.Microsecond
	a := ptp.Message{Type: ptp.PDelayResp, Sequence: q.Sequence, Requesting: q.Source, Correction: clocksync.Scaled(at - line)}
	l.write(0, ptpFrameTo(own, a, at))
	mine := ptp.Message{Type: ptp.PDelayReq, Sequence: 9, Source: ptp.PortIdentity{Clock: ptp.IdentityOf(0), Port: 1}}
	l.write(0, ptpFrameTo(own, mine, at+units.Microsecond))
	l.write(0, ptpFrameTo([4]byte{10, 128, 0, 2}, mine, at+2*units.Microsecond))
	cut := udpFrame(addrOf(0), Address{IP: own}, 0, []byte{1, 63, 1, 63})
	l.write(0, cut)
	l.write(0, udpFrame(addrOf(0), addrOf(1), 0, []byte{1, 63, 1, 63})) // to the port of events, and shorter than a header of UDP
	sync := ptp.Message{Type: ptp.Sync, Correction: clocksync.Scaled(500)}
	l.write(0, ptpFrameTo(addrOf(1).IP, sync, at+10*units.Microsecond))

	r, from, to := parsePTP(t, l.read(0))
	if want := (ptp.Message{Type: ptp.PDelayResp, Flags: ptp.FlagUnicast, Source: q.Source, Sequence: 9, LogInterval: 0x7f, Requesting: mine.Source}); r != want || from != own || to != addrOf(0).IP {
		t.Errorf("%+v from %v to %v, want %+v", r, from, to, want)
	}
	l.read(1) // what was cut short
	s, from, _ := parsePTP(t, l.read(1))
	if want := clocksync.Scaled(500) + clocksync.Scaled(line); s.Type != ptp.Sync || from != addrOf(0).IP || s.Correction < want-65 || s.Correction > want+65 {
		t.Errorf("%+v: corrected by %v, want %v", s, clocksync.Unscaled(s.Correction), line)
	}
	report := l.finish()
	if c := report.Bridges; c == nil || c.Sent != 2 || c.Received != 2 || c.Malformed+c.Stale+c.Foreign != 0 || report.Broken != "" {
		t.Errorf("%+v %q", c, report.Broken)
	}
	if want := (Refusals{NotRouted: 2}); report.Refusals[0] != want {
		t.Errorf("%+v, want %+v", report.Refusals[0], want)
	}
}

// A Sync from a host whose link was not measured goes no further.
func TestSwitchesHoldBackWhatTheyCannotCorrect(t *testing.T) {
	cfg := transparentBridge()
	l := startLab(t, cfg)
	scale := l.begin(cfg.Dilation)
	at := scale.Lab(clock.Monotonic()) + 5*units.Microsecond
	l.write(0, ptpFrameTo(addrOf(1).IP, ptp.Message{Type: ptp.Sync}, at))
	l.write(0, ptpFrameTo(addrOf(1).IP, ptp.Message{Type: ptp.DelayReq}, at+units.Microsecond))
	if m, _, _ := parsePTP(t, l.read(1)); m.Type != ptp.DelayReq {
		t.Errorf("%+v came through", m)
	}
	if r := l.finish(); r.Bridges.Filtered != 1 || r.Network.Delivered != 3 {
		t.Errorf("%+v, %d delivered", r.Bridges, r.Network.Delivered)
	}
}

// A message that a transparent clock has corrected has the checksum that it would have been sent
// with; one without stays without.
func TestCorrectionsKeepTheChecksumRight(t *testing.T) {
	for i := range units.Time(200) {
		m := ptp.Message{Type: ptp.Sync, Sequence: uint16(i * 331), Correction: int64(i) * 0x1234567}
		body := make([]byte, udpLen+ptp.MaxSize)
		binary.BigEndian.PutUint16(body[2:], clocksync.EventPort)
		body = body[:udpLen+m.Encode(body[udpLen:])]
		frame := udpFrame(addrOf(0), addrOf(1), 0, body)
		if i > 0 {
			sealUDP(frame)
		}
		rewrite(udpOf(frame), func(message []byte) { clocksync.AddResidence(message, i*i*units.Nanosecond+i) })
		var got ptp.Message
		if err := got.Decode(udpOf(frame)[udpLen:]); err != nil || got.Correction != m.Correction+clocksync.Scaled(i*i*units.Nanosecond+i) {
			t.Fatalf("%+v: %v", got, err)
		}
		if sum := binary.BigEndian.Uint16(udpOf(frame)[udpSumAt:]); i == 0 && sum != 0 || i > 0 && checksumOfUDP(frame) != 0xffff {
			t.Fatalf("message %d: checksum %#04x", i, sum)
		}
	}
}
