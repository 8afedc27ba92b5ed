package lab

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"weft/params"
	"weft/units"
)

// Bounds of the topology section. Ours: they refuse a slip of the pen before it takes the machine's memory.
const (
	maxHosts     = 65536 // a fat-tree of k = 64
	maxK         = 64
	maxDimension = 64      // of a torus
	maxSwitches  = 4096    // leaves, spines
	maxLinks     = 1 << 20 // of a custom topology
	minMTU       = 64
	maxMTU       = 9000
	maxDelay     = units.Second
	minOver      = 0.01 // oversubscription
	maxOver      = 1000
)

var routeKinds = choice{built: []string{"shortest", "up-down"}}

func (d *decoder) topology(s *section) Topology {
	var t Topology
	var known bool
	t.Kind, known = s.field("kind").enum(topologyKinds)
	if !known { // what belongs to another kind cannot be judged
		s.foreign = sizeKeys()
	}
	l := s.section("link")
	l.read(&t.Link)
	l.refuse("queues", "the section queues is about every link already; expected them there, or in a tier or a link of a custom topology")
	l.close()
	t.Tiers = s.tiers(t)
	if known {
		s.sizes(&t)
	}
	routes, _ := s.field("routes").enum(routeKinds)
	t.UpDown = routes == "up-down"
	if t.UpDown && t.Detours {
		s.field("detours").problem("routes that go up and down have no detours; expected false, or routes: shortest")
	}
	t.MTU, _ = s.field("mtu").payload()
	t.Down = s.down(&t)
	if t.Kind == "custom" {
		d.checkCustom(s, &t)
	}
	s.close()
	return t
}

// sizes reads the keys of t's kind and refuses those of others.
func (s *section) sizes(t *Topology) {
	own := topologyKind(t.Kind).keys
	for _, name := range sizeKeys() {
		if !slices.Contains(own, name) {
			s.refuseForeign(name, t.Kind)
		}
	}
	if read := topologyKind(t.Kind).read; read != nil {
		read(s, t)
	}
	if n := t.HostCount(); n == 1 || n > maxHosts || n == 0 && len(t.Nodes) > 0 {
		s.field("kind").problem("the number of hosts of this %s is %d; expected 2 to %d", t.Kind, n, maxHosts)
	}
}

// refuseForeign refuses a key of another kind. An oversubscription of 1 is what every kind has.
func (s *section) refuseForeign(name, kind string) {
	s.foreign = append(s.foreign, name)
	f := s.look(name)
	if !f.written() || name == "oversubscription" && f.n.text == "1" {
		return
	}
	var owners []string
	for _, owner := range topologies {
		if slices.Contains(owner.keys, name) {
			owners = append(owners, owner.Name)
		}
	}
	f.problem("applies to kind %s, not to %s", strings.Join(owners, " and "), kind)
}

// dimensions reads how many switches a torus has along each of two or three dimensions.
func (f field) dimensions() []int {
	var all []int
	for _, item := range f.items(3) {
		all = append(all, item.integer(2, maxDimension))
	}
	if len(all) < 2 {
		f.problem("expected how many switches there are along two or three dimensions, such as [4, 4]")
		return nil
	}
	return all
}

// uplinks settles the rate of a leaf's uplinks and the oversubscription, each of which follows from the other. What is
// written decides, the more specific key first: tiers.leaf.rate, then oversubscription, then link.rate. Full bisection is
// for labs that write none of them.
func (s *section) uplinks(t *Topology) {
	f := s.field("oversubscription")
	host := t.Link.Rate
	if tier, ok := t.Tiers["host"]; ok {
		host = tier.Rate
	}
	link, leaf := field{n: s.n.at0("link").at0("rate")}, t.Tiers["leaf"]
	if t.HostsPerLeaf == 0 || t.Spines == 0 || host == 0 || t.Link.Rate == 0 { // reported
		t.Oversubscription, _ = f.decimal(minOver, maxOver)
		return
	}
	ratio := func(uplink units.Bandwidth) float64 {
		return float64(t.HostsPerLeaf) * float64(host) / (float64(t.Spines) * float64(uplink))
	}
	from := "topology.tiers.leaf.rate"
	switch {
	case leaf.Rate != 0:
	case f.written():
		t.Oversubscription, _ = f.decimal(minOver, maxOver)
		if link.written() && host != t.Link.Rate && !near(t.Oversubscription, ratio(t.Link.Rate)) {
			f.problem("%s sets the uplinks, and tiers.host.rate the links of hosts, so that topology.link.rate, %v, would be the rate of no link; expected %s, or leave one of the three out",
				params.ShowDecimal(t.Oversubscription), t.Link.Rate, showRatio(ratio(t.Link.Rate)))
		}
		return
	case link.written():
		if _, ok := t.Tiers["leaf"]; !ok {
			leaf = t.Link
		}
		leaf.Rate, from = t.Link.Rate, "topology.link.rate"
	default:
		t.Oversubscription, _ = f.decimal(minOver, maxOver)
		return
	}
	if t.Tiers == nil {
		t.Tiers = make(map[string]LinkSpec)
	}
	t.Tiers["leaf"] = leaf
	t.Oversubscription = ratio(leaf.Rate)
	if !f.written() {
		f.n = nil
		f.or(showRatio(t.Oversubscription), "follows from "+from).record(showRatio(t.Oversubscription))
		return
	}
	if v, ok := f.decimal(minOver, maxOver); ok && !near(v, t.Oversubscription) {
		f.problem("%s contradicts %s, %v: %d hosts of %v and %d uplinks of a leaf make %s; expected that, or leave one of the two out",
			params.ShowDecimal(v), from, leaf.Rate, t.HostsPerLeaf, host, t.Spines, showRatio(t.Oversubscription))
	}
}

// Oversubscribed says that the rate of a tier follows from the oversubscription.
func (t *Topology) Oversubscribed(tier string) bool {
	return t.Oversubscription > 0 && tier == "leaf" && t.Tiers[tier].Rate == 0
}

// near says that two ratios are the same but for the digits that somebody left out.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-3*math.Max(a, b) }

// showRatio writes a ratio that was computed.
func showRatio(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// HostCount is how many hosts the topology has, 0 if its size is not set.
func (t Topology) HostCount() int {
	if hosts := topologyKind(t.Kind).hosts; hosts != nil {
		return hosts(&t)
	}
	return 0
}

func (s *section) tiers(t Topology) map[string]LinkSpec {
	f := s.field("tiers")
	if f.n == nil || t.Kind == "" {
		return nil
	}
	if t.Kind == "custom" {
		f.problem("a custom topology has no tiers; its links have rates and delays of their own")
		return nil
	}
	all := f.open()
	defer all.close()
	tiers := make(map[string]LinkSpec)
	for _, name := range topologyKind(t.Kind).tiers {
		f := all.field(name)
		if f.n == nil {
			continue
		}
		l := f.open()
		l.pattern = "topology.tiers.*"
		spec := l.inherit(t.Link, name != "leaf" || t.Kind != "leaf-spine")
		l.field("queues") // read by linkQueues, once the queues of the lab are known
		l.close()
		tiers[name] = spec
	}
	return tiers
}

// payload reads the MTU, the one size that may be a bare number: it is a count of bytes everywhere.
func (f field) payload() (units.Bytes, bool) {
	show := func(b units.Bytes) string { return strconv.FormatInt(int64(b), 10) }
	return read(f, "payload bytes per packet such as 4096", between(func(text string) (units.Bytes, error) {
		if params.Digits(text) {
			text += "B"
		}
		return units.ParseBytes(text)
	}, minMTU, maxMTU, show), show)
}

// nameText is the form of every name: of a lab, which becomes a folder, and of a node, which becomes a host
// name (RFC 1123, section 2.1: 63 characters).
var nameText = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

func (f field) name() string {
	name, _ := read(f, "a name of 1 to 63 letters a-z, digits and -", func(text string) (string, error) {
		if !nameText.MatchString(text) {
			return "", fmt.Errorf("%q is not a name; expected 1 to 63 letters a-z, digits and -, the first not -", params.Clip(text))
		}
		return text, nil
	}, func(v string) string { return v })
	return name
}

// linkText is the form of a link's name: its two ends, and a number when several links join them.
var linkText = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*-[a-z0-9][a-z0-9-]*(#[0-9]+)?$`)

func (f field) linkName() string {
	name, _ := read(f, "the name of a link such as leaf0-spine3", func(text string) (string, error) {
		if !linkText.MatchString(text) {
			return "", fmt.Errorf("%q is not the name of a link; expected its two ends such as leaf0-spine3", params.Clip(text))
		}
		return text, nil
	}, func(v string) string { return v })
	return name
}
