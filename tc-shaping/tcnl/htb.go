package tcnl

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"weft/tc-shaping/qdisc"
	"weft/transport/wire"
)

// Attributes of htb (linux/pkt_sched.h).
const (
	htbParms, htbInit, htbDirectQlen, htbRate64, htbCeil64 = 1, 2, 5, 6, 7

	htbVersion      = 3
	htbRate2Quantum = 10 // tc's default, for classes without a quantum
	// htbQuantum is for round robin among classes of one priority. No two have the same here, and
	// without a quantum the kernel warns of small rates.
	htbQuantum = 1514
)

// class is one class of an htb as the kernel keeps it.
type class struct {
	handle, parent qdisc.Handle
	rate, ceil     uint64 // bytes/s
	bucket, upTo   uint32 // of the two, in units of psched
	overhead       uint16
	priority       uint32
}

// classesOf returns the classes of an htb, parents first.
func classesOf(o qdisc.HTB) []class {
	link := class{handle: qdisc.Link, parent: qdisc.Root, rate: o.Rate, ceil: o.Rate, bucket: ticks(o.Bucket),
		upTo: ticks(o.Bucket), overhead: o.Overhead}
	// The least rate of its own, so that each packet has to borrow.
	control, data := link, link
	control.handle, control.parent, control.rate, control.bucket = qdisc.Control, qdisc.Link, 1, 0
	data.handle, data.parent, data.rate, data.bucket, data.priority = qdisc.Data, qdisc.Link, 1, 0, 1
	return []class{link, control, data}
}

// setHTB creates an htb with its classes and its filter, or changes its classes, the only part of
// it that the kernel can change.
func (c *Conn) setHTB(device int, q qdisc.Qdisc, o qdisc.HTB, flags int) error {
	creates := flags&unix.NLM_F_CREATE != 0
	if creates {
		settings, err := options(o)
		if err != nil {
			return err
		}
		if err := c.put(unix.RTM_NEWQDISC, flags, device, q, settings); err != nil {
			return err
		}
	}
	for _, cl := range classesOf(o) {
		at := qdisc.Qdisc{Parent: cl.parent, Handle: cl.handle, Options: o}
		if err := c.put(unix.RTM_NEWTCLASS, flags, device, at, cl.options()); err != nil {
			return fmt.Errorf("class %v: %w", cl.handle, err)
		}
	}
	if creates && o.Filter {
		return c.links.FilterAdd(controlFilter(device))
	}
	return nil
}

// options encodes the settings of a class as TCA_OPTIONS.
func (cl *class) options() *nl.RtAttr {
	native := nl.NativeEndian()
	out := nl.NewRtAttr(nl.TCA_OPTIONS, nil)
	p := make([]byte, 44) // struct tc_htb_opt: two tc_ratespec of 12 bytes, buffer, cbuffer, quantum, level, prio
	for i, rate := range []uint64{cl.rate, cl.ceil} {
		spec := p[12*i:]
		spec[1] = ethernetLinkLayer
		native.PutUint16(spec[2:], cl.overhead)
		native.PutUint32(spec[8:], uint32(min(rate, math.MaxUint32)))
	}
	native.PutUint32(p[24:], cl.bucket)
	native.PutUint32(p[28:], cl.upTo)
	native.PutUint32(p[32:], htbQuantum)
	native.PutUint32(p[40:], cl.priority)
	out.AddRtAttr(htbParms, p)
	if cl.rate > math.MaxUint32 {
		out.AddRtAttr(htbRate64, nl.Uint64Attr(cl.rate))
	}
	if cl.ceil > math.MaxUint32 {
		out.AddRtAttr(htbCeil64, nl.Uint64Attr(cl.ceil))
	}
	return out
}

// parseClass decodes an RTM_NEWTCLASS message without its netlink header. ok is false if the class
// is not one of an htb.
func parseClass(b []byte) (cl class, ok bool, err error) {
	all, err := attributesOf(b)
	if err != nil || unix.ByteSliceToString(all[nl.TCA_KIND]) != (qdisc.HTB{}).Kind() {
		return class{}, false, err
	}
	a, err := attributes(all[nl.TCA_OPTIONS])
	if err != nil {
		return class{}, false, err
	}
	p := a[htbParms]
	if len(p) < 44 {
		return class{}, false, short("TCA_HTB_PARMS", p)
	}
	native := nl.NativeEndian()
	cl = class{handle: qdisc.Handle(native.Uint32(b[8:])), parent: qdisc.Handle(native.Uint32(b[12:])),
		overhead: native.Uint16(p[2:]), rate: uint64(native.Uint32(p[8:])), ceil: uint64(native.Uint32(p[20:])),
		bucket: native.Uint32(p[24:]), upTo: native.Uint32(p[28:]), priority: native.Uint32(p[40:])}
	if r := a[htbRate64]; len(r) >= 8 {
		cl.rate = native.Uint64(r)
	}
	if r := a[htbCeil64]; len(r) >= 8 {
		cl.ceil = native.Uint64(r)
	}
	return cl, true, nil
}

// htbSettings decodes TCA_OPTIONS of an htb, which say nothing of its classes.
func htbSettings(b []byte) (qdisc.Options, error) {
	a, err := attributes(b)
	if err != nil {
		return nil, err
	}
	p := a[htbInit]
	if len(p) < 20 {
		return nil, short("TCA_HTB_INIT", p)
	}
	native := nl.NativeEndian()
	if usual := native.Uint32(p[8:]); usual != uint32(qdisc.Data&0xffff) {
		return nil, fmt.Errorf("its default class is %x", usual)
	}
	if d := a[htbDirectQlen]; len(d) < 4 || native.Uint32(d) != 0 {
		return nil, errors.New("a program can send by none of its classes (direct_qlen)")
	}
	return qdisc.HTB{}, nil
}

// errClasses means that an htb has other classes or filters than those of a plan.
var errClasses = errors.New("its classes or filters are others than for a link, control packets and data")

// fromClasses returns the htb that has these classes.
func fromClasses(all []class) (qdisc.HTB, error) {
	var o qdisc.HTB
	for _, cl := range all {
		if cl.handle == qdisc.Link {
			o = qdisc.HTB{Rate: cl.rate, Bucket: time.Duration(cl.bucket) * psched, Overhead: cl.overhead}
		}
	}
	want := classesOf(o)
	if len(all) != len(want) {
		return qdisc.HTB{}, errClasses
	}
	for _, cl := range want {
		if !slices.Contains(all, cl) {
			return qdisc.HTB{}, errClasses
		}
	}
	return o, nil
}

// controlFilter returns the filter of an htb for control packets.
func controlFilter(device int) *netlink.U32 {
	const tos = wire.TOSControl << 16 // of the IPv4 header's first word
	return &netlink.U32{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: device, Parent: uint32(qdisc.HTBHandle), Priority: 1,
			Protocol: unix.ETH_P_IP},
		Sel:     &netlink.TcU32Sel{Flags: nl.TC_U32_TERMINAL, Keys: []nl.TcU32Key{{Val: tos, Mask: tos}}},
		ClassId: uint32(qdisc.Control),
	}
}

// hasControlFilter reports whether a device's htb has the filter for control packets. An error says
// that it has other filters.
func (e End) hasControlFilter() (bool, error) {
	filters, err := e.filters(uint32(qdisc.HTBHandle))
	if err != nil || len(filters) == 0 {
		return false, err
	}
	want := controlFilter(e.Device)
	f, ok := filters[0].(*netlink.U32)
	if ok = ok && len(filters) == 1 && f.ClassId == want.ClassId && f.Protocol == want.Protocol &&
		f.Sel != nil && slices.Equal(f.Sel.Keys, want.Sel.Keys); !ok {
		return false, errClasses
	}
	return true, nil
}

// addClasses reads the classes and the filter of the htb among a device's disciplines, if it has
// one.
func (c *Conn) addClasses(row []message) error {
	if len(row) == 0 || row[0].kind != (qdisc.HTB{}).Kind() || row[0].unknown != "" {
		return nil
	}
	m := &row[0]
	var all []class
	var bad error
	r := c.request(unix.RTM_GETTCLASS, unix.NLM_F_DUMP, m.device, qdisc.Qdisc{})
	err := r.ExecuteIter(unix.NETLINK_ROUTE, unix.RTM_NEWTCLASS, func(b []byte) bool {
		cl, ok, err := parseClass(b)
		if err != nil {
			bad = errors.Join(bad, err)
		} else if ok {
			all = append(all, cl)
		}
		return true
	})
	if err := errors.Join(err, bad); err != nil {
		return fmt.Errorf("read the classes of device %d: %w", m.device, err)
	}
	o, err := fromClasses(all)
	if err == nil {
		o.Filter, err = End{Conn: c, Device: m.device}.hasControlFilter()
	}
	if m.qdisc.Options = o; err != nil {
		m.unknown = err.Error()
	}
	return nil
}
