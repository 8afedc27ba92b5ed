package run

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"weft/internal/sample"
	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	"weft/params"
	"weft/transport"
	"weft/units"
)

// forms returns the form of every number, time, size and rate of a section, by its path.
func forms(s params.Section, path string, all map[string]params.Form) {
	for _, k := range s.Keys() {
		at := path + "." + k.Name
		if k.Open != nil {
			forms(k.Open(), at, all)
		}
		if k.Value == nil {
			continue
		}
		if f := k.Value.Form(); f.Number != "" || len(f.Patterns) > 0 {
			all[at] = f
		}
	}
}

// number is the number that a value begins with, and what follows it.
var number = regexp.MustCompile(`^([0-9.]+)(.*)$`)

// scaled returns a value times a factor, to three digits: bytes have no fraction; "" if it is no
// number.
func scaled(value string, factor float64) string {
	m := number.FindStringSubmatch(value)
	if m == nil {
		return ""
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return ""
	}
	n, _ = strconv.ParseFloat(fmt.Sprintf("%.3g", n*factor), 64)
	return strconv.FormatFloat(n, 'f', -1, 64) + m[2]
}

// writtenCell is a cell and one key of its transport, written.
type writtenCell struct {
	gridCell
	path, value string
}

func (c writtenCell) String() string { return fmt.Sprintf("%v, %s: %s", c.gridCell, c.path, c.value) }

// modes are settings of transports in which keys apply that do not by default.
var modes = map[string][]string{
	"pc4":   {"recovery: selective-repeat", "base_rate: off", "base_rate: observed", "adjust_interval: off", "target_qtime: scaled"},
	"roce":  {"preset: paper", "recovery: selective-repeat"},
	"swift": {"recovery: selective-repeat"},
	"hpcc":  {"recovery: selective-repeat"},
	"ccm":   {"inner: swift", "inner: pc4", "roce: {preset: paper}", "inner: pc4, pc4: {base_rate: off}"},
	"uec":   {"cc: rccc", "cc: both"},
}

// refused are numbers of a transport's section that it refuses: those of another one that has the
// section too.
var refused = map[string][]string{"spray": {"paths_per_packet", "forget_after"}}

// writtenCells has every number of every transport on some networks, a tenth and ten times its
// default: a word stands for what it comes to on the network, or for the key's example.
func writtenCells(t *testing.T, networks ...gridCell) (all []writtenCell) {
	for _, kind := range transport.Kinds() {
		if transport.FactsOf(kind).Module {
			continue // its keys are those of a file
		}
		section, in, _ := transport.SectionOf(kind)
		numbers := map[string]params.Form{}
		forms(section, "transport."+in, numbers)
		for _, key := range refused[kind] {
			delete(numbers, "transport."+in+"."+key)
		}
		left := maps.Clone(numbers)
		for _, mode := range append([]string{""}, modes[kind]...) {
			for _, c := range networks {
				if c.kind = kind; mode != "" {
					c.kind += fmt.Sprintf(", %s: {%s}", in, mode)
				}
				if c.queues = "{pfc: on}"; transport.FactsOf(kind).Trimmable {
					c.queues = "{trim: on}"
				}
				for path, values := range valuesOf(t, c, numbers) {
					delete(left, path)
					for _, value := range values {
						all = append(all, writtenCell{c, path, value})
					}
				}
			}
		}
		if len(left) > 0 {
			t.Errorf("%s: keys that apply in none of its modes: %v", kind, slices.Sorted(maps.Keys(left)))
		}
	}
	slices.SortStableFunc(all, func(a, b writtenCell) int { return cmp.Compare(a.String(), b.String()) })
	return all
}

// valuesOf returns the values to write for each key that applies in a cell.
func valuesOf(t *testing.T, c gridCell, of map[string]params.Form) map[string][]string {
	labs, err := lab.Parse("grid.yaml", []byte(c.lab(units.MB)), lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	effective, err := experiment.Effective(labs[0])
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, s := range labs[0].Sources {
		form, ok := of[s.Path]
		if !ok || labs[0].Written(s.Path) {
			continue // no number, or written by the cell
		}
		candidates := []string{s.Value}
		for _, e := range effective {
			if e.Path == s.Path {
				candidates = append(candidates, e.Value)
			}
		}
		candidates = append(candidates, form.Example, form.Least)
		all[s.Path] = []string{}
		for _, value := range candidates {
			for _, factor := range []float64{0.1, 10} {
				text := scaled(value, factor)
				if text == "" || slices.Contains(all[s.Path], text) {
					continue
				}
				if c.build(units.MB, s.Path+"="+text) != nil {
					all[s.Path] = append(all[s.Path], text)
				}
			}
			if len(all[s.Path]) > 0 {
				break
			}
		}
	}
	return all
}

// A written number of a transport, ten times or a tenth of what it is by default, leaves one flow
// nine tenths of an idle path, and four flows nine tenths of their link, or a warning names its
// key. make transport-grid tries more networks, and prints them.
func TestWrittenNumbersFitOrWarn(t *testing.T) {
	network := func(rate, delay string) gridCell {
		return gridCell{rate: rate, delay: delay, mtu: "4096", flows: 1}
	}
	four := network("100Gbps", "3us")
	four.flows = 4
	networks := []gridCell{network("100Gbps", "3us"), four}
	if sample.All() {
		networks = append(networks, network("100Gbps", "100ns"), network("100Gbps", "1us"), network("100Gbps", "30us"),
			network("1Gbps", "10us"), network("800Gbps", "1us"))
	}
	plain := map[gridCell]float64{} // with the defaults
	for _, c := range sample.Of(t, 400, writtenCells(t, networks...)...) {
		if _, tried := plain[c.gridCell]; !tried {
			share, warnings, ok := c.gridCell.run(t)
			if plain[c.gridCell] = share; !ok || share < 0.9 && len(causes(warnings)) == 0 {
				t.Errorf("%v: %.3f of the closed form, and no warning names a cause: %q", c.gridCell, share, warnings)
			}
		}
		if plain[c.gridCell] < 0.9 {
			continue
		}
		share, warnings, ok := c.run(t, c.path+"="+c.value)
		if !ok {
			continue
		}
		key := regexp.MustCompile(`\b` + c.path[strings.LastIndexByte(c.path, '.')+1:] + `\b`)
		named := slices.ContainsFunc(warnings, key.MatchString)
		if os.Getenv("WEFT_GRID") != "" {
			fmt.Printf("%s\t%.3f\t%v\n", strings.ReplaceAll(c.String(), ", ", "\t"), share, named)
		}
		if share < 0.9 && !named {
			t.Errorf("%v: %.3f of the closed form, and no warning names the key: %q", c, share, warnings)
		}
	}
}

// The modes of transports keep what their defaults do, also where a window is few packets.
func TestModesFitOrWarn(t *testing.T) {
	for kind, settings := range modes {
		_, in, _ := transport.SectionOf(kind)
		for _, mode := range settings {
			for _, delay := range []string{"100ns", "1us"} {
				c := gridCell{rate: "100Gbps", delay: delay, mtu: "4096", flows: 1, queues: "{pfc: on}"}
				if transport.FactsOf(kind).Trimmable {
					c.queues = "{trim: on}"
				}
				c.kind = fmt.Sprintf("%s, %s: {%s}", kind, in, mode)
				share, warnings, ok := c.run(t)
				if !ok || share < 0.9 && len(causes(warnings)) == 0 {
					t.Errorf("%v: %.3f of the closed form, and no warning names a cause: %q", c, share, warnings)
				}
			}
		}
	}
}
