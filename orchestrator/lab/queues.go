package lab

import (
	"fmt"
	"strings"

	"weft/units"
)

// Bounds of the queues section.
const (
	maxBuffer = 64 * units.GB
	maxBDP    = 10_000 // multiples of the bandwidth-delay product

	// packetRoom is what the headers of a packet may add to its payload (package transport: 160 bytes of its own;
	// UDP 8, IPv4 20, Ethernet 14 and 4).
	packetRoom = 160 + 8 + 20 + 14 + 4
)

var (
	routings = choice{built: []string{"ecmp", "spray", "adaptive"}, later: []string{"static"}}
	markings = choice{built: []string{"egress", "ingress"}}
)

func (d *decoder) queues(s *section, mtu units.Bytes) Queues {
	var q Queues
	q.Buffer, q.Shared = s.memory(mtu)
	q.ECN = s.ecn()
	q.PFC = s.pfc(&q)
	q.Routing, _ = s.field("routing").enum(routings)
	light := s.field("light")
	if q.Routing == "adaptive" {
		q.Light, _ = light.size()
	} else if light.written() {
		light.problem("only adaptive routing asks whether a port is light; expected routing: adaptive")
	}
	s.close()
	return q
}

func (s *section) ecn() *ECN {
	f := s.field("ecn")
	if f.n != nil && f.n.kind == scalar {
		switch f.n.text {
		case "off":
			f.record("off")
			s.d.ecnOff = f
			return nil
		case "on":
			f.n = nil // its defaults
		}
	}
	e := f.open()
	defer e.close()
	var ecn ECN
	var okMin, okMax bool
	kmin := e.field("kmin")
	ecn.Kmin, okMin = kmin.size()
	ecn.Kmax, okMax = e.field("kmax").size()
	pmax := e.field("pmax")
	ecn.Pmax, _ = pmax.share(0, 1)
	mark, _ := e.field("mark").enum(markings)
	ecn.Ingress = mark == "ingress"
	switch {
	case !okMin || !okMax:
	case !ecn.Kmin.comparable(ecn.Kmax):
		kmin.problem("%v and kmax, %v, cannot be compared; expected both in bytes or both in bdp", ecn.Kmin, ecn.Kmax)
	case ecn.Kmin.above(ecn.Kmax):
		kmin.problem("%v is above kmax, %v; expected at most that", ecn.Kmin, ecn.Kmax)
	case ecn.Kmin == ecn.Kmax && ecn.Pmax != 1:
		pmax.idle(kmin, "says how often packets are marked between kmin and kmax, but both are %v and beyond kmax every packet is; expected 1, or another kmax", ecn.Kmin)
	}
	return &ecn
}

// share reads a ratio, written as a number or in percent, within lo and hi.
func (f field) share(lo, hi float64) (float64, bool) {
	return read(f, fmt.Sprintf("a share from %v to %v, such as 0.5 or 50%%", lo, hi), between(orPercent(parseDecimal), lo, hi, showDecimal), showDecimal)
}

// orPercent reads a ratio: what ends in %, or else as parse does.
func orPercent(parse func(string) (float64, error)) func(string) (float64, error) {
	return func(text string) (float64, error) {
		if strings.HasSuffix(text, "%") {
			return units.ParsePercent(text)
		}
		return parse(text)
	}
}
