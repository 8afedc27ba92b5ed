package bpf

import (
	"math"
	"sync/atomic"

	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"weft/transport/wire"
)

// fraction is the number of binary digits of the dilation behind the point. The monotonic clock
// has room for as many: it wraps after 833 days.
const fraction = 8

// Dilate tells the programs the dilation. Before, they write no telemetry.
func (t *Table) Dilate(d float64) {
	atomic.StoreUint64(t.dilation, uint64(math.Round(d*(1<<fraction))))
}

// Layout of a frame with telemetry: see wire.Telemetry and wire.Records.
const (
	atMessage   = 14 + 20 + 8 // behind Ethernet, IPv4 and UDP
	atTelemetry = atMessage + int32(wire.DataSize)
	atRecords   = atTelemetry + 4
	recordSize  = 12
	queuedMax   = 1<<24 - 1

	// messageHead is where the stack has type and flags, then room and records written.
	messageHead = -32
	record      = -48 // eight bytes, and then four
	written     = -56

	unstamped = "unstamped"
)

// header loads the beginning of the IP packet to the stack: zeros if the packet is shorter.
func header() asm.Instructions { return loadBytes(14, ipPacket, -ipPacket) }

// loadBytes copies n bytes of the packet, from an offset on, to the stack: zeros if it is shorter.
func loadBytes(from, to, n int32) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, packet),
		asm.Mov.Imm(asm.R2, from),
		asm.Mov.Reg(asm.R3, asm.RFP),
		asm.Add.Imm(asm.R3, to),
		asm.Mov.Imm(asm.R4, n),
		asm.FnSkbLoadBytes.Call(),
	}
}

// storeBytes copies n bytes of the stack to the packet, at the offset in R2.
func storeBytes(from, n int32) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, packet),
		asm.Mov.Reg(asm.R3, asm.RFP),
		asm.Add.Imm(asm.R3, from),
		asm.Mov.Imm(asm.R4, n),
		asm.Mov.Imm(asm.R5, 0),
		asm.FnSkbStoreBytes.Call(),
	}
}

// data goes to a label unless the packet, whose header is on the stack, is a data packet, and loads
// the beginning of its message.
func data(other string) asm.Instructions {
	return join(
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.RFP, ipPacket, asm.Byte),
			asm.JNE.Imm(asm.R1, 0x45, other),
			asm.LoadMem(asm.R1, asm.RFP, ipProtocol, asm.Byte),
			asm.JNE.Imm(asm.R1, unix.IPPROTO_UDP, other),
			asm.LoadMem(asm.R1, asm.RFP, portTo, asm.Half),
			asm.JNE.Imm(asm.R1, int32(network16(wire.Port)), other),
		},
		loadBytes(atMessage, messageHead, 4),
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.RFP, messageHead+2, asm.Byte),
			asm.JNE.Imm(asm.R1, int32(wire.TypeData), other),
		},
	)
}

// stamp writes the port's record into a data packet that asks for telemetry, as fabric's ports do
// when a transmission starts. It needs the data that waits, and uses the register of the size.
func (p *Port) stamp() asm.Instructions {
	if !p.Stamps {
		return nil
	}
	const sent = size
	return join(
		data(unstamped),
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.RFP, messageHead+3, asm.Byte),
			asm.And.Imm(asm.R1, int32(wire.Telemetry)),
			asm.JEq.Imm(asm.R1, 0, unstamped),
		},
		loadBytes(atTelemetry, messageHead, 2),
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.RFP, messageHead, asm.Byte), // room
			asm.JGT.Imm(asm.R1, wire.MaxHops, unstamped),
			asm.LoadMem(asm.R2, asm.RFP, messageHead+1, asm.Byte), // written
			asm.JGE.Reg(asm.R2, asm.R1, unstamped),
			asm.StoreMem(asm.RFP, written, asm.R2, asm.DWord),
			// bytes on the wire before this packet
			asm.LoadMem(asm.R1, port, atLeft, asm.DWord),
			asm.LoadMem(asm.R2, port, atLeftControl, asm.DWord),
			asm.Add.Reg(asm.R1, asm.R2),
			asm.Sub.Reg(asm.R1, size),
			asm.LoadMem(asm.R2, port, atLeftPackets, asm.DWord),
			asm.Sub.Imm(asm.R2, 1),
			asm.LSh.Imm(asm.R2, 2), // a frame check sequence each
			asm.Add.Reg(asm.R1, asm.R2),
			asm.RSh.Imm(asm.R1, 4),
			asm.Mov.Reg(sent, asm.R1),
			// the instant, in nanoseconds of lab time since the machine's start
			asm.FnKtimeGetNs.Call(),
			asm.LoadMapValue(asm.R1, p.table.memory.FD(), p.table.atDilation()),
			asm.LoadMem(asm.R2, asm.R1, 0, asm.DWord),
			asm.JEq.Imm(asm.R2, 0, unstamped),
			asm.LSh.Imm(asm.R0, fraction),
			asm.Div.Reg(asm.R0, asm.R2),
			asm.LSh.Imm(asm.R0, 24),
			asm.Mov.Reg(asm.R1, sent),
			asm.RSh.Imm(asm.R1, 8),
			asm.And.Imm(asm.R1, 0xffffff),
			asm.Or.Reg(asm.R0, asm.R1),
			asm.HostTo(asm.BE, asm.R0, asm.DWord),
			asm.StoreMem(asm.RFP, record, asm.R0, asm.DWord),
		}, // the queue with frame check sequences
		between(asm.R1, port, atEnteredPackets, atLeftPackets, asm.R2),
		waitingControl(asm.R3, asm.R2),
		asm.Instructions{
			asm.LSh.Imm(asm.R1, 2),
			asm.Add.Reg(asm.R1, queue),
			asm.Add.Reg(asm.R1, asm.R3),
			asm.RSh.Imm(asm.R1, 6),
			asm.JLE.Imm(asm.R1, queuedMax, "counted"),
			asm.Mov.Imm(asm.R1, queuedMax),
			asm.LSh.Imm(sent, 24).WithSymbol("counted"),
			asm.Or.Reg(asm.R1, sent),
			asm.HostTo(asm.BE, asm.R1, asm.Word),
			asm.StoreMem(asm.RFP, record+8, asm.R1, asm.Word),
			asm.LoadMem(asm.R2, asm.RFP, written, asm.DWord),
			asm.Mul.Imm(asm.R2, recordSize),
			asm.Add.Imm(asm.R2, atRecords),
		},
		storeBytes(record, recordSize),
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.RFP, written, asm.DWord),
			asm.Add.Imm(asm.R1, 1),
			asm.StoreMem(asm.RFP, messageHead, asm.R1, asm.Byte),
			asm.Mov.Imm(asm.R2, atTelemetry+1),
		},
		storeBytes(messageHead, 1),
		asm.Instructions{asm.Mov.Imm(asm.R0, 0).WithSymbol(unstamped)},
	)
}
