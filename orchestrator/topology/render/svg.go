package render

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"weft/orchestrator/topology"
)

// Sizes of the picture in pixels. Ours: sixteen hosts in a row fit a page.
const (
	margin    = 20
	boxHeight = 18
	slotGap   = 8   // between boxes of a row
	rowGap    = 90  // from row to row
	charWidth = 5.6 // of the 9 px font, generously
	minBox    = 44
	maxLabel  = 24 // characters; longer names are cut, and complete in the tooltip
	headWidth = 8  // of a character of the title, generously
	lineFeed  = 14 // of the heading
)

// svgStyle is the style of the picture, which refers to nothing outside the file.
const svgStyle = `text{font:9px sans-serif;text-anchor:middle;fill:#222}` +
	`text.h{font-size:11px;text-anchor:start}text.t{font-size:14px;font-weight:bold;text-anchor:start}` +
	`rect{stroke:#555;stroke-width:.8;fill:#e8eef7}rect.host{fill:#eef5e6;rx:6px}` +
	`path{stroke:#999;stroke-width:.8;fill:none}path.odd{stroke:#d9822b;stroke-width:1.4}` +
	`path.down{stroke:#c23030;stroke-dasharray:4 3}`

// noteStyle is added for frames and labels.
const noteStyle = `rect.f{fill:#fafafa;stroke:#aaa;stroke-dasharray:5 3;rx:4px}text.f{font-size:10px;fill:#555}` +
	`text.w{font-size:8px;fill:#777}text.l{text-anchor:end}text.r{text-anchor:start}`

// SVG draws g as a picture of layers: hosts at the bottom, switches above, one row for each hop
// away from the nearest host. Racks of a clos and groups of a dragonfly-plus are framed. A torus is
// a grid, or several with three dimensions, and links that close a ring end at the name of the
// other switch. Many hosts behind one switch become one box. Links that differ from their tier are
// orange, and links that are down red and dashed. The tooltip of a link or a box describes it.
func SVG(title string, g *topology.Graph) string { return draw(title, g, nil, nil) }

// Utilisation draws g as SVG does, with links coloured from grey over orange to red by the share of
// their capacity that was used. share returns that of a link's busier direction, in [0, 1]. Links
// and nodes with events are dashed and carry the events' labels.
func Utilisation(title string, g *topology.Graph, share func(*topology.Link) float64, events []Event) string {
	return draw(title, g, share, events)
}

// Event is an event at a link or a node: a label there, and its meaning in the heading.
type Event struct {
	Label string // a character or two
	Text  string
	Place string // name of a link or a node
}

func draw(title string, g *topology.Graph, share func(*topology.Link) float64, events []Event) string {
	p := layout(g)
	p.share, p.events = share, map[string][]Event{}
	for _, e := range events {
		p.events[e.Place] = append(p.events[e.Place], e)
	}
	var b strings.Builder
	tiers := linkTiers(g)
	heading := len(tiers) + len(events)
	if share != nil {
		heading++
	}
	top := margin + lineFeed*(heading+2)
	p.arrangement.place(float64(top))
	height := p.bottom + margin
	width := max(p.width+2*margin, 480, 2*margin+headWidth*utf8.RuneCountInString(title+": "+g.Title))
	style := svgStyle
	if len(p.frames)+len(p.notes) > 0 {
		style += noteStyle
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d">`+"\n",
		width, height, width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n<style>%s</style>\n<rect width=\"100%%\" height=\"100%%\" "+
		"style=\"fill:#fff;stroke:none\"/>\n", escape(title), style)
	fmt.Fprintf(&b, `<text class="t" x="%d" y="%d">%s: %s</text>`+"\n",
		margin, margin+6, escape(title), escape(g.Title))
	for i := range tiers {
		fmt.Fprintf(&b, `<text class="h" x="%d" y="%d">%s</text>`+"\n",
			margin, margin+6+lineFeed*(i+1), escape(tiers[i].describe()))
	}
	for i, e := range events {
		y := margin + 6 + lineFeed*(len(tiers)+1+i)
		badge(&b, margin+7, float64(y-4), e.Label)
		fmt.Fprintf(&b, `<text class="h" x="%d" y="%d">%s</text>`+"\n", margin+20, y, escape(e.Text))
	}
	if share != nil {
		colours(&b, margin+6+lineFeed*heading)
	}
	p.borders(&b)
	p.lines(&b, tiers)
	p.boxes(&b)
	p.labels(&b)
	p.badges(&b)
	b.WriteString("</svg>\n")
	return b.String()
}

// lines draws the links, below the boxes. Links between the same two boxes that look alike are
// drawn once.
func (p *picture) lines(b *strings.Builder, tiers []linkTier) {
	of := usual(p.g, tiers)
	last := [2]*box{}
	for i := range p.g.Links {
		l := &p.g.Links[i]
		from, to := p.of[l.A], p.of[l.B]
		s := note(l, of[i])
		if p.share != nil && !l.Down {
			u := min(max(p.share(l), 0), 1)
			dashes, what := "", ""
			for _, e := range p.events[l.Name] {
				dashes, what = ";stroke-dasharray:6 4", what+"; "+e.Text
			}
			fmt.Fprintf(b, `<path d="%s" style="stroke:%s;stroke-width:%.1f%s">`+
				`<title>%s: %.1f %% used%s</title></path>`+"\n",
				p.arrangement.line(l), heat(u), 0.8+2.2*u, dashes, escape(l.Name), 100*u, escape(what))
			continue
		}
		if s == "" && from.hosts() > 1 && last == [2]*box{from, to} {
			continue
		}
		if s == "" {
			last = [2]*box{from, to}
		}
		fmt.Fprintf(b, `<path%s d="%s"><title>%s: %v`, class(s), p.arrangement.line(l), escape(l.Name), settingsOf(l))
		if l.Down {
			b.WriteString(", down")
		}
		b.WriteString("</title></path>\n")
	}
}

// badge draws a label in a dark disc, readable without colour.
func badge(b *strings.Builder, x, y float64, label string) {
	fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="7" style="fill:#222;stroke:#fff"/>`+
		`<text x="%.1f" y="%.1f" style="fill:#fff;font-weight:bold">%s</text>`+"\n",
		x, y, x, y+3, escape(label))
}

// badges puts the labels of events on links, nearer to their lower end, where fewer cross, and on
// the corners of boxes.
func (p *picture) badges(b *strings.Builder) {
	for i := range p.g.Links {
		l := &p.g.Links[i]
		for k, e := range p.events[l.Name] {
			x, y := along(p.arrangement.line(l), 0.3+0.1*float64(k))
			badge(b, x, y, e.Label)
		}
	}
	for i := range p.g.Nodes {
		for k, e := range p.events[p.g.Nodes[i].Name] {
			box := p.of[i]
			badge(b, box.x+p.box/2-float64(14*k), box.y, e.Label)
		}
	}
}

// along returns the point at a share of the first piece of a path, from its lower end.
func along(path string, share float64) (x, y float64) {
	numbers := strings.FieldsFunc(path, func(r rune) bool { return r != '.' && r != '-' && (r < '0' || r > '9') })
	var at []float64
	for _, n := range numbers {
		v, err := strconv.ParseFloat(n, 64)
		if err != nil {
			break
		}
		at = append(at, v)
	}
	switch {
	case len(at) < 4:
		return 0, 0
	case strings.Contains(path, "Q") && len(at) >= 6:
		mix := func(i int) float64 {
			return (1-share)*(1-share)*at[i] + 2*share*(1-share)*at[i+2] + share*share*at[i+4]
		}
		return mix(0), mix(1)
	case at[1] < at[3]:
		share = 1 - share
	}
	return at[0] + share*(at[2]-at[0]), at[1] + share*(at[3]-at[1])
}

// heat returns the colour of a share: grey at 0, orange at a half, dark red at 1.
func heat(share float64) string {
	from, to, at := [3]float64{0xbb, 0xbb, 0xbb}, [3]float64{0xe6, 0x9f, 0x00}, 2*share
	if share > 0.5 {
		from, to, at = to, [3]float64{0xa0, 0x1c, 0x1c}, 2*share-1
	}
	mix := func(i int) int { return int(from[i] + (to[i]-from[i])*at) }
	return fmt.Sprintf("#%02x%02x%02x", mix(0), mix(1), mix(2))
}

// colours explains the colours of heat in a line of the heading.
func colours(b *strings.Builder, y int) {
	const steps, wide = 20, 6
	for i := range steps {
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="8" style="fill:%s;stroke:none"/>`,
			margin+30+wide*i, y-8, wide, heat((float64(i)+0.5)/steps))
	}
	fmt.Fprintf(b, `<text class="h" x="%d" y="%d">0 %%</text><text class="h" x="%d" y="%d">100 %% of a link&#39;s `+
		"capacity in its busier direction, on average</text>\n", margin, y, margin+36+wide*steps, y)
}

// class returns the style of a link with a note.
func class(note string) string {
	switch note {
	case "":
		return ""
	case "down":
		return ` class="down"`
	}
	return ` class="odd"`
}

// curve returns a straight line between rows, and an arc above the boxes within a row.
func curve(from, to *box) string {
	if from.y == to.y {
		rise := 24 + abs(to.x-from.x)/12
		return fmt.Sprintf("M%.1f %.1fQ%.1f %.1f %.1f %.1f", from.x, from.y, (from.x+to.x)/2, from.y-rise, to.x, to.y)
	}
	if from.y < to.y {
		from, to = to, from
	}
	return fmt.Sprintf("M%.1f %.1fL%.1f %.1f", from.x, from.y, to.x, to.y+boxHeight)
}

func abs(x float64) float64 { return max(x, -x) }

func (p *picture) boxes(b *strings.Builder) {
	for _, row := range p.rows {
		for _, x := range row {
			style := ""
			if x.kind == topology.Host {
				style = ` class="host"`
			}
			for _, n := range x.nodes {
				if len(p.events[p.g.Nodes[n].Name]) > 0 {
					style += ` style="stroke-dasharray:4 3"`
					break
				}
			}
			fmt.Fprintf(b, `<g><title>%s</title><rect%s x="%.1f" y="%.1f" width="%.1f" height="%d"/>`+
				`<text x="%.1f" y="%.1f">%s</text></g>`+"\n",
				escape(x.about), style, x.x-p.box/2, x.y, p.box, boxHeight, x.x, x.y+12.5, escape(cut(x.label)))
		}
	}
}

// borders draws the frames, below all else.
func (p *picture) borders(b *strings.Builder) {
	for _, f := range p.frames {
		y := f.y + f.height - 6
		if f.above {
			y = f.y + 13
		}
		fmt.Fprintf(b, `<rect class="f" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`+
			`<text class="f" x="%.1f" y="%.1f">%s</text>`+"\n",
			f.x, f.y, f.width, f.height, f.x+f.width/2, y, escape(f.name))
	}
}

// labels draws the small texts.
func (p *picture) labels(b *strings.Builder) {
	for _, n := range p.notes {
		fmt.Fprintf(b, `<text class="%s" x="%.1f" y="%.1f">%s</text>`+"\n", n.side, n.x, n.y, escape(n.text))
	}
}

// cut shortens a name to the width of its box.
func cut(s string) string {
	if utf8.RuneCountInString(s) <= maxLabel {
		return s
	}
	return string([]rune(s)[:maxLabel-1]) + "…"
}

// escape makes s safe as text and as an attribute of XML. Characters that XML cannot hold become
// U+FFFD.
func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder does not fail
	return b.String()
}
