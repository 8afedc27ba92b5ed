package fabric

import (
	"reflect"
	"testing"

	"weft/units"
)

const stationPort = 319

// heard is a call of a station.
type heard struct {
	at      units.Time
	s, link int
	what    string
	queued  units.Time
}

// sent is a packet that a station is to send.
type sent struct{ s, link, number int }

// posts are stations for tests: they record their calls, send what they are given, and act at
// intervals.
type posts struct {
	net   *Network
	heard []heard
	out   []sent
	next  []units.Time // by switch
	every units.Time
	holds bool // nothing passes
}

func (p *posts) Receive(now units.Time, s, link int, k *Packet) {
	p.heard = append(p.heard, heard{now, s, link, string(k.Header), k.Queued})
}

func (p *posts) Pass(now units.Time, s, link int, k *Packet) bool {
	p.heard = append(p.heard, heard{at: now, s: s, link: link, what: "pass"})
	k.Header[0]++
	return !p.holds
}

func (p *posts) Transmit(_ units.Time, s int, k *Packet) (link int, ok bool) {
	for i, o := range p.out {
		if o.s == s {
			p.out = append(p.out[:i], p.out[i+1:]...)
			k.Size, k.Class, k.Port, k.Context = 100, 1, stationPort, int64(o.number)
			k.Header = append(k.Header, 'm')
			return o.link, true
		}
	}
	return 0, false
}

func (p *posts) Deadline(s int) (units.Time, bool) {
	if p.next == nil {
		return 0, false
	}
	return p.next[s], true
}

func (p *posts) Advance(now units.Time, s int) {
	p.heard = append(p.heard, heard{at: now, s: s, what: "advance"})
	p.next[s] = now + p.every
}

// withStations returns a chain of two switches with stations attached.
func withStations(t *testing.T, p *posts) *world {
	cfg := chain(2).route()
	cfg.Stations = stationPort
	w := newWorld(t, cfg)
	p.net = w.net
	w.net.AttachStations(0, p)
	return w
}

// Links are pairs of ports, in the order of those that send.
func TestSwitchLinks(t *testing.T) {
	w := chain(2)
	w.link(2, 3) // a second one between the switches
	cfg := w.route()
	want := [][]SwitchLink{{{1, 0}, {2, 3}, {6, 7}}, {{3, 2}, {4, 5}, {7, 6}}}
	if got := cfg.SwitchLinks(); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A packet that a host sends to itself is for the switch that the host is attached to. It goes no
// further, and Queued says how long it waited.
func TestStationsReceiveWhatIsLocal(t *testing.T) {
	p := &posts{}
	w := withStations(t, p)
	w.send(0, 0, 0, 125, 1, func(k *Packet) { k.Header = append(k.Header, "hello"...) })
	w.run(units.Second)
	// 10 ns on the link of 100 Gb/s, and 1 us
	if want := []heard{{at: 1010 * units.Nanosecond, what: "hello"}}; !reflect.DeepEqual(p.heard, want) || len(w.arrivals) > 0 {
		t.Errorf("%+v, want %+v; %d arrivals", p.heard, want, len(w.arrivals))
	}
}

// Packets to the port of stations are shown to every station on the path, which may change them;
// other packets are not.
func TestStationsSeePacketsPass(t *testing.T) {
	p := &posts{}
	w := withStations(t, p)
	event := func(k *Packet) { k.Port, k.Header = stationPort, append(k.Header, 'a') }
	w.send(0, 0, 1, 125, 1, event)
	w.send(0, 0, 1, 125, 2, func(k *Packet) { k.Header = append(k.Header, 'a') })
	w.run(units.Millisecond)
	want := []heard{{at: 1010 * units.Nanosecond, what: "pass"}, {at: 2020 * units.Nanosecond, s: 1, what: "pass"}}
	if !reflect.DeepEqual(p.heard, want) {
		t.Errorf("%+v, want %+v", p.heard, want)
	}
	if len(w.arrivals) != 2 || string(w.arrivals[0].packet.Header) != "c" || string(w.arrivals[1].packet.Header) != "a" {
		t.Errorf("%+v", w.arrivals)
	}
	p.holds = true
	w.send(2*units.Millisecond, 0, 1, 125, 3, event)
	w.run(units.Second)
	if len(w.arrivals) != 2 || len(p.heard) != 3 {
		t.Errorf("a packet that a station held back went on: %+v", p.heard)
	}
}

// What a station sends goes to the node at the other end, behind what waits there already, and
// Queued says how long it waited.
func TestStationsSend(t *testing.T) {
	p := &posts{out: []sent{{0, 0, 7}, {1, 0, 8}, {1, 1, 9}}}
	w := withStations(t, p)
	w.run(units.Millisecond)
	hop := 8*units.Nanosecond + units.Microsecond
	if len(w.arrivals) != 2 || len(p.heard) != 1 || p.heard[0] != (heard{at: hop, link: 1, what: "m"}) {
		t.Fatalf("%+v %+v", w.arrivals, p.heard)
	}
	for i, want := range []struct {
		src, dst HostID
		number   units.Bytes
	}{{2, 0, 7}, {3, 1, 9}} {
		a := w.arrivals[i]
		if a.at != hop || a.packet.Src != want.src || a.packet.Dst != want.dst || a.packet.Context != int64(want.number) || a.packet.Port != stationPort {
			t.Errorf("%+v, want %+v", a, want)
		}
	}
	p.out = []sent{{0, 1, 1}}
	w.send(units.Millisecond, 0, 1, 12500, 1)                                                     // 1 us long: on switch 0's link from 1.002 ms on
	w.send(units.Millisecond, 0, 0, 125, 2, func(k *Packet) { k.Header = append(k.Header, 'x') }) // has the station send
	w.run(units.Second)
	// Both ports have the same rate: the local packet comes 10 ns after the long one is on its way.
	if got := p.heard[len(p.heard)-1]; got.s != 1 || got.queued != 990*units.Nanosecond {
		t.Errorf("%+v", p.heard)
	}
}

// Stations act at their deadlines; a link that is down takes no packet.
func TestStationsAct(t *testing.T) {
	p := &posts{next: []units.Time{5, 7}, every: units.Microsecond}
	w := withStations(t, p)
	w.run(units.Microsecond + 6)
	want := []heard{{at: 5, what: "advance"}, {at: 7, s: 1, what: "advance"}, {at: units.Microsecond + 5, what: "advance"}}
	if !reflect.DeepEqual(p.heard, want) {
		t.Errorf("%+v, want %+v", p.heard, want)
	}
	w.net.Links().SetUp(units.Microsecond+6, false, 0, 1)
	p.out = []sent{{0, 0, 1}}
	w.run(4 * units.Microsecond)
	if c := w.net.Counters(); c.Cut != 1 || len(w.arrivals) > 0 {
		t.Errorf("%+v", c)
	}
}

// Copies that links make of a packet have the same UDP port.
func TestCopiesKeepTheirPort(t *testing.T) {
	cfg := chain(1)
	for i := range cfg.Ports {
		cfg.Ports[i].Duplicate = 1
	}
	w := newWorld(t, cfg.route())
	w.send(0, 0, 1, 100, 1, func(k *Packet) { k.Port = stationPort })
	w.run(units.Second)
	if len(w.arrivals) != 4 {
		t.Fatalf("%d arrivals", len(w.arrivals))
	}
	for _, a := range w.arrivals {
		if a.packet.Port != stationPort {
			t.Errorf("to port %d", a.packet.Port)
		}
	}
}

// A packet for a station ends at the switch in a network without stations, or before any are
// attached.
func TestStationsThatAreNotThere(t *testing.T) {
	cfg := chain(1).route()
	cfg.Stations = stationPort
	w := newWorld(t, cfg)
	w.send(0, 0, 0, 100, 1)
	w.send(0, 0, 1, 100, 2, func(k *Packet) { k.Port = stationPort })
	w.run(units.Second)
	if n := w.numbers(); !reflect.DeepEqual(n, []int{2}) {
		t.Errorf("%v arrived", n)
	}
	defer func() {
		if recover() == nil {
			t.Error("a network without stations attached one")
		}
	}()
	newWorld(t, chain(1).route()).net.AttachStations(0, &posts{})
}
