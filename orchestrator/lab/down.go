package lab

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"

	"weft/params"
)

// down reads the links that do not exist from the start: their names, or so many to be drawn.
func (s *section) down(t *Topology) []string {
	f := s.field("down")
	if f.n != nil && f.n.kind == mapping {
		return f.open().drawnLinks(t)
	}
	var down []string
	seen := make(map[string]bool)
	for _, item := range f.items(maxValues) {
		name := item.linkName()
		if seen[name] {
			item.problem("%q is there twice", params.Clip(name))
			continue
		}
		if name != "" {
			seen[name] = true
			down = append(down, name)
		}
	}
	return down
}

// leavesText is how many leaves lose links.
var leavesText = regexp.MustCompile(`^[0-9]+ leaves$`)

// drawnLinks draws links between leaves and spines with the seed of the lab: first the leaves that lose some, then as
// many for each of them.
func (s *section) drawnLinks(t *Topology) []string {
	defer s.close()
	random, among := s.field("random"), s.field("among")
	if t.Kind != "leaf-spine" {
		if t.Kind != "" {
			random.problem("links are drawn in kind leaf-spine, not in %s; expected a list of links such as [edge0-agg1]", t.Kind)
		}
		return nil
	}
	n := random.integer(1, maxLinks)
	among = among.or(strconv.Itoa(t.Leaves)+" leaves", "all leaves")
	leaves, ok := read(among, "a number of leaves such as 16 leaves", func(text string) (int, error) {
		count, _, _ := strings.Cut(text, " ")
		leaves, err := strconv.Atoi(count)
		if !leavesText.MatchString(text) || err != nil || leaves < 1 || leaves > t.Leaves {
			return 0, fmt.Errorf("%q is not understood; expected 1 leaves to %d leaves", params.Clip(text), t.Leaves)
		}
		return leaves, nil
	}, func(v int) string { return strconv.Itoa(v) + " leaves" })
	switch each := n / max(1, leaves); {
	case !ok || n == 0:
	case n%leaves != 0:
		random.problem("%d links are not the same number for each of %d leaves; expected a multiple of %d", n, leaves, leaves)
	case each >= t.Spines:
		random.problem("%d links of each of %d leaves leave none of its %d; expected at most %d", each, leaves, t.Spines, (t.Spines-1)*leaves)
	default:
		return drawLinks(s.d.seed, t, leaves, each)
	}
	return nil
}

func drawLinks(seed uint64, t *Topology, leaves, each int) []string {
	r := rand.New(rand.NewPCG(seed, 0x2545f4914f6cdd1d))
	var down []string
	for _, leaf := range r.Perm(t.Leaves)[:leaves] {
		for _, spine := range r.Perm(t.Spines)[:each] {
			down = append(down, fmt.Sprintf("leaf%d-spine%d", leaf, spine))
		}
	}
	return down
}
