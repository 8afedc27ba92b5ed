package lab

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"weft/internal/clip"
	"weft/orchestrator/launcher"
	"weft/orchestrator/topology"
	"weft/params"
	"weft/results/record"
	"weft/units"
)

// Bounds of programs.
const (
	maxEnv      = 100
	maxFiles    = 100
	maxPattern  = 1000 // bytes
	maxMetrics  = 20   // groups of a pattern
	maxTimeout  = 24 * 3600 * units.Second
	programTime = "600s"
)

// ErrTooLarge is the error of a file that has more bytes than one that a lab names may have.
var ErrTooLarge = errors.New("it is larger than 4 MiB")

// Program is a program of the workload: hosts run it together, beside all else.
type Program struct {
	Index int      // position in the lab file's workload
	Args  []string // the program, as a path or a name in PATH, and its arguments
	Image string   // container image that has the program; "": this machine has it
	Hosts Ranks    // All, First or Names

	Launch  string // of launcher.Names
	LabTime bool   // its clocks show lab time, not the machine's
	Files   []ProgramFile
	Env     []string      // NAME=VALUE
	Timeout time.Duration // real time after which it is ended; 0: none
	Start   units.Time    // from the start of the workload

	// Metrics finds numbers in the output, by named groups; nil: none are looked for.
	Metrics *regexp.Regexp
}

// ProgramFile is a file that programs read below /lab.
type ProgramFile struct {
	Name string // its last part is the name below /lab
	Text []byte
}

// Sends says what sends the lab's packets: the kind of its transport or, without background traffic
// and messages of the workload, record.Programs or record.ClocksAlone.
func (l *Lab) Sends() string {
	switch {
	case len(l.Workload) > 0 || l.Background.Load > 0:
		return l.Transport.Kind
	case len(l.Programs) > 0:
		return record.Programs
	}
	return record.ClocksAlone
}

// programsAlone reports a transport that was chosen for labs that do not use it, since programs
// send all their packets: once, where it was written. A sweep of it would name points by what none
// of them has. One in the file is for other points of a sweep, if those have more than programs;
// whole reports whether labs are all. The settings of the others do not list a transport.
func programsAlone(r *report, labs []*Lab, whole bool) {
	alone := func(l *Lab) bool { return l == nil || l.Sends() == record.Programs }
	all := whole && !slices.ContainsFunc(labs, func(l *Lab) bool { return !alone(l) })
	isTransport := func(s Source) bool { return s.Path == "transport" || strings.HasPrefix(s.Path, "transport.") }
	told := false
	for _, l := range labs {
		if l == nil || !alone(l) {
			continue
		}
		for _, s := range l.Sources {
			if !told && isTransport(s) && l.Written(s.Path) && (all || l.swept(s.Path)) {
				told = true
				r.again(l.problem(s.Path, "only programs send here, over the kernel's TCP or what they bring along, "+
					"whatever this says; leave it out (engine.tcp.congctl chooses TCP's congestion control)"))
			}
		}
		l.Sources = slices.DeleteFunc(l.Sources, isTransport)
	}
}

// swept reports whether the point of a sweep has the value at a path.
func (l *Lab) swept(path string) bool {
	for at := range l.Point {
		if path == at || strings.HasPrefix(path, at+".") {
			return true
		}
	}
	return false
}

// Base returns the name of the file below /lab.
func (f *ProgramFile) Base() string { return f.Name[strings.LastIndexByte(f.Name, '/')+1:] }

// programReader reads a program of the workload.
type programReader struct {
	Program
	d     *decoder // nil: the keys are only listed
	hosts hosts

	few     fewRanks // hosts: all, or a number
	names   []string // hosts: a list
	files   []string
	env     environment
	timeout units.Time
	pattern string
}

// keys returns the keys that only programs have.
func (p *programReader) keys() []params.Key {
	arguments := params.List("program", params.ItemsOf(&p.Args, topology.MaxArguments,
		func(arg *string) params.Key { return params.One(topology.Argument(arg)) }),
		"Program and arguments to run on hosts; replaces collective (docs/applications.md).")
	arguments.Optional = true
	return []params.Key{
		arguments,
		params.New("image", topology.Image(&p.Image), "Container image that has the program (--runtime docker).").
			OrNone(),
		p.hostsKey(),
		params.New("launch", params.Word(&p.Launch, launcher.Names()...), "How its hosts learn of each other.").
			Default(launcher.Default(), "ours"),
		params.New("clock", params.Choice(&p.LabTime, "real", "lab"), "What its clocks show.").Default("lab", "ours"),
		params.List("files", params.ItemsOf(&p.files, maxFiles,
			func(name *string) params.Key { return params.One(params.File(name, "train.py")) }),
			"Files it reads below /lab."),
		params.Sub("env", func() params.Section { return &p.env }, "Environment variables.").OrNone().Unlisted(),
		params.New("timeout", params.Time(&p.timeout, units.Second, maxTimeout).Or("off", 0),
			"Real time after which it is ended.").Default(programTime, "ours"),
		params.New("metrics", params.Custom(&p.pattern, checkPattern, func(text string) string { return text },
			`a regular expression with named groups, such as '(?P<time_us>[\d.]+) us'`,
			func() params.Form { return params.Form{} }), "What its output means.").OrNone(),
	}
}

// hostsKey declares hosts: all, a number (the first hosts) or a list of names.
func (p *programReader) hostsKey() params.Key {
	const which = "all, a number of hosts, or a list such as [h0, h3]"
	most := p.hosts.most()
	few := params.Custom(&p.few, func(text string) (fewRanks, error) {
		var n fewRanks
		if !params.Digits(text) {
			return n, fmt.Errorf("%q is not understood; expected %s", clip.Text(text), which)
		}
		_, err := params.Integer(&n.first, 1, most).Set(text, false)
		return n, err
	}, func(n fewRanks) string { return fmt.Sprint(n.first) }, which, params.Integer(nil, 1, most).Form).
		Or("all", fewRanks{all: true})
	names := params.ItemsOf(&p.names, topology.MaxHosts,
		func(name *string) params.Key { return params.One(p.hosts.name(name, p.d)) })
	names.Whole = true
	k := params.New("hosts", few, "all, the first N, or a list in the order of ranks.").Default("all", "ours")
	k.Items = names
	return k
}

// groupName matches the name of a group of metrics.
var groupName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)

// checkPattern checks a regular expression.
func checkPattern(text string) (string, error) {
	if len(text) > maxPattern {
		return "", fmt.Errorf("%d bytes; expected at most %d", len(text), maxPattern)
	}
	e, err := regexp.Compile(text)
	if err != nil {
		var syntax interface{ Error() string }
		errors.As(err, &syntax)
		return "", fmt.Errorf("%s; the syntax is that of https://golang.org/s/re2syntax",
			strings.TrimPrefix(syntax.Error(), "error parsing regexp: "))
	}
	named := slices.DeleteFunc(e.SubexpNames(), func(name string) bool { return name == "" })
	if len(named) == 0 || len(named) > maxMetrics {
		return "", fmt.Errorf("%d named groups; expected 1 to %d, such as (?P<time_us>[\\d.]+)", len(named), maxMetrics)
	}
	for i, name := range named {
		switch {
		case !groupName.MatchString(name):
			return "", fmt.Errorf("group %q; expected a name of up to 32 of a-z, 0-9 and _, the first a letter",
				clip.Text(name))
		case slices.Contains(named[:i], name):
			return "", fmt.Errorf("two groups are named %s; expected different names", name)
		}
	}
	return text, nil
}

// environment reads variables, whose names are whatever is written.
type environment struct {
	names  []string
	values []string
}

// ReadNames implements params.Naming.
func (e *environment) ReadNames(names []string) {
	e.names, e.values = names, make([]string, len(names))
}

// variable matches the name of an environment variable: IEEE 1003.1, section 8.1.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Keys implements params.Section.
func (e *environment) Keys() (keys []params.Key) {
	for i, name := range e.names {
		keys = append(keys, params.New(name, topology.Argument(&e.values[i]), ""))
	}
	return keys
}

// Rules implements params.Ruled.
func (e *environment) Rules(r params.Rules) {
	if len(e.names) > maxEnv {
		r.Refuse("", "%d variables; expected at most %d", len(e.names), maxEnv)
	}
	for _, name := range e.names {
		switch {
		case !variable.MatchString(name):
			r.Refuse(name, "%q is no name of a variable; expected letters, digits and _", clip.Text(name))
		case strings.HasPrefix(name, "WEFT_"):
			r.Refuse(name, "names that begin with WEFT_ are Weft's own; expected another")
		}
	}
}

// rules completes a program and applies the rules about several of its keys.
func (p *programReader) rules(rules params.Rules) {
	if len(p.Args) == 0 || p.Args[0] == "" {
		rules.Refuse("program", "does not name a program; expected a list such as [python3, /lab/train.py]")
	}
	if p.names != nil && len(p.names) == 0 {
		rules.Refuse("hosts", "an empty list; expected at least one host")
	}
	for i, name := range p.names {
		if name != "" && slices.Contains(p.names[:i], name) {
			rules.Refuse(fmt.Sprintf("hosts.%d", i), "%q is listed twice; expected each host once", name)
		}
	}
	p.Hosts = Ranks{All: p.few.all, First: p.few.first, Names: p.names}
	p.Timeout = p.timeout.Duration()
	for i, name := range p.env.names {
		p.Env = append(p.Env, name+"="+p.env.values[i])
	}
	if p.pattern != "" {
		p.Metrics = regexp.MustCompile(p.pattern)
	}
	for i, name := range p.files {
		if name == "" {
			continue // reported
		}
		f := ProgramFile{Name: name}
		at := fmt.Sprintf("files.%d", i)
		for k := range p.Files {
			if p.Files[k].Base() == f.Base() {
				rules.Refuse(at, "%s is there already as /lab/%s; expected another name", name, f.Base())
			}
		}
		var err error
		read := p.d.file
		if c := p.d.command; c != nil {
			read = c.file
		}
		if f.Text, err = read(name); errors.Is(err, ErrTooLarge) {
			err = fmt.Errorf("%w; leave it in the folder of the program, which sees that, or take weft run --file", err)
		}
		if err != nil {
			rules.Refuse(at, "%v", err)
		}
		if len(p.Args) > 0 && p.Args[0] == f.Base() {
			rules.Refuse("program.0", "files are not in PATH; expected /lab/%s", f.Base())
		}
		p.Files = append(p.Files, f)
	}
}
