package lab

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"weft/units"
)

// Bounds of the queues section.
const (
	maxBuffer = 64 * units.GB
	maxBDP    = 10_000 // multiples of the bandwidth-delay product

	// packetRoom is what the headers of a packet may add to its payload (package transport: 96 bytes of its own;
	// UDP 8, IPv4 20, Ethernet 14 and 4).
	packetRoom = 96 + 8 + 20 + 14 + 4
)

var (
	routings  = choice{built: []string{"ecmp"}, later: []string{"spray", "adaptive", "static"}}
	markings  = choice{built: []string{"egress", "ingress"}}
	syncKinds = choice{built: []string{"perfect"}, later: []string{"none", "ptp", "huygens"}}
)

func (d *decoder) queues(s *section, mtu units.Bytes) Queues {
	var q Queues
	s.field("shared").later("a shared buffer is", "off")
	if buffer := s.field("buffer"); buffer.n != nil && buffer.n.kind == mapping {
		buffer.later("a shared buffer is")
	} else if q.Buffer, _ = buffer.size(); q.Buffer.Bytes != 0 && q.Buffer.Bytes < mtu+packetRoom {
		buffer.problem("%v holds no packet of %d bytes and its headers; expected at least %v", q.Buffer, mtu, mtu+packetRoom)
	}
	q.ECN = s.ecn()
	s.field("pfc").later("PFC is", "off")
	q.Routing, _ = s.field("routing").enum(routings)
	s.close()
	return q
}

func (s *section) ecn() *ECN {
	f := s.field("ecn")
	if f.n != nil && f.n.kind == scalar {
		switch f.n.text {
		case "off":
			f.record("off")
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
	ecn.Pmax, _ = e.field("pmax").share(0, 1)
	mark, _ := e.field("mark").enum(markings)
	ecn.Ingress = mark == "ingress"
	switch {
	case !okMin || !okMax:
	case (ecn.Kmin.BDP != 0) != (ecn.Kmax.BDP != 0) && ecn.Kmin != (Size{}):
		kmin.problem("%v and kmax, %v, cannot be compared; expected both in bytes or both in bdp", ecn.Kmin, ecn.Kmax)
	case ecn.Kmin.BDP > ecn.Kmax.BDP || ecn.Kmin.Bytes > ecn.Kmax.Bytes && ecn.Kmax.BDP == 0:
		kmin.problem("%v is above kmax, %v; expected at most that", ecn.Kmin, ecn.Kmax)
	}
	return &ecn
}

// size reads an amount of data: in bytes, or in bandwidth-delay products.
func (f field) size() (Size, bool) {
	return read(f, "a size such as 64KB, 5bdp or 25%bdp", parseSize, Size.String)
}

func parseSize(text string) (Size, error) {
	number, bdp := strings.CutSuffix(text, "bdp")
	if !bdp {
		b, err := units.ParseBytes(text)
		if err == nil && (b < 0 || b > maxBuffer) {
			err = fmt.Errorf("%q is out of range; expected 0B to %v", clip(text), maxBuffer)
		}
		if err != nil && !strings.Contains(err.Error(), "range") {
			err = fmt.Errorf("%w, or in bandwidth-delay products such as 5bdp or 25%%bdp", err)
		}
		return Size{Bytes: b}, err
	}
	parse := parseDecimal
	if strings.HasSuffix(number, "%") {
		parse = units.ParsePercent
	}
	v, err := parse(number)
	switch {
	case err != nil:
		return Size{}, fmt.Errorf("%q is not a number of bandwidth-delay products; expected one such as 5bdp or 25%%bdp", clip(text))
	case v < 0 || v > maxBDP:
		return Size{}, fmt.Errorf("%q is out of range; expected 0bdp to %dbdp", clip(text), maxBDP)
	}
	return Size{BDP: v}, nil
}

// String writes s as it would be written in a lab file.
func (s Size) String() string {
	switch {
	case s.BDP == 0:
		return s.Bytes.String()
	case s.BDP == math.Trunc(s.BDP):
		return showDecimal(s.BDP) + "bdp"
	default:
		return units.FormatPercent(s.BDP) + "bdp"
	}
}

// share reads a ratio, written as a number or in percent, within lo and hi.
func (f field) share(lo, hi float64) (float64, bool) {
	return read(f, fmt.Sprintf("a share from %v to %v, such as 0.5 or 50%%", lo, hi), between(func(text string) (float64, error) {
		if strings.HasSuffix(text, "%") {
			return units.ParsePercent(text)
		}
		return parseDecimal(text)
	}, lo, hi, showDecimal), showDecimal)
}

func (d *decoder) clocks(s *section) Clocks {
	var c Clocks
	s.field("offset").laterUnlessZero(`±?`, units.TimePattern(), "", "a clock offset is", "±1ms")
	s.field("skew").laterUnlessZero(`±?`, units.PPBPattern(), "", "clock skew is", "±20ppm")
	s.field("wander").laterUnlessZero("", units.PPBPattern(), `/(√s|sqrt\(s\))`, "clock wander is", "0.01ppm/√s")
	s.field("jitter").laterUnlessZero("", units.TimePattern(), "", "timestamp jitter is", "20ns")
	s.field("noise").laterUnlessZero(`(uniform|normal) ±?`, units.TimePattern(), "", "measurement noise is", "uniform ±100ns")
	c.Sync, _ = s.field("sync").enum(syncKinds)
	s.close()
	return c
}

// laterUnlessZero refuses an imperfection of the clocks, which no code honours yet, unless it is off or 0.
func (f field) laterUnlessZero(before, quantity, after, what, example string) {
	if f.n == nil {
		return
	}
	text, ok := f.text("off or a value such as " + example)
	switch {
	case !ok:
	case text == "off":
		f.record("off")
	case !regexp.MustCompile("^" + before + quantity + after + "$").MatchString(text):
		f.problem("%s is not understood; expected off or a value such as %s", strconv.Quote(clip(text)), example)
	case strings.ContainsAny(text, "123456789"):
		f.problem("%q: %s not yet supported; expected off", clip(text), what)
	default:
		f.record(text)
	}
}
