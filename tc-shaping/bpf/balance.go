package bpf

import (
	"fmt"

	"github.com/cilium/ebpf/asm"

	"weft/fabric"
	"weft/tc-shaping/qdisc"
	"weft/units"
)

// The choice of a port by the queues of a switch, as fabric's balancing (adaptive.go there) and
// coordination (ccm_switch.go) make it.

// Where the stack has what the choice needs: eight bytes each.
const (
	keptFrom    = -104 // number of the packet's host
	keptTo      = -112 // and of its destination
	keptFlow    = -120
	key         = -136 // of Flows, 16 bytes
	value       = -152 // of Flows.ports, 16 bytes
	now         = -160 // CLOCK_MONOTONIC
	before      = -168 // the flow's port, or none
	found       = -176 // 0: it is neither of the row nor one of its detours
	light       = -184 // number of light ports
	current     = -192 // the flow's port, or that of its hash
	ofCurrent   = -200 // its queue
	upTo        = -208 // up to which it is light
	away        = -216 // the port that the flow avoids, or none
	resort      = -224 // advice.resort
	bestUpTo    = -232 // up to which the port with the shortest queue is light
	direct      = -240 // of the ports that are no detours: the one with the shortest queue,
	directLen   = -248 // its queue
	directUpTo  = -256 // and up to which it is light
	lightDirect = -264 // number of those that are light
	event       = -264 - eventHead - 8*qdisc.MaxBalanced
	eventHead   = 48
	none        = 1<<32 - 1 // no port
	alone       = "alone"   // the port of the hash, whatever the queues
	portMask    = 1<<31 - 1 // without ToHost
)

// keep stores what the choice of a port by its queue needs and other registers will not have.
func (p *Port) keep(from, to, flow asm.Register) asm.Instructions {
	if !p.At.Balance.ByLight() && !p.At.Balance.Coordinated() {
		return nil
	}
	return asm.Instructions{
		asm.StoreMem(asm.RFP, keptFrom, from, asm.DWord),
		asm.StoreMem(asm.RFP, keptTo, to, asm.DWord),
		asm.StoreMem(asm.RFP, keptFlow, flow, asm.DWord),
	}
}

// balance goes to chosen with a port that is chosen by the queues, or on to the one of the hash.
func (p *Port) balance() asm.Instructions {
	switch b := p.At.Balance; {
	case b.ByLight():
		return p.adapt()
	case b.Coordinated():
		return p.coordinate()
	}
	return nil
}

// countHere adds 1 to a counter of the link by which the packet came. It uses R1 and R2.
func (p *Port) countHere(counter int16) asm.Instructions {
	return asm.Instructions{
		asm.LoadMapValue(asm.R1, p.table.memory.FD(), uint32(p.index)*uint32(rowSize)),
		asm.Mov.Imm(asm.R2, 1),
		asm.AddAtomic.Mem(asm.R1, asm.R2, asm.DWord, counter),
	}
}

// blank loads 0 or none into a register without the verifier knowing: what it knows to be a
// constant it follows through every combination of branches, for seconds.
func (t *Table) blank(r asm.Register, value int64) asm.Instructions {
	all := asm.Instructions{asm.LoadMapValue(r, t.memory.FD(), t.atDilation()+8), asm.LoadMem(r, r, 0, asm.DWord)}
	if value == none {
		all = append(all, asm.Sub.Imm(r, 1), asm.LSh.Imm(r, 32), asm.RSh.Imm(r, 32))
	}
	return all
}

// recall looks up the flow's port: the stack has it at before, and the key and the time.
func (p *Port) recall() asm.Instructions {
	return join(p.table.blank(asm.R1, none), asm.Instructions{
		asm.StoreMem(asm.RFP, before, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, keptFlow, asm.DWord),
		asm.LSh.Imm(asm.R1, 32),
		asm.LoadMem(asm.R2, asm.RFP, keptTo, asm.DWord),
		asm.Or.Reg(asm.R1, asm.R2),
		asm.StoreMem(asm.RFP, key, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R1, int32(p.At.Index)),
		asm.StoreMem(asm.RFP, key+8, asm.R1, asm.DWord),
		asm.FnKtimeGetNs.Call(),
		asm.StoreMem(asm.RFP, now, asm.R0, asm.DWord),
		asm.LoadMapPtr(asm.R1, p.At.Flows.ports.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, key),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "new"),
		asm.LoadMem(asm.R1, asm.RFP, now, asm.DWord),
		asm.LoadMem(asm.R2, asm.R0, 0, asm.DWord), // when its last packet came
		asm.Sub.Reg(asm.R1, asm.R2),
		asm.LoadMapValue(asm.R3, p.table.memory.FD(), p.table.atDilation()),
		asm.LoadMem(asm.R2, asm.R3, 0, asm.DWord),
		asm.Mul.Imm(asm.R2, int32(fabric.FlowExpiry/units.Nanosecond)),
		asm.RSh.Imm(asm.R2, fraction),
		asm.JGT.Reg(asm.R1, asm.R2, "new"),
		asm.LoadMem(asm.R1, asm.R0, 8, asm.DWord),
		asm.StoreMem(asm.RFP, before, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("new"),
	})
}

// Registers that scan leaves.
const (
	best  = asm.R3 // the port with the shortest queue, or away if there is no other
	least = asm.R4 // its queue
)

// each gets, if it is not nil, a port in R2 and its queue in R0, and may use R1. i counts the
// ports, and behind those of the row its detours.
type each func(i int) asm.Instructions

// look scans the ports of the row and its detours: the number of light ports and the one with the
// shortest queue, of those by which the packet may leave.
func (p *Port) look(e each) asm.Instructions {
	all := join(p.table.blank(asm.R1, 0), asm.Instructions{asm.StoreMem(asm.RFP, found, asm.R1, asm.DWord)},
		p.scan("straight", 0, e))
	r := p.At.Routes
	if r.lists == 1 || p.NoDetours {
		return all
	}
	return join(all,
		asm.Instructions{
			asm.StoreMem(asm.RFP, direct, best, asm.DWord),
			asm.StoreMem(asm.RFP, directLen, least, asm.DWord),
			asm.LoadMem(asm.R1, asm.RFP, bestUpTo, asm.DWord),
			asm.StoreMem(asm.RFP, directUpTo, asm.R1, asm.DWord),
			asm.LoadMem(asm.R1, asm.RFP, light, asm.DWord),
			asm.StoreMem(asm.RFP, lightDirect, asm.R1, asm.DWord),
			asm.LoadMem(number, entries, int16(r.listSize()), asm.Word),
			asm.JEq.Imm(number, 0, "looked"),
			asm.Add.Imm(entries, int32(r.listSize())),
			asm.Mod.Reg(usual, number),
		},
		p.scan("detour", r.width, e),
		asm.Instructions{asm.Sub.Imm(entries, int32(r.listSize()))},
		p.preferDirect(),
		asm.Instructions{asm.Mov.Imm(asm.R0, 0).WithSymbol("looked")},
	)
}

// preferDirect takes the result of the ports that are no detours, unless a detour is light and none
// of them: for an adaptive switch, not the one with the shortest queue.
func (p *Port) preferDirect() asm.Instructions {
	takeDirect := asm.Instructions{
		asm.LoadMem(best, asm.RFP, direct, asm.DWord).WithSymbol("straight on"),
		asm.LoadMem(asm.R1, asm.RFP, lightDirect, asm.DWord),
		asm.StoreMem(asm.RFP, light, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("aside"),
	}
	if p.At.Balance.Coordinated() {
		return append(asm.Instructions{
			asm.LoadMem(asm.R1, asm.RFP, lightDirect, asm.DWord),
			asm.JEq.Imm(asm.R1, 0, "aside"),
		}, takeDirect...)
	}
	return append(asm.Instructions{
		asm.LoadMem(asm.R1, asm.RFP, directLen, asm.DWord),
		asm.LoadMem(asm.R2, asm.RFP, directUpTo, asm.DWord),
		asm.JLE.Reg(asm.R1, asm.R2, "straight on"),
		asm.LoadMem(asm.R2, asm.RFP, bestUpTo, asm.DWord),
		asm.JLE.Reg(least, asm.R2, "aside"),
	}, takeDirect...)
}

// scan looks at the ports of a list, from that of the hash on: how many are light, which has the
// shortest queue, and how long that of the flow's port is. It leaves out the one to avoid. The
// first is the flow's unless another one is, of the list that is no detour.
func (p *Port) scan(list string, first int, e each) asm.Instructions {
	const port, queue, mine, limit = asm.R2, asm.R0, asm.R1, asm.R5
	t := p.table
	all := join(t.blank(asm.R1, 0), asm.Instructions{
		asm.LoadMem(best, asm.RFP, away, asm.DWord),
		asm.StoreMem(asm.RFP, light, asm.R1, asm.DWord),
		asm.StoreMem(asm.RFP, bestUpTo, asm.R1, asm.DWord),
		asm.Mov.Reg(least, asm.R1),
		asm.Sub.Imm(least, 1),
		asm.RSh.Imm(least, 1),
	})
	scanned := "scanned " + list
	for i := range min(p.At.Routes.width, qdisc.MaxBalanced) {
		at := func(what string) string { return fmt.Sprintf("%s %s %d", list, what, i) }
		all = append(all,
			asm.JLE.Imm(number, int32(i), scanned),
			asm.Mov.Reg(port, usual),
			asm.Add.Imm(port, int32(i)),
			asm.JLT.Reg(port, number, at("index")),
			asm.Sub.Reg(port, number),
			asm.And.Imm(port, int32(p.At.Routes.width-1)).WithSymbol(at("index")),
			asm.LSh.Imm(port, 2),
			asm.Mov.Reg(mine, entries),
			asm.Add.Reg(mine, port),
			asm.LoadMem(port, mine, 4, asm.Word),
			asm.And.Imm(port, portMask),
			asm.JGE.Imm(port, int32(len(t.rows)), unchosen),
		)
		all = append(all, t.rowOf(mine, port, queue)...)
		all = append(all, between(queue, mine, atEntered, atLeft, limit)...)
		all = append(all, asm.LoadMem(limit, mine, atLight, asm.DWord))
		if e != nil {
			all = append(all, e(first+i)...)
		}
		all = append(all,
			asm.LoadMem(mine, asm.RFP, before, asm.DWord),
			asm.JNE.Reg(mine, port, at("other")),
			asm.LoadMem(mine, asm.RFP, found, asm.DWord),
			asm.Add.Imm(mine, 1),
			asm.StoreMem(asm.RFP, found, mine, asm.DWord),
		)
		if first+i == 0 {
			all = append(all, asm.StoreMem(asm.RFP, current, port, asm.DWord).WithSymbol(at("other")))
		} else {
			all = append(all, asm.StoreMem(asm.RFP, current, port, asm.DWord))
		}
		all = append(all,
			asm.StoreMem(asm.RFP, ofCurrent, queue, asm.DWord),
			asm.StoreMem(asm.RFP, upTo, limit, asm.DWord),
		)
		skip := asm.LoadMem(mine, asm.RFP, away, asm.DWord)
		if first+i > 0 {
			skip = skip.WithSymbol(at("other"))
		}
		all = append(all, skip,
			asm.JEq.Reg(mine, port, at("next")),
			asm.JGT.Reg(queue, limit, at("heavy")),
			asm.LoadMem(mine, asm.RFP, light, asm.DWord),
			asm.Add.Imm(mine, 1),
			asm.StoreMem(asm.RFP, light, mine, asm.DWord),
			asm.JGE.Reg(queue, least, at("next")).WithSymbol(at("heavy")),
			asm.Mov.Reg(least, queue),
			asm.Mov.Reg(best, port),
			asm.StoreMem(asm.RFP, bestUpTo, limit, asm.DWord),
			asm.Mov.Imm(queue, 0).WithSymbol(at("next")),
		)
	}
	return append(all, asm.Mov.Imm(asm.R0, 0).WithSymbol(scanned))
}

// remember stores the flow's port, which is in a register, and leaves it in R2.
func (p *Port) remember(port asm.Register) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R1, asm.RFP, now, asm.DWord),
		asm.StoreMem(asm.RFP, value, asm.R1, asm.DWord),
		asm.StoreMem(asm.RFP, value+8, port, asm.DWord),
		asm.LoadMapPtr(asm.R1, p.At.Flows.ports.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, key),
		asm.Mov.Reg(asm.R3, asm.RFP),
		asm.Add.Imm(asm.R3, value),
		asm.Mov.Imm(asm.R4, 0), // BPF_ANY
		asm.FnMapUpdateElem.Call(),
		asm.Mov.Reg(asm.R2, port),
	}
}

// adapt keeps a flow on its port while that is light, and otherwise moves it to the one with the
// shortest queue: fabric.Adaptive.
func (p *Port) adapt() asm.Instructions {
	const mine, other = asm.R8, asm.R9
	return join(
		ifControl(alone),
		asm.Instructions{
			asm.LoadMem(asm.R1, entries, 4, asm.Word),
			asm.JGT.Imm(asm.R1, portMask, unchosen),
		},
		p.table.blank(asm.R1, none),
		asm.Instructions{asm.StoreMem(asm.RFP, away, asm.R1, asm.DWord)},
		p.recall(),
		p.look(nil),
		asm.Instructions{
			asm.Mov.Reg(other, best),
			asm.LoadMem(mine, asm.RFP, current, asm.DWord),
			asm.LoadMem(asm.R1, asm.RFP, found, asm.DWord),
			asm.JNE.Imm(asm.R1, 0, "keeps"),
			asm.LoadMem(asm.R1, asm.RFP, before, asm.DWord),
			asm.LoadImm(asm.R2, none, asm.DWord),
			asm.JEq.Reg(asm.R1, asm.R2, "keeps"),
		},
		p.countHere(atMoved), // the link of its port is down
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.RFP, ofCurrent, asm.DWord).WithSymbol("keeps"),
			asm.LoadMem(asm.R2, asm.RFP, upTo, asm.DWord),
			asm.JLE.Reg(asm.R1, asm.R2, "stays"),
			asm.JEq.Reg(mine, other, "stays"),
			asm.Mov.Reg(mine, other),
		},
		p.countHere(atMoved),
		asm.Instructions{asm.Mov.Imm(asm.R0, 0).WithSymbol("stays")},
		p.remember(mine),
		asm.Instructions{
			asm.Ja.Label(chosen),
			asm.Mov.Imm(asm.R0, 0).WithSymbol(alone),
		},
	)
}
