package chakra

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
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
	"weft/collectives/schedule"
	"weft/units"
)

// Looks reports whether a file that begins with head is a Chakra trace: a length, and then metadata
// of which the first field is a version.
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
	calls  map[callKey]int32
	total  int
}

// callKey identifies a collective: the number of it among those of its group.
type callKey struct {
	group string
	n     int
}

// Parse reads the traces of all ranks. groups.json has the members of process groups:
// {"tp0": [0, 1], ...}. With one trace and ranks above 1, every rank does the same.
func Parse(files []string, ranks int, open func(string) (io.ReadCloser, error)) (*graph.Graph, error) {
	p := &parser{graph: &graph.Graph{Word: "node"}, calls: map[callKey]int32{}}
	for _, name := range files {
		if path.Base(name) != "groups.json" {
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
	var all [][]member
	for rank, name := range p.graph.Files {
		if n, ok := rankOf(name); ok && n != rank && !alike {
			return nil, fmt.Errorf("%s: the trace of rank %d where that of rank %d is expected", name, n, rank)
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
	return p.graph, p.join(all)
}

// rankOf returns the rank in a name such as moe.12.et or moe.12.et.gz.
func rankOf(name string) (int, bool) {
	name = strings.TrimSuffix(name, ".gz")
	name = strings.TrimSuffix(name, path.Ext(name))
	n, err := strconv.Atoi(strings.TrimPrefix(path.Ext(name), "."))
	return n, err == nil && n >= 0
}

// maxGroups bounds the file of process groups in bytes.
const maxGroups = 16 << 20

func (p *parser) readGroups(name string, open func(string) (io.ReadCloser, error)) error {
	f, err := open(name)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxGroups+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if len(text) > maxGroups {
		return fmt.Errorf("%s: more than %d bytes", name, maxGroups)
	}
	if err := json.Unmarshal(text, &p.groups); err != nil {
		return fmt.Errorf("%s: %w; expected process groups such as {\"tp0\": [0, 1]}", name, err)
	}
	return nil
}

// member is a rank's part in a collective.
type member struct {
	op    int32
	kind  int64
	size  int64
	root  int64
	group string
	name  string
}

// rank reads the trace of a rank and returns its parts in collectives.
func (p *parser) rank(file string, rank int, r io.Reader) ([]member, error) {
	in := newReader(r)
	if _, err := in.next(); err != nil { // the metadata
		return nil, fmt.Errorf("%s: metadata: %w", file, err)
	}
	at := map[uint64]int32{}
	var ops []graph.Op
	var deps []uint64 // of all nodes, one after the other
	var first []int   // by op: where its dependencies begin
	var members []member
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
			return nil, fmt.Errorf("%s: message %d: %w", file, number, err)
		}
		if p.total++; p.total > graph.MaxOps {
			return nil, fmt.Errorf("%s: more than %d nodes", file, graph.MaxOps)
		}
		refuse := func(err error) error {
			return &graph.Error{At: fmt.Sprintf("%s: node %d (%s)", file, x.id, clip(x.name)), Err: err}
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
			root, ok := x.numbers[commRoot]
			if !ok {
				root = -1
			}
			members = append(members, member{int32(len(ops)), x.numbers[commType], x.numbers[commSize], root, x.group,
				clip(x.name)})
		}
		first = append(first, len(deps))
		deps = append(deps, x.deps...)
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
		return op, fmt.Errorf("a %s: hosts have no model of their memory; give its time as a COMP_NODE", nodeNames[x.kind])
	default:
		return op, fmt.Errorf("a node of type %d", x.kind)
	}
	return op, nil
}

// join makes calls of the ranks' parts in collectives.
func (p *parser) join(all [][]member) error {
	groups := p.members(all)
	for rank, members := range all {
		seen := map[string]int{}
		for _, m := range members {
			op := &p.graph.Ranks[rank][m.op]
			refuse := func(format string, args ...any) error {
				return &graph.Error{At: p.graph.Where(rank, op), Err: fmt.Errorf(format, args...)}
			}
			key := callKey{m.group, seen[m.group]}
			seen[m.group]++
			ranks := groups[m.group]
			c, ok := collectives[m.kind]
			if !ok {
				return refuse("comm_type %d: there is no such collective here", m.kind)
			}
			size, kind, err := sizeOf(c, m.size, int64(len(ranks)))
			if err != nil {
				return refuse("%s of group %q: %w", c.name, m.group, err)
			}
			call, ok := p.calls[key]
			if !ok {
				root := 0
				if m.root >= 0 {
					if root = slices.Index(ranks, int32(min(m.root, math.MaxInt32))); root < 0 {
						return refuse("root %d is no member of group %q", m.root, m.group)
					}
				}
				call = int32(len(p.graph.Calls))
				p.calls[key] = call
				p.graph.Calls = append(p.graph.Calls, graph.Call{Name: m.group, Collective: c.name, Type: kind, Size: size,
					Members: ranks, Root: root, Place: op.Place})
			}
			if g := &p.graph.Calls[call]; g.Collective != c.name || g.Size != size {
				return refuse("collective %d of group %q is %s of %v; another rank has %s of %v", key.n, m.group, c.name,
					size, g.Collective, g.Size)
			}
			op.Call = call
		}
	}
	return nil
}

// sizeOf returns the size of a collective and the type of its elements.
func sizeOf(c collective, each, ranks int64) (units.Bytes, schedule.Type, error) {
	if each > int64(graph.MaxSize)/max(1, ranks) {
		return 0, "", fmt.Errorf("%d bytes of each rank", each)
	}
	size := units.Bytes(c.size(each, ranks))
	switch kind := schedule.Float32; {
	case size >= units.Bytes(4*ranks) && size%4 == 0:
		return size, kind, nil
	case size >= units.Bytes(2*ranks) && size%2 == 0:
		return size, schedule.BFloat16, nil
	}
	return 0, "", fmt.Errorf("%d bytes are no whole number of elements of 2 or 4 bytes, one for each of %d ranks", size,
		ranks)
}

// members returns the ranks of each group: as the file of groups has them, or those with a
// collective of that group. Collectives without a group are of all ranks.
func (p *parser) members(all [][]member) map[string][]int32 {
	groups := map[string][]int32{}
	for rank, members := range all {
		for _, m := range members {
			g := groups[m.group]
			if len(g) == 0 || g[len(g)-1] != int32(rank) {
				groups[m.group] = append(g, int32(rank))
			}
		}
	}
	for name, ranks := range p.groups {
		if _, used := groups[name]; used {
			groups[name] = ranks
		}
	}
	if _, used := groups[""]; used {
		every := make([]int32, len(all))
		for r := range every {
			every[r] = int32(r)
		}
		groups[""] = every
	}
	return groups
}

func clip(name []byte) string {
	const most = 60
	if len(name) > most {
		name = append(name[:most:most], "..."...)
	}
	return strings.ToValidUTF8(string(bytes.Map(printable, name)), "?")
}

func printable(r rune) rune {
	if strconv.IsPrint(r) {
		return r
	}
	return '?'
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
			return &graph.Error{At: g.Where(rank, &g.Ranks[rank][i]), Err: err}
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
			return nil, fmt.Errorf("a computation of %v: Chakra counts microseconds", op.Time)
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
		if k := collectives[kind]; k.name == c.Collective && c.Algorithm == "" {
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
