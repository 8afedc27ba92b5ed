package render_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"weft/fabric"

	"weft/internal/golden"
	"weft/orchestrator/topology"
	"weft/orchestrator/topology/render"
	"weft/units"
)

// shapes are the networks that are drawn in frames or on grids.
func shapes() map[string]topology.Spec {
	slow := topology.LinkSpec{Link: fabric.Link{Rate: 10 * units.Gbps, Delay: 5 * units.Microsecond}}
	return map[string]topology.Spec{
		"torus-4x4": {Kind: "torus", Shape: &topology.Torus{Dimensions: []int{4, 4}, HostsPerSwitch: 1}, Link: wire,
			Down: []string{"t0-3-t0-0", "t1-1-t2-1"}},
		"torus-2x3": {Kind: "torus", Shape: &topology.Torus{Dimensions: []int{2, 3}, HostsPerSwitch: 2}, Link: wire},
		"torus-3x3x3": {Kind: "torus", Shape: &topology.Torus{Dimensions: []int{3, 3, 3}, HostsPerSwitch: 1},
			Link: wire, Down: []string{"t2-0-0-t0-0-0"}},
		"torus-2x2x4": {Kind: "torus", Shape: &topology.Torus{Dimensions: []int{2, 2, 4}, HostsPerSwitch: 32},
			Link: wire},
		"dragonfly-plus-4": {Kind: "dragonfly-plus", Shape: &topology.DragonflyPlus{Groups: 4, Leaves: 2, Spines: 2,
			HostsPerLeaf: 2}, Link: wire,
			Tiers: map[string]topology.LinkSpec{"global": slow}, Down: []string{"spine-1-1-spine-4-1"}},
		"dragonfly-plus-33": {Kind: "dragonfly-plus", Shape: &topology.DragonflyPlus{Groups: 33, Leaves: 1, Spines: 4,
			HostsPerLeaf: 4}, Link: wire},
		"clos-figure-1": {Kind: "clos", Shape: &topology.Clos{Racks: 2, SwitchingRacks: 2, Leaves: 2, Spines: 2,
			Cores: 2, RacksPerPod: 1, HostsPerLeaf: 2}, Link: wire,
			Down: []string{"l3-1-1-l4-1-2"}},
		"clos-narrow": {Kind: "clos", Shape: &topology.Clos{Racks: 8, SwitchingRacks: 3, Leaves: 1, Spines: 1,
			Cores: 2, RacksPerPod: 4, HostsPerLeaf: 16}, Link: wire},
	}
}

func shape(t *testing.T, name string) *topology.Graph {
	t.Helper()
	l := shapes()[name]
	l.MTU = 4096
	g, err := topology.Build(l)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGoldenShapes(t *testing.T) {
	for _, name := range []string{"torus-4x4", "torus-3x3x3", "dragonfly-plus-4", "clos-figure-1"} {
		golden.Check(t, name+".svg", render.SVG(name, shape(t, name)))
	}
}

type area struct{ x, y, width, height float64 }

func (a area) holds(b area) bool {
	return a.x <= b.x && a.y <= b.y && b.x+b.width <= a.x+a.width && b.y+b.height <= a.y+a.height
}

func (a area) meets(b area) bool {
	return a.x < b.x+b.width && b.x < a.x+a.width && a.y < b.y+b.height && b.y < a.y+a.height
}

func numbers(t *testing.T, texts []string) []float64 {
	t.Helper()
	v := make([]float64, len(texts))
	for i, s := range texts {
		var err error
		if v[i], err = strconv.ParseFloat(s, 64); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

// areas are what match finds in a picture: its first four groups are x, y, width and height.
func areas(t *testing.T, svg string, match *regexp.Regexp) []area {
	t.Helper()
	var all []area
	for _, m := range match.FindAllStringSubmatch(svg, -1) {
		v := numbers(t, m[1:5])
		all = append(all, area{v[0], v[1], v[2], v[3]})
	}
	return all
}

var (
	size    = regexp.MustCompile(`viewBox="(\d+) (\d+) (\d+) (\d+)"`)
	heading = regexp.MustCompile(`<text class="h" x="\d+" y="(\d+)"`)
	boxRect = regexp.MustCompile(`</title><rect[^>]* x="([\d.-]+)" y="([\d.-]+)" width="([\d.]+)" height="([\d.]+)"`)
	border  = regexp.MustCompile(`<rect class="f" x="([\d.-]+)" y="([\d.-]+)" width="([\d.]+)" height="([\d.]+)"`)
	path    = regexp.MustCompile(` d="([^"]+)"`)
	step    = regexp.MustCompile(`([MLQC])([\d. -]+)`)
)

// Boxes lie beside each other, each in one frame where there are frames, all within the picture and
// below the caption.
func TestBoxesAndFrames(t *testing.T) {
	for name := range shapes() {
		svg := render.SVG(name, shape(t, name))
		room := below(t, svg)
		boxes, borders := areas(t, svg, boxRect), areas(t, svg, border)
		if len(boxes) == 0 || len(borders) == 0 && !strings.HasPrefix(name, "torus") {
			t.Errorf("%s: %d boxes, %d frames", name, len(boxes), len(borders))
		}
		for i, b := range boxes {
			frames := 0
			for _, f := range borders {
				if f.holds(b) {
					frames++
				}
			}
			if !room.holds(b) || len(borders) > 0 && frames != 1 {
				t.Errorf("%s: box %d at %v, in %d frames of %d", name, i, b, frames, len(borders))
			}
			for _, c := range boxes[i+1:] {
				if b.meets(c) {
					t.Errorf("%s: boxes at %v and %v overlap", name, b, c)
				}
			}
		}
		for i, f := range borders {
			for _, h := range borders[i+1:] {
				if f.meets(h) || !room.holds(f) {
					t.Errorf("%s: frames at %v and %v", name, f, h)
				}
			}
		}
	}
}

// below is the picture without title and caption.
func below(t *testing.T, svg string) area {
	t.Helper()
	room := areas(t, svg, size)[0]
	for _, m := range heading.FindAllStringSubmatch(svg, -1) {
		room.y = max(room.y, numbers(t, m[1:2])[0]+3)
	}
	room.height -= room.y
	return room
}

// No line crosses the title, the caption or the edge of the picture.
func TestLinesStayBelowTheCaption(t *testing.T) {
	for name := range shapes() {
		g := shape(t, name)
		for _, svg := range []string{render.SVG(name, g), render.Utilisation(name, g,
			func(*topology.Link) float64 { return 0.5 }, nil)} {
			room := below(t, svg)
			for _, m := range path.FindAllStringSubmatch(svg, -1) {
				for _, s := range step.FindAllStringSubmatch(m[1], -1) {
					v := numbers(t, strings.Fields(s[2]))
					if s[1] == "C" { // the end is level with the beginning, so the curve rises to 3/4 of its handles
						v = []float64{v[0], v[5] + 0.75*(v[1]-v[5]), v[4], v[5]}
					}
					for i := 0; i < len(v); i += 2 {
						if !room.holds(area{x: v[i], y: v[i+1]}) {
							t.Errorf("%s: %s goes to %v, %v", name, m[1], v[i], v[i+1])
						}
					}
				}
			}
		}
	}
}

// Each link that closes a ring is one line of two stubs, with the name of its other end at each.
func TestRingsCloseByName(t *testing.T) {
	svg := render.SVG("x", shape(t, "torus-4x4"))
	for _, want := range []string{`<path class="down" d="`, `>t3-2</text>`, `<text class="w l"`, `<text class="w r"`} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %s", want)
		}
	}
	for name, want := range map[string]int{"torus-4x4": 16, "torus-2x3": 4, "torus-3x3x3": 2 * 27,
		"torus-2x2x4": 2 * 4} {
		if n := strings.Count(render.SVG("x", shape(t, name)), `<text class="w`); n != want {
			t.Errorf("%s: %d labels, want %d", name, n, want)
		}
	}
}

// Racks stand in order, and so do the switches within them.
func TestRacksAreInOrder(t *testing.T) {
	svg := render.SVG("x", shape(t, "clos-figure-1"))
	last := -1
	for _, want := range []string{"l3-1-1", "l3-1-2", "l3-1-3", "l3-1-4", "l3-2-1", "l3-2-4"} {
		at := regexp.MustCompile(`<text x="([\d]+)[^>]*>` + want + "<").FindStringSubmatch(svg)
		if at == nil {
			t.Fatalf("no %s", want)
		}
		x := int(numbers(t, at[1:])[0])
		if x <= last {
			t.Errorf("%s at %d, after %d", want, x, last)
		}
		last = x
	}
}
