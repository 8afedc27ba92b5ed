package report

import (
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"weft/internal/shell"
	"weft/results/names"
	"weft/results/plot"
	"weft/results/record"
	"weft/results/store"
	"weft/results/table"
	"weft/units"
)

// A Page is the content of an HTML page.
type Page struct {
	Title, About string
	Sub          string      // one line about the page: engine, seed, points
	Nav          [][2]string // other pages: text, and a path relative to the page's directory
	Verdict      string
	Grade        record.Grade // of the verdict
	Notes        []string     // what happened that a reader must know, such as a fault
	Doubts       []string
	Tiles        []Tile
	Parts        []Part
	Footer       string

	// Docs returns the address of a file of the documentation, such as docs/adr/0081, or "". It is
	// nil if the page has no links to it.
	Docs func(name string) string
}

// A Part is a section of a page. Empty fields are left out.
type Part struct {
	ID            string // for links to the part
	Heading, Text string
	Facts         [][2]string
	Tables        []table.Table
	Pictures      []template.HTML
	Pre           string
	Folded        []Folded
}

// Folded is content that the reader opens, and that is always printed.
type Folded struct {
	Summary string
	Facts   [][2]string
	Tables  []table.Table
	Pre     string
}

// cellClasses are the CSS classes of marks.
var cellClasses = map[table.Mark]string{table.MarkGood: "met", table.MarkDoubt: "skipped", table.MarkBad: "missed"}

// verdictClasses are the CSS classes of a page's verdict.
var verdictClasses = map[record.Grade]string{record.Doubt: "doubt", record.Bad: "bad"}

// columns returns in how many columns tiles are laid out so that none is alone in the last row of
// a wide screen, which has room for eight.
func columns(tiles int) int {
	rows := (tiles + 7) / 8
	return (tiles + rows - 1) / rows
}

// docs matches the name of a file of the documentation in a text.
var docs = regexp.MustCompile(`docs/[a-z0-9/-]*[a-z0-9](?:\.md)?`)

// linked returns a text with links to the documentation that it names.
func (p *Page) linked(text string) template.HTML {
	var out strings.Builder
	last := 0
	for _, at := range docs.FindAllStringIndex(text, -1) {
		name := text[at[0]:at[1]]
		if p.Docs == nil {
			break
		}
		if address := p.Docs(name); address != "" {
			out.WriteString(template.HTMLEscapeString(text[last:at[0]]))
			fmt.Fprintf(&out, `<a href="%s">%s</a>`, template.HTMLEscapeString(address), name)
			last = at[1]
		}
	}
	out.WriteString(template.HTMLEscapeString(text[last:]))
	return template.HTML(out.String()) //nolint:gosec // escaped
}

// Write writes the page as one HTML file.
func (p *Page) Write(w io.Writer) error {
	functions := template.FuncMap{"columns": columns, "linked": p.linked,
		"class":   func(m table.Mark) string { return cellClasses[m] },
		"verdict": func(g record.Grade) string { return verdictClasses[g] }}
	t, err := template.New("").Funcs(functions).Parse(layout)
	if err != nil {
		return err
	}
	return t.ExecuteTemplate(w, "page", p)
}

// Inline returns an SVG of package plot as a part of a page. Package plot escapes its text.
func Inline(svg []byte) template.HTML { return template.HTML(svg) } //nolint:gosec // escaped

// Image returns an SVG with its own stylesheet as an image of the page, with alt as its text.
func Image(svg []byte, alt string) template.HTML {
	return template.HTML(fmt.Sprintf(`<img alt="%s" src="data:image/svg+xml;base64,%s">`,
		template.HTMLEscapeString(alt), base64.StdEncoding.EncodeToString(svg)))
}

// Size of a chart in a page, in points: two are side by side on a screen. Our own choice.
const (
	chartWidth  = 430
	chartHeight = 300
)

// small returns a drawing of the size for a page.
func small(d Drawing) Drawing {
	switch c := d.(type) {
	case Figure:
		c.Width, c.Height = chartWidth, chartHeight
		return c
	case plot.Chart:
		c.Width, c.Height = chartWidth, chartHeight
		return c
	case plot.Bars:
		c.Width, c.Height = chartWidth, chartHeight
		return c
	}
	return d
}

// Page returns the report of a run. topology is an SVG of the network; nil for none.
func (r *Run) Page(topology []byte) (*Page, error) {
	m := r.Manifest
	p := &Page{Title: r.title(), About: r.setting("about"),
		Sub: fmt.Sprintf("%s, seed %d, %s", EngineWords(m), m.Seed, strings.Replace(m.Started, "T", " ", 1)),
		Footer: fmt.Sprintf("weft %s, %s, %s on %s %s", m.Version, m.Started, m.Machine.Host, m.Machine.OS,
			m.Machine.Kernel)}
	p.Verdict, p.Grade = r.verdict()
	if m.Series != nil && m.Series.Sweep != "" {
		p.Nav = append(p.Nav, [2]string{"\u2190 all points of the sweep", "../" + m.Series.Sweep + "/report.html"})
	}
	if r.View {
		p.Nav = append(p.Nav, [2]string{"\u25b6 the network over time", ViewFile})
	}
	p.Notes = r.faultNotes()
	if _, why, ok := strings.Cut(m.Error, "\n"); ok && p.Grade == record.Bad {
		p.Parts = append(p.Parts, Part{Heading: "Why it failed", Pre: why})
	}
	s := r.Summary
	if s != nil {
		for _, text := range doubts(s) {
			p.Doubts = append(p.Doubts, units.Spaced(text))
		}
		p.Tiles = tiles(s, r.about())
		if len(s.Expect) > 0 && p.Grade != record.Good {
			p.Parts = append(p.Parts, expectations("Expectations", s.Expect))
		}
	} else {
		p.Doubts = []string{r.NoSummary}
	}
	charts, err := r.charts(topology)
	if err != nil {
		return nil, err
	}
	if len(charts.Pictures) > 0 {
		p.Parts = append(p.Parts, charts)
	}
	if s != nil && len(s.Expect) > 0 && p.Grade == record.Good {
		p.Parts = append(p.Parts, expectations("Expectations", s.Expect)) // the verdict says that they are met
	}
	if s != nil {
		numbers := Part{Heading: "Numbers", Facts: summaryFacts(s, m.Control)}
		if len(m.Machines) > 0 {
			numbers.Facts = append(numbers.Facts, [2]string{"machines", strings.Join(m.Machines, ", ")})
		}
		for _, t := range []table.Table{table.Distributions(s, math.MaxInt), table.Collectives(s, math.MaxInt),
			table.Clocks(s), table.Stability(s)} {
			if len(t.Rows) > 0 {
				numbers.Tables = append(numbers.Tables, t)
			}
		}
		p.Parts = append(p.Parts, numbers)
	}
	if s != nil && len(s.Programs) > 0 {
		p.Parts = append(p.Parts, programsPart(s))
	}
	if len(m.Faults) > 0 {
		t, more := faultTable(m.Faults, r.endUS())
		part := Part{Heading: "Faults", Text: "Faults that the lab schedules, with their marks in the charts over " +
			"time and in the drawing of the network.", Tables: []table.Table{t}}
		if more > 0 {
			part.Text += fmt.Sprintf(" %d more are not listed.", more)
		}
		p.Parts = append(p.Parts, part)
	}
	p.Parts = append(p.Parts, Part{
		Heading: "How to run it again", Text: r.original(), Pre: r.runCommand(),
		Folded: []Folded{{Summary: "the lab file", Pre: r.Lab},
			{Summary: fmt.Sprintf("all %d settings, each with its source", len(m.Settings)), Facts: settings(m)}},
	})
	return p, nil
}

// expectations returns the part of a page with expectations. It comes before the charts unless all
// is well.
func expectations(heading string, all []record.Expect) Part {
	t := table.Expectations(all)
	t.Head = []string{"", "expectation", "found"}
	return Part{Heading: heading, Tables: []table.Table{t}}
}

// charts draws all charts of the run, those that the lab is about first, and its network.
func (r *Run) charts(topology []byte) (Part, error) {
	part := Part{Heading: "Charts"}
	figures, err := r.Figures()
	if err != nil {
		return part, err
	}
	first := r.about()
	if r.Summary != nil {
		first = append(first, named(expectationTexts(r.Summary.Expect))...)
	}
	lead(figures, first, func(f Figure) string { return f.Name })
	for _, f := range figures {
		svg, err := small(f).SVG()
		if err != nil {
			return part, err
		}
		part.Pictures = append(part.Pictures, Inline(svg))
	}
	if len(topology) > 0 {
		part.Pictures = append(part.Pictures, Image(topology, "the network; colours show the utilization of "+
			"links in their busier direction: grey low, orange half, red full"))
	}
	return part, nil
}

// expectationTexts returns the texts of expectations.
func expectationTexts(all []record.Expect) []string {
	out := make([]string, len(all))
	for i := range all {
		out[i] = all[i].That
	}
	return out
}

// title tells the run from others: its lab and its point of the sweep, or its transport.
func (r *Run) title() string {
	m := r.Manifest
	if len(m.Point) > 0 {
		return m.Lab + ": " + names.Point(m)
	}
	if kind := m.Transport(); kind != "" {
		return m.Lab + ": " + record.Sender(names.Transport(kind, m.Control), m.Carried)
	}
	return m.Lab
}

// EngineWords describes the engine of a run: "emulated, dilation 20".
func EngineWords(m *record.Manifest) string {
	if m.Engine == "sim" {
		return "simulated"
	}
	return strings.TrimSpace("emulated "+m.Runtime+" "+m.Datapath) + ", dilation " + units.Number(m.Dilation)
}

// doubts returns why the numbers of a run may not mean what they seem to.
func doubts(s *record.Summary) []string {
	out := s.Warnings
	if s.Retry != nil {
		out = append([]string{"retry: " + table.Retry(s.Retry)}, out...)
	}
	if s.Fidelity != nil {
		out = append(out, s.Fidelity.Reasons...)
		if a := s.Fidelity.Advice; a != "" {
			out = append(out, "advice: "+a)
		}
	}
	return out
}

// verdict returns the result of the run in one line, and its grade.
func (r *Run) verdict() (text string, grade record.Grade) {
	s := r.Summary
	if status := r.status(); status != record.OK || s == nil {
		text = status
		if r.Manifest.Error != "" {
			first, _, _ := strings.Cut(units.Spaced(r.Manifest.Error), "\n") // the other lines have a part of their own
			text += ": " + first
		}
		return text, record.Bad
	}
	o := s.Outcome()
	ok := "ok, data verified"
	if s.Lacks("verified") != "" {
		ok = "ok"
	}
	switch {
	case o.Fidelity == record.Invalid:
		return o.String() + ": do not use these numbers", o.Grade()
	case o.Missed > 0:
		return o.String() + " expectations", o.Grade()
	case o.Grade() != record.Good:
		return o.String(), o.Grade()
	}
	if o.Expected > 0 {
		ok += ", every expectation met"
	}
	if o.Skipped > 0 {
		ok += ", " + table.Skipped(o.Skipped)
	}
	return ok, record.Good
}

// about returns the names of the charts that the lab's report key names.
func (r *Run) about() []string {
	list := strings.Trim(r.setting("report"), "[]")
	if list == "" {
		return nil
	}
	return strings.Split(list, ", ")
}

// setting returns the value of a setting, empty without it.
func (r *Run) setting(path string) string {
	for _, s := range r.Manifest.Settings {
		if s.Path == path {
			return s.Value
		}
	}
	return ""
}

// sweepCommand returns the command that repeats the sweep of the run, from the directory above the
// runs. Each point chooses its own dilation, unless the lab or the command line sets it.
func (r *Run) sweepCommand() string {
	return r.command(r.Manifest.Set, "runtime", "datapath", "dilation") + r.program() + "\n# weft " + r.Manifest.Version
}

// original says why the command that repeats the run names the original lab, if it does.
func (r *Run) original() string {
	if o := r.Manifest.Original; o != nil {
		return "The command reads the files that the lab names where they were: they are not in the run's directory (" +
			o.Why + ")."
	}
	return ""
}

// ownSets returns what the command line set, without parameters of transports that only other
// points of the sweep use: a command for this one alone would be refused.
func (r *Run) ownSets() []string {
	return slices.DeleteFunc(slices.Clone(r.Manifest.Set), func(set string) bool {
		path, _, _ := strings.Cut(strings.TrimPrefix(set, "sweep."), "=")
		names := strings.Split(path, ".")
		if len(names) < 2 || names[0] != "transport" {
			return false
		}
		section := "transport." + names[1]
		return !slices.ContainsFunc(r.Manifest.Settings, func(s record.Setting) bool {
			return s.Path == section || strings.HasPrefix(s.Path, section+".")
		})
	})
}

// command returns the command that runs the lab with the same engine, with the given settings, and
// with those of the given engine flags that were set.
func (r *Run) command(sets []string, flags ...string) string {
	m := r.Manifest
	labFile := m.Run + "/" + store.LabFile
	if m.Original != nil {
		labFile = m.Original.Lab
	}
	cmd := "weft run " + shell.Quote(labFile)
	if labFile == "-" {
		cmd += " < " + shell.Quote(m.Run+"/"+store.LabFile)
	}
	cmd += " --engine " + m.Engine
	if m.On != "" {
		cmd += " --on " + shell.Quote(m.On)
		if strings.Contains(m.On, ",") {
			cmd += " --secret FILE"
		}
	}
	for _, set := range sets {
		if m.On != "" && strings.HasPrefix(set, "engine.machines=") {
			continue // --on sets it
		}
		cmd += " --set " + shell.Quote(set)
	}
	for _, s := range m.Settings {
		for _, flag := range flags {
			if s.Path == "engine."+flag && strings.HasPrefix(s.From, "command line: --"+flag) {
				cmd += " --" + flag + " " + shell.Quote(s.Value)
			}
		}
	}
	return cmd
}

// runCommand returns the command that repeats the run, at the same dilation.
func (r *Run) runCommand() string {
	m, cmd := r.Manifest, r.command(r.ownSets(), "runtime", "datapath")
	if m.Engine == "emu" {
		cmd += " --dilation " + strconv.FormatFloat(m.Dilation, 'f', -1, 64)
	}
	for _, path := range slices.Sorted(maps.Keys(m.Point)) {
		value := fmt.Sprint(m.Point[path])
		if v, ok := m.Point[path].(float64); ok {
			value = strconv.FormatFloat(v, 'f', -1, 64) // lab files have no 1e+06
		}
		cmd += " --set " + shell.Quote(path+"="+value)
	}
	return cmd + r.program() + "\n# weft " + m.Version + ", seed " + strconv.FormatUint(m.Seed, 10)
}

// program returns the end of the command with the program of the command line, if there was one.
func (r *Run) program() (words string) {
	for _, w := range r.Manifest.Command {
		words += " " + shell.Quote(w)
	}
	return words
}

// settings returns all settings, each with its value and source.
func settings(m *record.Manifest) [][2]string {
	var out [][2]string
	for _, s := range m.Settings {
		out = append(out, [2]string{s.Path, s.Value + "   (" + s.From + ")"})
	}
	return out
}

// number formats a value with four significant digits, without an exponent below 1e15.
func number(v float64) string {
	if math.Abs(v) >= 1e4 && math.Abs(v) < 1e15 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
