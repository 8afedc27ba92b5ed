package msccl

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"weft/collectives/graph"
	"weft/collectives/schedule"
	"weft/inputs/source"
	"weft/internal/clip"
)

// Algorithm is an algorithm for one collective, as a file has it: its references are checked, its
// result is not.
type Algorithm struct {
	Name       string
	Collective string // of package schedule
	Ranks      int
	file       string      // for errors
	inplace    bool        // input and output share a buffer
	gpus       [][]block   // by rank
	scratch    []int       // by rank: chunks of buffer s
	declared   []declared  // by rank
	chunks     int         // of the buffer whose size nccl-tests prints
	Notes      graph.Notes // what the file says and the algorithm does not need
}

// Chunks returns the number of chunks of the buffer whose size nccl-tests prints.
func (a *Algorithm) Chunks() int { return a.chunks }

// Steps returns the number of steps of all GPUs.
func (a *Algorithm) Steps() (n int) {
	for _, blocks := range a.gpus {
		for i := range blocks {
			n += len(blocks[i].steps)
		}
	}
	return n
}

// declared is how many chunks a file says that the buffers of a GPU have. 0: it does not say.
type declared struct{ input, output int }

// block is a thread block: its peers, and its steps, which run one after the other.
type block struct {
	id         int // its index in the GPU
	send, recv int // the rank that it sends to, and receives from; -1: none
	channel    int
	steps      []step
}

// step is a step of a thread block.
type step struct {
	number   int    // its index in the block
	kind     string // of kinds
	src, dst place  // the first chunk that is read, and written
	count    int    // number of chunks
	block    int    // it waits for a step of this thread block of its GPU; -1: none
	after    int    // that step
	line     int    // in the file
}

// place is a chunk of a buffer.
type place struct {
	buffer byte // i: input, o: output, s: scratch
	chunk  int
}

// Bounds of a file.
const (
	maxSteps  = 1 << 20
	maxGPUs   = 4096
	maxChunks = 1 << 16
)

// kinds are the types of steps: whether they receive, reduce and send.
var kinds = map[string]struct{ recv, reduce, send bool }{
	"s": {send: true}, "r": {recv: true}, "rrc": {recv: true, reduce: true}, "rcs": {recv: true, send: true},
	"rrs": {recv: true, reduce: true, send: true}, "rrcs": {recv: true, reduce: true, send: true}, "nop": {}, "cpy": {},
}

// collectives maps MSCCL's names of collectives to those of package schedule.
var collectives = map[string]string{
	"allreduce": "all-reduce", "allgather": "all-gather", "reduce_scatter": "reduce-scatter",
	"reducescatter": "reduce-scatter",
	"alltoall":      "all-to-all",
}

// attributes are, by element, those that are used, and those by which NCCL chooses an algorithm.
// hasdep repeats what depid says of others. Other attributes are noted.
var attributes = map[string][]string{
	"algo": {"name", "coll", "inplace", "outofplace", "ngpus", "nchunksperloop", "proto", "nchannels", "minBytes",
		"maxBytes"},
	"gpu":  {"id", "i_chunks", "o_chunks", "s_chunks"},
	"tb":   {"id", "send", "recv", "chan"},
	"step": steps,
	"op":   steps,
}

var steps = []string{"s", "type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid", "deps", "hasdep"}

// Looks reports whether a file that begins with head is an algorithm.
func Looks(head []byte) bool { return bytes.Contains(head, []byte("<algo ")) }

// parser reads one file.
type parser struct {
	*Algorithm
	d     *xml.Decoder
	attrs map[string]string // of the element that is read
	line  int               // of that element
	steps int               // number of steps so far
}

// Parse reads an algorithm. Its errors have the file and the line.
func Parse(file string, r io.Reader) (*Algorithm, error) {
	values := source.NewValues(file, r)
	p := &parser{Algorithm: &Algorithm{file: file}, d: xml.NewDecoder(values)}
	for {
		values.Next()
		t, err := p.d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		p.line, _ = p.d.InputPos()
		if err != nil {
			return nil, graph.At(fmt.Sprintf("%s:%d", file, p.line), err)
		}
		if text, ok := t.(xml.CharData); ok && len(bytes.TrimSpace(text)) > 0 {
			return nil, p.errorf("text %q between elements", clip.Text(string(bytes.TrimSpace(text))))
		}
		start, ok := t.(xml.StartElement)
		if !ok {
			continue
		}
		p.attrs = map[string]string{}
		for _, a := range start.Attr {
			if _, twice := p.attrs[a.Name.Local]; twice {
				return nil, p.errorf("attribute %s is there twice", clip.Text(a.Name.Local))
			}
			p.attrs[a.Name.Local] = a.Value
			if !slices.Contains(attributes[start.Name.Local], a.Name.Local) {
				p.Notes.Add(file, p.line, "attribute "+clip.Text(a.Name.Local)+" of "+clip.Text(start.Name.Local))
			}
		}
		if err := p.element(start.Name.Local); err != nil {
			return nil, err
		}
	}
	switch {
	case p.Ranks == 0:
		return nil, p.errorf("a file without <algo>")
	case len(p.gpus) != p.Ranks:
		return nil, p.errorf("%d GPUs; expected %d", len(p.gpus), p.Ranks)
	}
	return p.Algorithm, p.finish()
}

// errorf returns an error with the line of the current element.
func (p *parser) errorf(format string, args ...any) error {
	return graph.Errorf(p.file, max(1, p.line), format, args...)
}

// number returns an attribute that is a whole number from least to most.
func (p *parser) number(name string, least, most int) (int, error) {
	n, err := strconv.Atoi(p.attrs[name])
	if err != nil || n < least || n > most {
		return 0, p.errorf("%s is %q; expected a whole number from %d to %d", name, clip.Text(p.attrs[name]), least,
			most)
	}
	return n, nil
}

// all sets each number to the attribute of that name. The values are from -1, or from 0 if the name
// ends in +. The error is about the first wrong attribute by name.
func (p *parser) all(to map[string]*int) error {
	for _, name := range slices.Sorted(maps.Keys(to)) {
		n, least := to[name], -1
		if name[len(name)-1] == '+' {
			name, least = name[:len(name)-1], 0
		}
		x, err := p.number(name, least, maxChunks)
		if err != nil {
			return err
		}
		*n = x
	}
	return nil
}

// element handles the beginning of an element. GPUs, thread blocks and steps come in the order of
// their numbers, and belong to the last element above them.
func (p *parser) element(name string) error {
	switch name {
	case "algo":
		return p.algo()
	case "gpu":
		id, err := p.number("id", 0, p.Ranks-1)
		if err != nil {
			return err
		}
		if id != len(p.gpus) {
			return p.errorf("GPU %d; expected GPU %d", id, len(p.gpus))
		}
		scratch := 0
		if p.attrs["s_chunks"] != "" {
			if scratch, err = p.number("s_chunks", 0, maxChunks); err != nil {
				return err
			}
		}
		var d declared
		for name, to := range map[string]*int{"i_chunks": &d.input, "o_chunks": &d.output} {
			if p.attrs[name] == "" {
				continue
			}
			if *to, err = p.number(name, 0, maxChunks); err != nil {
				return err
			}
		}
		p.gpus, p.scratch = append(p.gpus, nil), append(p.scratch, scratch)
		p.declared = append(p.declared, d)
		return nil
	case "tb":
		if len(p.gpus) == 0 {
			return p.errorf("a thread block outside of a GPU")
		}
		b := block{}
		if err := p.all(map[string]*int{"id+": &b.id, "send": &b.send, "recv": &b.recv,
			"chan+": &b.channel}); err != nil {
			return err
		}
		blocks := &p.gpus[len(p.gpus)-1]
		rank := len(p.gpus) - 1
		if b.id != len(*blocks) || b.send >= p.Ranks || b.recv >= p.Ranks || b.send == rank || b.recv == rank {
			return p.errorf("GPU %d: thread block %d, which sends to %d and receives from %d", rank, b.id, b.send,
				b.recv)
		}
		*blocks = append(*blocks, b)
		return nil
	case "step", "op":
		return p.step()
	}
	return p.errorf("<%s> is not understood; expected algo, gpu, tb or step", clip.Text(name))
}

// algo reads the root of the file.
func (p *parser) algo() error {
	if p.Ranks > 0 {
		return p.errorf("a second <algo>; expected one")
	}
	var err error
	if p.Ranks, err = p.number("ngpus", 2, maxGPUs); err != nil {
		return err
	}
	coll := p.attrs["coll"]
	if p.Collective = collectives[coll]; p.Collective == "" {
		return p.errorf("collective %q; expected allreduce, allgather, reduce_scatter or alltoall", clip.Text(coll))
	}
	if !slices.Contains([]string{"", "0", "1"}, p.attrs["inplace"]) {
		return p.errorf("inplace is %q; expected 0 or 1", clip.Text(p.attrs["inplace"]))
	}
	p.Name, p.inplace = p.attrs["name"], p.attrs["inplace"] == "1"
	p.chunks, err = p.number("nchunksperloop", 1, maxChunks)
	return err
}

// step reads a step.
func (p *parser) step() error {
	if len(p.gpus) == 0 || len(p.gpus[len(p.gpus)-1]) == 0 {
		return p.errorf("a step outside of a thread block")
	}
	if p.steps++; p.steps > maxSteps {
		return p.errorf("more than %d steps", maxSteps)
	}
	blocks := p.gpus[len(p.gpus)-1]
	b := &blocks[len(blocks)-1]
	s := step{kind: p.attrs["type"], line: p.line}
	k, ok := kinds[s.kind]
	switch {
	case s.kind == "re":
		return p.errorf("type re: programs here do not reduce without a receive; expected rrc, rrs or rrcs")
	case !ok:
		return p.errorf("type %q; expected s, r, rrc, rcs, rrs, rrcs, cpy or nop", clip.Text(s.kind))
	case k.send && b.send < 0 || k.recv && b.recv < 0:
		return p.errorf("%s in a thread block that sends to %d and receives from %d", s.kind, b.send, b.recv)
	}
	err := p.all(map[string]*int{"s+": &s.number, "srcoff": &s.src.chunk, "dstoff": &s.dst.chunk, "cnt": &s.count,
		"depid": &s.block, "deps": &s.after})
	if err != nil {
		return err
	}
	for name, to := range map[string]*byte{"srcbuf": &s.src.buffer, "dstbuf": &s.dst.buffer} {
		text := p.attrs[name]
		if !slices.Contains([]string{"i", "o", "s"}, text) {
			return p.errorf("%s is %q; expected i, o or s", name, clip.Text(text))
		}
		*to = text[0]
	}
	if s.number != len(b.steps) {
		return p.errorf("step %d; expected step %d", s.number, len(b.steps))
	}
	b.steps = append(b.steps, s)
	return nil
}

// finish checks what steps refer to. A step may wait for a later block, so this comes last.
func (a *Algorithm) finish() error {
	if schedule.Of(a.Collective).Shared && a.chunks%a.Ranks != 0 {
		return graph.Errorf(a.file, 1, "nchunksperloop is %d; expected a multiple of %d GPUs", a.chunks, a.Ranks)
	}
	for rank, blocks := range a.gpus {
		for t := range blocks {
			for i := range blocks[t].steps {
				s := &blocks[t].steps[i]
				if s.block < 0 {
					continue
				}
				if s.block >= len(blocks) || s.after < 0 || s.after >= len(blocks[s.block].steps) {
					return graph.Errorf(a.file, s.line, "%s waits for step %d of thread block %d, which is not there",
						describe(rank, t, s), s.after, s.block)
				}
			}
		}
	}
	return nil
}

// describe names a step for an error.
func describe(rank, block int, s *step) string {
	return fmt.Sprintf("GPU %d, thread block %d, step %d (%s)", rank, block, s.number, s.kind)
}
