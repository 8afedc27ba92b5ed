package goal

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"weft/collectives/graph"
	"weft/units"
)

// cookie begins the binary form, which txt2bin of LogGOPSim and ATLAHS writes. All numbers are
// little-endian. Behind it are
//
//	ranks u32, processors u8, NICs u8, and for each rank its begin and end u64, behind the cookie
//
// and then for each rank
//
//	operations u32, first operations u32, these u32 each
//	for each operation: waits for u32, type u8, peer u32, size u64, tag u32, processor u8,
//	    NIC u8, and twice a count u32 and an index u32: of what waits for its end, its start
//	the operations that these are, u32 each
const cookie = "\x7f\x10\x00\x00\x00\x00\x00\x00"

// Sizes in bytes, and types of operations.
const (
	nodeSize = 4 + 1 + 4 + 8 + 4 + 1 + 1 + 4*4
	typeSend = 1
	typeRecv = 2
	typeCalc = 3
)

// maxEdges bounds the dependencies of a binary schedule.
const maxEdges = 1 << 26

// binaryReader reads the binary form as a stream.
type binaryReader struct {
	parser
	r   *bufio.Reader
	at  int64 // position in the file
	buf [nodeSize]byte
}

// waiters are the operations that wait for another one.
type waiters struct{ ended, started uint32 }

// parseBinary reads a schedule in the binary form.
func parseBinary(file string, r *bufio.Reader) (*graph.Graph, error) {
	b := &binaryReader{parser: parser{file: file, rank: -1, bytes: true}, r: r}
	head, err := b.next(len(cookie) + 6)
	if err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head[len(cookie):])
	if n > graph.MaxRanks {
		return nil, b.errorf("%d ranks are more than %d", n, graph.MaxRanks)
	}
	b.seen = make([]bool, n)
	b.graph = &graph.Graph{Files: []string{file}, Word: "byte", Ranks: make([][]graph.Op, n)}
	ends := make([]int64, n+1)
	ends[0] = int64(len(cookie)+6) + 16*int64(n)
	for i := range n {
		begin, err := b.position()
		if err != nil {
			return nil, err
		}
		if begin != ends[i] {
			return nil, b.errorf("rank %d begins at byte %d; expected %d, the end of what is before it", i, begin,
				ends[i])
		}
		if ends[i+1], err = b.position(); err != nil {
			return nil, err
		}
	}
	for i := range int(n) {
		if err := b.readRank(i); err != nil {
			return nil, err
		}
		if b.at != ends[i+1] {
			return nil, b.errorf("rank %d ends here; expected byte %d, as its table says", i, ends[i+1])
		}
	}
	if _, err := b.r.ReadByte(); !errors.Is(err, io.EOF) {
		return nil, errors.Join(b.errorf("the file continues after its last rank"), err)
	}
	return b.graph, nil
}

// next returns the next bytes of the file, until the next call.
func (b *binaryReader) next(n int) ([]byte, error) {
	to := b.buf[:n]
	k, err := io.ReadFull(b.r, to)
	b.at += int64(k)
	b.line = int(b.at)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, b.errorf("the file ends too early")
	}
	if err != nil {
		return nil, graph.At(b.place(b.at), err)
	}
	return to, nil
}

func (b *binaryReader) u32() (uint32, error) {
	x, err := b.next(4)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(x), nil
}

// position reads a position in the file, which is written as one behind the cookie.
func (b *binaryReader) position() (int64, error) {
	x, err := b.next(8)
	if err != nil {
		return 0, err
	}
	return int64(binary.LittleEndian.Uint64(x)&(1<<62-1)) + int64(len(cookie)), nil
}

// readRank reads the operations of a rank.
func (b *binaryReader) readRank(rank int) error {
	n, err := b.u32()
	if err != nil {
		return err
	}
	if b.total += int(n); b.total > graph.MaxOps {
		return b.errorf("more than %d operations", graph.MaxOps)
	}
	roots, err := b.u32()
	if err != nil {
		return err
	}
	if roots > n {
		return b.errorf("%d first operations of %d", roots, n)
	}
	for range roots { // they follow from the dependencies
		if _, err := b.u32(); err != nil {
			return err
		}
	}
	b.rank, b.ops, b.deps = rank, b.ops[:0], b.deps[:0]
	var all []waiters
	var needs []uint32
	edges := uint32(0)
	for range n {
		op, w, need, err := b.node(&edges)
		if err != nil {
			return err
		}
		b.ops, all, needs = append(b.ops, op), append(all, w), append(needs, need)
	}
	for i, w := range all {
		for k := range w.ended + w.started {
			op, err := b.u32()
			if err != nil {
				return err
			}
			if op >= n || needs[op] == 0 {
				return b.errorf("operation %d of rank %d waits for more operations than it says", op, rank)
			}
			needs[op]--
			b.deps = append(b.deps, dependency{op: int32(op), after: int32(i), started: k >= w.ended})
		}
	}
	for op, left := range needs {
		if left > 0 {
			return b.errorf("operation %d of rank %d waits for %d operations that are not there", op, rank, left)
		}
	}
	return b.end()
}

// node reads an operation, the number of those that wait for it, and of those it waits for. edges
// counts the dependencies of the rank.
func (b *binaryReader) node(edges *uint32) (op graph.Op, w waiters, need uint32, err error) {
	op.Place = b.at
	x, err := b.next(nodeSize)
	if err != nil {
		return op, w, 0, err
	}
	u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(x[at:]) }
	need, peer, size, tag := u32(0), u32(5), binary.LittleEndian.Uint64(x[9:]), u32(17)
	cpu, nic := x[21], x[22]
	fail := func(format string, args ...any) (graph.Op, waiters, uint32, error) {
		return op, w, 0, &graph.Error{At: b.place(op.Place), Err: fmt.Errorf(format, args...)}
	}
	switch x[4] {
	case typeCalc:
		if size > uint64(graph.MaxTime/units.Nanosecond) {
			return fail("a computation of %d ns; expected at most %v", size, graph.MaxTime)
		}
		op.Kind, op.Time, op.Stream = graph.Compute, units.Time(size)*units.Nanosecond, int32(cpu)
	case typeSend, typeRecv:
		op.Kind = graph.Send
		if x[4] == typeRecv {
			op.Kind = graph.Recv
		}
		switch {
		case peer == 1<<32-1:
			return fail("a receive from any rank: which message it takes depends on the run; expected a rank")
		case tag == 1<<32-1:
			return fail("a message with any tag: which one it takes depends on the run; expected a number")
		case int64(peer) >= int64(len(b.seen)):
			return fail("rank %d; expected one of %d", peer, len(b.seen))
		case size > uint64(graph.MaxSize):
			return fail("a message of %d bytes; expected at most %v", size, graph.MaxSize)
		case nic != 0:
			return fail("nic %d: a host has one NIC here; expected nic 0", nic)
		case cpu != 0:
			b.graph.Notes.AddAt("cpu of messages", func() string { return b.place(op.Place) })
		}
		op.Peer, op.Tag, op.Size = int32(peer), uint64(tag), units.Bytes(size)
	default:
		return fail("an operation of type %d; expected 1 (send), 2 (receive) or 3 (computation)", x[4])
	}
	for i, count := range []*uint32{&w.ended, &w.started} {
		*count = u32(23 + 8*i)
		b.edges += int(*count)
		switch {
		case b.edges > maxEdges || *count > maxEdges:
			return fail("more than %d dependencies", maxEdges)
		case *count > 0 && u32(27+8*i) != *edges:
			return fail("its dependencies begin at index %d; expected %d", u32(27+8*i), *edges)
		}
		*edges += *count
	}
	return op, w, need, nil
}
