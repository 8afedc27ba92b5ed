package kineto

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"weft/collectives/graph"
	"weft/inputs/source"
	"weft/internal/clip"
	"weft/units"
)

// Looks reports whether a file that begins with head is a profile.
func Looks(head []byte) bool {
	head = bytes.TrimSpace(head)
	return len(head) > 0 && head[0] == '{' && (bytes.Contains(head, []byte(`"traceEvents"`)) ||
		bytes.Contains(head, []byte(`"schemaVersion"`)) || bytes.Contains(head, []byte(`"distributedInfo"`)))
}

// irrelevant are the keys of a profile that do not change what the job does: how it was recorded,
// on what, and how it is shown.
var irrelevant = []string{"schemaVersion", "deviceProperties", "displayTimeUnit", "baseTimeNanoseconds", "traceName",
	"trace_id", "trace_name", "record_shapes", "with_flops", "with_modules", "with_stack", "profile_memory",
	"cuda_runtime_version", "cuda_driver_version", "cupti_version", "hip_runtime_version", "hip_driver_version",
	"roctracer_version", "rocprofiler_version", "host_name", "otherData", "metadata", "systemTraceEvents",
	"stackFrames"}

// event has the fields of an event that are used.
type event struct {
	Phase string   `json:"ph"`
	Cat   string   `json:"cat"`
	Name  string   `json:"name"`
	At    *float64 `json:"ts"`  // us
	Dur   *float64 `json:"dur"` // us
	Args  struct {
		Stream     *int64          `json:"stream"`
		Collective string          `json:"Collective name"`
		In         int64           `json:"In msg nelems"`
		Out        int64           `json:"Out msg nelems"`
		Type       string          `json:"dtype"`
		Group      json.RawMessage `json:"Process Group Name"`
		Ranks      string          `json:"Process Group Ranks"`
		Dst        *int64          `json:"Dst Rank"`
		Src        *int64          `json:"Src Rank"`
		InSplit    string          `json:"In split size"`
		OutSplit   string          `json:"Out split size"`
	} `json:"args"`
}

// kernel is an event of a GPU.
type kernel struct {
	number     int // of the event, from 0
	start, end units.Time
	stream     int64
	comm       *comm // nil: it computes
}

// comm is the communication that a kernel is.
type comm struct {
	kind     kind
	group    *group
	in, out  int64 // bytes
	src, dst *int64
}

// group is a process group. Kernels share it.
type group struct {
	name    string
	members []int32 // nil: the kernels do not say
}

// kind is a kind of communication.
type kind struct {
	collective string // "": a message
	send       bool
	output     bool // its size is that of the output
	barrier    bool // it has no size
}

// kinds are the kinds by the names of PyTorch.
var kinds = map[string]kind{
	"allreduce": {collective: "all-reduce"}, "allreduce_coalesced": {collective: "all-reduce"},
	"allgather": {collective: "all-gather", output: true}, "all_gather": {collective: "all-gather", output: true},
	"_allgather_base":                  {collective: "all-gather", output: true},
	"all_gather_into_tensor_coalesced": {collective: "all-gather", output: true},
	"allgather_into_tensor_coalesced":  {collective: "all-gather", output: true},
	"reduce_scatter":                   {collective: "reduce-scatter"},
	"_reduce_scatter_base":             {collective: "reduce-scatter"},
	"reduce_scatter_tensor_coalesced":  {collective: "reduce-scatter"},
	"broadcast":                        {collective: "broadcast"}, "_broadcast_oop": {collective: "broadcast"},
	"reduce": {collective: "reduce"}, "_reduce_oop": {collective: "reduce"},
	"all_to_all": {collective: "all-to-all"}, "alltoall": {collective: "all-to-all"},
	"alltoall_base": {collective: "all-to-all"}, "all_to_all_single": {collective: "all-to-all"},
	"all_to_allv": {collective: "all-to-all"}, // of equal blocks
	// PyTorch's barrier is an all-reduce of one element.
	"barrier":            {collective: "all-reduce", barrier: true},
	"allreduce_barrier":  {collective: "all-reduce", barrier: true},
	"all_reduce_barrier": {collective: "all-reduce", barrier: true},
	"send":               {send: true}, "recv": {},
}

// sizes are the bytes of an element by the names of PyTorch.
var sizes = map[string]int64{
	"Float": 4, "Int": 4, "BFloat16": 2, "Half": 2, "Double": 8, "Long": 8, "Byte": 1, "Char": 1, "Bool": 1, "Short": 2,
	"Float8_e4m3fn": 1, "Float8_e5m2": 1,
}

// profile is a file.
type profile struct {
	file    string
	rank    int // -1: it does not say
	world   int // number of ranks; 0: it does not say
	kernels []kernel
	groups  map[string][]int32 // by name, of distributedInfo
	used    map[string]*group  // by name and members, of kernels
	listed  int                // members of groups
	notes   *graph.Notes
	vague   int    // NCCL's kernels that say too little
	first   string // the first of them
}

// Parse reads the profiles of all ranks.
func Parse(files []string, _ int, open func(string) (io.ReadCloser, error)) (*graph.Graph, error) {
	g := &graph.Graph{Word: "event", Files: make([]string, len(files)), Ranks: make([][]graph.Op, len(files))}
	parts := make([][]graph.Part, len(files))
	total := 0
	for i, name := range files {
		f, err := open(name)
		if err != nil {
			return nil, err
		}
		p := &profile{file: name, rank: -1, used: map[string]*group{}, notes: &g.Notes}
		err = p.read(f)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		if p.rank < 0 {
			p.rank = i
		}
		if p.rank >= len(files) || g.Files[p.rank] != "" {
			return nil, p.errorf("the profile of rank %d, among those of %d ranks; expected each from 0 once", p.rank,
				len(files))
		}
		if p.world > 0 && p.world != len(files) {
			return nil, p.errorf("a job of %d ranks, by world_size; there are %d profiles, expected one of each",
				p.world, len(files))
		}
		if total += len(p.kernels); total > graph.MaxOps/2 {
			return nil, p.errorf("more than %d kernels with those before it", graph.MaxOps/2)
		}
		g.Files[p.rank] = name
		if g.Ranks[p.rank], parts[p.rank], err = p.ops(); err != nil {
			return nil, err
		}
	}
	if err := together(g, parts); err != nil {
		return nil, err
	}
	return g, g.Join(parts)
}

// together returns an error unless ranks have as many collectives of each group, and as many
// messages for each other: profiles that cover other steps of the job have not.
func together(g *graph.Graph, parts [][]graph.Part) error {
	differ := func(rank int, what string, n, other, m int) error {
		return &graph.Error{At: g.Files[rank], Err: fmt.Errorf("%d %s of rank %d, and %d of rank %d in %s: the "+
			"profiles cover different parts of the job; profile the same steps of every rank", n, what, rank, m, other,
			g.Files[other])}
	}
	type key struct {
		rank  int
		group string
	}
	count := map[key]int{}
	for rank := range parts {
		for i := range parts[rank] {
			count[key{rank, parts[rank][i].Group}]++
		}
	}
	told := map[string]bool{}
	for rank := range parts {
		for i := range parts[rank] {
			p := &parts[rank][i]
			if told[p.Group] {
				continue
			}
			told[p.Group] = true
			n := count[key{rank, p.Group}]
			for _, other := range p.Members {
				m := count[key{int(other), p.Group}]
				if other >= 0 && int(other) < len(parts) && m != n {
					return differ(rank, "collectives of group "+clip.Text(p.Group), n, int(other), m)
				}
			}
		}
	}
	type pair struct{ src, dst int32 }
	left := map[pair]int{} // sends without receives
	for rank, ops := range g.Ranks {
		for i := range ops {
			switch op := &ops[i]; op.Kind {
			case graph.Send:
				left[pair{int32(rank), op.Peer}]++
			case graph.Recv:
				left[pair{op.Peer, int32(rank)}]--
			}
		}
	}
	for _, p := range slices.SortedFunc(maps.Keys(left), func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.src, b.src), cmp.Compare(a.dst, b.dst))
	}) {
		if n := left[p]; n != 0 && int(p.dst) < len(g.Ranks) && int(p.src) < len(g.Ranks) {
			return &graph.Error{At: g.Files[p.src], Err: fmt.Errorf("rank %d sends %d messages more to rank %d than "+
				"that receives in %s (negative: fewer): the profiles cover different parts of the job; profile the "+
				"same steps of every rank", p.src, n, p.dst, g.Files[p.dst])}
		}
	}
	return nil
}

func (p *profile) errorf(format string, args ...any) error {
	return &graph.Error{At: p.file, Err: fmt.Errorf(format, args...)}
}

// read reads a profile.
func (p *profile) read(r io.Reader) error {
	d := source.NewJSON(p.file, r)
	wrong := func(err error) error {
		return graph.At(fmt.Sprintf("%s: byte %d", p.file, d.Place(err)), source.PlainJSON(err))
	}
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return wrong(cmp.Or(err, errors.New("expected a profile, which begins with {")))
	}
	events := false
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return wrong(err)
		}
		switch t {
		case "distributedInfo":
			err = p.distributed(d)
		case "traceEvents":
			events = true
			err = p.events(d)
		default:
			if name, _ := t.(string); !slices.Contains(irrelevant, name) {
				p.notes.AddAt("key "+clip.Text(name)+" of profiles",
					func() string { return fmt.Sprintf("%s: byte %d", p.file, d.InputOffset()) })
			}
			err = skip(d)
		}
		if err != nil {
			return wrong(err)
		}
	}
	if _, err := d.Token(); err != nil {
		return wrong(err)
	}
	if err := d.End(); err != nil {
		return wrong(err)
	}
	if !events {
		return p.errorf("a profile without traceEvents")
	}
	if p.vague > 0 {
		return &graph.Error{At: p.file + ": " + p.first, Err: fmt.Errorf("it does not say its collective, group or "+
			"size, nor do %d more of NCCL's kernels; profile with PyTorch 2.4 or newer", p.vague-1)}
	}
	return nil
}

// skip reads a value without keeping it.
func skip(d *source.JSON) error {
	const deepest = 1000
	for depth := 0; ; {
		t, err := d.Token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		switch depth {
		case 0:
			return nil
		case deepest:
			return fmt.Errorf("values within each other %d times; expected fewer", deepest)
		}
	}
}

// distributed reads the rank and the groups.
func (p *profile) distributed(d *source.JSON) error {
	var info struct {
		Rank   *int `json:"rank"`
		World  int  `json:"world_size"`
		Groups []struct {
			Name  json.RawMessage `json:"pg_name"`
			Ranks []int32         `json:"ranks"`
		} `json:"pg_config"`
	}
	p.groups = map[string][]int32{}
	if err := d.Decode(&info); err != nil {
		return err
	}
	if info.Rank != nil {
		p.rank = *info.Rank
		if p.rank < 0 {
			return fmt.Errorf("rank %d; expected 0 or more", p.rank)
		}
	}
	p.world = info.World
	for _, g := range info.Groups {
		if len(g.Ranks) > 0 {
			if _, twice := p.groups[word(g.Name)]; twice {
				return fmt.Errorf("group %s of pg_config is there twice", clip.Text(word(g.Name)))
			}
			p.groups[word(g.Name)] = g.Ranks
		}
	}
	return nil
}

// word returns a JSON string, or the text of another value.
func word(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// events reads the events.
func (p *profile) events(d *source.JSON) error {
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return cmp.Or(err, errors.New("expected a list of events"))
	}
	for number := 0; d.More(); number++ {
		var e event
		if err := d.Decode(&e); err != nil {
			return graph.At(fmt.Sprintf("%s: byte %d: event %d", p.file, d.Place(err), number),
				source.PlainJSON(err))
		}
		if err := p.event(number, &e); err != nil {
			return fmt.Errorf("event %d (%s): %w", number, clip.Text(e.Name), err)
		}
	}
	_, err := d.Token()
	return err
}

// event handles an event. Those of the CPU show as gaps between kernels.
func (p *profile) event(number int, e *event) error {
	gpu := slices.Contains([]string{"kernel", "gpu_memcpy", "gpu_memset"}, e.Cat)
	switch {
	case gpu && e.Phase == "X" && (e.Args.Stream == nil || e.At == nil || e.Dur == nil):
		return errors.New("an event of a GPU without its stream, ts or dur")
	case gpu && e.Phase != "X":
		p.notes.AddAt("phase "+clip.Text(e.Phase)+" of GPU events",
			func() string { return fmt.Sprintf("%s: event %d", p.file, number) })
		return nil
	case e.Phase != "X" || e.Args.Stream == nil:
		return nil
	case !gpu:
		p.notes.AddAt("category "+clip.Text(e.Cat)+" of events with a stream",
			func() string { return fmt.Sprintf("%s: event %d", p.file, number) })
		return nil
	}
	const latest = 1e15 // us: 30 years
	at, dur := *e.At, *e.Dur
	if !(at >= 0 && at < latest && dur >= 0 && dur <= float64(graph.MaxTime/units.Microsecond)) {
		return fmt.Errorf("begins at %v us and takes %v us", at, dur)
	}
	if len(p.kernels) >= graph.MaxOps/2 {
		return fmt.Errorf("more than %d kernels", graph.MaxOps/2)
	}
	// Nanoseconds: a profile's times are from the epoch, and picoseconds would not fit.
	start := math.Round(at * 1000)
	k := kernel{number: number, start: units.Time(start), stream: *e.Args.Stream,
		end: units.Time(start) + units.Time(math.Round(dur*1000))}
	if strings.HasPrefix(e.Name, "nccl") || e.Args.Collective != "" {
		c, err := p.communication(e)
		if err != nil {
			return err
		}
		if c == nil {
			if p.vague++; p.vague == 1 {
				p.first = fmt.Sprintf("event %d (%s)", number, clip.Text(e.Name))
			}
			return nil
		}
		k.comm = c
	}
	p.kernels = append(p.kernels, k)
	return nil
}

// maxListed bounds the members of all groups.
const maxListed = 1 << 22

// communication returns what a kernel of NCCL does, or nil if the profile does not say.
func (p *profile) communication(e *event) (*comm, error) {
	a := &e.Args
	size := sizes[a.Type]
	if a.Collective == "" || a.Type == "" {
		return nil, nil
	}
	k, ok := kinds[a.Collective]
	const most = 1 << 40
	other := "[]" // of one split that is not written
	if a.Collective == "all_to_allv" {
		other = ""
	}
	switch {
	case (a.Collective == "all_to_allv" || a.InSplit != "" || a.OutSplit != "") && k.collective == "all-to-all" &&
		!(equal(cmp.Or(a.InSplit, other)) && equal(cmp.Or(a.OutSplit, other))):
		return nil, fmt.Errorf("%s of blocks of %s and %s elements is not understood: only collectives that move "+
			"equal blocks between all ranks are", a.Collective, clip.Text(cmp.Or(a.InSplit, "unknown")),
			clip.Text(cmp.Or(a.OutSplit, "unknown")))
	case a.In == 0 && a.Out == 0 && !k.barrier:
		return nil, fmt.Errorf("%s of 0 elements; expected at least 1", clip.Text(a.Collective))
	case !ok:
		return nil, fmt.Errorf("collective %q is unknown; expected all-reduce, all-gather, "+
			"reduce-scatter, broadcast, reduce, all-to-all, send or recv", clip.Text(a.Collective))
	case size == 0:
		return nil, fmt.Errorf("elements of type %q, whose size is unknown", clip.Text(a.Type))
	case a.In < 0 || a.Out < 0 || a.In > most || a.Out > most:
		return nil, fmt.Errorf("%d elements in, %d out", a.In, a.Out)
	}
	c := &comm{kind: k, in: a.In * size, out: a.Out * size, src: a.Src, dst: a.Dst}
	name := word(a.Group)
	c.group = p.used[name+" "+a.Ranks]
	if c.group != nil {
		return c, nil
	}
	c.group = &group{name: name}
	if strings.HasPrefix(a.Ranks, "[") && strings.HasSuffix(a.Ranks, "]") && !strings.Contains(a.Ranks, "...") {
		if json.Unmarshal([]byte(a.Ranks), &c.group.members) != nil {
			return nil, fmt.Errorf("the ranks %q of a group; expected numbers such as [0, 1]", clip.Text(a.Ranks))
		}
		c.group.name += " " + a.Ranks
	}
	if p.listed += 1 + len(name)/4 + len(c.group.members); p.listed > maxListed {
		return nil, fmt.Errorf("groups with more than %d members; expected fewer", maxListed)
	}
	p.used[name+" "+a.Ranks] = c.group
	return c, nil
}

// equal reports whether a list of split sizes, such as [4, 4], says that all blocks are equal. The
// empty list does.
func equal(splits string) bool {
	var sizes []int64
	if json.Unmarshal([]byte(splits), &sizes) != nil {
		return false
	}
	return len(slices.Compact(sizes)) < 2
}

// ops returns the operations of the rank, and its parts in collectives.
func (p *profile) ops() (ops []graph.Op, parts []graph.Part, err error) {
	slices.SortStableFunc(p.kernels, func(a, b kernel) int {
		if a.start != b.start {
			return int(min(1, max(-1, a.start-b.start)))
		}
		return a.number - b.number
	})
	type last struct {
		op  int32
		end units.Time
	}
	streams := map[int64]int32{}
	var done []last // by stream: its last kernel; op -1: none
	for i := range p.kernels {
		k := &p.kernels[i]
		s, ok := streams[k.stream]
		if !ok {
			s = int32(len(streams))
			streams[k.stream] = s
			done = append(done, last{op: -1})
		}
		var after []int32
		free := done[s].end
		if done[s].op >= 0 {
			after = append(after, done[s].op)
		}
		var other last
		for j := range done {
			if x := done[j]; int32(j) != s && x.op >= 0 && x.end <= k.start && x.end > max(free, other.end) {
				other = x
			}
		}
		if other.end > free {
			after, free = append(after, other.op), other.end
		}
		if gap := k.start - free; gap > 0 && len(after) > 0 {
			gap = min(gap, graph.MaxTime/units.Nanosecond+1) // Compile refuses it
			ops = append(ops, graph.Op{Kind: graph.Compute, Stream: s, Time: gap * units.Nanosecond, After: after,
				Place: int64(k.number)})
			after = []int32{int32(len(ops) - 1)}
		}
		op := graph.Op{Kind: graph.Compute, Stream: s, Time: (k.end - k.start) * units.Nanosecond, After: after,
			Place: int64(k.number)}
		if k.comm != nil {
			if err := k.comm.op(&op); err != nil {
				return nil, nil, &graph.Error{At: fmt.Sprintf("%s: event %d", p.file, k.number), Err: err}
			}
			if op.Kind == graph.Collective {
				parts = append(parts, p.part(k.comm, int32(len(ops))))
			}
		}
		ops = append(ops, op)
		done[s] = last{int32(len(ops) - 1), k.end}
	}
	return ops, parts, nil
}

// op makes op the communication.
func (c *comm) op(op *graph.Op) error {
	op.Time, op.Stream = 0, 0
	if c.kind.collective != "" {
		op.Kind = graph.Collective
		return nil
	}
	peer, size := c.src, max(c.in, c.out)
	op.Kind = graph.Recv
	if c.kind.send {
		op.Kind, peer = graph.Send, c.dst
	}
	if peer == nil || *peer < 0 || *peer >= graph.MaxRanks {
		return errors.New("a message without the rank at its other end")
	}
	op.Peer, op.Size = int32(*peer), units.Bytes(size)
	return nil
}

// part returns the part in a collective.
func (p *profile) part(c *comm, op int32) graph.Part {
	members := c.group.members
	if members == nil {
		members = p.groups[c.group.name]
	}
	size := c.in
	if c.kind.output || size == 0 {
		size = c.out
	}
	return graph.Part{Op: op, Group: c.group.name, Members: members, Collective: c.kind.collective, Root: -1,
		Size: func(ranks int) int64 {
			if c.kind.barrier {
				return int64(ranks) * sizes["Float"]
			}
			return size
		}}
}
