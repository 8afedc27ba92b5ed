package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"weft/collectives/graph"
	"weft/collectives/schedule"
	"weft/inputs"
	"weft/inputs/flows"
	"weft/internal/clip"
	"weft/params"
	"weft/units"
)

// maxListed is the maximum number of flows in a lab file. A file of flows may have more.
const maxListed = 10_000

// listedFlow is a flow in a lab file.
type listedFlow struct {
	From, To string
	Size     units.Bytes
	At       units.Time
	ID       string
	After    string

	hosts hosts
	d     *decoder
}

// Keys implements params.Section.
func (f *listedFlow) Keys() []params.Key {
	return []params.Key{
		params.New("from", f.hosts.name(&f.From, f.d), "Sender."),
		params.New("to", f.hosts.name(&f.To, f.d), "Receiver."),
		params.New("size", params.Bytes(&f.Size, 1, maxSize), "Bytes."),
		params.New("at", params.Time(&f.At, 0, maxStart), "Delay.").OrNone(),
		params.New("id", params.Name(&f.ID), "Name.").OrNone(),
		params.New("after", params.Name(&f.After), "Earlier flow's id.").OrNone(),
	}
}

// Rules implements params.Ruled.
func (f *listedFlow) Rules(r params.Rules) {
	if f.From != "" && f.From == f.To {
		r.Refuse("to", "%q is the sender, too; expected another host", f.To)
	}
}

// flowsKey declares flows, which is a number of connections for an incast, and otherwise a job: a
// list of flows or the name of a file of them.
func (r *itemReader) flowsKey() params.Key {
	number := params.Integer(&r.Flows, 1, maxFlows)
	file := jobFile(&r.flowFile, "a list of flows such as [{from: h0, to: h1, size: 2MB}], or a file of them, such as "+
		"flows.cm, below the lab file's folder")
	list := params.ItemsOf(&r.listed, maxListed, func(f *listedFlow) params.Key {
		f.hosts, f.d = r.hosts, r.d
		return params.Each(f)
	})
	about := "Flows, or their file (docs/inputs.md). incast: connections per sender."
	switch {
	case r.d == nil:
		k := params.New("flows", params.Union(number, file), about).Default("1", "ours")
		k.Items = list
		return k
	case r.flowing:
		k := params.New("flows", file, about)
		k.Items = list
		return k
	}
	return params.New("flows", number, about).Default("1", "ours").
		Only(func() (bool, string) {
			return r.Collective == "" || schedule.Of(r.Collective).Flows,
				"applies to " + with(func(f schedule.Facts) bool { return f.Flows }) + ", not to " + r.Collective
		}).MayBe("1")
}

// job is what a file of operations is compiled to.
type job struct {
	graph *graph.Graph // without ops
	given *schedule.Given
	bytes units.Bytes
	nodes []int // of a list of flows: the numbers of its ranks in the file
	total int   // of a list of flows: the nodes of its network, with those that have no flow
	kept  Trace // no file: the lab itself has the job
	err   error
}

// jobKey identifies a job of the files that a lab names.
type jobKey struct {
	file, format string
	scale        float64
	ranks        int
}

// readJob reads a job of operations, once for all points of a sweep.
func (d *decoder) readJob(k jobKey) *job {
	if j := d.jobs[k]; j != nil {
		return j
	}
	j := &job{}
	d.jobs[k] = j
	if d.files == nil {
		j.err = fmt.Errorf("%q cannot be read here: no file goes with this lab", clip.Text(k.file))
		return j
	}
	files := summing(d.files)
	defer func() { j.kept = Trace{File: k.file, Sum: files.sum()} }()
	if k.format == inputs.Flows {
		j.readFlows(files, k.file)
		return j
	}
	g, _, err := inputs.Read(files, k.file, inputs.Options{Format: k.format, Scale: k.scale, Ranks: k.ranks})
	if err != nil {
		j.err = err
		return j
	}
	j.compile(g)
	return j
}

// readFlows reads a file of flows.
func (j *job) readFlows(files fs.FS, name string) {
	l, err := inputs.ReadFlows(files, name)
	if err == nil {
		j.total = l.Nodes
		j.nodes = l.Compact()
		var g *graph.Graph
		if g, err = l.Graph(); err == nil {
			j.compile(g)
		}
	}
	if err != nil {
		j.err = err
	}
}

// placeNodes sets the ranks to the hosts of nodes, which a file of flows numbers. Among all hosts,
// node 5 is h5 if there is such a host for every node of the file, and otherwise the one at
// position 5; among chosen ranks it is the one at position 5.
func (r *itemReader) placeNodes(nodes []int) error {
	n := r.Ranks.count(r.hosts.count)
	switch {
	case n == 0 || len(nodes) == 0:
		return nil // unknown
	case r.Ranks.Random > 0:
		return errors.New("a file of flows names its hosts by numbers; expected ranks that are not drawn")
	}
	named := r.Ranks.All && !slices.ContainsFunc(nodes, func(node int) bool {
		return !r.hosts.has("h" + strconv.Itoa(node))
	})
	names := make([]string, len(nodes))
	for i, node := range nodes {
		name := "h" + strconv.Itoa(node)
		switch {
		case named:
		case node >= n:
			return fmt.Errorf("%s has a flow of node %d; there are %d hosts", r.flowFile, node, n)
		case len(r.Ranks.Names) > 0:
			name = r.Ranks.Names[node]
		default:
			name = r.hosts.at(node)
		}
		names[i] = name
	}
	r.Ranks = Ranks{Names: names}
	return nil
}

func (j *job) compile(g *graph.Graph) {
	j.given, j.bytes, j.err = graph.Compile(g)
	g.Ranks = nil
	j.graph = g
}

// readFlows reads the flows of an item.
func (r *itemReader) readFlows(rules params.Rules) {
	r.Label = "flows"
	if r.flowFile != "" {
		r.Label = r.flowFile
		j := r.d.readJob(jobKey{file: r.flowFile, format: inputs.Flows})
		if j.err == nil {
			if err := r.placeNodes(j.nodes); err != nil {
				rules.Refuse("flows", "%v", err)
				return
			}
			if n := r.Ranks.count(r.hosts.count); n > 0 && j.total > r.hosts.count {
				r.d.notes = append(r.d.notes, note{fmt.Sprintf("workload.%d.flows", r.Index), fmt.Sprintf(
					"%s is for a network of %d nodes, and the lab has %d hosts", r.flowFile, j.total, r.hosts.count)})
			}
		}
		r.use(rules, "flows", j)
		return
	}
	if rules.Written("ranks") {
		rules.Refuse("ranks", "a list of flows names its hosts; leave it out")
		return
	}
	l := &flows.List{File: "flows", Word: "flow"}
	var names []string
	for i := range r.listed {
		f := &r.listed[i]
		if f.From == "" || f.To == "" || f.Size == 0 || f.From == f.To {
			return // reported
		}
		names = append(names, f.From, f.To)
	}
	slices.SortFunc(names, func(a, b string) int { return r.hosts.index(a) - r.hosts.index(b) })
	names = slices.Compact(names)
	if len(names) == 0 && r.listed != nil { // an error otherwise
		rules.Refuse("flows", "an empty list; expected at least one flow")
	}
	if len(names) == 0 {
		return
	}
	at := map[string]int{}
	for i, name := range names {
		at[name] = i
	}
	ids := map[string]int{}
	for i := range r.listed {
		f := &r.listed[i]
		flow := flows.Flow{From: at[f.From], To: at[f.To], Size: f.Size, At: f.At, Line: i}
		if f.ID != "" {
			if _, twice := ids[f.ID]; twice {
				rules.Refuse(fmt.Sprintf("flows.%d.id", i), "%q is the id of two flows", f.ID)
			}
			ids[f.ID] = i
		}
		l.Flows = append(l.Flows, flow)
	}
	for i := range r.listed {
		f := &r.listed[i]
		if f.After == "" {
			continue
		}
		before, ok := ids[f.After]
		key := fmt.Sprintf("flows.%d.after", i)
		switch {
		case !ok:
			rules.Refuse(key, "no flow has the id %q", f.After)
			return
		case r.listed[before].From == f.From:
			l.Flows[i].After = []flows.After{{Flow: before}}
		case r.listed[before].To == f.From:
			l.Flows[i].After = []flows.After{{Flow: before, Received: true}}
		default:
			rules.Refuse(key,
				"%s is no end of the flow %q, so it cannot know when that ends; expected one from or to %s",
				f.From, f.After, f.From)
			return
		}
	}
	l.Nodes = len(names)
	g, err := l.Graph()
	j := &job{err: err}
	if err == nil {
		j.compile(g)
	}
	r.Ranks = Ranks{Names: names}
	r.use(rules, "flows", j)
}

// csv is the format of traces that package trace reads.
const csv = "csv"

// isJob reports whether the trace of an item is a job: a file or a folder of one of the formats of
// package inputs.
func (r *itemReader) isJob() bool {
	if r.format == "auto" && r.d.files != nil {
		var damaged *graph.Error // or a network
		switch format, err := inputs.Detect(r.d.files, r.trace); {
		case errors.As(err, &damaged):
			return true // reading it as a job says so
		case err == nil && format != "":
			r.format = format
		case err == nil:
			info, err := fs.Stat(r.d.files, r.trace)
			if err == nil && info.IsDir() {
				return true // likewise
			}
		}
	}
	return r.format != csv && r.format != "auto" // an unreadable file is read as CSV, which says why
}

// readAlgorithm reads the algorithm of an item, which runs it on its size.
func (r *itemReader) readAlgorithm(rules params.Rules) {
	if r.d.files == nil {
		rules.Refuse("trace", "%q cannot be read here: no file goes with this lab", clip.Text(r.trace))
		return
	}
	if r.Size == 0 {
		rules.Refuse("trace", "%s is an algorithm for any size; expected size: 1MB", r.trace)
		return
	}
	r.Label = r.trace
	r.Type, r.Op, r.Flows = schedule.Float32, "", 1
	files := summing(r.d.files)
	a, err := inputs.ReadAlgorithm(files, r.trace)
	j := &job{err: err}
	j.kept = Trace{File: r.trace, Sum: files.sum()}
	if err == nil {
		r.Collective = a.Collective
		j.given, j.err = a.Compile(r.Size, r.Type)
		j.bytes, j.graph = r.Size, &graph.Graph{Notes: a.Notes}
	}
	if schedule.Of(r.Collective).Reduces {
		r.Op = schedule.Sum
	}
	r.use(rules, "trace", j)
}

// readTraceJob reads the job of an item.
func (r *itemReader) readTraceJob(rules params.Rules) {
	r.Label = r.trace
	k := jobKey{file: r.trace, scale: r.scale}
	if r.format != "auto" {
		k.format = r.format
	}
	if !r.few.all {
		k.ranks = r.Ranks.count(r.hosts.count)
	}
	r.use(rules, "trace", r.d.readJob(k))
}

// use makes the item the one of a job: the job itself, and then its collectives.
func (r *itemReader) use(rules params.Rules, key string, j *job) {
	if refuseAll(rules, key, j.err); j.err != nil {
		return
	}
	if j.kept.File != "" {
		r.d.keepTrace(j.kept)
	}
	r.d.note(fmt.Sprintf("workload.%d.%s", r.Index, key), &j.graph.Notes)
	need, n := len(j.given.Parts), r.Ranks.count(r.hosts.count)
	switch {
	case n == 0: // unknown
	case n < need:
		rules.Refuse(key, "%s is a job of %d ranks; there are %d", r.Label, need, n)
		return
	case r.Ranks.All:
		r.Ranks = Ranks{First: need}
	case n > need:
		rules.Refuse("ranks", "%d ranks for a job of %d; expected as many", n, need)
		return
	}
	base := r.Item
	if base.Collective == "" {
		base.Collective = schedule.Graph
	}
	base.Algorithm, base.Type = schedule.GivenPrograms, schedule.Float32
	base.Flows, base.Given, base.Size = 1, j.given, j.bytes
	base.Listed = key == "flows"
	calls, err := r.calls(j)
	if err != nil {
		rules.Refuse(key, "%v", err)
		return
	}
	if (1+len(calls))*max(1, r.Ranks.Groups) > maxTraceItems {
		rules.Refuse(key, "%d collectives for %d groups of ranks are more than %d; expected fewer", len(calls),
			max(1, r.Ranks.Groups), maxTraceItems)
		return
	}
	for base.Ranks.Group = range max(1, base.Ranks.Groups) {
		r.lines = append(r.lines, base)
		for _, c := range calls {
			c.Ranks = base.Ranks
			r.lines = append(r.lines, c)
		}
	}
}

// refuseAll rejects a key for each of the errors in err, if there are any.
func refuseAll(rules params.Rules, key string, err error) {
	var many interface{ Unwrap() []error }
	var path *fs.PathError
	switch {
	case err == nil:
	case errors.As(err, &many):
		for _, e := range many.Unwrap() {
			rules.Refuse(key, "%v", e)
		}
	case errors.As(err, &path):
		rules.Refuse(key, "%s: %v", path.Path, path.Err)
	default:
		rules.Refuse(key, "%v", err)
	}
}

// calls returns the items of a job's collectives. Those that are alike share a row of the summary.
func (r *itemReader) calls(j *job) ([]Item, error) {
	type kind struct {
		name, collective, algorithm string
		size                        units.Bytes
		members                     int
	}
	rows, times := map[kind]int{}, map[kind]int{}
	items := make([]Item, 0, len(j.graph.Calls))
	for i := range j.graph.Calls {
		c := &j.graph.Calls[i]
		it := Item{
			Index: r.Index, Collective: c.Collective, Algorithm: schedule.Algorithms(c.Collective)[0], Type: c.Type,
			Size: c.Size, Flows: 1, Repeat: r.Repeat, Called: true,
		}
		facts, err := schedule.About(it.Collective, it.Algorithm)
		if err != nil {
			return nil, err
		}
		if it.Chunk = schedule.DefaultChunk(it.Collective, it.Algorithm); facts.Reduces {
			it.Op = schedule.Sum
		}
		members := make([]int, len(c.Members))
		for k, m := range c.Members {
			members[k] = int(m)
		}
		k := kind{c.Name, it.Collective, it.Algorithm, it.Size, len(members)}
		row, ok := rows[k]
		if !ok {
			row = 1 + len(rows)
			rows[k] = row
		}
		it.Row = row
		it.Line = &Line{Trace: r.Label, Number: i + 1, Name: c.Collective, Step: times[k], Groups: 1, Members: members,
			Root: c.Root}
		if c.Name != "" {
			it.Line.Name += " of " + c.Name
		}
		times[k]++
		spec := it.Spec(len(members), c.Root)
		if _, err := schedule.Tags(spec); err != nil {
			return nil, fmt.Errorf("%s: collective %d%s: %w", r.Label, i+1, called(c.Name), err)
		}
		items = append(items, it)
	}
	return items, nil
}

// index returns the position of a host, by its name.
func (h hosts) index(name string) int {
	if h.names != nil {
		return slices.Index(h.names, name)
	}
	n := 0
	for _, c := range name[1:] {
		n = 10*n + int(c-'0')
	}
	return n
}

// jobFile is the name of a file of a job: a path relative to the lab file that stays in its folder.
func jobFile(to *string, expected string) params.Value {
	return params.Custom(to, func(name string) (string, error) {
		name = strings.TrimPrefix(name, "./")
		if !params.LocalName(name) {
			return "", fmt.Errorf("%q; expected %s%s", clip.Text(name), expected, params.Outside(name))
		}
		return name, nil
	}, func(name string) string { return name }, expected, func() params.Form {
		return params.Form{Patterns: []string{".*[A-Za-z].*"}, Example: "flows.cm"}
	})
}
