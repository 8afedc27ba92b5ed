package bpf

import (
	"fmt"
	"math"
	"os"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"weft/internal/cleanup"
	"weft/tc-shaping/qdisc"
	"weft/units"
)

// row is the memory of a port that the programs and this process share. Its fields are in the order
// of the offsets in program.go. The first two cache lines are what this process writes.
type row struct {
	limit, min, max uint64 // bytes
	// probability of a mark per byte above min, in units of 2^-48
	slope uint64
	where uint64 // a packet is marked: see the constants
	loss  uint64 // share of packets, in units of 2^-32
	// qdisc.Line in ns: propagation, time per byte in units of 2^-perByteBits, and bytes of
	// overhead
	delay, perByte, overhead uint64
	light, congested         uint64 // bytes: fabric.PortConfig
	spread, spreadTable      uint64 // qdisc.Line: ns, and an index in Table.spreads
	_                        [3]uint64

	entered, left               uint64 // bytes of data
	enteredPackets, leftPackets uint64
	marks, drops                uint64
	lost                        uint64
	spoofed, notRouted          uint64
	longest                     uint64 // queue in bytes
	// when the last transmission on the link ends, as a stamp of the kernel
	free uint64
	// how often a flow that came by this link was moved to another port, and how many of its
	// packets a Coordinator was not told of
	moved, untold uint64
	busy          uint64 // bytes that the last packet left behind in the queue
	unrouted      uint64 // packets for which the switch had no port
	_             uint64

	enteredControl, leftControl uint64 // bytes of control packets (wire.TOSControl)
	_                           [6]uint64
}

// Where packets are marked.
const (
	nowhere uint64 = iota
	entering
	leaving
)

const rowSize = unsafe.Sizeof(row{})

// Table is the shared memory of all ports of a lab.
type Table struct {
	memory *ebpf.Map
	mapped []byte
	rows   []row
	// dilation stands behind the rows, in units of 2^-fraction; 0: not known yet
	dilation *uint64

	spreads *ebpf.Map // tables of random delays: qdisc.Line
	mappedS []byte
	tables  [][]int16 // those in spreads
}

// maxSpreads is the largest number of different tables of random delays in a lab: a power of two.
// Our own choice.
const maxSpreads = 16

// spreadOf returns the index of a table of random delays, which it adds if it is new.
func (t *Table) spreadOf(table []int16) (uint64, error) {
	i := slices.IndexFunc(t.tables, func(other []int16) bool { return slices.Equal(other, table) })
	if i >= 0 {
		return uint64(i), nil
	}
	if len(t.tables) == maxSpreads {
		return 0, fmt.Errorf("more than %d different distributions of random delays", maxSpreads)
	}
	i = len(t.tables)
	copy(unsafe.Slice((*int16)(unsafe.Pointer(&t.mappedS[2*qdisc.TableSize*i])), qdisc.TableSize), table)
	t.tables = append(t.tables, table)
	return uint64(i), nil
}

// atDilation returns the offset of the dilation.
func (t *Table) atDilation() uint32 { return uint32(len(t.rows)) * uint32(rowSize) }

// NewTable returns the memory for a number of ports.
func NewTable(ports int) (*Table, error) {
	t, err := newTable(ports)
	if err != nil {
		return nil, fmt.Errorf("memory for BPF programs: %w", err)
	}
	return t, nil
}

func newTable(ports int) (*Table, error) {
	if err := rlimit.RemoveMemlock(); err != nil { // kernels before 5.11 count maps as locked memory
		return nil, err
	}
	m, mapped, err := newArray("weft_ports", (ports+1)*int(rowSize)) // the last one is for the dilation
	if err != nil {
		return nil, err
	}
	spreads, mappedS, err := newArray("weft_spreads", 2*qdisc.TableSize*maxSpreads)
	if err != nil {
		return nil, cleanup.Join(err, unix.Munmap(mapped), m.Close())
	}
	rows := unsafe.Slice((*row)(unsafe.Pointer(&mapped[0])), ports+1)
	return &Table{memory: m, mapped: mapped, rows: rows[:ports], dilation: (*uint64)(unsafe.Pointer(&rows[ports])),
		spreads: spreads, mappedS: mappedS}, nil
}

// newArray returns memory that programs and this process share.
func newArray(name string, size int) (m *ebpf.Map, mapped []byte, err error) {
	m, err = ebpf.NewMap(&ebpf.MapSpec{
		Name: name, Type: ebpf.Array, KeySize: 4, ValueSize: uint32(size), MaxEntries: 1, Flags: unix.BPF_F_MMAPABLE,
	})
	if err != nil {
		return nil, nil, err
	}
	page := os.Getpagesize()
	mapped, err = unix.Mmap(m.FD(), 0, (size+page-1)/page*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, cleanup.Join(err, m.Close())
	}
	return m, mapped, nil
}

// Close releases the memory. Programs that are still attached keep theirs. No Port may be used
// afterwards.
func (t *Table) Close() error {
	return cleanup.Join(unix.Munmap(t.mapped), t.memory.Close(), unix.Munmap(t.mappedS), t.spreads.Close())
}

// Port returns a port of the table, by index.
func (t *Table) Port(i int) *Port { return &Port{table: t, index: i} }

// Port is one port's part of a Table.
type Port struct {
	table *Table
	index int
	// At is the switch at which its packets arrive, if that chooses where they go on; else nil. It
	// takes effect with Leave.
	At *Switch
	// Stamps writes telemetry into packets that ask for it, as ports of switches do. It takes
	// effect with Leave.
	Stamps bool
	// Tags says that packets may have a coordination tag, which decides whether they are marked. It
	// takes effect with Enter and Leave.
	Tags bool
	// NoDetours forbids detours to its packets: fabric.PortConfig.Aside. It takes effect with
	// Leave.
	NoDetours bool
	// FromHost says that its packets start at a host. It takes effect with Leave.
	FromHost bool
	// Unit lets packets collect the times of their links (qdisc.Line): it is UnitFor a longest
	// path. 0: they collect none. It takes effect with Enter and Leave.
	Unit uint
}

func (p *Port) row() *row { return &p.table.rows[p.index] }

// Set changes the settings. Programs that run meanwhile may see some new and some old ones, but
// marks only by new ones.
func (p *Port) Set(g *qdisc.Gate) error {
	to, now := p.row(), settings(g)
	if l := g.Line; l != nil && l.Spread > 0 {
		var err error
		if now.spreadTable, err = p.table.spreadOf(l.Table); err != nil {
			return err
		}
	}
	atomic.StoreUint64(&to.spread, 0)
	atomic.StoreUint64(&to.spreadTable, now.spreadTable)
	atomic.StoreUint64(&to.spread, now.spread)
	atomic.StoreUint64(&to.where, nowhere)
	atomic.StoreUint64(&to.limit, now.limit)
	atomic.StoreUint64(&to.min, now.min)
	atomic.StoreUint64(&to.max, now.max)
	atomic.StoreUint64(&to.slope, now.slope)
	atomic.StoreUint64(&to.loss, now.loss)
	atomic.StoreUint64(&to.delay, now.delay)
	atomic.StoreUint64(&to.perByte, now.perByte)
	atomic.StoreUint64(&to.overhead, now.overhead)
	atomic.StoreUint64(&to.where, now.where)
	return nil
}

// settings returns a row with the settings of a gate, but for its table of random delays, and
// without counts.
func settings(g *qdisc.Gate) row {
	r := row{limit: uint64(g.Limit), loss: uint64(g.Loss)}
	if g.Loss == math.MaxUint32 { // netem's form of all
		r.loss = 1 << 32
	}
	if l := g.Line; l != nil {
		r.delay, r.overhead, r.spread = uint64(l.Delay), uint64(l.Overhead), uint64(l.Spread)
		if l.Rate > 0 {
			r.perByte = uint64(math.Round(8e9 / float64(l.Rate) * (1 << perByteBits)))
		}
	}
	red := g.RED
	if red == nil {
		return r
	}
	r.min, r.max, r.where = uint64(red.Min), uint64(red.Max), entering
	if red.Leaving {
		r.where = leaving
	}
	if red.Max > red.Min {
		r.slope = uint64(math.Round(red.Pmax * (1 << 48) / float64(red.Max-red.Min)))
	}
	return r
}

// Reset zeroes the counters. No program of the port may be attached.
func (p *Port) Reset() {
	*p.row() = p.row().settings()
}

// settings returns the row without its counts.
func (r *row) settings() row {
	return row{limit: r.limit, min: r.min, max: r.max, slope: r.slope, where: r.where, loss: r.loss, delay: r.delay,
		perByte: r.perByte, overhead: r.overhead, light: r.light, congested: r.congested,
		spread: r.spread, spreadTable: r.spreadTable}
}

// Light sets the queues up to which the port is light and above which it is congested:
// fabric.PortConfig.
func (p *Port) Light(light, congested units.Bytes) {
	r := p.row()
	atomic.StoreUint64(&r.light, uint64(light))
	atomic.StoreUint64(&r.congested, uint64(congested))
}

// Moved returns how often a flow that came by this link was moved to another port, and how many of
// its packets nobody was told of, because Flows.Events were not read in time.
func (p *Port) Moved() (moved, untold uint64) {
	r := p.row()
	return atomic.LoadUint64(&r.moved), atomic.LoadUint64(&r.untold)
}

// Forget forgets the longest queue.
func (p *Port) Forget() { atomic.StoreUint64(&p.row().longest, 0) }

// Counters returns the present counters.
func (p *Port) Counters() qdisc.GateCounters {
	r := p.row()
	left, leftControl := bytes(&r.left), bytes(&r.leftControl) // first, so that no queue is negative
	entered, enteredControl := bytes(&r.entered), bytes(&r.enteredControl)
	return qdisc.GateCounters{
		Left: left + leftControl, Entered: entered + enteredControl, Data: entered - left,
		LeftPackets:    atomic.LoadUint64(&r.leftPackets),
		EnteredPackets: atomic.LoadUint64(&r.enteredPackets),
		Marks:          atomic.LoadUint64(&r.marks), Drops: atomic.LoadUint64(&r.drops),
		Lost:     atomic.LoadUint64(&r.lost),
		Unrouted: atomic.LoadUint64(&r.unrouted),
		Spoofed:  atomic.LoadUint64(&r.spoofed), NotRouted: atomic.LoadUint64(&r.notRouted),
		MaxQueue: bytes(&r.longest),
	}
}

func bytes(of *uint64) units.Bytes { return units.Bytes(atomic.LoadUint64(of)) }

// Gate returns the present settings: asked itself if they are the same.
func (p *Port) Gate(asked *qdisc.Gate) *qdisc.Gate {
	r := p.row().settings()
	r.light, r.congested = 0, 0
	var table []int16
	if r.spread > 0 {
		table = p.table.tables[r.spreadTable]
	}
	r.spreadTable = 0
	if asked != nil && r == settings(asked) && (asked.Line == nil || slices.Equal(table, asked.Line.Table)) {
		return asked
	}
	g := &qdisc.Gate{Limit: units.Bytes(r.limit), Loss: uint32(min(r.loss, math.MaxUint32))}
	if r.delay|r.perByte|r.overhead|r.spread != 0 {
		g.Line = &qdisc.Line{Delay: time.Duration(r.delay), Overhead: units.Bytes(r.overhead),
			Spread: time.Duration(r.spread), Table: table}
		if r.perByte > 0 {
			g.Line.Rate = units.Bandwidth(math.Round(8e9 * (1 << perByteBits) / float64(r.perByte)))
		}
	}
	if r.where != nowhere {
		g.RED = &qdisc.RED{Min: units.Bytes(r.min), Max: units.Bytes(r.max), Pmax: 1, ECN: true, Drawn: true,
			Leaving: r.where == leaving}
		if r.max > r.min {
			g.RED.Pmax = float64(r.slope) * float64(r.max-r.min) / (1 << 48)
		}
	}
	return g
}
