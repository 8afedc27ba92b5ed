package paper

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"weft/results/expect"
)

// File is the name of the file with a paper's claims, in the folder of its labs.
const File = "paper.yml"

// Paper describes the reproduction of a paper.
type Paper struct {
	Name  string `yaml:"paper"` // such as pc4: the name of the folder and the command's argument
	Title string `yaml:"title"` // of the paper, with authors or venue
	About string `yaml:"about"`
	// Sources has the origin of the labs' values, by path or prefix of a path: a section, or that
	// it is our own choice.
	Sources map[string]string `yaml:"sources"`
	Figures []Figure          `yaml:"figures"`
	Open    []Parameter       `yaml:"open"` // what the paper leaves open
	// NotClaims lists the sentences with a number or a comparison that no claim is made of.
	NotClaims []Sentence `yaml:"not_claims"`
}

// Sentence is a sentence of the paper that no claim is made of.
type Sentence struct {
	Says string `yaml:"says" json:"says"`
	Why  string `yaml:"why" json:"why"`
}

// NoFigure is the Figure of what no figure or table of the paper shows.
const NoFigure = "no figure"

// Origin says whose number or order a claim is about.
type Origin string

// The origins of claims.
const (
	OfThePaper Origin = "paper"    // the paper has the number or the order; the default
	Ours       Origin = "ours"     // the limit is ours
	Searched   Origin = "searched" // the setting was searched so that the paper's numbers appear
)

// Figure is a figure or table of the paper.
type Figure struct {
	ID      string            `yaml:"id"`     // P1
	Figure  string            `yaml:"figure"` // Fig. 6a; or NoFigure
	Title   string            `yaml:"title"`
	About   string            `yaml:"about"`
	Labs    []string          `yaml:"labs"`    // files beside paper.yml
	Sources map[string]string `yaml:"sources"` // override those of the paper
	Set     []string          `yaml:"set"`     // path=value, as with --set
	// Seeds is the number of seeds, from 1, with which the labs run, where the seed decides: see
	// SeedsThatPass. 0: each lab has its own seed.
	Seeds int   `yaml:"seeds"`
	Quick Quick `yaml:"quick"`
	// Origin and OneSided are those of the claims that have none.
	Origin   Origin  `yaml:"origin"`
	OneSided string  `yaml:"one_sided"`
	Claims   []Claim `yaml:"claims"`
	Plots    []Plot  `yaml:"plots"`
}

// Work returns the labs of the figure and their settings, with quick those of --quick.
func (f *Figure) Work(quick bool) (labs, set []string) {
	switch {
	case !quick:
		return f.Labs, f.Set
	case len(f.Quick.Labs) > 0:
		return f.Quick.Labs, slices.Concat(f.Set, f.Quick.Set)
	}
	return f.Labs, slices.Concat(f.Set, f.Quick.Set)
}

// Quick has the changes of --quick: fewer points, smaller sizes.
type Quick struct {
	Labs []string `yaml:"labs"` // replace the figure's; empty keeps those
	Set  []string `yaml:"set"`  // in addition to the figure's
	Skip bool     `yaml:"skip"` // leave the figure out
}

// Claim is a sentence of the paper that can be measured. With Holds it is true or false. With
// Within or Bound, Ours is compared with Paper. With both, both must pass, for example a ratio
// within a quarter of the paper's and the paper's order.
type Claim struct {
	Claim  string `yaml:"claim"`
	Paper  string `yaml:"paper"`  // the paper's number with its unit; with Holds only, its words
	Ours   string `yaml:"ours"`   // an expression for a value over the runs
	Within string `yaml:"within"` // tolerance relative to the paper's number: 10%
	Bound  string `yaml:"bound"`  // "at most" or "at least": a better value than the paper's passes; empty: two-sided
	Holds  string `yaml:"holds"`  // an expression for a comparison over the runs
	Class  string `yaml:"class"`  // of classes
	Origin Origin `yaml:"origin"` // empty: that of the figure, otherwise OfThePaper
	// OneSided says why one side is enough: of a claim with Bound, or with a Holds that bounds a
	// value from one side by a number and no Within. It is required there.
	OneSided string `yaml:"one_sided"`
	Why      string `yaml:"why"`   // the reason for the tolerance; required where it is wider than its class's
	Note     string `yaml:"note"`  // known reason for a difference, such as docs/adr/0032
	Quick    string `yaml:"quick"` // "skip": not judged with --quick
}

// Plot is a chart of the figure, redrawn from the runs.
type Plot struct {
	Kind    string            `yaml:"kind"` // sweep, cdf, queues, rates, cwnd, acks, clocks
	Title   string            `yaml:"title"`
	Caption string            `yaml:"caption"` // what the paper's figure shows
	X       string            `yaml:"x"`       // sweep: a path of the sweep
	Y       string            `yaml:"y"`       // sweep: a value of a run, such as rtt.mean; cdf: fct, slowdown or jobs
	By      []string          `yaml:"by"`      // paths that distinguish the lines
	Where   map[string]string `yaml:"where"`   // only runs with these values
	Only    string            `yaml:"only"`    // queues: this port; cwnd, rates, clocks: this connection or host
	Log     string            `yaml:"log"`     // x, y or xy
	Near    bool              `yaml:"near"`    // sweep: the vertical axis starts near the smallest value instead of 0
	Paper   []Curve           `yaml:"paper"`   // points read off the paper's figure
}

// Curve is a line of the paper's figure, in the units of the chart.
type Curve struct {
	Name string    `yaml:"name"`
	X    []float64 `yaml:"x"`
	Y    []float64 `yaml:"y"`
}

// Parameter is a parameter that the paper leaves open.
type Parameter struct {
	Name  string `yaml:"name"`
	Value string `yaml:"value"` // the value that Weft uses
	Why   string `yaml:"why"`
	// Sensitivity names the figures of this file that show the effect of other values, if any.
	Sensitivity Words `yaml:"sensitivity"`
}

// Words is one word or a list of words in the file.
type Words []string

// UnmarshalYAML reads either form.
func (w *Words) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*w = Words{n.Value}
		return nil
	}
	return n.Decode((*[]string)(w))
}

// Load reads and checks the claims of a paper. The error lists everything that is wrong, with its
// position in the file.
func Load(fsys fs.FS, dir string) (*Paper, error) {
	name := path.Join(dir, File)
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	p := &Paper{}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(p); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var second yaml.Node
	switch err := d.Decode(&second); {
	case err == nil:
		return nil, fmt.Errorf("%s:%d: a second document begins here; one file is one paper", name, second.Line)
	case !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := p.check(fsys, dir); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// Names lists the papers below a folder: its folders that contain File.
func Names(fsys fs.FS) ([]string, error) {
	files, err := fs.Glob(fsys, "*/"+File)
	for i := range files {
		files[i] = path.Dir(files[i])
	}
	return files, err
}

// maxSeeds is the largest Figure.Seeds.
const maxSeeds = 100

// identifier is the form of a figure's ID, which becomes part of file names.
var identifier = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,30}$`)

func (p *Paper) check(fsys fs.FS, dir string) error {
	var errs []error
	bad := func(where, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: "+format, append([]any{where}, args...)...))
	}
	if p.Name != path.Base(dir) {
		bad("paper", "%q is not the name of its folder, %s", p.Name, path.Base(dir))
	}
	if p.Title == "" {
		bad("title", "is missing")
	}
	seen := map[string]bool{}
	claims := map[string]string{} // the figure of a claim, by its text
	for i := range p.Figures {
		f := &p.Figures[i]
		where := fmt.Sprintf("figures.%d (%s)", i, f.ID)
		switch {
		case !identifier.MatchString(f.ID):
			bad(where, "id %q; expected letters, digits and -", f.ID)
		case seen[f.ID]:
			bad(where, "id %q is listed twice", f.ID)
		}
		seen[f.ID] = true
		if f.Seeds < 0 || f.Seeds == 1 || f.Seeds > maxSeeds {
			bad(where, "seeds %d; expected 2 to %d, or nothing", f.Seeds, maxSeeds)
		}
		if f.Figure == "" || f.Title == "" || len(f.Labs) == 0 {
			bad(where, "needs figure, title and labs")
		}
		for _, l := range append(f.Labs[:len(f.Labs):len(f.Labs)], f.Quick.Labs...) {
			if !fs.ValidPath(l) {
				bad(where, "lab %q is no path below %s", l, dir)
			} else if _, err := fs.Stat(fsys, path.Join(dir, l)); err != nil {
				bad(where, "%v", err)
			}
		}
		if err := f.Origin.check(); err != nil {
			bad(where, "%v", err)
		}
		for k := range f.Claims {
			c, at := &f.Claims[k], fmt.Sprintf("%s.claims.%d", where, k)
			if err := c.check(f.OneSided); err != nil {
				bad(at, "%v", err)
			}
			if first := claims[c.Claim]; first != "" {
				bad(at, "%s also claims %q; expected a name that says what it is by itself", first, c.Claim)
			}
			claims[c.Claim] = f.ID
		}
		for k := range f.Plots {
			if err := f.Plots[k].check(); err != nil {
				bad(fmt.Sprintf("%s.plots.%d", where, k), "%v", err)
			}
		}
	}
	for i, o := range p.Open {
		if o.Name == "" || o.Value == "" || o.Why == "" {
			bad(fmt.Sprintf("open.%d", i), "needs name, value and why")
		}
		for _, id := range o.Sensitivity {
			if !seen[id] {
				bad(fmt.Sprintf("open.%d", i), "sensitivity: no figure is called %q", id)
			}
		}
	}
	for i, s := range p.NotClaims {
		if s.Says == "" || s.Why == "" {
			bad(fmt.Sprintf("not_claims.%d", i), "needs says and why")
		}
	}
	return errors.Join(errs...)
}

// classes says what the claims of a class are compared with, and how wide a tolerance is that needs
// no reason of its own. docs/papers.md has the reasons.
var classes = map[string]struct {
	words  string
	within float64
}{
	"T1": {"exact or analytic", 0.05}, "T2": {"another simulator", 0.05}, "T3": {"ratio and order", 0.25},
	"T4": {"trend", 0.25},
}

// ClassWords returns a class with what it means: ratio and order (T3).
func ClassWords(class string) string { return classes[class].words + " (" + class + ")" }

func (o Origin) check() error {
	switch o {
	case "", OfThePaper, Ours, Searched:
		return nil
	}
	return fmt.Errorf("origin %q; expected paper, ours or searched", string(o))
}

// check checks a claim of a figure with a reason for one-sided claims, if any.
func (c *Claim) check(oneSided string) error {
	if strings.TrimSpace(c.Claim) == "" || c.Paper == "" {
		return errors.New("needs claim and paper")
	}
	if classes[c.Class].words == "" {
		return fmt.Errorf("class %q; expected T1, T2, T3 or T4", c.Class)
	}
	if c.Quick != "" && c.Quick != "skip" {
		return fmt.Errorf("quick %q; expected skip, or nothing", c.Quick)
	}
	if err := c.Origin.check(); err != nil {
		return err
	}
	if c.Ours != "" {
		if _, err := expect.ParseValue(c.Ours); err != nil {
			return fmt.Errorf("ours: %w", err)
		}
	}
	if err := c.checkSides(oneSided); err != nil {
		return err
	}
	if c.Holds != "" {
		if _, err := expect.Parse(c.Holds); err != nil {
			return fmt.Errorf("holds: %w", err)
		}
		if !c.compares() {
			return nil
		}
	}
	return c.checkNumber()
}

// checkSides checks that a one-sided claim, and only such a claim, says why one side is enough.
func (c *Claim) checkSides(ofFigure string) error {
	switch one := c.oneSided(); {
	case one && c.OneSided == "" && ofFigure == "":
		return errors.New("one side decides: needs one_sided, why that is enough, or within without bound")
	case !one && c.OneSided != "":
		return errors.New("one_sided: both sides are judged")
	}
	return nil
}

// oneSided reports whether a value far off on one side passes.
func (c *Claim) oneSided() bool {
	if c.Bound != "" || c.Within != "" {
		return c.Bound != ""
	}
	e, err := expect.Parse(c.Holds)
	return err == nil && e.OneSided()
}

// compares reports whether the claim compares our value with the paper's number.
func (c *Claim) compares() bool { return c.Holds == "" || c.Within != "" || c.Bound != "" }

// checkNumber checks a claim that compares two numbers.
func (c *Claim) checkNumber() error {
	if c.Ours == "" {
		return errors.New("needs ours, with within or bound, or holds")
	}
	if _, err := expect.ParseQuantity(c.Paper); err != nil {
		return fmt.Errorf("paper: %w; with words, holds decides", err)
	}
	switch c.Bound {
	case "", "at most", "at least":
	default:
		return fmt.Errorf("bound %q; expected at most or at least", c.Bound)
	}
	if c.Within == "" {
		if c.Bound == "" {
			return errors.New("needs within, bound or holds")
		}
		return nil
	}
	q, err := expect.ParseQuantity(c.Within)
	if err != nil || q.Unit != "" || q.Value < 0 {
		return fmt.Errorf("within %q; expected a share such as 10%%", c.Within)
	}
	if usual := classes[c.Class].within; q.Value > usual*(1+1e-9) && c.Why == "" {
		return fmt.Errorf("within %s needs why: claims of class %s have %g%% (docs/papers.md)", c.Within, c.Class,
			100*usual)
	}
	return nil
}

func (p *Plot) check() error {
	switch p.Kind {
	case "sweep":
		if p.X == "" || p.Y == "" {
			return errors.New("a sweep needs x and y")
		}
		if _, err := expect.ParseValue(p.Y); err != nil {
			return fmt.Errorf("y: %w", err)
		}
	case "cdf":
		if p.Y != "fct" && p.Y != "slowdown" && p.Y != "jobs" {
			return fmt.Errorf("y %q; a cdf is of fct, slowdown or jobs", p.Y)
		}
	case "queues", "rates", "cwnd", "acks", "clocks":
	default:
		return fmt.Errorf("kind %q; expected sweep, cdf, queues, rates, cwnd, acks or clocks", p.Kind)
	}
	switch p.Log {
	case "", "x", "y", "xy":
	default:
		return fmt.Errorf("log %q; expected x, y or xy", p.Log)
	}
	for _, c := range p.Paper {
		if len(c.X) != len(c.Y) {
			return fmt.Errorf("paper curve %q: %d values of x and %d of y", c.Name, len(c.X), len(c.Y))
		}
	}
	return nil
}
