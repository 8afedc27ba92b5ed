package bpf

import (
	"encoding/binary"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"weft/tc-shaping/qdisc"
	"weft/transport/wire"
)

// Offsets in row.
const (
	atLimit = 8 * iota
	atMin
	atMax
	atSlope
	atWhere
	atLoss
	atDelay
	atPerByte
	atOverhead
	atLight
	atCongested
	atSpread
	atSpreadTable
	_
	_
	_
	atEntered
	atLeft
	atEnteredPackets
	atLeftPackets
	atMarks
	atDrops
	atLost
	atSpoofed
	atNotRouted
	atLongest
	atFree
	atMoved
	atUntold
	atBusy
	atUnrouted
	_
	atEnteredControl
	atLeftControl
)

// Verdicts of a program (linux/pkt_cls.h).
const (
	pass = -1 // TC_ACT_UNSPEC: the next filter, or on
	drop = 2  // TC_ACT_SHOT
)

// Offsets in struct __sk_buff of linux/bpf.h.
const (
	skbLen      = 0
	skbMark     = 8
	skbProtocol = 16
	skbVLAN     = 20 // vlan_present
	skbPriority = 32
	skbIngress  = 36 // ingress_ifindex
	skbStamp    = 152
	skbWireLen  = 160 // len, and of a super-packet (GSO) the sum of its packets
	skbSegments = 164 // gso_segs: packets of a super-packet, else 0 or 1
)

// Registers that keep their meaning in both programs.
const (
	packet = asm.R6 // struct __sk_buff
	port   = asm.R7 // row of the port
	size   = asm.R8 // of the packet with its Ethernet header, in bytes
	queue  = asm.R9 // bytes of data that wait
)

// Labels.
const (
	on      = "on"      // the packet goes on
	mark    = "mark"    // mark it, then on
	stopped = "stopped" // drop it
)

// begin loads the port's row and the packet's size.
func (p *Port) begin() asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(packet, asm.R1),
		asm.LoadMapValue(port, p.table.memory.FD(), uint32(p.index)*uint32(rowSize)),
		asm.LoadMem(size, packet, skbLen, asm.Word),
	}
}

// add adds a register to a counter.
func add(counter int16, r asm.Register) asm.Instruction {
	return asm.AddAtomic.Mem(port, r, asm.DWord, counter)
}

// count adds 1 to a counter.
func count(counter int16) asm.Instructions {
	return asm.Instructions{asm.Mov.Imm(asm.R1, 1), add(counter, asm.R1)}
}

// waiting loads the bytes of data in the port's queue.
func waiting() asm.Instructions { return between(queue, port, atEntered, atLeft, asm.R1) }

// waitingControl loads the bytes of control packets in the port's queue. It uses other.
func waitingControl(to, other asm.Register) asm.Instructions {
	return between(to, port, atEnteredControl, atLeftControl, other)
}

// byClass does one thing with a control packet and another with all others. The packet's header is
// on the stack. It uses R1.
func byClass(control, data asm.Instructions) asm.Instructions {
	return join(
		ifControl("control packet"),
		data,
		asm.Instructions{
			asm.Ja.Label("classified"),
			asm.Mov.Imm(asm.R1, 0).WithSymbol("control packet"),
		},
		control,
		asm.Instructions{asm.Mov.Imm(asm.R1, 0).WithSymbol("classified")},
	)
}

// ifControl goes to a label if the packet, whose header is on the stack, is a control packet. It
// uses R1.
func ifControl(label string) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R1, asm.RFP, ipTOS, asm.Byte),
		asm.JGE.Imm(asm.R1, wire.TOSControl, label),
	}
}

// between loads into a register by how much one counter of a row is above another, at least 0: a
// packet may enter and leave between two reads. It uses other, and has no branches: see
// Table.blank.
func between(to, row asm.Register, high, low int16, other asm.Register) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(to, row, high, asm.DWord),
		asm.LoadMem(other, row, low, asm.DWord),
		asm.Sub.Reg(to, other),
		asm.Mov.Reg(other, to),
		asm.ArSh.Imm(other, 63),
		asm.Xor.Imm(other, -1),
		asm.And.Reg(to, other),
	}
}

// rowOf loads the address of the row of a port, which is in a register and known to be one. It uses
// other.
func (t *Table) rowOf(to, port, other asm.Register) asm.Instructions {
	return asm.Instructions{
		asm.LoadMapValue(to, t.memory.FD(), 0),
		asm.Mov.Reg(other, port),
		asm.Mul.Imm(other, int32(rowSize)),
		asm.Add.Reg(to, other),
	}
}

// draw goes on to mark with the probability that RED has for the queue, if packets are marked here.
func draw(where uint64) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R1, port, atWhere, asm.DWord),
		asm.JNE.Imm(asm.R1, int32(where), on),
		asm.LoadMem(asm.R1, port, atMin, asm.DWord),
		asm.JLE.Reg(queue, asm.R1, on),
		asm.LoadMem(asm.R2, port, atMax, asm.DWord),
		asm.JGT.Reg(queue, asm.R2, mark),
		asm.Sub.Reg(queue, asm.R1),
		asm.LoadMem(asm.R1, port, atSlope, asm.DWord),
		asm.Mul.Reg(queue, asm.R1),
		asm.RSh.Imm(queue, 16), // of 2^48 to of 2^32
		asm.FnGetPrandomU32.Call(),
		asm.JGE.Reg(asm.R0, queue, on),
		asm.Mov.Reg(asm.R1, packet).WithSymbol(mark),
		asm.FnSkbEcnSetCe.Call(),
		asm.JEq.Imm(asm.R0, 0, on), // not ECN-capable
		asm.Mov.Imm(asm.R1, 1),
		add(atMarks, asm.R1),
	}
}

// end returns the verdicts behind the labels on and stopped.
func end(verdict asm.Instructions) asm.Instructions {
	verdict[0] = verdict[0].WithSymbol(on)
	return append(verdict, asm.Return(),
		asm.Mov.Imm(asm.R0, drop).WithSymbol(stopped),
		asm.Return())
}

// join appends parts.
func join(parts ...asm.Instructions) (all asm.Instructions) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// enter is the program of the near end.
func (p *Port) enter() asm.Instructions {
	enters := func(counter int16, class qdisc.Handle) asm.Instructions {
		return asm.Instructions{
			add(counter, size),
			asm.Mov.Imm(asm.R1, int32(class)),
			asm.StoreMem(packet, skbPriority, asm.R1, asm.Word),
		}
	}
	return join(
		p.begin(),
		asm.Instructions{
			asm.LoadMem(asm.R1, packet, skbWireLen, asm.Word),
			asm.JLE.Reg(asm.R1, size, "one packet"),
			asm.Mov.Reg(size, asm.R1),
			asm.Mov.Imm(asm.R1, 0).WithSymbol("one packet"),
		},
		header(),
		waiting(),
		waitingControl(asm.R2, asm.R1),
		asm.Instructions{
			asm.Add.Reg(asm.R2, queue),
			asm.Add.Reg(asm.R2, size), // the queue with the packet
			asm.LoadMem(asm.R1, port, atLimit, asm.DWord),
			asm.JLE.Reg(asm.R2, asm.R1, "fits"),
		},
		count(atDrops),
		asm.Instructions{
			asm.Ja.Label(stopped),
			asm.LoadMem(asm.R1, port, atLongest, asm.DWord).WithSymbol("fits"),
			asm.JLE.Reg(asm.R2, asm.R1, "shorter"),
			asm.StoreMem(port, atLongest, asm.R2, asm.DWord),
			asm.LoadMem(asm.R1, packet, skbSegments, asm.Word).WithSymbol("shorter"),
			asm.JNE.Imm(asm.R1, 0, "segments"),
			asm.Mov.Imm(asm.R1, 1),
			add(atEnteredPackets, asm.R1).WithSymbol("segments"),
		},
		byClass(enters(atEnteredControl, qdisc.Control), enters(atEntered, qdisc.Data)),
		p.tag(),
		draw(entering),
		end(join(asm.Instructions{asm.Mov.Imm(asm.R0, 0)}, p.forget(), asm.Instructions{asm.Mov.Imm(asm.R0, pass)})),
	)
}

// leave is the program of the far end, which admits one sender (nil: everybody).
func (p *Port) leave(from *qdisc.Source) asm.Instructions {
	return join(
		p.begin(),
		header(),
		byClass(asm.Instructions{add(atLeftControl, size)}, asm.Instructions{add(atLeft, size)}),
		count(atLeftPackets),
		admit(from),
		p.collect(),
		asm.Instructions{
			asm.LoadMem(queue, port, atLoss, asm.DWord),
			asm.JEq.Imm(queue, 0, "kept"),
			asm.FnGetPrandomU32.Call(),
			asm.JGE.Reg(asm.R0, queue, "kept"),
		},
		count(atLost),
		asm.Instructions{
			asm.Ja.Label(stopped),
			asm.Mov.Imm(asm.R0, 0).WithSymbol("kept"),
		},
		waiting(),
		p.stamp(),
		p.tag(),
		draw(leaving),
		end(join(asm.Instructions{asm.Mov.Imm(asm.R0, 0)}, p.untag(), p.choose(),
			asm.Instructions{asm.Mov.Imm(asm.R0, pass)})),
	)
}

// Offsets in a frame (linux/if_ether.h, linux/if_arp.h, RFC 791), and where admit keeps the part
// from the first one on.
const (
	sourceMAC = 6
	frameType = 12
	arpMAC    = 22
	arpSender = 28
	ipSender  = 26
	endOfPart = arpSender + 4

	stack = -32
)

// admit drops and counts frames that are not of a sender.
func admit(from *qdisc.Source) asm.Instructions {
	if from == nil {
		return nil
	}
	address := from.Addr.As4()
	return join(
		asm.Instructions{
			asm.Mov.Reg(asm.R1, packet),
			asm.Mov.Imm(asm.R2, sourceMAC),
			asm.Mov.Reg(asm.R3, asm.RFP),
			asm.Add.Imm(asm.R3, stack),
			asm.Mov.Imm(asm.R4, endOfPart-sourceMAC),
			asm.FnSkbLoadBytes.Call(),
			asm.JNE.Imm(asm.R0, 0, "neither"), // too short for either
			asm.LoadMem(asm.R1, packet, skbVLAN, asm.Word),
			asm.JNE.Imm(asm.R1, 0, "neither"),
			asm.LoadMem(asm.R1, asm.RFP, stack+frameType-sourceMAC, asm.Half),
			asm.JEq.Imm(asm.R1, int32(network16(unix.ETH_P_IP)), "ip"),
			asm.JEq.Imm(asm.R1, int32(network16(unix.ETH_P_ARP)), "arp"),
		},
		asm.Instructions{asm.Mov.Imm(asm.R1, 1).WithSymbol("neither"), add(atNotRouted, asm.R1), asm.Ja.Label(stopped)},
		asm.Instructions{asm.Mov.Imm(asm.R1, 1).WithSymbol("spoofed"), add(atSpoofed, asm.R1), asm.Ja.Label(stopped)},
		asm.Instructions{asm.Mov.Imm(asm.R0, 0).WithSymbol("arp")},
		same(arpMAC, from.MAC[:]),
		same(arpSender, address[:]),
		asm.Instructions{asm.Ja.Label("sender")},
		asm.Instructions{asm.Mov.Imm(asm.R0, 0).WithSymbol("ip")},
		same(ipSender, address[:]),
		asm.Instructions{asm.Mov.Imm(asm.R0, 0).WithSymbol("sender")},
		same(sourceMAC, from.MAC[:]),
	)
}

// same goes to the label spoofed unless a frame has these bytes at an offset. Both are even.
func same(at int, b []byte) (all asm.Instructions) {
	for ; len(b) > 0; at, b = at+2, b[2:] {
		all = append(all,
			asm.LoadMem(asm.R1, asm.RFP, int16(stack+at-sourceMAC), asm.Half),
			asm.JNE.Imm(asm.R1, int32(binary.NativeEndian.Uint16(b)), "spoofed"))
	}
	return all
}

// network16 returns a number as it is read from a packet in network order.
func network16(n uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, n))
}

// Names returns the names by which tc shows the port's programs.
func (p *Port) Names() (enter, leave string) { return qdisc.GateNames(p.index) }

// load asks the kernel to check a program and keep it.
func load(name string, what asm.Instructions) (*ebpf.Program, error) {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: name, Type: ebpf.SchedCLS, Instructions: what, License: "GPL"})
	if err != nil {
		return nil, fmt.Errorf("BPF program %s: %w", name, err)
	}
	return p, nil
}

// Enter returns the program of the near end. The caller closes it once it is attached.
func (p *Port) Enter() (*ebpf.Program, error) { return load("weft_enter", p.enter()) }

// Leave returns the program of the far end, which admits frames of one sender (nil: of everybody).
// The caller closes it once it is attached.
func (p *Port) Leave(from *qdisc.Source) (*ebpf.Program, error) {
	return load("weft_leave", p.leave(from))
}
