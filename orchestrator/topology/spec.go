package topology

import (
	"fmt"
	"strconv"

	"weft/fabric"
	"weft/fabric/queues"
	"weft/internal/clip"
	"weft/params"
	"weft/units"
)

// Spec is the topology section of a lab.
type Spec struct {
	Kind   string // of Kinds
	Shape  Shape  // the sizes of the kind; nil: the kind is not known
	UpDown bool   // routes never go up after they have gone down

	Link LinkSpec // default of every link

	// Tiers holds the tiers that the lab gives settings of their own, by name. Keys that the lab
	// leaves out are from Link, except a rate that follows from the sizes: it is 0, or the tier is
	// missing.
	Tiers map[string]LinkSpec
	MTU   units.Bytes // payload bytes per packet
	Down  []string    // names of links that do not exist from the start

	prescanned bool   // a lab is read
	seed       uint64 // of links that are drawn to be down
	linkRate   bool   // link.rate is written
}

// Seeded returns a Spec to be read, whose random links follow from a seed.
func Seeded(seed uint64) Spec { return Spec{seed: seed} }

// LinkSpec is the properties of a link, for each direction.
type LinkSpec struct {
	fabric.Link

	// Queues are those of the link's switch ports if the link or its tier overrides the lab's; nil:
	// they are the lab's. Shared, Routing and Light are always the lab's.
	Queues *queues.Queues
}

// Bounds. Ours: they catch a slip of the pen before it takes the machine's memory.
const (
	maxTierSwitches = 4096 // leaves of a rack, spines, racks
	minMTU          = 64
	maxMTU          = 9000
	// MaxDelay is the longest delay of a link.
	MaxDelay  = units.Second
	maxJitter = units.Millisecond
	maxDown   = 100_000
)

// Keys implements params.Section.
func (l *LinkSpec) Keys() []params.Key {
	return []params.Key{
		params.New("rate", params.Bandwidth(&l.Rate), "Per direction.").Default("100Gbps", "PC4 paper, section IV"),
		params.New("delay", params.Time(&l.Delay, 0, MaxDelay), "One-way propagation.").
			Default("1us", "PC4 paper, section IV"),
		params.New("loss", params.Probability(&l.Loss), "Random packet loss, per direction.").Default("0", "ours"),
		params.New("bit_errors", params.Probability(&l.BitErrors), "Bit error rate; one error loses the packet.").
			Default("0", "ours"),
		params.New("duplicate", params.Probability(&l.Duplicate), "Packets delivered twice; not with PFC.").
			Default("0", "ours"),
		params.New("reorder", params.Probability(&l.Reorder), "Packets delivered late; not with PFC.").
			Default("0", "ours"),
		params.New("reorder_by", params.Time(&l.ReorderBy, units.Nanosecond, MaxDelay), "Maximum lateness, uniform.").
			Default("10us", "ours: a queue of one round trip in the networks of the papers"),
		params.New("jitter", params.Deviation(&l.Jitter, maxJitter).Like(units.TimePattern(), "10us"),
			"Mean of an extra exponential delay per packet; not with PFC.").OrNone(),
	}
}

// inherit sets l to the properties of a link or tier without keys: those of topology.link, except
// the rate.
func (l *LinkSpec) inherit(link LinkSpec) {
	*l = link
	l.Rate = 0
}

// own returns the keys of a link or tier. Those that it leaves out are from topology.link; the rate
// only if rated.
func (l *LinkSpec) own(link LinkSpec, rated bool) []params.Key {
	l.inherit(link)
	keys := l.Keys()
	for i := range keys {
		k := keys[i].Default("", "").OrNone()
		switch {
		case link.Rate == 0: // the keys are only listed
		case k.Name == "rate" && rated:
			k = k.Default(link.Rate.String(), "topology.link.rate")
		case k.Name == "delay":
			k = k.Default(link.Delay.String(), "topology.link.delay")
		}
		keys[i] = k
	}
	return append(keys, params.Sub("queues", func() params.Section { return new(queues.OfLink) },
		"Overrides the section queues at the switch ports of these links, key by key.").Same("queues").OnceKnown())
}

// Keys implements params.Section: the keys of the kind, and those of others, which are refused.
func (s *Spec) Keys() []params.Key {
	kind := params.New("kind", params.Word(&s.Kind, names()...), "Shape of the network.").Before()
	kind.Optional = !s.prescanned // a schema says that there is a kind or an import
	keys := []params.Key{
		kind,
		params.New("import", params.Text(new(string), "a file such as fabric.dot"),
			"File of nodes and links (docs/inputs.md).").OrNone(),
	}
	var lists []params.Key // of a network that is written down
	for _, k := range s.sizes() {
		if k.First {
			lists = append(lists, k)
		} else {
			keys = append(keys, k)
		}
	}
	keys = append(keys,
		params.New("routes", params.Choice(&s.UpDown, "shortest", "up-down"),
			"All shortest paths, or paths that never go up after down, which cannot deadlock under PFC.").
			Default("shortest", "ours"),
		params.Sub("link", func() params.Section { return defaultLink{&s.Link} }, "Default of every link.").Before(),
		s.tiers().Before(),
		params.New("mtu", payload(&s.MTU), "Payload bytes per packet.").Default("4096", "STrack paper, section 4.1"),
		params.List("down", params.ItemsOf(&s.Down, maxDown,
			func(name *string) params.Key { return params.One(params.LinkName(name)) }),
			"Links absent from the start: by name, or drawn at random (leaf-spine).").
			Or(func() params.Section { return &drawing{of: s} }),
	)
	return append(keys, lists...)
}

// defaultLink is the section topology.link.
type defaultLink struct{ *LinkSpec }

// Keys implements params.Section.
func (l defaultLink) Keys() []params.Key {
	return append(l.LinkSpec.Keys(), params.Refusal("queues",
		"the section queues already applies to every link; expected its keys there, or in a tier or a link of a "+
			"custom topology"))
}

// payload is the MTU, the one size that may be a bare number, because it is a number of bytes
// everywhere.
func payload(to *units.Bytes) params.Value {
	return params.Custom(to, func(text string) (units.Bytes, error) {
		if params.Digits(text) {
			text += "B"
		}
		return units.ParseBytes(text)
	}, func(b units.Bytes) string { return strconv.FormatInt(int64(b), 10) }, "payload bytes per packet such as 4096",
		func() params.Form {
			return params.Form{Number: "integer", Least: strconv.Itoa(minMTU), Most: strconv.Itoa(maxMTU),
				Patterns: []string{units.BytesPattern()}, Example: "50MB"}
		}).Within(fmt.Sprintf("%d to %d", minMTU, maxMTU),
		func(b units.Bytes) bool { return b >= minMTU && b <= maxMTU })
}

// Prescan implements params.Prescanner: sizes and tiers are those of the kind.
func (s *Spec) Prescan(written func(path string) (text string, ok bool)) {
	s.prescanned = true
	text, _ := written("kind")
	if k, ok := kindNamed(text); ok {
		s.Kind, s.Shape = text, k.new()
	}
	if l, ok := s.Shape.(interface{ within(*Spec) }); ok {
		l.within(s)
	}
	_, s.linkRate = written("link.rate")
}

// Rules implements params.Ruled.
func (s *Spec) Rules(r params.Rules) {
	if s.Shape == nil {
		return
	}
	if ruled, ok := s.Shape.(interface{ settle(*Spec, params.Rules) }); ok {
		ruled.settle(s, r)
	}
	if ruled, ok := s.Shape.(params.Ruled); ok {
		ruled.Rules(r)
	}
	if n := s.Shape.Hosts(); n == 1 || n > MaxHosts {
		refuseHosts(r, s.Kind, n)
	}
	if s.UpDown && s.Detours() {
		r.Refuse("detours", "routes that go up and down have no detours; expected false, or routes: shortest")
	}
	seen := map[string]bool{}
	for i, name := range s.Down {
		if seen[name] && name != "" {
			r.Refuse(fmt.Sprintf("down.%d", i), "%q is listed twice", clip.Text(name))
		}
		seen[name] = true
	}
	s.seed, s.linkRate, s.prescanned = 0, false, false // only for reading: equal sections give equal Specs
	if l, ok := s.Shape.(interface{ within(*Spec) }); ok {
		l.within(nil)
	}
}

// refuseHosts rejects a number of hosts.
func refuseHosts(r params.Rules, kind string, n int) {
	r.Refuse("kind", "the number of hosts in this %s network is %d; expected 2 to %d", kind, n, MaxHosts)
}

// HostCount returns the number of hosts, 0 if a size is not known.
func (s *Spec) HostCount() int {
	if s.Shape == nil {
		return 0
	}
	return s.Shape.Hosts()
}

// Detours reports whether switches that choose per packet may take a longer path.
func (s *Spec) Detours() bool {
	d, ok := s.Shape.(interface{ detours() bool })
	return ok && d.detours()
}

// Oversubscribed reports whether the rate of a tier follows from the sizes.
func (s *Spec) Oversubscribed(tier string) bool {
	return s.rated(tier) && s.Tiers[tier].Rate == 0
}

// Drawn returns the nodes and links of a network that a lab lists one by one; none if a generator
// makes it.
func (s *Spec) Drawn() (nodes []CustomNode, links []CustomLink) {
	if c, ok := s.Shape.(interface {
		drawn() ([]CustomNode, []CustomLink)
	}); ok {
		return c.drawn()
	}
	return nil, nil
}
