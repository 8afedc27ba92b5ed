package bpf

import (
	"github.com/cilium/ebpf/asm"

	"weft/transport/wire"
)

// The coordination tag of data packets (wire.Coordination). Its reserved byte has, between a switch
// and the far end of the link behind it, whether the packet may be marked there.

// Where the stack has the tag of the packet, and whether it has one (eight bytes).
const (
	tag    = -96
	tagCC  = tag
	tagMay = tag + 1
	tagAR  = tag + 2
	tagOn  = -88

	untagged = "untagged"
)

// tag lets packets with a tag that may not be marked skip the draw. The packet's header is on the
// stack.
func (p *Port) tag() asm.Instructions {
	if !p.Tags {
		return nil
	}
	return join(
		asm.Instructions{
			asm.Mov.Imm(asm.R1, 0),
			asm.StoreMem(asm.RFP, tagOn, asm.R1, asm.DWord),
		},
		data(untagged),
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.RFP, messageHead+3, asm.Byte),
			asm.And.Imm(asm.R1, int32(wire.Coordinated|wire.Telemetry)),
			asm.JNE.Imm(asm.R1, int32(wire.Coordinated), untagged),
		},
		loadBytes(atMessage+int32(wire.DataSize), tag, int32(wire.CoordinationSize)),
		asm.Instructions{
			asm.JNE.Imm(asm.R0, 0, untagged), // too short
			asm.Mov.Imm(asm.R1, 1),
			asm.StoreMem(asm.RFP, tagOn, asm.R1, asm.DWord),
			asm.LoadMem(asm.R1, asm.RFP, tagMay, asm.Byte),
			asm.JEq.Imm(asm.R1, 0, on),
			asm.Mov.Imm(asm.R0, 0).WithSymbol(untagged),
		},
	)
}

// putTag writes the tag on the stack into the packet.
func putTag() asm.Instructions {
	return join(
		asm.Instructions{asm.Mov.Imm(asm.R2, atMessage+int32(wire.DataSize))},
		storeBytes(tag, int32(wire.CoordinationSize)),
	)
}

// untag clears the reserved byte in packets that have reached their host.
func (p *Port) untag() asm.Instructions {
	if !p.Tags || p.At != nil {
		return nil
	}
	return join(
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.RFP, tagOn, asm.DWord),
			asm.JEq.Imm(asm.R1, 0, "cleared"),
			asm.LoadMem(asm.R1, asm.RFP, tagMay, asm.Byte),
			asm.JEq.Imm(asm.R1, 0, "cleared"),
			asm.Mov.Imm(asm.R1, 0),
			asm.StoreMem(asm.RFP, tagMay, asm.R1, asm.Byte),
		},
		putTag(),
		asm.Instructions{asm.Mov.Imm(asm.R0, 0).WithSymbol("cleared")},
	)
}
