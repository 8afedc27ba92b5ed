package bpf

import (
	"github.com/cilium/ebpf/asm"

	"weft/fabric"
)

// Offsets in an event: see Event.
const (
	eventAt      = event
	eventSwitch  = event + 8
	eventFrom    = event + 12
	eventFlow    = event + 16
	eventDst     = event + 20
	eventSrc     = event + 24
	eventSource  = event + 28
	eventAR      = event + 30
	eventBefore  = event + 32
	eventPort    = event + 36
	eventCC      = event + 40
	eventAvoided = event + 41
	eventTaken   = event + 42
	eventQueues  = event + eventHead
)

// coordinate chooses the port of a packet with a tag as fabric's coordination does (CCM), writes
// its tag, and tells of it. Others take the port of their hash.
func (p *Port) coordinate() asm.Instructions {
	const mine, other = asm.R8, asm.R9
	return join(
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.RFP, tagOn, asm.DWord),
			asm.JEq.Imm(asm.R1, 0, alone),
		},
		p.beginEvent(),
		p.checkAR(),
		p.recall(),
		p.ask(),
		p.look(func(i int) asm.Instructions {
			at := int16(eventQueues + 8*i)
			return asm.Instructions{
				asm.StoreMem(asm.RFP, at, asm.R2, asm.Word),
				asm.StoreMem(asm.RFP, at+4, asm.R0, asm.Word),
			}
		}),
		asm.Instructions{
			asm.Mov.Reg(other, best),
			asm.LoadMem(mine, asm.RFP, current, asm.DWord),
			// where congestion is incast, marks decide when the packet leaves
			asm.LoadMem(asm.R1, entries, 4, asm.Word),
			asm.JGT.Imm(asm.R1, portMask, "may be marked"),
			asm.LoadMem(asm.R1, asm.RFP, tagCC, asm.Byte),
			asm.JEq.Imm(asm.R1, 1, "may be marked"), // another path does not help against incast
			asm.LoadMem(asm.R1, asm.RFP, light, asm.DWord),
			asm.JEq.Imm(asm.R1, 0, "none is light"),
			asm.JEq.Imm(asm.R1, 1, "one is light"),
			asm.Mov.Imm(asm.R2, int32(network16(uint16(p.At.Index+1)))),
			asm.StoreMem(asm.RFP, tagAR, asm.R2, asm.Half),
			asm.LoadMem(asm.R1, asm.RFP, away, asm.DWord).WithSymbol("one is light"),
			asm.JEq.Reg(asm.R1, mine, "moves"),
			asm.LoadMem(asm.R1, asm.RFP, ofCurrent, asm.DWord),
			asm.LoadMem(asm.R2, asm.RFP, upTo, asm.DWord),
			asm.JLE.Reg(asm.R1, asm.R2, "decided"),
			asm.Mov.Reg(mine, other).WithSymbol("moves"),
			asm.Ja.Label("decided"),

			asm.JGE.Imm(mine, int32(len(p.table.rows)), unchosen).WithSymbol("none is light"),
		},
		p.table.rowOf(asm.R3, mine, asm.R2),
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.RFP, ofCurrent, asm.DWord),
			asm.LoadMem(asm.R2, asm.R3, atCongested, asm.DWord),
			asm.JLE.Reg(asm.R1, asm.R2, "decided"),
			asm.LoadMem(asm.R2, asm.RFP, tagAR, asm.Half),
			asm.JEq.Imm(asm.R2, 0, "nobody to ask"),
			asm.LoadMem(asm.R2, asm.R3, atMax, asm.DWord), // no path upstream was any better
			asm.JLE.Reg(asm.R1, asm.R2, "decided"),
			asm.Ja.Label("may be marked"),
			asm.LoadMem(asm.R1, asm.RFP, resort, asm.DWord).WithSymbol("nobody to ask"),
			asm.JEq.Imm(asm.R1, 0, "decided"),
			asm.LoadMem(asm.R2, asm.RFP, now, asm.DWord),
			asm.JGT.Reg(asm.R1, asm.R2, "decided"),
			asm.Mov.Imm(asm.R1, 1).WithSymbol("may be marked"),
			asm.StoreMem(asm.RFP, tagMay, asm.R1, asm.Byte),
			asm.Mov.Imm(asm.R0, 0).WithSymbol("decided"),
		},
		putTag(),
		p.tell(mine),
		asm.Instructions{
			asm.LoadMem(asm.R1, entries, 4, asm.Word),
			asm.JGT.Imm(asm.R1, portMask, unchosen),
		},
		p.remember(mine),
		asm.Instructions{
			asm.Ja.Label(chosen),
			asm.Mov.Imm(asm.R0, 0).WithSymbol(alone),
		},
	)
}

// beginEvent fills in what the packet's event has from its arrival, and takes the right to be
// marked from the tag.
func (p *Port) beginEvent() (all asm.Instructions) {
	all = append(all, asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.RFP, tagMay, asm.R1, asm.Byte),
		asm.StoreMem(asm.RFP, eventCC, asm.R1, asm.DWord))
	if p.Unit > 0 {
		all = append(all, asm.LoadMem(asm.R1, asm.RFP, collected+8, asm.Half), asm.HostTo(asm.BE, asm.R1, asm.Half),
			asm.StoreMem(asm.RFP, eventTaken, asm.R1, asm.Half), asm.Mov.Imm(asm.R1, 0))
	}
	all = append(all, asm.Sub.Imm(asm.R1, 1))
	for i := range p.At.Routes.queues() { // no port yet
		all = append(all, asm.StoreMem(asm.RFP, int16(eventQueues+8*i), asm.R1, asm.DWord))
	}
	return append(all,
		asm.Mov.Imm(asm.R1, int32(p.At.Index)),
		asm.StoreMem(asm.RFP, eventSwitch, asm.R1, asm.Word),
		asm.Mov.Imm(asm.R1, int32(p.index)),
		asm.StoreMem(asm.RFP, eventFrom, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, asm.RFP, keptFlow, asm.DWord),
		asm.StoreMem(asm.RFP, eventFlow, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, asm.RFP, keptTo, asm.DWord),
		asm.StoreMem(asm.RFP, eventDst, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, asm.RFP, keptFrom, asm.DWord),
		asm.StoreMem(asm.RFP, eventSrc, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, asm.RFP, portFrom, asm.Half),
		asm.HostTo(asm.BE, asm.R1, asm.Half),
		asm.StoreMem(asm.RFP, eventSource, asm.R1, asm.Half),
		asm.LoadMem(asm.R1, asm.RFP, tagCC, asm.Byte),
		asm.StoreMem(asm.RFP, eventCC, asm.R1, asm.Byte),
		asm.LoadMem(asm.R1, asm.RFP, tagAR, asm.Half),
		asm.HostTo(asm.BE, asm.R1, asm.Half),
		asm.StoreMem(asm.RFP, eventAR, asm.R1, asm.Half),
	)
}

// checkAR clears the AR indicator if it names nothing that can be asked: at a first switch anything
// but the host. R1 has it.
func (p *Port) checkAR() asm.Instructions {
	most := p.At.Flows.switches
	if p.FromHost {
		most = 0
	}
	return asm.Instructions{
		asm.JEq.Imm(asm.R1, int32(fabric.ARSource), "known AR"),
		asm.JLE.Imm(asm.R1, int32(most), "known AR"),
		asm.Mov.Imm(asm.R1, 0),
		asm.StoreMem(asm.RFP, tagAR, asm.R1, asm.Half),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("known AR"),
	}
}

// ask looks up the advice for the flow.
func (p *Port) ask() asm.Instructions {
	return join(p.table.blank(asm.R1, none), asm.Instructions{
		asm.StoreMem(asm.RFP, away, asm.R1, asm.DWord),
	}, p.table.blank(asm.R1, 0), asm.Instructions{
		asm.StoreMem(asm.RFP, resort, asm.R1, asm.DWord),
		asm.LoadMapPtr(asm.R1, p.At.Flows.advice.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, key),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "asked"),
		asm.LoadMem(asm.R1, asm.R0, 16, asm.DWord),
		asm.StoreMem(asm.RFP, resort, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.R0, 8, asm.DWord), // until when
		asm.LoadMem(asm.R2, asm.RFP, now, asm.DWord),
		asm.JLE.Reg(asm.R1, asm.R2, "asked"),
		asm.LoadMem(asm.R1, asm.RFP, before, asm.DWord),
		asm.LoadImm(asm.R2, none, asm.DWord),
		asm.JEq.Reg(asm.R1, asm.R2, "asked"), // a flow that is new avoids nothing
		asm.LoadMem(asm.R1, asm.R0, 0, asm.DWord),
		asm.StoreMem(asm.RFP, away, asm.R1, asm.DWord),
		asm.JEq.Reg(asm.R1, asm.R2, "asked"),
		asm.Mov.Imm(asm.R1, 1),
		asm.StoreMem(asm.RFP, eventAvoided, asm.R1, asm.Byte),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("asked"),
	})
}

// tell reports the packet and the port by which it goes on, which is in a register.
func (p *Port) tell(port asm.Register) asm.Instructions {
	return join(
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.RFP, now, asm.DWord),
			asm.StoreMem(asm.RFP, eventAt, asm.R1, asm.DWord),
			asm.LoadMem(asm.R1, asm.RFP, before, asm.DWord),
			asm.StoreMem(asm.RFP, eventBefore, asm.R1, asm.Word),
			asm.StoreMem(asm.RFP, eventPort, port, asm.Word),
			asm.LoadMapPtr(asm.R1, p.At.Flows.events.FD()),
			asm.Mov.Reg(asm.R2, asm.RFP),
			asm.Add.Imm(asm.R2, event),
			asm.Mov.Imm(asm.R3, int32(eventHead+8*p.At.Routes.queues())),
			asm.Mov.Imm(asm.R4, 0),
			asm.FnRingbufOutput.Call(),
			asm.JEq.Imm(asm.R0, 0, "told"),
		},
		p.countHere(atUntold),
		asm.Instructions{asm.Mov.Imm(asm.R0, 0).WithSymbol("told")},
	)
}
