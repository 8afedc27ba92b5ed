package tcnl

import (
	"fmt"
	"math"
	"time"

	"github.com/vishvananda/netlink/nl"

	"weft/tc-shaping/qdisc"
)

// Attributes of each kind (linux/pkt_sched.h).
const (
	redParms, redStab, redMaxP, redFlags = 1, 2, 3, 4

	netemDist, netemReorder, netemCorrupt, netemRate        = 2, 3, 4, 6
	netemRate64, netemLatency64, netemJitter64              = 8, 10, 11
	ethernetLinkLayer                                       = 1 // TC_LINKLAYER_ETHERNET
	redECN, redNoDrop, redAllFlags                   uint32 = 1, 8, 15
)

// psched is the unit of time in the older fields: 64 ns (PSCHED_SHIFT in net/pkt_sched.h).
const psched = 64 * time.Nanosecond

func ticks(d time.Duration) uint32 { return uint32(min(d/psched, math.MaxUint32)) }

// options encodes the settings of a discipline as TCA_OPTIONS.
func options(o qdisc.Options) (*nl.RtAttr, error) {
	out := nl.NewRtAttr(nl.TCA_OPTIONS, nil)
	switch o := o.(type) {
	case qdisc.FIFO:
		out.Data = u32s(uint32(o.Limit)) // struct tc_fifo_qopt
	case qdisc.HTB:
		out.AddRtAttr(htbInit, u32s(htbVersion, htbRate2Quantum, uint32(qdisc.Data&0xffff), 0, 0)) // struct tc_htb_glob
		out.AddRtAttr(htbDirectQlen, u32s(0))
	case qdisc.REDStage:
		red(out, o)
	case qdisc.Netem:
		netem(out, o)
	default:
		return nil, fmt.Errorf("a discipline of kind %s: only htb, red, bfifo and netem are made", o.Kind())
	}
	return out, nil
}

// cellLog scales the time that indexes the table of shifts. It has no effect, because all shifts
// are equal.
const cellLog = 0

// red encodes a RED without averaging: with Wlog 0 the average is the queue, and with all shifts 31
// it is zero after the queue was empty (include/net/red.h, red_calc_qavg_from_idle_time).
func red(out *nl.RtAttr, o qdisc.REDStage) {
	var shifts [256]byte
	for i := range shifts {
		shifts[i] = 31
	}
	redOptions(out, redQopt{min: uint32(o.Min), max: uint32(o.Max), plog: plog(o), cellLog: cellLog}, shifts, o.MaxP,
		redECN|redNoDrop)
}

// redQopt is struct tc_red_qopt without its flags.
type redQopt struct {
	limit, min, max     uint32
	wlog, plog, cellLog uint8
}

// redOptions writes what sch_red requires: PARMS, STAB with 256 shifts, MAX_P, and FLAGS. Flags go
// only into FLAGS: the field in PARMS is for kernels before 5.7, has no room for nodrop, and the
// kernel rejects both together.
func redOptions(out *nl.RtAttr, q redQopt, shifts [256]byte, maxP, flags uint32) {
	out.AddRtAttr(redParms, append(u32s(q.limit, q.min, q.max), q.wlog, q.plog, q.cellLog, 0))
	out.AddRtAttr(redStab, shifts[:])
	out.AddRtAttr(redMaxP, nl.Uint32Attr(maxP))
	out.AddRtAttr(redFlags, u32s(flags, redAllFlags)) // struct nla_bitfield32: value, selector
}

// plog returns the older form of max_P: 2^-Plog per byte between the thresholds. The kernel uses
// TCA_RED_MAX_P instead and reports Plog to programs that do not know it.
func plog(o qdisc.REDStage) uint8 {
	p := float64(o.MaxP) / (1 << 32) / float64(max(o.Max-o.Min, 1))
	for i := range uint8(32) {
		if p >= math.Ldexp(1, -int(i)) {
			return i
		}
	}
	return 31
}

func netem(out *nl.RtAttr, o qdisc.Netem) {
	// struct tc_netem_qopt, followed by attributes. Zero values are sent too, so that a change
	// resets them.
	out.Data = u32s(ticks(o.Latency), o.Limit, o.Loss, 0, o.Duplicate, ticks(o.Jitter))
	out.Data = append(out.Data, attribute(netemLatency64, nl.Uint64Attr(uint64(o.Latency)))...)
	out.Data = append(out.Data, attribute(netemJitter64, nl.Uint64Attr(uint64(o.Jitter)))...)
	out.Data = append(out.Data, attribute(netemReorder, u32s(0, 0))...)
	out.Data = append(out.Data, attribute(netemCorrupt, u32s(o.Corrupt, 0))...)
	if o.Rate > math.MaxUint32 {
		out.Data = append(out.Data, attribute(netemRate64, nl.Uint64Attr(o.Rate))...)
	}
	rate := u32s(uint32(min(o.Rate, math.MaxUint32)), uint32(o.Overhead), 0, 0) // struct tc_netem_rate
	out.Data = append(out.Data, attribute(netemRate, rate)...)
	if len(o.Table) > 0 {
		table := make([]byte, 2*len(o.Table))
		for i, v := range o.Table {
			nl.NativeEndian().PutUint16(table[2*i:], uint16(v))
		}
		out.Data = append(out.Data, attribute(netemDist, table)...)
	}
}

func attribute(kind int, data []byte) []byte { return nl.NewRtAttr(kind, data).Serialize() }

func u32s(values ...uint32) []byte {
	b := make([]byte, 4*len(values))
	for i, v := range values {
		nl.NativeEndian().PutUint32(b[4*i:], v)
	}
	return b
}
