package report

import (
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"weft/results/record"
	"weft/results/table"
)

// style is the stylesheet of all pages: one column that fits a phone, black on white, nothing
// fetched. Content wider than the phone scrolls by itself, with a shadow at the edge where there is
// more: the first two backgrounds move with the content and cover the two that stay.
const style = `:root{color-scheme:light}*{box-sizing:border-box}
body{font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",Arial,sans-serif;color:#222;background:#fff;margin:0 auto;max-width:60rem;padding:1rem}
h1{font-size:1.5rem;margin:.2rem 0}h2{font-size:1.15rem;margin:2rem 0 .5rem;border-bottom:1px solid #ddd;padding-bottom:.2rem}
.verdict{display:inline-block;padding:.3rem .8rem;border-radius:.4rem;font-weight:600;color:#fff;background:#1a7f37}
.verdict.bad{background:#b42318}.verdict.doubt{background:#8a5a00}
.scroll{overflow-x:auto;margin:.8rem 0;background:linear-gradient(to right,#fff 40%,#fff0) 0 0/3rem 100%,linear-gradient(to left,#fff 40%,#fff0) 100% 0/3rem 100%,
linear-gradient(to right,#0004,#0000) 0 0/.8rem 100%,linear-gradient(to left,#0004,#0000) 100% 0/.8rem 100%,#fff;background-repeat:no-repeat;background-attachment:local,local,scroll,scroll}
table{border-collapse:collapse;font-size:.9rem}td,th{text-align:left;padding:.25rem .7rem .25rem 0;border-bottom:1px solid #eee;vertical-align:top}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}td.n{white-space:nowrap}th{font-weight:600;color:#555}
.met{color:#1a7f37;font-weight:600}.missed{color:#b42318;font-weight:600}.skipped{color:#8a5a00;font-weight:600}
figure{margin:1.2rem 0;break-inside:avoid}figure svg,figure img{width:100%;height:auto;max-width:54rem;display:block}
pre{background:#f6f6f6;padding:.7rem;overflow-x:auto;font-size:.82rem;white-space:pre-wrap;overflow-wrap:anywhere}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem;margin:0}dt{color:#555}dd{margin:0;overflow-wrap:anywhere}
details summary{cursor:pointer;color:#0072b2}small{color:#555}
@media (max-width:40rem){body{padding:.7rem;font-size:16px}figure{overflow-x:auto}figure svg,figure img{min-width:34rem}dl{grid-template-columns:1fr}dt{margin-top:.4rem}}
@media print{body{max-width:none;font-size:10pt;padding:0}details>*{display:block}details::details-content{content-visibility:visible;block-size:auto}h2{break-after:avoid}
.scroll{overflow:visible;background:none}table{font-size:8.5pt}tr{break-inside:avoid}td{overflow-wrap:anywhere}.verdict{print-color-adjust:exact;-webkit-print-color-adjust:exact}a{color:inherit}}`

// layout is the template of all pages. Its content policy forbids fetching, whatever the text of a
// lab holds.
const layout = `{{define "page"}}<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>{{.Title}}</title><style>` + style + `</style></head><body>
<h1>{{.Title}}</h1>{{with .About}}<p>{{.}}</p>{{end}}
<p><span class="verdict {{.Class}}">{{.Verdict}}</span></p>
{{range .Doubts}}<p class="missed">{{.}}</p>{{end}}
{{range .Parts}}<section><h2>{{.Heading}}</h2>{{with .Text}}<p>{{.}}</p>{{end}}
{{with .Facts}}<dl>{{range .}}<dt>{{index . 0}}</dt><dd>{{index . 1}}</dd>{{end}}</dl>{{end}}
{{with .Links}}<ul>{{range .}}<li><a href="{{index . 1}}">{{index . 0}}</a></li>{{end}}</ul>{{end}}
{{range .Tables}}{{template "table" .}}{{end}}
{{range .Pictures}}<figure>{{.}}</figure>
{{end}}{{with .Pre}}<pre>{{.}}</pre>{{end}}{{range .Folded}}<details><summary>{{.Summary}}</summary>{{with .Facts}}<dl>{{range .}}<dt>{{index . 0}}</dt><dd>{{index . 1}}</dd>{{end}}</dl>{{end}}{{range .Tables}}{{template "table" .}}{{end}}{{with .Pre}}<pre>{{.}}</pre>{{end}}</details>{{end}}
</section>{{end}}
<p><small>{{.Footer}}</small></p></body></html>
{{end}}{{define "table"}}<div class="scroll"><table>{{if .Head}}<thead><tr>{{$t := .}}{{range $i, $h := .Head}}<th{{if $t.Right $i}} class="n"{{end}}>{{$h}}</th>{{end}}</tr></thead>{{end}}
<tbody>{{$t := .}}{{range .Rows}}<tr>{{range $i, $c := .}}<td class="{{if $t.Right $i}}n {{end}}{{mark $c}}">{{$c}}</td>{{end}}</tr>
{{end}}</tbody></table></div>{{end}}`

// A Page is the content of an HTML page.
type Page struct {
	Title, About   string
	Verdict, Class string // Class colours the verdict: empty for good, bad or doubt
	Doubts         []string
	Parts          []Part
	Footer         string
}

// A Part is a section of a page. Empty fields are left out.
type Part struct {
	Heading, Text string
	Facts         [][2]string
	Links         [][2]string // text, and a path relative to the page's directory
	Tables        []Table
	Pictures      []template.HTML
	Pre           string
	Folded        []Folded
}

// Folded is content that the reader opens, and that is always printed.
type Folded struct {
	Summary string
	Facts   [][2]string
	Tables  []Table
	Pre     string
}

// A Table is a table of text. Columns from Numbers to before Words are numbers, aligned right.
type Table struct {
	Head           []string
	Rows           [][]string
	Numbers, Words int // 0, 0: no column has numbers
}

// Right reports whether a column has numbers.
func (t Table) Right(column int) bool { return column >= t.Numbers && column < t.Words }

// mark returns the CSS class of a cell that holds a result.
func mark(cell string) string {
	switch cell {
	case "met", "pass", "ok":
		return "met"
	case "missed", "fail", record.Unverified, record.Unfinished, record.Failed, record.Interrupted:
		return "missed"
	case "skipped", "fidelity degraded", "fidelity invalid":
		return "skipped"
	}
	if strings.HasPrefix(cell, "missed ") {
		return "missed"
	}
	return ""
}

// Write writes the page as one HTML file.
func (p *Page) Write(w io.Writer) error {
	t, err := template.New("").Funcs(template.FuncMap{"mark": mark}).Parse(layout)
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

// Page returns the report of a run. topology is an SVG of the network; nil for none.
func (r *Run) Page(topology []byte) (*Page, error) {
	m := r.Manifest
	p := &Page{Title: strings.TrimSuffix(m.Lab+": "+table.Point(m.Point), ": "), About: r.setting("about"),
		Footer: fmt.Sprintf("weft %s, %s, %s on %s %s", m.Version, m.Started, m.Machine.Host, m.Machine.OS,
			m.Machine.Kernel)}
	p.Verdict, p.Class = r.verdict()
	var links [][2]string
	if r.View {
		links = append(links, [2]string{"the network over time", ViewFile})
	}
	if m.Series != nil && m.Series.Sweep != "" {
		links = append(links, [2]string{"all points of the sweep", "../" + m.Series.Sweep + "/report.html"})
	}
	if links != nil {
		p.Parts = append(p.Parts, Part{Heading: "More pages", Links: links})
	}
	if _, why, ok := strings.Cut(m.Error, "\n"); ok && p.Class == "bad" {
		p.Parts = append(p.Parts, Part{Heading: "Why it failed", Pre: why})
	}
	if s := r.Summary; s != nil {
		p.Doubts = s.Warnings
		if s.Retry != nil {
			p.Doubts = append([]string{"retry: " + table.Retry(s.Retry)}, p.Doubts...)
		}
		if s.Fidelity != nil {
			p.Doubts = append(p.Doubts, s.Fidelity.Reasons...)
			if a := s.Fidelity.Advice; a != "" {
				p.Doubts = append(p.Doubts, "advice: "+a)
			}
		}
		p.Parts = append(p.Parts, Part{Heading: "Summary", Facts: summaryFacts(s),
			Tables: []Table{distributionTable(s), collectiveTable(s)}})
		if len(s.Expect) > 0 {
			p.Parts = append(p.Parts, Part{Heading: "Expectations", Tables: []Table{expectationTable(s.Expect)}})
		}
	} else {
		p.Doubts = []string{r.NoSummary}
	}
	if len(m.Faults) > 0 {
		t, more := faultTable(m.Faults, r.endUS())
		part := Part{Heading: "Faults", Text: "Faults that the lab schedules, with their marks in the charts over " +
			"time and in the drawing of the network.", Tables: []Table{t}}
		if more > 0 {
			part.Text += fmt.Sprintf(" %d more are not listed.", more)
		}
		p.Parts = append(p.Parts, part)
	}
	figures, err := r.Figures()
	if err != nil {
		return nil, err
	}
	plots := Part{Heading: "Plots"}
	for _, f := range figures {
		svg, err := f.SVG()
		if err != nil {
			return nil, err
		}
		plots.Pictures = append(plots.Pictures, Inline(svg))
	}
	if len(topology) > 0 {
		plots.Pictures = append(plots.Pictures, Image(topology, "the network; colours show the utilization of "+
			"links in their busier direction: grey low, orange half, red full"))
	}
	if len(plots.Pictures) > 0 {
		p.Parts = append(p.Parts, plots)
	}
	p.Parts = append(p.Parts, Part{
		Heading: "How to run it again", Pre: r.runCommand(), Folded: []Folded{{Summary: "the lab file", Pre: r.Lab}},
	}, Part{Heading: "Settings",
		Folded: []Folded{{Summary: fmt.Sprintf("all %d settings, each with its source", len(m.Settings)),
			Facts: settings(m)}}})
	return p, nil
}

// verdict returns the result of the run in one line, and its class on the page.
func (r *Run) verdict() (text, class string) {
	s := r.Summary
	if s == nil || s.Status != record.OK {
		text = r.Manifest.Status
		if r.Manifest.Error != "" {
			first, _, _ := strings.Cut(r.Manifest.Error, "\n") // the other lines have a part of their own
			text += ": " + first
		}
		return text, "bad"
	}
	missed := table.Missed(s)
	switch {
	case s.Fidelity.Invalid():
		return "fidelity invalid: do not use these numbers", "bad"
	case missed > 0:
		return fmt.Sprintf("%d of %d expectations missed", missed, len(s.Expect)), "bad"
	case s.Fidelity != nil && s.Fidelity.Verdict != "ok":
		return "fidelity " + s.Fidelity.Verdict, "doubt"
	case len(s.Expect) == 0:
		return "ok, data verified", ""
	}
	return "ok, data verified, every expectation met", ""
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
	return r.command("runtime", "datapath", "dilation") + "\n# weft " + r.Manifest.Version
}

// command returns the command that runs the lab with the same engine and settings, and with those
// of the given engine flags that were set.
func (r *Run) command(flags ...string) string {
	m := r.Manifest
	cmd := "weft run " + quote(m.Run+"/lab.yaml") + " --engine " + m.Engine
	for _, set := range m.Set {
		cmd += " --set " + quote(set)
	}
	for _, s := range m.Settings {
		for _, flag := range flags {
			if s.Path == "engine."+flag && strings.HasPrefix(s.From, "command line: --"+flag) {
				cmd += " --" + flag + " " + quote(s.Value)
			}
		}
	}
	return cmd
}

// runCommand returns the command that repeats the run, at the same dilation.
func (r *Run) runCommand() string {
	m, cmd := r.Manifest, r.command("runtime", "datapath")
	if m.Engine == "emu" {
		cmd += " --dilation " + strconv.FormatFloat(m.Dilation, 'f', -1, 64)
	}
	for _, path := range slices.Sorted(maps.Keys(m.Point)) {
		value := fmt.Sprint(m.Point[path])
		if v, ok := m.Point[path].(float64); ok {
			value = strconv.FormatFloat(v, 'f', -1, 64) // lab files have no 1e+06
		}
		cmd += " --set " + quote(path+"="+value)
	}
	return cmd + "\n# weft " + m.Version + ", seed " + strconv.FormatUint(m.Seed, 10)
}

// quote quotes a word for a shell.
func quote(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,%+", r)
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
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
