package lab

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"weft/internal/clip"
	"weft/orchestrator/topology"
	"weft/transport"
)

// RepeatFlag is the Source.Flag of the dilation at which Weft repeats a run more slowly.
const RepeatFlag = "--retry-dilation"

// Options are the settings of a lab from the command line.
type Options struct {
	// Set replaces values. Each is path=value, such as workload.0.ranks=4, with the value as in a
	// lab file. A path of the sweep is removed from the sweep. A path such as sweep.seed, with a
	// list, sets a line of the sweep.
	Set []string

	// Transports are those of other labs of the same command: Set may have their parameters.
	Transports []string

	// Engine replaces keys of the engine section; "" keeps what the file says.
	Engine EngineOptions

	// Retry is the dilation of another attempt at a run (--retry-dilation), instead of that of
	// every point; "": there is none.
	Retry string

	// ClocksAlone removes the workload, and what is measured and expected of it.
	ClocksAlone bool
	// Span replaces clocks.for if ClocksAlone is set; "" keeps what the file says.
	Span string

	// Unjudged says why no expectation of the lab applies to what runs; "": they apply.
	Unjudged string

	// Program replaces the workload by a program; nil: it stays. Read is then asked only for files
	// of other sections.
	Program *Command

	// Only leaves out points of the sweep for which it returns false, whose labs are nil: reading a
	// point takes a millisecond. It is asked with the number of a point, from 0 on. Nil: all are
	// read.
	Only func(point int) bool

	// Read returns the text of a file that a lab names, by its path below the lab file's folder. An
	// error is reported where the lab names the file. Nil: a lab cannot name files.
	Read func(name string) ([]byte, error)

	// Files is the lab file's folder, for jobs, which may be folders and too large for Read. Nil: a
	// lab cannot name them.
	Files fs.FS
}

// EngineOptions are the flags --engine, --runtime, --datapath and --dilation as given.
type EngineOptions struct {
	Kind, Runtime, Datapath, Dilation string
}

// Both reports whether the options ask for both engines.
func (o *EngineOptions) Both() bool { return o.Kind == both }

// Parse reads the text of a lab file and returns its labs: one, or one for each point of its sweep,
// in the order of the file with the last path of the sweep changing fastest. file is the name that
// problems mention. The result follows from the arguments alone; Parse reads other files only
// through Options.Read.
//
// The error is of type Problems and holds everything that is wrong.
func Parse(file string, text []byte, opts Options) ([]*Lab, error) {
	return parse(file, text, opts, nil)
}

// parse is Parse, and calls keys, unless nil, with the keys of each section.
func parse(file string, text []byte, opts Options, keys func(pattern string, keys []string)) ([]*Lab, error) {
	r := newReport(file)
	sets := opts.overrides(r)
	root := load(r, text, func(line, column int) origin { return origin{line: line, column: column} })
	if root == nil {
		return nil, r.err()
	}
	if root.kind != mapping {
		r.add(root.at, "", "%s; expected a lab, which begins with weft: 1", root.what())
		return nil, r.err()
	}
	var replaced *node // the file's transport, with which the replaced workload would have sent
	if opts.Program != nil {
		replaced = root.get("transport")
		root = opts.Program.apply(r, root)
	}
	if opts.Files == nil && opts.Read != nil {
		opts.Files = FilesOf(opts.Read)
	}
	labs := decode(r, root, sets, opts, keys)
	if err := r.err(); err != nil {
		return nil, err
	}
	for _, l := range labs {
		if l == nil {
			continue
		}
		l.Set = opts.Set
		if opts.Program != nil {
			l.Command = opts.Program.Given
			l.noteReplaced(replaced)
		}
	}
	return labs, nil
}

// decode reads the labs of a file whose tree is root.
func decode(r *report, root *node, sets []override, opts Options, keys func(string, []string)) []*Lab {
	file := root
	root, sets = setSweep(r, root, sets)
	kinds := transportKindsOf(root, sets)
	before := r.total
	root, axes, blocked := sweep(r, root, sets)
	chosen := transportKindsChosen(root, axes, sets)
	for _, k := range opts.Transports {
		kinds[k], chosen[k] = true, true
	}
	if r.total > before || len(blocked) > 0 { // which transports the runs use cannot be told
		for _, k := range transport.Kinds() {
			kinds[k], chosen[k] = true, true
		}
	}
	jobs := map[jobKey]*job{}
	one := func(r *report, tree *node, values map[string]any, more ...override) *Lab {
		for _, s := range slices.Concat(sets, more) {
			tree = s.apply(r, tree)
		}
		if opts.Retry != "" {
			tree = setting(RepeatFlag, opts.Retry, "engine", "dilation").apply(r, tree)
		}
		d := &decoder{report: r, keys: keys, kinds: kinds, chosen: chosen, overlay: overlay(tree), read: opts.Read,
			files: opts.Files, jobs: jobs, command: opts.Program}
		l := d.lab(r.file, d.imported(tree), values)
		if opts.ClocksAlone {
			d.clocksAlone(l)
		}
		if opts.Unjudged != "" {
			l.judgeNone(opts.Unjudged)
		}
		return l
	}
	var labs []*Lab
	trees := map[*Lab]*node{}
	for _, p := range points(axes) {
		if opts.Only != nil && !opts.Only(len(labs)) && !repeating(axes, kinds) {
			labs = append(labs, nil)
			continue
		}
		tree, values := p.apply(r, root, axes)
		if l := one(r, tree, values); !p.without(values, axes, l.Transport.Kind) {
			labs = append(labs, l)
			trees[l] = tree
		}
		if r.full() {
			break
		}
	}
	programsAlone(r, labs, opts.Only == nil)
	for _, b := range blocked {
		if !r.has(b.by) { // else that one explains it
			r.add(b.at, b.path, "%s", b.message)
		}
	}
	if r.full() {
		return labs
	}
	scratch := func(r *report, tree *node) { one(r, tree, nil) }
	replaced(r, root, axes, scratch)
	for i := range blocked {
		blocked[i].check(r, root, scratch)
	}
	c := conditions{report: r, labs: slices.DeleteFunc(slices.Clone(labs), func(l *Lab) bool { return l == nil })}
	c.try = func(r *report, l *Lab, path []string, value *node) *Lab {
		return one(r, trees[l], nil, override{path: path, value: value})
	}
	if len(opts.Set) > 0 || opts.Engine != (EngineOptions{}) || opts.Retry != "" || opts.Span != "" ||
		opts.ClocksAlone {
		c.plain = func() []*Lab {
			return decode(newReport(r.file), file, nil,
				Options{Transports: opts.Transports, Read: opts.Read, Files: opts.Files}, nil)
		}
	}
	c.decide(opts.Only != nil)
	for _, l := range c.labs {
		if opts.ClocksAlone {
			l.withoutWorkload()
		}
	}
	return labs
}

// lab reads a whole tree. The order of sections matters: each may depend on those before it.
func (d *decoder) lab(name string, root *node, values map[string]any) *Lab {
	s := field{d: d, n: root, at: root.at}.open()
	l := &Lab{File: name, Point: values, sections: map[string]origin{"": root.at}}
	for _, k := range root.keys {
		l.sections[k.name] = k.at
	}
	first := new(file)
	d.version(s.field("weft"))
	r := s.read(first)
	l.Name, l.About, l.Seed, l.Report = first.Name, first.About, first.Seed, first.Report
	d.seed = l.Seed
	shape := s.field("topology")
	if shape.n == nil {
		shape.problem("missing; expected a section such as topology: {kind: star, hosts: 4}")
		shape.silent = true
	}
	network, queues := shape.open(), s.section("queues")
	l.Topology = topology.Seeded(l.Seed)
	network.all(&l.Topology)
	l.Queues = d.queues(queues, l.Topology.MTU)
	d.linkQueues(network, queues, l)
	l.Clocks = d.clocks(s.section("clocks"), hostsOf(&l.Topology))
	if b := s.field("background"); b.n != nil {
		b.open().all(&l.Background)
	}
	l.Transport = d.transport(s.section("transport"))
	if kind := l.Transport.Kind; transport.FactsOf(kind).Coordinated && !l.Queues.Balance().Random() {
		const says = "the switches of %s choose paths by the packet, whatever this says; " +
			"leave it out, or have them spray"
		routing, because := s.section("queues").field("routing"), s.section("transport").field("kind")
		if routing.idle(because, says, kind); routing.written() && because.n != nil && because.n.at.sweep != nil {
			routing.addNote(says, kind)
		}
	}
	work := &workload{d: d, hosts: hostsOf(&l.Topology), at: s.field("workload").positions()}
	r.take(work.key(), "workload", s.field("workload"))
	l.Workload, l.Programs = work.all(), work.programs()
	d.noteSource(&l.Transport)
	l.Traces, l.notes = d.traces, d.notes
	events := &faults{d: d, hosts: work.hosts, at: s.field("faults").positions()}
	r.take(events.key(), "faults", s.field("faults"))
	l.Faults = events.all()
	measured := s.section("measure")
	l.Measure = d.measure(measured)
	l.checkReport(r, measured)
	l.Expect = d.expect(s.field("expect"))
	s.section("engine").all(&l.Engine)
	s.close()
	l.Sources = d.sources
	d.checkKernel(l)
	l.noteRealTime()
	return l
}

// noteRealTime notes that programs of hosts read the machine's clock in a lab whose clocks differ
// from it.
func (l *Lab) noteRealTime() {
	if l.Engine.Kind == "sim" || l.Engine.Dilation == 1 && !l.Clocks.Imperfect() {
		return
	}
	nodes, _ := l.Topology.Drawn()
	path, more := "", 0
	for i := range nodes {
		switch n := &nodes[i]; {
		case !n.Programmed() || n.LabTime:
		case path == "":
			path = fmt.Sprintf("topology.nodes.%d", i)
		default:
			more++
		}
	}
	if path == "" {
		return
	}
	text := "the program of this host reads the machine's clock, not lab time; clock: lab beside it changes that"
	if more > 0 {
		text = fmt.Sprintf("the programs of this host and of %d more read the machine's clock, not lab time; clock: "+
			"lab beside them changes that", more)
	}
	l.notes = append(l.notes, note{path, text})
}

// formatVersion is the version of the format that this package reads.
const formatVersion = "1"

func (d *decoder) version(f field) {
	text, ok := f.text("weft: " + formatVersion + ", the version of the format")
	if ok && text != formatVersion {
		f.problem("unknown version of the format, %q; expected %s", clip.Text(text), formatVersion)
	}
}

// override is a value from the command line.
type override struct {
	path  []string
	value *node
	at    origin
}

// overrides reads the options. Problems are reported under the flag that they are from.
func (o Options) overrides(r *report) []override {
	var sets []override
	for _, set := range o.Set {
		at := origin{flag: "--set " + clip.Text(set)}
		path, text, ok := strings.Cut(set, "=")
		if !ok {
			r.add(at, "", "no value; expected path=value such as seed=2")
			continue
		}
		names := []string{"sweep", strings.TrimPrefix(path, "sweep.")} // a line of the sweep, whose name has dots
		if !strings.HasPrefix(path, "sweep.") {
			var err error
			if names, err = splitPath(path); err != nil {
				r.add(at, "", "%v", err)
				continue
			}
		}
		if strings.TrimSpace(text) == "" {
			r.add(at, clip.Text(path), "has no value")
			continue
		}
		if value := load(r, []byte(text), func(int, int) origin { return at }); value != nil {
			sets = append(sets, override{names, value, at})
		}
	}
	for _, e := range []struct{ section, key, flag, text string }{
		{"engine", "kind", "engine", o.Engine.Kind}, {"engine", "runtime", "runtime", o.Engine.Runtime},
		{"engine", "datapath", "datapath", o.Engine.Datapath}, {"engine", "dilation", "dilation", o.Engine.Dilation},
		{"clocks", "for", "for", o.Span},
	} {
		if e.text != "" {
			sets = append(sets, setting("--"+e.flag+" "+clip.Text(e.text), e.text, e.section, e.key))
		}
	}
	return sets
}

// setting is a single value that a flag gives a path.
func setting(flag, text string, path ...string) override {
	at := origin{flag: flag}
	return override{path, &node{text: text, plain: true, at: at}, at}
}

// apply returns root with the value set. It reports a path that leads nowhere.
func (o override) apply(r *report, root *node) *node {
	edited, err := root.with(o.path, o.value, o.at)
	if err != nil {
		r.add(o.at, clip.Text(strings.Join(o.path, ".")), "%v", err)
		return root
	}
	return edited
}

// Written reports whether the file, its sweep or the command line has the value at a path.
func (l *Lab) Written(path string) bool {
	return slices.ContainsFunc(l.Sources,
		func(s Source) bool { return s.Path == path && !strings.HasPrefix(s.From, "default: ") })
}

// Errorf returns a Problem with the value at path, for what a later stage finds wrong: it is
// reported where the value, or what holds it, was written.
func (l *Lab) Errorf(path, format string, args ...any) error {
	return l.problem(path, fmt.Sprintf(format, args...))
}

func (l *Lab) problem(path, message string) Problem {
	p := Problem{File: l.File, Path: path, Message: message}
	for at := path; ; {
		i := slices.IndexFunc(l.Sources,
			func(s Source) bool { return s.Path == at || strings.HasPrefix(s.Path, at+".") })
		if i >= 0 {
			p.Line, p.Column, p.Flag = l.Sources[i].Line, l.Sources[i].Column, l.Sources[i].Flag
			return p
		}
		cut := strings.LastIndexByte(at, '.')
		if cut < 0 {
			section, ok := l.sections[at]
			if !ok {
				section = l.sections[""]
			}
			p.Line, p.Column, p.Flag = section.line, section.column, section.flag
			return p
		}
		at = at[:cut]
	}
}
