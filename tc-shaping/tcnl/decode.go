package tcnl

import (
	"errors"
	"fmt"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"weft/tc-shaping/qdisc"
	"weft/units"
)

// message is one discipline as the kernel reports it.
type message struct {
	device   int
	qdisc    qdisc.Qdisc
	kind     string
	unknown  string // why Options could not be decoded; "" if they were
	counters qdisc.Counters
}

// attributes splits a sequence of route attributes by type, without the flags in the type. The last
// of several attributes of one type wins.
func attributes(b []byte) (map[uint16][]byte, error) {
	out := map[uint16][]byte{}
	for len(b) > 0 {
		if len(b) < unix.SizeofRtAttr {
			return nil, fmt.Errorf("attribute of %d bytes", len(b))
		}
		n := int(nl.NativeEndian().Uint16(b))
		if n < unix.SizeofRtAttr || n > len(b) {
			return nil, fmt.Errorf("attribute says it has %d bytes of %d", n, len(b))
		}
		out[nl.NativeEndian().Uint16(b[2:])&^(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER)] = b[unix.SizeofRtAttr:n]
		b = b[min((n+3)&^3, len(b)):]
	}
	return out, nil
}

// attributesOf returns the attributes of a traffic control message, which follow struct tcmsg. It
// returns an error if the message is shorter than that.
func attributesOf(b []byte) (map[uint16][]byte, error) {
	const tcmsg = 20 // family and padding, ifindex, handle, parent, info
	if len(b) < tcmsg {
		return nil, fmt.Errorf("message of %d bytes: a discipline has %d at least", len(b), tcmsg)
	}
	return attributes(b[tcmsg:])
}

// parse decodes an RTM_NEWQDISC message without its netlink header: struct tcmsg and attributes.
func parse(b []byte) (message, error) {
	all, err := attributesOf(b)
	if err != nil {
		return message{}, err
	}
	native := nl.NativeEndian()
	m := message{device: int(int32(native.Uint32(b[4:])))}
	m.qdisc.Handle, m.qdisc.Parent = qdisc.Handle(native.Uint32(b[8:])), qdisc.Handle(native.Uint32(b[12:]))
	m.kind = unix.ByteSliceToString(all[nl.TCA_KIND])
	if m.qdisc.Options, err = settings(m.kind, all[nl.TCA_OPTIONS]); err != nil {
		m.unknown = err.Error()
	}
	m.counters, err = counters(m.kind, all)
	return m, err
}

// settings decodes TCA_OPTIONS.
func settings(kind string, b []byte) (qdisc.Options, error) {
	switch kind {
	case "bfifo":
		if len(b) < 4 {
			return nil, short(kind, b)
		}
		return qdisc.FIFO{Limit: units.Bytes(nl.NativeEndian().Uint32(b))}, nil
	case "htb":
		return htbSettings(b)
	case "red":
		return redSettings(b)
	case "netem":
		return netemSettings(b)
	}
	return nil, errors.New("not a kind that is made here")
}

func short(what string, b []byte) error {
	return fmt.Errorf("%s of %d bytes is too short", what, len(b))
}

func redSettings(b []byte) (qdisc.Options, error) {
	a, err := attributes(b)
	if err != nil {
		return nil, err
	}
	p, maxP, flags := a[redParms], a[redMaxP], a[redFlags]
	if len(p) < 16 {
		return nil, short("TCA_RED_PARMS", p)
	}
	if len(maxP) < 4 {
		return nil, short("TCA_RED_MAX_P", maxP)
	}
	native := nl.NativeEndian()
	set := uint32(p[15])
	if len(flags) >= 8 {
		set |= native.Uint32(flags)
	}
	switch limit := native.Uint32(p); {
	case p[12] != 0:
		return nil, fmt.Errorf("it averages the queue (Wlog %d)", p[12])
	case set != redECN|redNoDrop:
		return nil, fmt.Errorf("its flags are %#x, not ecn nodrop (%#x)", set, redECN|redNoDrop)
	case limit != 0:
		return nil, fmt.Errorf("it has a queue of its own, of %d bytes", limit)
	}
	return qdisc.REDStage{
		Min: units.Bytes(native.Uint32(p[4:])), Max: units.Bytes(native.Uint32(p[8:])), MaxP: native.Uint32(maxP),
	}, nil
}

func netemSettings(b []byte) (qdisc.Options, error) {
	const qopt = 24
	if len(b) < qopt {
		return nil, short("tc_netem_qopt", b)
	}
	a, err := attributes(b[qopt:])
	if err != nil {
		return nil, err
	}
	native := nl.NativeEndian()
	at := func(i int) uint32 { return native.Uint32(b[4*i:]) }
	o := qdisc.Netem{
		Latency: time.Duration(at(0)) * psched, Limit: at(1), Loss: at(2), Duplicate: at(4),
		Jitter: time.Duration(at(5)) * psched,
	}
	if at(3) != 0 {
		return nil, fmt.Errorf("it reorders by gaps of %d packets", at(3))
	}
	for kind, to := range map[uint16]*time.Duration{netemLatency64: &o.Latency, netemJitter64: &o.Jitter} {
		if v := a[kind]; len(v) >= 8 {
			*to = time.Duration(native.Uint64(v))
		}
	}
	if v := a[netemCorrupt]; len(v) >= 4 {
		o.Corrupt = native.Uint32(v)
	}
	if v := a[netemRate]; len(v) >= 8 {
		o.Rate, o.Overhead = uint64(native.Uint32(v)), int32(native.Uint32(v[4:]))
	}
	if v := a[netemRate64]; len(v) >= 8 {
		o.Rate = native.Uint64(v)
	}
	return o, nil
}

// counters decodes TCA_STATS2 (linux/gen_stats.h).
func counters(kind string, all map[uint16][]byte) (c qdisc.Counters, err error) {
	const basic, queue, app, packets64 = 1, 3, 4, 8
	a, err := attributes(all[nl.TCA_STATS2])
	if err != nil {
		return c, fmt.Errorf("statistics: %w", err)
	}
	native := nl.NativeEndian()
	if v := a[basic]; len(v) >= 12 {
		c.Bytes, c.Packets = units.Bytes(native.Uint64(v)), uint64(native.Uint32(v[8:]))
	}
	if v := a[packets64]; len(v) >= 8 {
		c.Packets = native.Uint64(v)
	}
	if v := a[queue]; len(v) >= 20 {
		c.Waiting, c.Backlog = native.Uint32(v), units.Bytes(native.Uint32(v[4:]))
		c.Drops, c.Over = uint64(native.Uint32(v[8:])), uint64(native.Uint32(v[16:]))
	}
	if v := a[app]; kind == "red" && len(v) >= 16 { // struct tc_red_xstats: early, pdrop, other, marked
		c.Marks = uint64(native.Uint32(v[12:]))
	}
	return c, nil
}
