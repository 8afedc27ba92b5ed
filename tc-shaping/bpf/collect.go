package bpf

import (
	"math/bits"
	"time"

	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"weft/tc-shaping/qdisc"
)

// Where nothing in the kernel delays packets, each collects the time that its links take, in the
// field Identification of its IPv4 header, which packets that are not fragmented do not use (RFC
// 6864, section 4.1). At each node the kernel's stamp of its arrival is moved by that time, so that
// a socket that asks for stamps (SO_TIMESTAMPNS) learns when the packet is due.
//
// Transmissions follow each other: a packet that waited in the queue starts when the one before it
// ended, also if the kernel's timer let it go later. So lateness neither adds up nor stays.

// perByteBits is the number of binary digits of row.perByte behind the point.
const perByteBits = 20

// UnitFor returns the unit of times that packets collect, as a power of two in ns, for paths that
// take at most this long: twice as long still fits into the field.
func UnitFor(longest time.Duration) uint {
	return uint(max(1, bits.Len64(uint64(longest)>>15)))
}

// tableBits is the number of binary digits of an entry of a table of random delays behind the
// point: qdisc.TableOne.
const tableBits = 13

const (
	identification = 4 // in the IPv4 header
	ipChecksum     = 10
	ipID           = ipPacket + identification
	maxCollected   = 1<<16 - 1

	collected = -80 // old and new value of the field, in network order

	uncollected = "uncollected"
)

// setIdentification replaces the field and updates the checksum. The stack has the old and the new
// value.
func setIdentification() asm.Instructions {
	return join(
		asm.Instructions{
			asm.Mov.Reg(asm.R1, packet),
			asm.Mov.Imm(asm.R2, 14+ipChecksum),
			asm.LoadMem(asm.R3, asm.RFP, collected, asm.DWord),
			asm.LoadMem(asm.R4, asm.RFP, collected+8, asm.DWord),
			asm.Mov.Imm(asm.R5, 2),
			asm.FnL3CsumReplace.Call(),
			asm.Mov.Imm(asm.R2, 14+identification),
		},
		storeBytes(collected+8, 2),
	)
}

// whole goes to a label unless the packet, whose header is on the stack, is one of IPv4 that is no
// fragment.
func whole(other string) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R1, asm.RFP, ipPacket, asm.Byte),
		asm.RSh.Imm(asm.R1, 4),
		asm.JNE.Imm(asm.R1, 4, other),
		asm.LoadMem(asm.R1, packet, skbProtocol, asm.Word),
		asm.JNE.Imm(asm.R1, int32(network16(unix.ETH_P_IP)), other),
		asm.LoadMem(asm.R1, asm.RFP, ipFlags, asm.Half),
		asm.And.Imm(asm.R1, int32(network16(0x3fff))),
		asm.JNE.Imm(asm.R1, 0, other),
	}
}

// forget zeroes the field of a packet that starts here. The packet's header is on the stack.
func (p *Port) forget() asm.Instructions {
	if p.Unit == 0 {
		return nil
	}
	return join(
		asm.Instructions{
			asm.LoadMem(asm.R1, packet, skbIngress, asm.Word),
			asm.JNE.Imm(asm.R1, 0, uncollected),
		},
		whole(uncollected),
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.RFP, ipID, asm.Half),
			asm.JEq.Imm(asm.R1, 0, uncollected),
			asm.StoreMem(asm.RFP, collected, asm.R1, asm.DWord),
			asm.Mov.Imm(asm.R1, 0),
			asm.StoreMem(asm.RFP, collected+8, asm.R1, asm.DWord),
		},
		setIdentification(),
		asm.Instructions{asm.Mov.Imm(asm.R0, 0).WithSymbol(uncollected)},
	)
}

// collect adds the time that this link takes to those that a packet has collected, and moves the
// kernel's stamp of its arrival by their sum. The packet's header is on the stack. It uses the
// register of the queue.
func (p *Port) collect() asm.Instructions {
	if p.Unit == 0 {
		return nil
	}
	const now, end = queue, size
	return join(
		asm.Instructions{asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.RFP, collected+8, asm.R1, asm.DWord)},
		whole(uncollected),
		asm.Instructions{
			asm.LoadMem(now, packet, skbStamp, asm.DWord), // not when it is looked at
			asm.JEq.Imm(now, 0, uncollected),              // no socket asks for stamps
			// the transmission, behind the one before
			asm.LoadMem(end, packet, skbLen, asm.Word),
			asm.LoadMem(asm.R1, port, atOverhead, asm.DWord),
			asm.Add.Reg(end, asm.R1),
			asm.LoadMem(asm.R1, port, atPerByte, asm.DWord),
			asm.Mul.Reg(end, asm.R1),
			asm.RSh.Imm(end, perByteBits),
			asm.LoadMem(asm.R1, port, atFree, asm.DWord),
			asm.JGT.Reg(asm.R1, now, "later"),
			asm.LoadMem(asm.R2, port, atBusy, asm.DWord),
			asm.JNE.Imm(asm.R2, 0, "transmits"), // the kernel's timer was late
			asm.Ja.Label("idle"),
			asm.Mov.Reg(asm.R2, asm.R1).WithSymbol("later"),
			asm.Sub.Reg(asm.R2, now),
			asm.RSh.Imm(asm.R2, int32(p.Unit)),
			asm.JLE.Imm(asm.R2, maxCollected, "transmits"), // else the machine's clock was set back
			asm.Mov.Reg(asm.R1, now).WithSymbol("idle"),
			asm.Add.Reg(end, asm.R1).WithSymbol("transmits"),
			// what is later than that by more than the propagation stays late
			asm.LoadMem(asm.R2, port, atDelay, asm.DWord),
			asm.Mov.Reg(asm.R1, now),
			asm.Sub.Reg(asm.R1, asm.R2),
			asm.JSGE.Reg(end, asm.R1, "in time"),
			asm.Mov.Reg(end, asm.R1),
			asm.StoreMem(port, atFree, end, asm.DWord).WithSymbol("in time"),
			asm.Sub.Reg(end, now),
			asm.Add.Reg(end, asm.R2),
		},
		between(asm.R1, port, atEntered, atLeft, asm.R2),
		waitingControl(asm.R3, asm.R2),
		asm.Instructions{
			asm.Add.Reg(asm.R1, asm.R3),
			asm.StoreMem(port, atBusy, asm.R1, asm.DWord), // whether the next one follows at once
			// a random delay
			asm.LoadMem(asm.R1, port, atSpread, asm.DWord),
			asm.JEq.Imm(asm.R1, 0, "certain"),
			asm.FnGetPrandomU32.Call(),
			asm.And.Imm(asm.R0, qdisc.TableSize-1),
			asm.LoadMem(asm.R1, port, atSpreadTable, asm.DWord),
			asm.And.Imm(asm.R1, maxSpreads-1),
			asm.Mul.Imm(asm.R1, qdisc.TableSize),
			asm.Add.Reg(asm.R0, asm.R1),
			asm.LSh.Imm(asm.R0, 1),
			asm.LoadMapValue(asm.R1, p.table.spreads.FD(), 0),
			asm.Add.Reg(asm.R1, asm.R0),
			asm.LoadMem(asm.R0, asm.R1, 0, asm.Half),
			asm.LoadMem(asm.R1, port, atSpread, asm.DWord),
			asm.Mul.Reg(asm.R0, asm.R1),
			asm.RSh.Imm(asm.R0, tableBits),
			asm.Add.Reg(end, asm.R0),
			// rounded to units
			asm.Add.Imm(end, 1<<(p.Unit-1)).WithSymbol("certain"),
			asm.RSh.Imm(end, int32(p.Unit)),
			asm.LoadMem(asm.R1, asm.RFP, ipID, asm.Half),
			asm.StoreMem(asm.RFP, collected, asm.R1, asm.DWord),
			asm.HostTo(asm.BE, asm.R1, asm.Half),
			asm.Add.Reg(end, asm.R1),
			asm.JLE.Imm(end, maxCollected, "sum"),
			asm.Mov.Imm(end, maxCollected),
			asm.Mov.Reg(asm.R1, end).WithSymbol("sum"),
			asm.HostTo(asm.BE, asm.R1, asm.Half),
			asm.StoreMem(asm.RFP, collected+8, asm.R1, asm.DWord),
			asm.LSh.Imm(end, int32(p.Unit)),
			asm.Add.Reg(now, end),
			asm.StoreMem(packet, skbStamp, now, asm.DWord),
		},
		setIdentification(),
		asm.Instructions{asm.LoadMem(size, packet, skbLen, asm.Word).WithSymbol(uncollected)},
	)
}
