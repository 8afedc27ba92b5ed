package lab

import (
	"fmt"

	"weft/units"
)

const maxAlpha = 1024 // thresholds of switches go to 2^3

// memory reads where packets wait: a buffer for each port, or one that all ports of a switch share. With PFC it is
// shared, since what a switch must hold is counted as a whole.
func (s *section) memory(mtu units.Bytes) (Size, *Shared) {
	buffer, shared := s.field("buffer"), s.field("shared")
	off := shared.n != nil && shared.n.kind == scalar && shared.n.text == "off"
	flow := s.n.at0("pfc")
	pfc := flow != nil && (flow.kind == mapping || flow.textOr("off") != "off")
	switch {
	case buffer.n != nil && buffer.n.kind == mapping:
		buffer.problem("%s; expected a size such as 5bdp, or the key shared in its place", buffer.n.what())
		return Size{}, nil
	case off && pfc:
		shared.problem("off, but with pfc a switch counts all it holds; expected a section such as {total: 32MB}")
		return Size{}, nil
	case off || !shared.written() && !pfc:
		if off {
			shared.record("off")
		}
		b, _ := buffer.size()
		if b.Bytes != 0 && b.Per == 0 && b.Bytes < mtu+packetRoom {
			buffer.problem("%v holds no packet of %d bytes and its headers; expected at least %v", b, mtu, mtu+packetRoom)
		}
		return b, nil
	case buffer.written() && pfc:
		buffer.problem("a buffer for each port does not go with pfc, for which a switch counts all it holds; expected shared: {total: 32MB} in its place")
	case buffer.written():
		buffer.problem("given together with queues.shared, which takes its place; expected one of them")
	}
	return Size{}, shared.shared(pfc, flow.at0("xoff") != nil)
}

// shared reads the memory of a switch. Where thresholds are static there is no alpha.
func (f field) shared(pfc, static bool) *Shared {
	c := f.open()
	defer c.close()
	var m Shared
	total := c.field("total")
	var ok bool
	if m.Total, ok = total.size(); ok && m.Total.isZero() {
		total.problem("%v is no memory", m.Total)
	}
	alpha := c.field("alpha")
	switch {
	case !static:
		if pfc {
			alpha = alpha.or("1/8", "alibaba-edu/High-Precision-Congestion-Control, switch-mmu.cc: shift 3")
		} else {
			alpha = alpha.or("1", "ours: SONiC's dynamic_th 0; a queue may hold what is free")
		}
		m.Alpha, _ = alpha.alpha()
	case alpha.written():
		alpha.problem("given together with queues.pfc.xoff, which takes its place; expected one of them")
	}
	return &m
}

// pfc reads priority flow control. q has the memory.
func (s *section) pfc(q *Queues) *PFC {
	f := s.field("pfc")
	if f.n != nil && f.n.kind == scalar {
		if text, ok := f.enum(choice{built: []string{"off", "on"}}); !ok || text == "off" {
			return nil
		}
		f.n = nil // its defaults
	}
	c := f.open()
	defer c.close()
	p := new(PFC)
	if xoff := c.field("xoff"); xoff.n != nil {
		if v, ok := xoff.size(); ok {
			p.Xoff = &v
		}
	}
	xon, offset := c.field("xon"), c.field("xon_offset")
	switch static := c.n.at0("xoff") != nil; {
	case static:
		p.Xon = unless(xon.or("auto", "bobzhuyb/ns3-rdma: two full packets below xoff"), "auto", field.sizeAt)
		if p.Xon != nil && p.Xoff != nil && (!p.Xon.comparable(*p.Xoff) || p.Xon.above(*p.Xoff)) {
			xon.problem("%v is not below xoff, %v", p.Xon, p.Xoff)
		}
		if offset.written() {
			offset.problem("applies without xoff; expected xon")
		}
	default:
		if xon.written() {
			xon.problem("applies with xoff; expected xon_offset")
		}
		p.Offset, _ = quantity(offset, units.ParseBytes, 0, maxBuffer)
	}
	p.Reserve, _ = quantity(c.field("reserve"), units.ParseBytes, 0, maxBuffer)
	p.Headroom = unless(c.field("headroom"), "auto", field.sizeAt)
	p.Response, _ = quantity(c.field("response"), units.ParseTime, 0, units.Millisecond)
	return p
}

// sizeAt is size for values that may also be absent.
func (f field) sizeAt() (*Size, bool) {
	v, ok := f.size()
	if !ok {
		return nil, false
	}
	return &v, true
}

// alpha reads a dynamic threshold: a multiple of the memory that is free.
func (f field) alpha() (float64, bool) {
	const expected = "a multiple of what is free, above 0, such as 1/8 or 0.5"
	return read(f, expected, func(text string) (float64, error) {
		v, err := parseGain(text)
		if err == nil && !(v > 0 && v <= maxAlpha) {
			err = fmt.Errorf("%q is out of range; expected %s, up to %d", clip(text), expected, maxAlpha)
		}
		return v, err
	}, showDecimal)
}
