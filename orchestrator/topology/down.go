package topology

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"weft/internal/clip"
	"weft/params"
)

// drawing is the section topology.down: links drawn at random to be absent.
type drawing struct {
	of            *Spec
	links, leaves int // the number of links, and of the leaves that lose them
}

// leavesText matches the number of leaves that lose links.
var leavesText = regexp.MustCompile(`^[0-9]+ leaves$`)

// Keys implements params.Section.
func (d *drawing) Keys() []params.Key {
	random := params.New("random", params.Integer(&d.links, 1, maxLinks), "Leaf-spine links to remove.")
	among := params.New("among", params.Custom(&d.leaves, d.parse,
		func(n int) string { return strconv.Itoa(n) + " leaves" },
		"a number of leaves such as 16 leaves", func() params.Form {
			return params.Form{Patterns: []string{strings.Trim(leavesText.String(), "^$")}, Example: "16 leaves"}
		}), "Leaves that lose equally many; default: all.").OrNone()
	if d.of.Shape == nil {
		return []params.Key{random, among}
	}
	if _, ok := d.of.Shape.(uplinked); !ok {
		why := fmt.Sprintf("links are drawn in kind %s, not in %s; expected a list of links such as [edge0-agg1]",
			strings.Join(drawable(), ", "), d.of.Kind)
		random = random.Only(func() (bool, string) { return false, why })
		among = among.Only(func() (bool, string) { return false, "" })
	} else if n := d.most(); n > 0 {
		among = among.Following(func() (text, source string) { return strconv.Itoa(n) + " leaves", "all leaves" })
	}
	return []params.Key{random, among}
}

// uplinked is a Shape with links between leaves and spines that may be drawn.
type uplinked interface{ uplinks() (leaves, each int) }

// drawable returns the kinds that are uplinked.
func drawable() (names []string) {
	for _, k := range kinds {
		if _, ok := k.new().(uplinked); ok {
			names = append(names, k.Name)
		}
	}
	return slices.Clip(names)
}

// most returns the number of leaves.
func (d *drawing) most() int {
	leaves, _ := d.of.Shape.(uplinked).uplinks()
	return leaves
}

// parse parses a number of leaves.
func (d *drawing) parse(text string) (int, error) {
	count, _, _ := strings.Cut(text, " ")
	leaves, err := strconv.Atoi(count)
	if most := d.most(); !leavesText.MatchString(text) || err != nil || leaves < 1 || leaves > most {
		return 0, fmt.Errorf("%q is not understood; expected from 1 to %d, as in %d leaves", clip.Text(text), most,
			most)
	}
	return leaves, nil
}

// Rules draws the links between leaves and spines with the seed of the lab: first the leaves that
// lose links, then the same number of links for each of them.
func (d *drawing) Rules(r params.Rules) {
	shape, ok := d.of.Shape.(uplinked)
	if !ok || d.links == 0 || d.leaves == 0 {
		return
	}
	all, spines := shape.uplinks()
	switch each := d.links / d.leaves; {
	case d.links%d.leaves != 0:
		r.Refuse("random", "%d links cannot be spread evenly over %d leaves; expected a multiple of %d",
			d.links, d.leaves, d.leaves)
	case each >= spines:
		r.Refuse("random", "%d links down at each of %d leaves, which have %d uplinks; expected at most %d in all",
			each, d.leaves, spines, (spines-1)*d.leaves)
	default:
		random := rand.New(rand.NewPCG(d.of.seed, 0x2545f4914f6cdd1d))
		for _, leaf := range random.Perm(all)[:d.leaves] {
			for _, spine := range random.Perm(spines)[:each] {
				d.of.Down = append(d.of.Down, fmt.Sprintf("leaf%d-spine%d", leaf, spine))
			}
		}
	}
}
