package lab

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

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
	minRate      = units.Kbps
	maxRate      = 10 * units.Tbps
	maxDelay     = units.Second
)

var topologyKinds = choice{
	built: []string{"fat-tree", "leaf-spine", "clos", "dragonfly-plus", "torus", "dumbbell", "star", "custom"},
}

var routeKinds = choice{built: []string{"shortest", "up-down"}}

// sizeKeys lists the keys that describe the size of each kind, and tierNames the tiers of its links.
var (
	sizeKeys = map[string][]string{
		"fat-tree":   {"k"},
		"leaf-spine": {"leaves", "spines", "hosts_per_leaf", "oversubscription"},
		"clos":       {"racks", "switching_racks", "leaves", "spines", "cores", "racks_per_pod", "hosts_per_leaf"},

		"dragonfly-plus": {"groups", "leaves", "spines", "hosts_per_leaf", "detours"},

		"torus":    {"dimensions", "hosts_per_switch"},
		"dumbbell": {"hosts"},
		"star":     {"hosts"},
		"custom":   {"nodes", "links"},
	}
	tierNames = map[string][]string{
		"fat-tree":       {"host", "edge", "core"},
		"leaf-spine":     {"host", "leaf"},
		"clos":           {"host", "l1", "l2", "l3"},
		"dragonfly-plus": {"host", "leaf", "global"},
		"torus":          {"host", "switch"},
		"dumbbell":       {"host", "core"},
		"star":           {"host"},
	}
)

func (d *decoder) topology(s *section) Topology {
	var t Topology
	var known bool
	t.Kind, known = s.field("kind").enum(topologyKinds)
	s.lenient = !known // what belongs to another kind cannot be judged
	t.Link = s.link()
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
	for _, name := range allSizeKeys() {
		if !slices.Contains(sizeKeys[t.Kind], name) {
			s.refuseForeign(name, t.Kind)
		}
	}
	switch t.Kind {
	case "fat-tree":
		f := s.field("k")
		if t.K = f.integer(2, maxK); t.K%2 != 0 {
			f.problem("%d is odd; expected an even number such as %d", t.K, t.K+1)
			t.K = 0
		}
	case "leaf-spine":
		t.Leaves = s.field("leaves").integer(1, maxHosts)
		t.Spines = s.field("spines").integer(1, maxSwitches)
		t.HostsPerLeaf = s.field("hosts_per_leaf").integer(1, maxHosts)
		t.Oversubscription = s.oversubscription(t)
	case "clos":
		t.Racks = s.field("racks").integer(1, maxSwitches)
		t.SwitchingRacks = s.field("switching_racks").integer(1, maxSwitches)
		t.Leaves = s.field("leaves").integer(1, maxSwitches)
		t.Spines = s.field("spines").integer(1, maxSwitches)
		t.Cores = s.field("cores").integer(1, maxSwitches)
		f := s.field("racks_per_pod")
		if t.RacksPerPod = f.integer(1, maxSwitches); t.RacksPerPod > 0 && t.Racks%t.RacksPerPod != 0 {
			f.problem("%d computing racks are not pods of %d; expected a divisor", t.Racks, t.RacksPerPod)
		}
		t.HostsPerLeaf = s.field("hosts_per_leaf").integer(1, maxHosts)
	case "dragonfly-plus":
		t.Groups = s.field("groups").integer(2, maxSwitches)
		t.Leaves = s.field("leaves").integer(1, maxSwitches)
		t.Spines = s.field("spines").integer(1, maxSwitches)
		t.HostsPerLeaf = s.field("hosts_per_leaf").integer(1, maxHosts)
		t.Detours = s.field("detours").flag()
	case "torus":
		t.Dimensions = s.field("dimensions").dimensions()
		t.HostsPerSwitch = s.field("hosts_per_switch").integer(1, maxHosts)
	case "dumbbell":
		t.Hosts = s.field("hosts").integer(1, maxHosts/2)
	case "star":
		t.Hosts = s.field("hosts").integer(2, maxHosts)
	case "custom":
		t.Nodes = s.nodes()
		t.Links = s.links(t.Link)
	}
	if n := t.HostCount(); n == 1 || n > maxHosts || n == 0 && len(t.Nodes) > 0 {
		s.field("kind").problem("the number of hosts of this %s is %d; expected 2 to %d", t.Kind, n, maxHosts)
	}
}

// allSizeKeys lists every key of sizeKeys once, in a fixed order.
func allSizeKeys() []string {
	var all []string
	for _, kind := range topologyKinds.built {
		for _, name := range sizeKeys[kind] {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// refuseForeign refuses a key of another kind. An oversubscription of 1 is what every kind has.
func (s *section) refuseForeign(name, kind string) {
	s.foreign = append(s.foreign, name)
	f := s.look(name)
	if !f.written() || name == "oversubscription" && f.n.text == "1" {
		return
	}
	var owners []string
	for _, owner := range topologyKinds.built {
		if slices.Contains(sizeKeys[owner], name) {
			owners = append(owners, owner)
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

func (s *section) oversubscription(t *Topology) float64 {
	f := s.field("oversubscription")
	v, _ := f.decimal(0.01, 1000)
	if f.written() && t.Tiers["leaf"].Rate != 0 {
		f.problem("given together with topology.tiers.leaf.rate, which it would change; expected one of them")
	}
	return v
}

// HostCount is how many hosts the topology has, 0 if its size is not set.
func (t Topology) HostCount() int {
	switch t.Kind {
	case "fat-tree":
		return t.K * t.K * t.K / 4
	case "leaf-spine":
		return t.Leaves * t.HostsPerLeaf
	case "clos":
		return t.Racks * t.Leaves * t.HostsPerLeaf
	case "dragonfly-plus":
		return t.Groups * t.Leaves * t.HostsPerLeaf
	case "torus":
		hosts := t.HostsPerSwitch
		for _, n := range t.Dimensions {
			hosts *= n
		}
		if len(t.Dimensions) == 0 {
			return 0
		}
		return hosts
	case "dumbbell":
		return 2 * t.Hosts
	case "star":
		return t.Hosts
	}
	hosts := 0
	for _, n := range t.Nodes {
		if !n.Switch {
			hosts++
		}
	}
	return hosts
}

func (s *section) link() LinkSpec {
	l := s.section("link")
	defer l.close()
	spec := LinkSpec{}
	spec.Rate, _ = l.field("rate").rate()
	spec.Delay, _ = l.field("delay").delay()
	spec.Loss = l.field("loss").probability()
	spec.BitErrors = l.field("bit_errors").probability()
	spec.Duplicate = l.field("duplicate").probability()
	spec.Reorder = l.field("reorder").probability()
	spec.ReorderBy = l.field("reorder_by").reorderBy()
	spec.Jitter = l.field("jitter").plusMinus(maxJitter)
	l.field("queues").later("queues of a single link or tier are")
	return spec
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
	for _, name := range tierNames[t.Kind] {
		f := all.field(name)
		if f.n == nil {
			continue
		}
		l := f.open()
		l.pattern = "topology.tiers.*"
		spec := LinkSpec{}
		if rate := l.field("rate"); rate.written() || name != "leaf" {
			spec.Rate, _ = rate.or(t.Link.Rate.String(), "topology.link.rate").rate()
		}
		l.inherit(&spec, t.Link)
		l.field("queues").later("queues of a single link or tier are")
		l.close()
		tiers[name] = spec
	}
	return tiers
}

// inherit reads what a tier or a link may have of its own besides a rate, and otherwise has from topology.link.
func (s *section) inherit(own *LinkSpec, link LinkSpec) {
	own.Delay, _ = s.field("delay").or(link.Delay.String(), "topology.link.delay").delay()
	own.Loss, own.BitErrors = link.Loss, link.BitErrors
	if f := s.field("loss"); f.written() {
		own.Loss = f.probability()
	}
	if f := s.field("bit_errors"); f.written() {
		own.BitErrors = f.probability()
	}
	own.Duplicate, own.Reorder, own.ReorderBy, own.Jitter = link.Duplicate, link.Reorder, link.ReorderBy, link.Jitter
	if f := s.field("duplicate"); f.written() {
		own.Duplicate = f.probability()
	}
	if f := s.field("reorder"); f.written() {
		own.Reorder = f.probability()
	}
	if f := s.field("reorder_by"); f.written() {
		own.ReorderBy = f.reorderBy()
	}
	if f := s.field("jitter"); f.written() {
		own.Jitter = f.plusMinus(maxJitter)
	}
}

// reorderBy reads by how much a packet comes late.
func (f field) reorderBy() units.Time {
	by, _ := quantity(f, units.ParseTime, units.Nanosecond, maxDelay)
	return by
}

// probability reads a share below 1 that may be very small: 0.1%, 0.001 or 1e-12.
func (f field) probability() float64 {
	const expected = "a share from 0 to below 1, such as 0.1% or 1e-12"
	p, _ := read(f, expected, func(text string) (float64, error) {
		p, err := orPercent(parseProbability)(text)
		switch {
		case err != nil:
			return 0, fmt.Errorf("%q is not a share; expected %s", clip(text), expected)
		case p >= 1:
			return 0, fmt.Errorf("%q is out of range; expected %s", clip(text), expected)
		}
		return p, nil
	}, showProbability)
	return p
}

var probabilityText = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?(e-[0-9]{1,2})?$`)

func parseProbability(text string) (float64, error) {
	if !probabilityText.MatchString(text) || len(text) > 32 {
		return 0, errors.New("no decimal number")
	}
	return strconv.ParseFloat(text, 64)
}

func showProbability(p float64) string {
	if p != 0 && p < 1e-6 {
		return strconv.FormatFloat(p, 'e', -1, 64)
	}
	return showDecimal(p)
}

func (f field) rate() (units.Bandwidth, bool) {
	return quantity(f, units.ParseBandwidth, minRate, maxRate)
}

func (f field) delay() (units.Time, bool) {
	return quantity(f, units.ParseTime, 0, maxDelay)
}

// payload reads the MTU, the one size that may be a bare number: it is a count of bytes everywhere.
func (f field) payload() (units.Bytes, bool) {
	show := func(b units.Bytes) string { return strconv.FormatInt(int64(b), 10) }
	return read(f, "payload bytes per packet such as 4096", between(func(text string) (units.Bytes, error) {
		if digits(text) {
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
			return "", fmt.Errorf("%q is not a name; expected 1 to 63 letters a-z, digits and -, the first not -", clip(text))
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
			return "", fmt.Errorf("%q is not the name of a link; expected its two ends such as leaf0-spine3", clip(text))
		}
		return text, nil
	}, func(v string) string { return v })
	return name
}
