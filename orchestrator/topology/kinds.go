package topology

import (
	"fmt"
	"slices"
	"strings"

	"weft/internal/plural"
	"weft/params"
)

// kinds registers every shape of network, a line each, in the order in which people see them: its
// name, what it is, the sizes to start from, and its tiers of links, each with what it joins.
// Everything else about a shape is a method beside its generator. free gives the reason why packets
// of a network never wait for each other in a cycle, for the few kinds that need no search
// (Deadlock).
var kinds = []Registration{
	register("fat-tree", "a three-tier Clos network of k-port switches", FatTree{K: 4},
		Tier{"host", hostLinks}, Tier{"edge", "edge to aggregation"}, Tier{"core", "aggregation to core"}).
		free(upAndDown),
	register("leaf-spine", "every leaf switch connects to every spine switch",
		LeafSpine{Leaves: 4, Spines: 2, HostsPerLeaf: 4},
		Tier{"host", hostLinks}, Tier{"leaf", "leaf to spine"}).free(upAndDown),
	register("clos", "four layers of switches in computing and switching racks", Clos{2, 2, 2, 2, 2, 0, 2},
		Tier{"host", hostLinks}, Tier{"l1", "layers 1 to 2"}, Tier{"l2", "layers 2 to 3"}, Tier{"l3", "layers 3 to 4"}),
	register("dragonfly-plus", "groups of leaves and spines, all connected to each other",
		DragonflyPlus{3, 2, 2, 2, false},
		Tier{"host", hostLinks}, Tier{"leaf", "leaf to spine"}, Tier{"global", "between groups"}),
	register("torus", "a grid of switches that wraps around in every dimension", Torus{[]int{4, 4}, 1},
		Tier{"host", hostLinks}, Tier{"switch", "between switches"}),
	register("dumbbell", "two switches with hosts, joined by one link", Dumbbell{4}, Tier{"host", hostLinks},
		Tier{"core", "middle link"}).free(upAndDown),
	register("star", "one switch with hosts", Star{8}, Tier{"host", hostLinks}).free(upAndDown),
	register(customKind, "nodes and links by name", Custom{}),
}

const (
	hostLinks = "host links"
	// upAndDown is why trees are not searched. Links that are down may bend their paths, which is
	// the subject of some experiments.
	upAndDown = "shortest paths go up and then down"
)

// Shape is a shape of network with its sizes, which are keys of the topology section. A shape may
// also have
//
//	Rules(params.Rules)          rules about several of its sizes
//	Fit(hosts int)               sets the sizes to at least that many hosts, for weft bench
//	detours() bool               switches that choose per packet may take a longer path
//	rated() string               the tier whose rate follows from the sizes
//	uplinks() (n, each int)      leaves and their links to spines, which may be drawn as down
type Shape interface {
	params.Section
	Hosts() int // the number of hosts; 0: a size is not known
	build(*builder) error
}

// A Tier is a set of links that a lab may give settings of their own.
type Tier struct{ Name, About string }

// A Registration is a registered shape of network.
type Registration struct {
	Name, About string

	tiers  []Tier
	new    func() Shape // returns one without sizes
	start  func() Shape // returns one with sizes to start from
	reason string       // why its networks are not searched for a cycle; "": they are
}

// register returns the registration of a shape of type T.
func register[T any, S interface {
	*T
	Shape
}](name, about string, start T, tiers ...Tier) Registration {
	return Registration{
		Name: name, About: about, tiers: tiers, new: func() Shape { return S(new(T)) },
		start: func() Shape { sizes := start; return S(&sizes) },
	}
}

// free records why networks of the kind need no search for a cycle.
func (k Registration) free(reason string) Registration {
	k.reason = reason
	return k
}

// Kinds returns every registered shape of network.
func Kinds() []Registration { return slices.Clone(kinds) }

// kindNamed returns the kind with a name.
func kindNamed(name string) (Registration, bool) {
	i := slices.IndexFunc(kinds, func(k Registration) bool { return k.Name == name })
	if i < 0 {
		return Registration{}, false
	}
	return kinds[i], true
}

// names returns the names of all kinds.
func names() (all []string) {
	for _, k := range kinds {
		all = append(all, k.Name)
	}
	return all
}

// A Parameter is a size of a network. Value is the one to start from; without one, a lab file
// leaves the key out, so that its default applies. A list is written with commas.
type Parameter struct{ Name, Value, About string }

// Parameters returns the sizes of a network of this kind.
func (k Registration) Parameters() (all []Parameter) {
	start := k.start()
	if s, ok := start.(interface{ parameters() []Parameter }); ok {
		return s.parameters()
	}
	for _, size := range start.Keys() {
		all = append(all, Parameter{size.Name, size.Shown(), size.About})
	}
	return all
}

// Sketch returns the lines of a lab file's topology section that describe a network of this kind,
// from the values of its parameters. It does not check the values: the reader of a lab does.
func (k Registration) Sketch(value func(parameter string) string) (string, error) {
	start := k.start()
	if s, ok := start.(interface {
		sketch(func(string) string) (string, error)
	}); ok {
		return s.sketch(value)
	}
	var b strings.Builder
	for _, size := range start.Keys() {
		v := value(size.Name)
		if size.Items != nil {
			v = "[" + strings.ReplaceAll(strings.Trim(v, "[]"), ",", ", ") + "]"
		}
		if v != "" {
			fmt.Fprintf(&b, "  %s: %s\n", size.Name, v)
		}
	}
	return b.String(), nil
}

// Fit returns the sizes of a network of at least the given number of hosts, as a lab writes them.
// ok is false for a kind that cannot.
func (k Registration) Fit(hosts int) (text string, ok bool) {
	s := k.new()
	f, ok := s.(interface{ Fit(hosts int) })
	if !ok {
		return "", false
	}
	f.Fit(hosts)
	var sizes []string
	for _, size := range s.Keys() {
		if v := size.Shown(); v != "" {
			sizes = append(sizes, size.Name+": "+v)
		}
	}
	return strings.Join(sizes, ", "), true
}

// sizes returns the keys of the sizes of all kinds: those of this one, and then those of others,
// which it rejects.
func (s *Spec) sizes() (all []params.Key) {
	if s.Shape != nil {
		all = s.Shape.Keys()
	}
	owners, first := map[string][]string{}, len(all)
	var values map[string][]params.Key
	if s.Shape == nil {
		values = map[string][]params.Key{}
	}
	for _, k := range kinds {
		for _, size := range k.new().Keys() {
			if slices.ContainsFunc(all[:first], func(own params.Key) bool { return own.Name == size.Name }) {
				continue
			}
			if len(owners[size.Name]) == 0 {
				all = append(all, size)
			}
			owners[size.Name] = append(owners[size.Name], k.Name)
			if values != nil {
				values[size.Name] = append(values[size.Name], size)
			}
		}
	}
	for i := range all[first:] {
		k := &all[first+i]
		if s.Shape == nil {
			*k = merged(values[k.Name], owners[k.Name]).Elsewhere("")
		} else {
			hint := ""
			if k.Name == "links" {
				hint = "; topology.link is for all links of a network"
			}
			*k = k.Elsewhere(fmt.Sprintf("applies to kind %s, not to %s%s", strings.Join(owners[k.Name], ", "),
				s.Kind, hint))
		}
	}
	return all
}

// merged returns a key that several kinds have. It accepts the values of any of them and explains
// its meaning for each.
func merged(keys []params.Key, owners []string) params.Key {
	k := keys[0]
	if k.Value != nil {
		var values []params.Value
		for i := range keys {
			values = append(values, keys[i].Value)
		}
		k.Value = params.Union(values...)
	}
	var abouts []string
	for i := range keys {
		abouts = append(abouts, keys[i].About)
	}
	k.About = describe(owners, abouts)
	return k
}

// describe explains what something means for kinds. Kinds for which it means the same are listed
// together.
func describe(kinds, abouts []string) string {
	var meanings []string
	of := map[string][]string{}
	for i, about := range abouts {
		if of[about] == nil {
			meanings = append(meanings, about)
		}
		of[about] = append(of[about], kinds[i])
	}
	for i, m := range meanings {
		meanings[i] = strings.Join(of[m], ", ") + ": " + m + "."
	}
	return strings.Join(meanings, " ")
}

// tiers returns the key of the tiers of the kind, or of all kinds if it is not known.
func (s *Spec) tiers() params.Key {
	key := params.Sub("tiers", func() params.Section { return &ownTiers{s} }, "Overrides link for one tier.").OrNone()
	if k, ok := kindNamed(s.Kind); s.Shape != nil && ok && len(k.tiers) == 0 {
		return key.Only(func() (bool, string) {
			return false, "a " + k.Name + " topology has no tiers; its links have rates and delays of their own"
		})
	}
	return key
}

// OwnTiers returns the names in Tiers, in the order of the registration.
func (s *Spec) OwnTiers() (names []string) {
	k, _ := kindNamed(s.Kind)
	for _, t := range k.tiers {
		if _, ok := s.Tiers[t.Name]; ok {
			names = append(names, t.Name)
		}
	}
	return names
}

// ownTiers is the section of the tiers with settings of their own.
type ownTiers struct{ of *Spec }

// Keys implements params.Section.
func (t *ownTiers) Keys() (all []params.Key) {
	abouts, owners := map[string][]string{}, map[string][]string{}
	for _, k := range kinds {
		if t.of.Shape != nil && k.Name != t.of.Kind {
			continue
		}
		for _, tier := range k.tiers {
			if owners[tier.Name] == nil {
				all = append(all, params.Sub(tier.Name,
					func() params.Section { return &ownTier{t.of, tier.Name, LinkSpec{}} }, "").
					Same("topology.tiers.*").OrNone())
			}
			owners[tier.Name], abouts[tier.Name] = append(owners[tier.Name], k.Name),
				append(abouts[tier.Name], tier.About)
		}
	}
	for i := range all {
		name := all[i].Name
		if all[i].About = describe(owners[name], abouts[name]); name == kinds[0].tiers[0].Name {
			all[i].About = "Host links." // of every kind
		}
	}
	return all
}

// ownTier is one tier with settings of its own.
type ownTier struct {
	of   *Spec
	name string
	link LinkSpec
}

// Keys implements params.Section.
func (t *ownTier) Keys() []params.Key { return t.link.own(t.of.Link, !t.of.rated(t.name)) }

// Rules implements params.Ruled.
func (t *ownTier) Rules(params.Rules) {
	if t.of.Tiers == nil {
		t.of.Tiers = make(map[string]LinkSpec)
	}
	t.of.Tiers[t.name] = t.link
}

// rated reports whether the rate of a tier follows from the sizes, unless the lab writes it.
func (s *Spec) rated(tier string) bool {
	r, ok := s.Shape.(interface{ rated() string })
	return ok && r.rated() == tier
}

// generate adds the nodes and links of the kind.
func (b *builder) generate() error {
	k, ok := kindNamed(b.t.Kind)
	if !ok || b.t.Shape == nil {
		return fmt.Errorf("kind %q; expected %s", b.t.Kind, plural.Or(names()))
	}
	if err := params.Validate(k.Name, b.t.Shape); err != nil {
		return err
	}
	var tiers []string
	for _, t := range k.tiers {
		tiers = append(tiers, t.Name)
	}
	for name := range b.t.Tiers {
		if !slices.Contains(tiers, name) {
			return fmt.Errorf("tiers: a %s has the tiers %v only", b.t.Kind, tiers)
		}
	}
	b.g.searched = k.reason == ""
	if err := b.t.Shape.build(b); err != nil {
		return fmt.Errorf("%s: %w", k.Name, err)
	}
	return nil
}
