package chakra

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"weft/collectives/graph"
	"weft/inputs/source"
	"weft/internal/clip"
	"weft/units"
)

// Looks reports whether a file that begins with head is a Chakra trace: a length, and then metadata
// whose first field is a version.
func Looks(head []byte) bool {
	n, used := binary.Uvarint(head)
	if used <= 0 || n > maxMessage || n < 2 || uint64(len(head)-used) < min(n, 3) {
		return false
	}
	meta := head[used:]
	field, kind, m := protowire.ConsumeTag(meta)
	if m < 0 || field != metaVersion && field != metaAttr || kind != protowire.BytesType {
		return false
	}
	length, k := protowire.ConsumeVarint(meta[m:])
	return k > 0 && uint64(m+k)+length <= n
}

// parser reads the files of a job.
type parser struct {
	graph  *graph.Graph
	groups map[string][]int32
	total  int
}

// GroupsFile is the name of a file beside the traces, with the members of process groups:
// {"tp0": [0, 1], ...}.
const GroupsFile = "groups.json"

// Parse reads the traces of all ranks, and GroupsFile if it is among files. With one trace and
// ranks above 1, every rank does the same.
func Parse(files []string, ranks int, open func(string) (io.ReadCloser, error)) (*graph.Graph, error) {
	p := &parser{graph: &graph.Graph{Word: "node"}}
	for _, name := range files {
		if strings.HasSuffix(name, ".json") && path.Base(name) != GroupsFile {
			return nil, &graph.Error{At: name, Err: fmt.Errorf("a file beside traces; expected traces alone, and "+
				"process groups by the name %s", GroupsFile)}
		}
		if path.Base(name) != GroupsFile {
			p.graph.Files = append(p.graph.Files, name)
		} else if err := p.readGroups(name, open); err != nil {
			return nil, err
		}
	}
	alike := len(p.graph.Files) == 1 && ranks > 1
	if alike {
		p.graph.Ranks = make([][]graph.Op, ranks)
	} else {
		p.graph.Ranks = make([][]graph.Op, len(p.graph.Files))
	}
	var all [][]graph.Part
	for rank, name := range p.graph.Files {
		if n, ok := rankOf(name); ok && n != rank && !alike {
			return nil, &graph.Error{At: name, Err: fmt.Errorf("the trace of rank %d; expected that of rank %d: a job "+
				"has a trace of each rank from 0", n, rank)}
		}
		f, err := open(name)
		if err != nil {
			return nil, err
		}
		members, err := p.rank(name, rank, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		all = append(all, members)
	}
	for rank := 1; alike && rank < ranks; rank++ {
		p.graph.Ranks[rank] = slices.Clone(p.graph.Ranks[0])
		all = append(all, all[0])
	}
	return p.graph, p.graph.Join(all)
}

// rankOf returns the rank in a name such as moe.12.et or moe.12.et.gz.
func rankOf(name string) (int, bool) {
	name = strings.TrimSuffix(name, ".gz")
	name = strings.TrimSuffix(name, path.Ext(name))
	n, err := strconv.Atoi(strings.TrimPrefix(path.Ext(name), "."))
	return n, err == nil && n >= 0
}

func (p *parser) readGroups(name string, open func(string) (io.ReadCloser, error)) error {
	f, err := open(name)
	if err != nil {
		return err
	}
	d := source.NewJSON(name, f)
	if err = d.Decode(&p.groups); err == nil {
		err = d.End()
	}
	if err != nil {
		err = graph.At(fmt.Sprintf("%s: byte %d", name, d.Place(err)),
			fmt.Errorf("%w; expected process groups such as {\"tp0\": [0, 1]}", source.PlainJSON(err)))
	}
	return errors.Join(err, f.Close())
}

// maxDeps bounds the dependencies of a rank.
const maxDeps = 1 << 26

// rank reads the trace of a rank and returns its parts in collectives.
func (p *parser) rank(file string, rank int, r io.Reader) ([]graph.Part, error) {
	in := newReader(r)
	meta, err := in.next()
	if err == nil {
		err = checkMetadata(meta)
	}
	if err != nil {
		return nil, graph.At(file+": metadata", err)
	}
	at := map[uint64]int32{}
	var ops []graph.Op
	var deps []uint64 // of all nodes, one after the other
	var first []int   // by op: where its dependencies begin
	var members []graph.Part
	var x node
	for number := 1; ; number++ {
		b, err := in.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = x.decode(b)
		}
		if err != nil {
			return nil, graph.At(fmt.Sprintf("%s: message %d", file, number), err)
		}
		place := func() string { return fmt.Sprintf("%s: node %d", file, x.id) }
		refuse := func(err error) error {
			return &graph.Error{At: fmt.Sprintf("%s (%s)", place(), clip.Text(string(x.name))), Err: err}
		}
		if p.total++; p.total > graph.MaxOps {
			return nil, refuse(fmt.Errorf("more than %d nodes", graph.MaxOps))
		}
		for _, name := range x.unused {
			p.graph.Notes.AddAt("attribute "+clip.Text(name)+" of nodes", place)
		}
		for _, field := range x.strange {
			p.graph.Notes.AddAt(fmt.Sprintf("field %d of nodes", field), place)
		}
		if _, twice := at[x.id]; twice {
			return nil, refuse(errors.New("the id is used twice"))
		}
		op, err := x.op(rank)
		if err != nil {
			return nil, refuse(err)
		}
		at[x.id] = int32(len(ops))
		if op.Kind == graph.Collective {
			part, err := x.part(int32(len(ops)), p.groups)
			if err != nil {
				return nil, refuse(err)
			}
			members = append(members, part)
		}
		first = append(first, len(deps))
		if deps = append(deps, x.deps...); len(deps) > maxDeps {
			return nil, refuse(fmt.Errorf("more than %d dependencies", maxDeps))
		}
		ops = append(ops, op)
	}
	first = append(first, len(deps))
	arena := make([]int32, len(deps))
	for i := range ops {
		for k := first[i]; k < first[i+1]; k++ {
			a, ok := at[deps[k]]
			if !ok {
				return nil, &graph.Error{At: fmt.Sprintf("%s: node %d", file, ops[i].Place),
					Err: fmt.Errorf("it depends on node %d, which is not there", deps[k])}
			}
			arena[k] = a
		}
		if first[i] < first[i+1] {
			ops[i].After = unique(arena[first[i]:first[i+1]])
		}
	}
	p.graph.Ranks[rank] = ops
	return members, nil
}

// unique removes what is in a list twice: a node may depend on another by data and by control.
func unique(after []int32) []int32 {
	slices.Sort(after)
	after = slices.Compact(after)
	return after[:len(after):len(after)]
}

// part returns the part in a collective that a node is.
func (x *node) part(op int32, groups map[string][]int32) (graph.Part, error) {
	kind, each := x.numbers[commType], x.numbers[commSize]
	c, ok := collectives[kind]
	if !ok {
		return graph.Part{}, fmt.Errorf("comm_type %d: there is no such collective here", kind)
	}
	root, ok := x.numbers[commRoot]
	if !ok {
		root = -1
	}
	return graph.Part{Op: op, Group: x.group, Members: groups[x.group], Name: x.group, Collective: c.name, Root: root,
		Size: func(ranks int) int64 { return c.size(min(each, int64(graph.MaxSize)), int64(ranks)) }}, nil
}

// op returns the operation of a node.
func (x *node) op(rank int) (graph.Op, error) {
	op := graph.Op{Place: int64(min(x.id, math.MaxInt64))}
	number := func(name string, to func(int64)) error {
		n, ok := x.numbers[name]
		if !ok || n < 0 {
			return fmt.Errorf("a %s without %s", nodeNames[x.kind], name)
		}
		to(n)
		return nil
	}
	rankOf := func(n int64) { op.Peer = int32(min(n, math.MaxInt32)) }
	switch x.kind {
	case metadataNode:
		op.Kind = graph.Compute
	case compNode:
		if x.duration > uint64(graph.MaxTime/units.Microsecond) {
			return op, fmt.Errorf("a duration of %d us", x.duration)
		}
		if x.duration == 0 && x.numbers[numOps] > 0 {
			return op, fmt.Errorf("a computation of %d operations without a duration: hosts have no model of their "+
				"processors; give its time as duration_micros", x.numbers[numOps])
		}
		op.Kind, op.Time = graph.Compute, units.Time(x.duration)*units.Microsecond
		if !x.cpu {
			k := x.numbers[stream]
			if k < 0 || k >= graph.MaxStream {
				return op, fmt.Errorf("stream %d", k)
			}
			op.Stream = 1 + int32(k)
		}
	case sendNode, recvNode:
		op.Kind = graph.Send
		peer := commDst
		if x.kind == recvNode {
			op.Kind, peer = graph.Recv, commSrc
		}
		op.Tag = uint64(x.numbers[commTag])
		return op, errors.Join(number(peer, rankOf), number(commSize, func(n int64) { op.Size = units.Bytes(n) }))
	case collNode:
		op.Kind = graph.Collective
		return op, errors.Join(number(commType, func(int64) {}), number(commSize, func(int64) {}))
	case memLoadNode, memStoreNode:
		return op, fmt.Errorf("a %s: hosts have no model of their memory; give its time as a COMP_NODE",
			nodeNames[x.kind])
	default:
		return op, fmt.Errorf("a node of type %d", x.kind)
	}
	return op, nil
}

// Write writes the trace of one rank of a graph. It returns an error for what Chakra cannot say.
func Write(w io.Writer, g *graph.Graph, rank int) error {
	b := bufio.NewWriter(w)
	message := func(m []byte) {
		b.Write(binary.AppendUvarint(nil, uint64(len(m))))
		b.Write(m)
	}
	message(appendBytes(nil, metaVersion, []byte("0.0.4")))
	for i := range g.Ranks[rank] {
		m, err := appendNode(nil, g, rank, i)
		if err != nil {
			return g.Errorf(rank, &g.Ranks[rank][i], "%w", err)
		}
		message(m)
	}
	return b.Flush()
}

func appendBytes(m []byte, field protowire.Number, data []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(m, field, protowire.BytesType), data)
}

func appendNumber(m []byte, field protowire.Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(m, field, protowire.VarintType), n)
}

// appendAttr appends an attribute of a node.
func appendAttr(m []byte, name string, field protowire.Number, n int64) []byte {
	a := appendBytes(nil, attrName, []byte(name))
	return appendBytes(m, nodeAttr, appendNumber(a, field, uint64(n)))
}

func appendNode(m []byte, g *graph.Graph, rank, i int) ([]byte, error) {
	op := &g.Ranks[rank][i]
	m = appendNumber(m, nodeID, uint64(i+1))
	kind, name := compNode, "compute"
	switch op.Kind {
	case graph.Send:
		kind, name = sendNode, "send"
	case graph.Recv:
		kind, name = recvNode, "receive"
	case graph.Collective:
		kind, name = collNode, g.Calls[op.Call].Collective
	}
	m = appendBytes(m, nodeName, []byte(name))
	m = appendNumber(m, nodeType, uint64(kind))
	for _, a := range op.After {
		m = appendNumber(m, nodeDataDeps, uint64(a+1))
	}
	switch op.Kind {
	case graph.Compute:
		if op.Time%units.Microsecond != 0 {
			return nil, fmt.Errorf("a computation of %v: Chakra counts microseconds; --round rounds", op.Time)
		}
		m = appendNumber(m, nodeDuration, uint64(op.Time/units.Microsecond))
		cpu := int64(0)
		if op.Stream == 0 {
			cpu = 1
		} else {
			m = appendAttr(m, stream, attrInt64, int64(op.Stream-1))
		}
		return appendAttr(m, isCPUOp, attrBool, cpu), nil
	case graph.Collective:
		return appendCall(m, g, op)
	}
	if op.Stream > 0 {
		return nil, errors.New("a flow beside others between two ranks: Chakra has one")
	}
	if op.Tag > math.MaxInt32 {
		return nil, fmt.Errorf("tag %d: Chakra's have 31 bits", op.Tag)
	}
	m = appendAttr(m, isCPUOp, attrBool, 0)
	src, dst := int64(rank), int64(op.Peer)
	if op.Kind == graph.Recv {
		src, dst = dst, src
	}
	m = appendAttr(m, commSrc, attrInt32, src)
	m = appendAttr(m, commDst, attrInt32, dst)
	m = appendAttr(m, commTag, attrInt32, int64(op.Tag))
	return appendAttr(m, commSize, attrInt64, int64(op.Size)), nil
}

func appendCall(m []byte, g *graph.Graph, op *graph.Op) ([]byte, error) {
	c := &g.Calls[op.Call]
	for _, kind := range []int64{0, 1, 2, 5, 6, 7} {
		if k := collectives[kind]; k.name == c.Collective {
			each := k.each(int64(c.Size), int64(len(c.Members)))
			if k.size(each, int64(len(c.Members))) != int64(c.Size) {
				break
			}
			m = appendAttr(m, isCPUOp, attrBool, 0)
			m = appendAttr(m, commType, attrInt64, kind)
			m = appendAttr(m, commSize, attrInt64, each)
			if c.Root != 0 {
				m = appendAttr(m, commRoot, attrInt64, int64(c.Members[c.Root]))
			}
			if c.Name == "" {
				return m, nil
			}
			a := appendBytes(nil, attrName, []byte(pgName))
			return appendBytes(m, nodeAttr, appendBytes(a, attrString, []byte(c.Name))), nil
		}
	}
	return nil, fmt.Errorf("%s of %v in %d ranks: Chakra has no such collective", c.Collective, c.Size, len(c.Members))
}
