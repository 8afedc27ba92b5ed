package fabric

import (
	"strings"
	"testing"

	"weft/units"
)

// trimming returns a world in which hosts 1 and 2 send to host 0 through a port that trims, and a
// function that sends data packets of 1,000 bytes.
func trimming(t *testing.T, c TrimConfig, buffer units.Bytes) (*world, func(at units.Time, h HostID, id int, keep uint8)) {
	w := newWorld(t, funnel(2, PortConfig{Link: Link{Rate: 10 * units.Gbps}, Buffer: buffer, Trim: c}).route())
	return w, func(at units.Time, h HostID, id int, keep uint8) {
		w.run(at)
		w.send(at, h, 0, 1000, id, func(p *Packet) { p.Class, p.Keep = 1, keep })
	}
}

// A packet that does not fit is cut to its headers, which overtake the data. What may not be
// trimmed is dropped.
func TestTrim(t *testing.T) {
	w, send := trimming(t, TrimConfig{On: true}, 2000)
	for i := range 4 {
		send(0, 1, i, 106)
	}
	send(0, 2, 4, 0) // arrives with the first of the other host
	send(1*units.Microsecond, 2, 5, 106)
	w.run(units.Never)
	var order []int64
	for _, a := range w.arrivals {
		order = append(order, a.packet.Context)
		cut, last := a.packet.Trimmed()
		if want := a.packet.Size == 106; cut != want || last != want || (a.packet.Class == 0) != want {
			t.Errorf("packet %d of %d bytes, class %d: trimmed %t, at the last switch %t", a.packet.Context, a.packet.Size,
				a.packet.Class, cut, last)
		}
	}
	k := w.net.Counters()
	if k.Trimmed == 0 || k.TrimmedBytes != units.Bytes(k.Trimmed)*894 || k.Dropped+k.Delivered != 6 {
		t.Errorf("%+v", k)
	}
	if p := w.net.PortCounters(0); p.Trims != k.Trimmed {
		t.Errorf("%+v, order %v", p, order)
	}
}

// Trimmed packets have the size that the port says, and control packets have twice the buffer.
func TestTrimSize(t *testing.T) {
	w, send := trimming(t, TrimConfig{On: true, Size: 64}, 1000)
	for i := range 40 {
		send(0, HostID(1+i%2), i, 200)
	}
	w.run(units.Never)
	k := w.net.Counters()
	if k.Trimmed < 30 || k.TrimmedBytes != units.Bytes(k.Trimmed)*936 {
		t.Errorf("%+v", k)
	}
	if most := w.net.PortCounters(0).MaxQueue; most > 3000 {
		t.Errorf("%d bytes waited", most)
	}
}

// With a victim drawn by chance, packets that waited are trimmed as well as those that arrive.
func TestTrimFair(t *testing.T) {
	w, send := trimming(t, TrimConfig{On: true, Fair: true}, 2000)
	for i := range 200 {
		send(0, HostID(1+i%2), i, 106)
	}
	w.run(units.Never)
	waited := 0
	for _, a := range w.arrivals {
		if cut, _ := a.packet.Trimmed(); cut && a.packet.Queued > 0 {
			waited++
		}
	}
	if n := w.net.Counters().Trimmed; n < 50 || waited < int(n)/4 {
		t.Errorf("%d trimmed, of which %d had waited", n, waited)
	}
}

func TestTrimErrors(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"trimming has settings, but is not on": func(c *Config) { c.Ports[0].Trim.On = false },
		"trimmed packets of 4000 bytes":        func(c *Config) { c.Ports[0].Trim.Size = 4000 },
		"accounts for its memory":              func(c *Config) { c.Switches[0].Buffer.Total = units.MB },
	} {
		cfg := funnel(2, PortConfig{Link: Link{Rate: 10 * units.Gbps}, Buffer: 2000, Trim: TrimConfig{On: true, Size: 64}}).route()
		change(&cfg)
		if _, err := New(cfg, nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
