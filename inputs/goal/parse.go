package goal

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"

	"weft/collectives/graph"
	"weft/inputs/source"
	"weft/internal/clip"
	"weft/units"
)

// Looks reports whether a file that begins with head is a GOAL schedule.
func Looks(head []byte) bool {
	if bytes.HasPrefix(head, []byte(cookie)) {
		return true
	}
	for line := range bytes.Lines(head) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && !bytes.HasPrefix(line, []byte("//")) {
			return bytes.HasPrefix(line, []byte("num_ranks"))
		}
	}
	return false
}

// maxLabel is the maximum length of a label in bytes.
const maxLabel = 255

// parser reads one schedule.
type parser struct {
	file    string
	bytes   bool // places are bytes, not lines
	line    int
	comment bool // within /* */
	words   [][]byte
	graph   *graph.Graph
	rank    int // -1: outside of a rank
	seen    []bool
	ops     []graph.Op
	total   int
	edges   int
	labels  labels
	deps    []dependency // of this rank
	arena   []int32      // memory of lists of dependencies
}

// dependency says that op waits for the end of after, or, if started, for its start.
type dependency struct {
	op, after int32
	started   bool
}

// labels are the ops of a rank by their labels. Most labels are l and a number.
type labels struct {
	dense []int32 // of l1, l2, ...: 1 + op
	other map[string]int32
}

// number returns the number of a label such as l12.
func number(label []byte) (int, bool) {
	if len(label) < 2 || len(label) > 9 || label[0] != 'l' || label[1] == '0' {
		return 0, false
	}
	n := 0
	for _, c := range label[1:] {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, true
}

func (l *labels) reset() {
	l.dense = l.dense[:0]
	l.other = map[string]int32{}
}

// set names an op. It returns false if the label is taken.
func (l *labels) set(label []byte, op int32) bool {
	if n, ok := number(label); ok && n <= 2*len(l.dense)+64 {
		for len(l.dense) <= n {
			l.dense = append(l.dense, 0)
		}
		if l.dense[n] != 0 {
			return false
		}
		l.dense[n] = op + 1
		return true
	}
	if _, twice := l.other[string(label)]; twice {
		return false
	}
	l.other[string(label)] = op
	return true
}

func (l *labels) get(label []byte) (int32, bool) {
	if n, ok := number(label); ok && n < len(l.dense) && l.dense[n] != 0 {
		return l.dense[n] - 1, true
	}
	op, ok := l.other[string(label)]
	return op, ok
}

// Parse reads a schedule, in either form.
func Parse(file string, r io.Reader) (*graph.Graph, error) {
	in := bufio.NewReaderSize(r, source.HeadSize)
	if head, _ := in.Peek(len(cookie)); string(head) == cookie {
		return parseBinary(file, in)
	}
	p := &parser{file: file, rank: -1}
	lines := source.NewLines(file, in)
	for lines.Next() {
		p.line = lines.Number
		if err := p.split(lines.Text); err != nil {
			return nil, err
		}
		if len(p.words) == 0 {
			continue
		}
		if err := p.statement(); err != nil {
			return nil, err
		}
	}
	p.line = max(1, p.line)
	if err := lines.Err(); err != nil {
		return nil, err
	}
	switch {
	case p.graph == nil:
		return nil, p.errorf("a schedule without num_ranks")
	case p.rank >= 0 || p.comment:
		return nil, p.errorf("the file ends within a rank or a comment")
	}
	if rank := slices.Index(p.seen, false); rank >= 0 {
		return nil, p.errorf("rank %d of %d is not there; an idle rank has an empty block", rank, len(p.seen))
	}
	return p.graph, nil
}

func (p *parser) errorf(format string, args ...any) error {
	return &graph.Error{At: p.place(int64(p.line)), Err: fmt.Errorf(format, args...)}
}

// place returns a line or a byte of the file in words.
func (p *parser) place(at int64) string {
	if p.bytes {
		return fmt.Sprintf("%s: byte %d", p.file, at)
	}
	return fmt.Sprintf("%s:%d", p.file, at)
}

// failed returns an error at an op of the rank.
func (p *parser) failed(op int32, format string, args ...any) error {
	return &graph.Error{At: p.place(p.ops[op].Place), Err: fmt.Errorf(format, args...)}
}

// split sets words to those of a line, without comments. A colon is a word, and so is a brace.
func (p *parser) split(line []byte) error {
	p.words = p.words[:0]
	for i := 0; i < len(line); {
		switch c := line[i]; {
		case p.comment:
			end := bytes.Index(line[i:], []byte("*/"))
			if end < 0 {
				return nil
			}
			p.comment = false
			i += end + 2
		case c == ' ' || c == '\t' || c == '\r':
			i++
		case c == '/' && i+1 < len(line) && line[i+1] == '/':
			return nil
		case c == '/' && i+1 < len(line) && line[i+1] == '*':
			p.comment = true
			i += 2
		case c == ':' || c == '{' || c == '}':
			p.words = append(p.words, line[i:i+1])
			i++
		case isWord(c):
			from := i
			for i < len(line) && isWord(line[i]) {
				i++
			}
			p.words = append(p.words, line[from:i])
		default:
			return p.errorf("character %q", c)
		}
	}
	return nil
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// is reports whether word i of the line is the given one.
func (p *parser) is(i int, word string) bool { return i < len(p.words) && string(p.words[i]) == word }

// statement handles the words of a line.
func (p *parser) statement() error {
	n := len(p.words)
	switch {
	case p.is(0, "num_ranks") && n == 2:
		return p.ranks()
	case p.graph == nil:
		return p.errorf("%q before num_ranks", clip.Text(string(p.words[0])))
	case p.is(0, "rank") && n == 3 && p.is(2, "{"):
		return p.begin()
	case p.is(0, "}") && n == 1 && p.rank >= 0:
		return p.end()
	case p.rank < 0:
		return p.errorf("%q is not understood; expected a rank such as rank 0 {", clip.Text(string(p.words[0])))
	case n == 3 && p.is(1, "requires"):
		return p.depends(false)
	case n == 3 && p.is(1, "irequires"):
		return p.depends(true)
	case n > 2 && p.is(1, ":"):
		label := p.words[0]
		p.words = p.words[2:]
		if len(label) > maxLabel {
			return p.errorf("label %s has %d characters; expected at most %d", clip.Text(string(label)), len(label),
				maxLabel)
		}
		if !p.labels.set(label, int32(len(p.ops))) {
			return p.errorf("label %s is used twice", clip.Text(string(label)))
		}
	}
	return p.operation()
}

// ranks reads the number of ranks.
func (p *parser) ranks() error {
	n, err := p.integer("num_ranks", p.words[1], graph.MaxRanks)
	switch {
	case err != nil:
		return err
	case p.graph != nil:
		return p.errorf("num_ranks is there twice")
	}
	p.graph = &graph.Graph{Files: []string{p.file}, Ranks: make([][]graph.Op, n)}
	p.seen = make([]bool, n)
	return nil
}

// begin begins a rank.
func (p *parser) begin() error {
	rank, err := p.integer("rank", p.words[1], int64(len(p.seen))-1)
	switch {
	case err != nil:
		return err
	case p.rank >= 0:
		return p.errorf("rank %d begins within rank %d", rank, p.rank)
	case p.seen[rank]:
		return p.errorf("rank %d is there twice", rank)
	}
	p.seen[rank], p.rank, p.ops, p.deps = true, int(rank), p.ops[:0], p.deps[:0]
	p.labels.reset()
	return nil
}

// end ends a rank: it gives each op its dependencies.
func (p *parser) end() error {
	slices.SortStableFunc(p.deps, func(a, b dependency) int { return int(a.op - b.op) })
	if slices.ContainsFunc(p.deps, func(d dependency) bool { return d.started }) {
		if err := p.resolveStarts(); err != nil {
			return err
		}
	}
	for i := 0; i < len(p.deps); {
		op, from := p.deps[i].op, len(p.arena)
		for ; i < len(p.deps) && p.deps[i].op == op; i++ {
			p.arena = append(p.arena, p.deps[i].after)
		}
		p.ops[op].After = p.arena[from:len(p.arena):len(p.arena)]
	}
	p.graph.Ranks[p.rank] = slices.Clone(p.ops)
	p.rank = -1
	return nil
}

// maxStarts bounds the dependencies that irequires becomes.
const maxStarts = 1 << 22

// resolveStarts replaces a wait for the start of an op by waits for all that this one waits for.
func (p *parser) resolveStarts() error {
	first := make([]int32, len(p.ops)+1) // by op: its first dependency
	at := 0
	for op := range p.ops {
		first[op] = int32(at)
		for at < len(p.deps) && int(p.deps[at].op) == op {
			at++
		}
	}
	first[len(p.ops)] = int32(at)
	done := make([][]dependency, len(p.ops))
	state := make([]uint8, len(p.ops)) // 1: in progress, 2: done
	total := 0
	var resolve func(op int32, depth int) error
	resolve = func(op int32, depth int) error {
		const deepest = 100_000
		if state[op] == 1 || depth > deepest {
			return p.failed(op, "operations wait in a cycle for each other's start")
		}
		state[op] = 1
		for _, d := range p.deps[first[op]:first[op+1]] {
			if !d.started {
				done[op] = append(done[op], d)
				continue
			}
			if state[d.after] != 2 {
				if err := resolve(d.after, depth+1); err != nil {
					return err
				}
			}
			for _, before := range done[d.after] {
				done[op] = append(done[op], dependency{op: op, after: before.after})
			}
		}
		if total += len(done[op]); total > maxStarts {
			return p.failed(op, "irequires becomes more than %d dependencies", maxStarts)
		}
		state[op] = 2
		return nil
	}
	var all []dependency
	for op := range p.ops {
		if state[op] == 0 {
			if err := resolve(int32(op), 0); err != nil {
				return err
			}
		}
		all = append(all, done[op]...)
	}
	p.deps = all
	return nil
}

// depends reads a line such as l2 requires l1.
func (p *parser) depends(started bool) error {
	d := dependency{started: started}
	if p.edges++; p.edges > maxEdges {
		return p.errorf("more than %d dependencies", maxEdges)
	}
	for i, to := range []*int32{&d.op, &d.after} {
		op, ok := p.labels.get(p.words[2*i])
		if !ok {
			return p.errorf("no operation before has the label %s", clip.Text(string(p.words[2*i])))
		}
		*to = op
	}
	p.deps = append(p.deps, d)
	return nil
}

// operation reads a calc, a send or a receive.
func (p *parser) operation() error {
	if p.total++; p.total > graph.MaxOps {
		return p.errorf("more than %d operations", graph.MaxOps)
	}
	op := graph.Op{Place: int64(p.line)}
	w := p.words
	switch {
	case p.is(0, "calc") && len(w) >= 2:
		n, err := p.integer("calc", w[1], int64(graph.MaxTime/units.Nanosecond))
		if err != nil {
			return err
		}
		op.Kind, op.Time = graph.Compute, units.Time(n)*units.Nanosecond
		w = w[2:]
	case p.is(0, "send") && p.is(2, "to") && len(w) >= 4, p.is(0, "recv") && p.is(2, "from") && len(w) >= 4:
		op.Kind = graph.Send
		if w[0][0] == 'r' {
			op.Kind = graph.Recv
		}
		size, ok := bytes.CutSuffix(w[1], []byte("b"))
		if !ok {
			return p.errorf("size %q; expected bytes such as 4096b", clip.Text(string(w[1])))
		}
		n, err := p.integer("size", size, int64(graph.MaxSize))
		if err != nil {
			return err
		}
		if string(w[3]) == "-1" {
			return p.errorf("a receive from any rank: which message it takes depends on the run; expected a rank")
		}
		peer, err := p.integer("rank", w[3], int64(len(p.seen))-1)
		if err != nil {
			return err
		}
		op.Size, op.Peer = units.Bytes(n), int32(peer)
		w = w[4:]
	default:
		return p.errorf("%q is not understood; expected calc, send, recv, requires or irequires",
			clip.Text(string(w[0])))
	}
	for all := w; len(w) >= 2; w = w[2:] {
		word := option(w[0])
		for before := all; len(before) > len(w); before = before[2:] {
			if bytes.Equal(before[0], w[0]) {
				return p.errorf("%s is there twice", clip.Text(string(w[0])))
			}
		}
		if word == "tag" && string(w[1]) == "-1" {
			return p.errorf("a message with any tag: which one it takes depends on the run; expected a number")
		}
		n, err := p.integer(word, w[1], 1<<32-1)
		switch {
		case err != nil:
			return err
		case word == "tag" && op.Kind != graph.Compute:
			op.Tag = uint64(n)
		case word == "cpu" && op.Kind == graph.Compute:
			if n > graph.MaxStream {
				return p.errorf("cpu %d; expected at most %d", n, graph.MaxStream)
			}
			op.Stream = int32(n)
		case word == "cpu" && n == 0:
		case word == "cpu": // messages take no time of a processor here
			p.graph.Notes.Add(p.file, p.line, "cpu of messages")
		case word == "nic" && n == 0:
		case word == "nic":
			return p.errorf("nic %d: a host has one NIC here; expected nic 0", n)
		default:
			return p.errorf("%q is not understood; expected tag, cpu or nic", clip.Text(string(w[0])))
		}
	}
	if len(w) > 0 {
		return p.errorf("%q without a number", clip.Text(string(w[0])))
	}
	p.ops = append(p.ops, op)
	return nil
}

// option returns the option of an operation that a word is, or "option".
func option(word []byte) string {
	for _, known := range [...]string{"tag", "cpu", "nic"} {
		if string(word) == known {
			return known
		}
	}
	return "option"
}

// integer parses a whole number from 0.
func (p *parser) integer(what string, text []byte, most int64) (int64, error) {
	n := int64(0)
	ok := len(text) > 0 && len(text) < 19
	for _, c := range text {
		ok = ok && c >= '0' && c <= '9'
		n = 10*n + int64(c-'0')
	}
	if !ok || n > most {
		return 0, p.errorf("%s is %q; expected a whole number from 0 to %d", what, clip.Text(string(text)), most)
	}
	return n, nil
}

// Write writes a graph as a schedule. It returns an error for what GOAL cannot say.
func Write(w io.Writer, g *graph.Graph) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "num_ranks %d\n", len(g.Ranks))
	var line []byte
	for rank, ops := range g.Ranks {
		fmt.Fprintf(b, "\nrank %d {\n", rank)
		for i := range ops {
			op := &ops[i]
			line = strconv.AppendInt(append(line[:0], 'l'), int64(i+1), 10)
			switch {
			case op.Kind == graph.Collective:
				return g.Errorf(rank, op, "%s: GOAL has no collectives; write Chakra", g.Calls[op.Call].Collective)
			case op.Kind == graph.Compute && op.Time%units.Nanosecond != 0:
				return g.Errorf(rank, op, "a computation of %v: GOAL counts nanoseconds; --round rounds", op.Time)
			case op.Kind == graph.Compute:
				line = strconv.AppendInt(append(line, ": calc "...), int64(op.Time/units.Nanosecond), 10)
				if op.Stream > 0 {
					line = strconv.AppendInt(append(line, " cpu "...), int64(op.Stream), 10)
				}
			case op.Stream > 0:
				return g.Errorf(rank, op, "a flow beside others between two ranks: GOAL has one")
			case op.Tag > 1<<32-2:
				return g.Errorf(rank, op, "tag %d: GOAL's have 32 bits", op.Tag)
			default:
				verb, to := ": send ", "b to "
				if op.Kind == graph.Recv {
					verb, to = ": recv ", "b from "
				}
				line = strconv.AppendInt(append(line, verb...), int64(op.Size), 10)
				line = strconv.AppendInt(append(line, to...), int64(op.Peer), 10)
				line = strconv.AppendUint(append(line, " tag "...), op.Tag, 10)
			}
			line = append(line, '\n')
			b.Write(line)
		}
		for i := range ops {
			for _, a := range ops[i].After {
				line = strconv.AppendInt(append(line[:0], 'l'), int64(i+1), 10)
				line = strconv.AppendInt(append(line, " requires l"...), int64(a+1), 10)
				b.Write(append(line, '\n'))
			}
		}
		fmt.Fprintln(b, "}")
	}
	return b.Flush()
}
