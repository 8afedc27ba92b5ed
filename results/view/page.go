package view

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"regexp"
	"strings"
	"sync"
)

//go:embed page
var files embed.FS

// modules are the files of the script, each after those that it imports.
var modules = []string{"format", "clock", "data", "chart", "heat", "ranks", "detail", "network", "act", "main"}

// imports matches the import of one of our modules. In the page all are one script, and need none.
var imports = regexp.MustCompile(`(?m)^import .* from "\./[a-z]+\.js";\n`)

// script returns all modules as one script.
var script = sync.OnceValue(func() string {
	var b strings.Builder
	b.WriteString("\n")
	for _, m := range modules {
		text := imports.ReplaceAllString(read("page/"+m+".js"), "")
		b.WriteString(strings.ReplaceAll("\n"+text, "\nexport ", "\n")[1:])
	}
	return b.String()
})

// scriptPolicy returns the part of the content policy that allows the script.
var scriptPolicy = sync.OnceValue(func() string {
	sum := sha256.Sum256([]byte(script()))
	return "script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
})

// read returns an embedded file.
func read(name string) string {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it was compiled in
	}
	return string(text)
}

// page is the parsed template of the page.
var page = template.Must(template.New("page").Parse(read("page/page.html")))

// document is the input of the template.
type document struct {
	Title, About string
	Nav          []navLink // to the other pages of a show
	Policy       string
	Live         string // address of the stream of models; empty: the page has its data
	Act          string // address for actions; empty: there are none
	Style        template.CSS
	Script       template.JS
	Data         template.HTML // see Page
}

// Page returns the page that shows the given runs side by side, complete in itself. Its data is the
// models without their frames, as base64 of gzip of JSON, and then rows and connections of each
// run's frames, with full stops between.
func Page(title, about string, runs []*Model) ([]byte, error) {
	return finished(document{Title: title, About: about}, runs)
}

// finished fills in the data of a page of runs that have ended.
func finished(d document, runs []*Model) ([]byte, error) {
	parts := make([]string, 1, 1+2*len(runs))
	bare := make([]Model, len(runs))
	for i, m := range runs {
		bare[i] = *m
		bare[i].Frames = packed{Count: m.Frames.Count}
		parts = append(parts, m.Frames.Rows, m.Frames.Conns)
	}
	var z bytes.Buffer
	w, err := gzip.NewWriterLevel(&z, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if err := json.NewEncoder(w).Encode(bare); err != nil {
		return nil, fmt.Errorf("the data of the page: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	parts[0] = base64.StdEncoding.EncodeToString(z.Bytes())
	d.Data = template.HTML(strings.Join(parts, "."))
	return render(d)
}

// livePage returns the page that takes its models from a stream.
func livePage(title, about, stream string) ([]byte, error) {
	return render(document{Title: title, About: about, Live: stream})
}

// Act is a page of a show: runs side by side.
type Act struct {
	Name string // of the page in its address
	Text string // its title; what comes before the first full stop is its name in lists
	Note string // what to look for
	Runs []*Model

	Picture template.HTML // for the list of acts; empty: none
	// Begin is not nil for an act that is performed while it is watched: it begins when its page is
	// opened, and the page shows what is published. Begin must not wait. It may be called while the
	// act goes on.
	Begin func()
}

// navLink leads from an act to the list of all or to another act.
type navLink struct {
	Name, Rel, Text string
	Here            bool // it is the page's own
}

// navOf returns the links of the i-th act.
func navOf(acts []Act, i int) []navLink {
	all := []navLink{{Name: "./", Text: "All"}}
	for k, a := range acts {
		text, _, _ := strings.Cut(a.Text, ".")
		all = append(all, navLink{a.Name, map[int]string{i - 1: "prev", i + 1: "next"}[k], text, k == i})
	}
	return all
}

// listPage returns a page with links to acts, with what came of their runs.
func listPage(title string, acts []Act) ([]byte, error) {
	var b bytes.Buffer
	err := list.Execute(&b, struct {
		Title string
		Style template.CSS
		Acts  []Act
	}{title, template.CSS(read("page/page.css")), acts})
	return b.Bytes(), err
}

// list is the template of a list of pages.
var list = template.Must(template.New("list").Parse(read("page/list.html")))

// render fills in the template. The policy allows the one script by its hash.
func render(d document) ([]byte, error) {
	d.Policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; " + scriptPolicy()
	if d.Live != "" {
		d.Policy += "; connect-src 'self'"
	}
	d.Style, d.Script = template.CSS(read("page/page.css")), template.JS(script())
	var b bytes.Buffer
	b.Grow(len(d.Data) + len(d.Script) + len(d.Style) + 1<<14)
	if err := page.Execute(&b, d); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
