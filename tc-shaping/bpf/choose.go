package bpf

import (
	"fmt"
	"math/bits"
	"net/netip"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"weft/fabric"
	"weft/internal/cleanup"
	"weft/internal/splitmix"
)

// Routes is the memory in which switches look up by which of their ports a packet goes on. They
// choose among equal ports as those of package fabric do, so that a flow takes the same path. The
// kernel then routes the packet by the mark that it gets: see MarkOf.
type Routes struct {
	hosts  *ebpf.Map // from address to number
	memory *ebpf.Map
	mapped []byte
	// rows are, by switch and host, a number of ports and the ports; with detours twice, the second
	// time those of detours
	rows []uint32
	// room of a row for ports of each kind: a power of two
	width, count int
	lists        int // 2: there are detours; else 1
}

// MarkOf returns the mark of packets that a switch sends by a port of the table.
func MarkOf(port int) uint32 { return firstMark + uint32(port) }

// firstMark is the mark of port 0. Our own value: the kernel's own tables are 253 to 255.
const firstMark = 1000

// ToHost is added to a port of Routes that leads to a host: its packets get no mark.
const ToHost uint32 = 1 << 31

// NewRoutes returns the memory of a number of switches with at most width equal ports towards each
// of the hosts with these IPv4 addresses, and as many for detours if there are any.
func NewRoutes(switches, width int, detours bool, hosts []netip.Addr) (*Routes, error) {
	r := &Routes{width: 1 << bits.Len(uint(max(1, width)-1)), count: len(hosts), lists: 1}
	if detours {
		r.lists = 2
	}
	if err := r.open(switches, hosts); err != nil {
		r.Close()
		return nil, fmt.Errorf("memory for routes in BPF programs: %w", err)
	}
	return r, nil
}

func (r *Routes) open(switches int, hosts []netip.Addr) (err error) {
	r.hosts, err = ebpf.NewMap(&ebpf.MapSpec{Name: "weft_hosts", Type: ebpf.Hash, KeySize: 4, ValueSize: 4,
		MaxEntries: uint32(max(1, len(hosts)))})
	if err != nil {
		return err
	}
	for h, a := range hosts {
		if err := r.hosts.Put(a.As4(), uint32(h)); err != nil {
			return err
		}
	}
	size := max(1, switches) * r.stride() * max(1, len(hosts))
	if r.memory, r.mapped, err = newArray("weft_routes", size); err == nil {
		r.rows = unsafe.Slice((*uint32)(unsafe.Pointer(&r.mapped[0])), size/4)
	}
	return err
}

// stride returns the size of a row in bytes.
func (r *Routes) stride() int { return r.lists * r.listSize() }

// listSize returns the size of a number of ports and the ports in bytes.
func (r *Routes) listSize() int { return 4 * (1 + r.width) }

// Close releases the memory. Programs that are still attached keep theirs.
func (r *Routes) Close() error {
	var unmap, hosts, memory error
	if r.mapped != nil {
		unmap = unix.Munmap(r.mapped)
	}
	if r.hosts != nil {
		hosts = r.hosts.Close()
	}
	if r.memory != nil {
		memory = r.memory.Close()
	}
	return cleanup.Join(unmap, hosts, memory)
}

// queues returns the largest number of queues that a switch compares.
func (r *Routes) queues() int { return r.lists * r.width }

// Set sets the ports by which a switch sends what is for a host. Without any, the packets are
// dropped.
func (r *Routes) Set(at, host int, ports []uint32) { r.set(at, host, 0, ports) }

// SetDetours sets the ports by which a switch may send it instead: fabric.SwitchConfig.Aside.
func (r *Routes) SetDetours(at, host int, ports []uint32) { r.set(at, host, 1, ports) }

func (r *Routes) set(at, host, list int, ports []uint32) {
	row := r.rows[((at*r.count+host)*r.lists+list)*(1+r.width):][:1+r.width]
	for i, p := range ports {
		atomic.StoreUint32(&row[1+i], p)
	}
	atomic.StoreUint32(&row[0], uint32(len(ports)))
}

// A Switch is where packets get the mark of a port. The zero value gives none.
type Switch struct {
	Routes *Routes
	Index  int
	Seed   uint64 // of the choice among equal ports: fabric.SwitchConfig.Seed
	// Balance is how it chooses among them. All but fabric.ECMP treat control packets
	// (wire.TOSControl) by their flow. Those that look at queues need Flows.
	Balance fabric.Balance
	Flows   *Flows
}

// Where the program keeps the beginning of an IPv4 packet, and what it needs of it.
const (
	ipPacket   = -24
	ipTOS      = ipPacket + 1
	ipFlags    = ipPacket + 6
	ipProtocol = ipPacket + 9
	ipFrom     = ipPacket + 12
	ipTo       = ipPacket + 16
	portFrom   = ipPacket + 20
	portTo     = ipPacket + 22
)

// find goes to the label unchosen, or leaves the number of the host with the address at an offset
// of the stack in a register.
func (s *Switch) find(at int32, to asm.Register) asm.Instructions {
	return asm.Instructions{
		asm.LoadMapPtr(asm.R1, s.Routes.hosts.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, at),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, unchosen),
		asm.LoadMem(to, asm.R0, 0, asm.Word),
	}
}

const unchosen = "unchosen"

// mix is splitmix.Mix of a register. It uses R2.
func mix(r asm.Register) asm.Instructions {
	all := asm.Instructions{
		asm.LoadImm(asm.R2, uint64ToInt(splitmix.Gamma), asm.DWord),
		asm.Add.Reg(r, asm.R2),
	}
	for _, step := range []struct {
		shift int32
		times uint64
	}{{30, splitmix.First}, {27, splitmix.Second}, {31, 0}} {
		all = append(all,
			asm.Mov.Reg(asm.R2, r),
			asm.RSh.Imm(asm.R2, step.shift),
			asm.Xor.Reg(r, asm.R2))
		if step.times != 0 {
			all = append(all,
				asm.LoadImm(asm.R2, uint64ToInt(step.times), asm.DWord),
				asm.Mul.Reg(r, asm.R2))
		}
	}
	return all
}

func uint64ToInt(x uint64) int64 { return int64(x) }

// choose gives a packet the mark of a port: by fabric.FlowHash and the switch's seed, or as the
// switch balances. The packet's header is on the stack. It uses the registers of the port, the size
// and the queue.
func (p *Port) choose() asm.Instructions {
	s := p.At
	if s == nil || s.Routes == nil {
		return nil
	}
	const from, to, hash = asm.R7, asm.R8, asm.R9
	return join(
		whole(unchosen),
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.RFP, ipPacket, asm.Byte),
			asm.JNE.Imm(asm.R1, 0x45, unchosen), // it has options
		},
		s.find(ipFrom, from),
		s.find(ipTo, to),
		asm.Instructions{
			asm.Mov.Reg(hash, from),
			asm.LSh.Imm(hash, 32),
			asm.Or.Reg(hash, to),
		},
		mix(hash),
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.RFP, portFrom, asm.Half),
			asm.HostTo(asm.BE, asm.R1, asm.Half),
			asm.LSh.Imm(asm.R1, 16),
			asm.LoadMem(asm.R2, asm.RFP, portTo, asm.Half),
			asm.HostTo(asm.BE, asm.R2, asm.Half),
			asm.Or.Reg(asm.R1, asm.R2),
			asm.LoadMem(asm.R3, asm.RFP, ipProtocol, asm.Byte),
			asm.JEq.Imm(asm.R3, unix.IPPROTO_UDP, "ported"),
			asm.JEq.Imm(asm.R3, unix.IPPROTO_TCP, "ported"),
			asm.Mov.Imm(asm.R1, 0),
			asm.Xor.Reg(hash, asm.R1).WithSymbol("ported"),
		},
		mix(hash),
		asm.Instructions{
			asm.JEq.Imm(asm.R3, unix.IPPROTO_UDP, "hashed"),
			asm.LoadImm(asm.R2, uint64ToInt(splitmix.Gamma), asm.DWord),
			asm.Mul.Reg(asm.R2, asm.R3),
			asm.Xor.Reg(hash, asm.R2),
			asm.Mov.Imm(asm.R0, 0).WithSymbol("hashed"),
		},
		mix(hash),
		asm.Instructions{
			asm.LSh.Imm(hash, 32),
			asm.RSh.Imm(hash, 32),
		},
		p.keep(from, to, hash),
		asm.Instructions{
			asm.LoadImm(asm.R1, uint64ToInt(splitmix.Mix(s.Seed)), asm.DWord),
			asm.Xor.Reg(hash, asm.R1),
		},
		mix(hash),
		s.spray(hash),
		p.findPorts(to, hash),
		p.balance(),
		asm.Instructions{
			// of all ports, the one of the hash
			asm.LSh.Imm(hash, 2),
			asm.Add.Reg(entries, hash),
			asm.LoadMem(asm.R2, entries, 4, asm.Word),
			asm.JGT.Imm(asm.R2, portMask, unchosen),
			asm.Add.Imm(asm.R2, firstMark).WithSymbol(chosen),
			asm.StoreMem(packet, skbMark, asm.R2, asm.Word),
			asm.Mov.Imm(asm.R0, 0).WithSymbol(unchosen),
		},
	)
}

// spray replaces the hash of a data packet by a random number, if the switch does so.
func (s *Switch) spray(hash asm.Register) asm.Instructions {
	if !s.Balance.Random() {
		return nil
	}
	return append(ifControl("flows"),
		asm.FnGetPrandomU32.Call(),
		asm.Mov.Reg(hash, asm.R0),
		asm.LSh.Imm(hash, 32),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("flows"),
	)
}

// What findPorts leaves in registers.
const (
	entries = asm.R7 // the switch's row for the packet's destination
	number  = asm.R8 // of its ports
	usual   = asm.R9 // the one of the hash: 0 to number - 1

	chosen = "chosen" // the port is in R2
)

// findPorts finds the ports towards a host, and the one of a hash. Without any, it drops the packet
// and counts it.
func (p *Port) findPorts(to, hash asm.Register) asm.Instructions {
	r := p.At.Routes
	return join(asm.Instructions{
		asm.JGE.Imm(to, int32(r.count), unchosen),
		asm.LoadMapValue(entries, r.memory.FD(), uint32(p.At.Index*r.count*r.stride())),
		asm.Mul.Imm(to, int32(r.stride())),
		asm.Add.Reg(entries, to),
		asm.LoadMem(number, entries, 0, asm.Word),
		asm.JNE.Imm(number, 0, "routed"),
	}, p.countHere(atUnrouted), asm.Instructions{
		asm.Ja.Label(stopped),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("routed"),
		// the high half of hash times the number
		asm.Mov.Reg(asm.R3, hash),
		asm.RSh.Imm(asm.R3, 32),
		asm.Mul.Reg(asm.R3, number),
		asm.LSh.Imm(hash, 32),
		asm.RSh.Imm(hash, 32),
		asm.Mul.Reg(hash, number),
		asm.RSh.Imm(hash, 32),
		asm.Add.Reg(hash, asm.R3),
		asm.RSh.Imm(hash, 32),
		asm.And.Imm(hash, int32(r.width-1)),
	})
}
