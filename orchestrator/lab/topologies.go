package lab

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A TopologyKind is a registered shape of network: its name, what it is, and what Sketch needs to
// write one.
type TopologyKind struct {
	Name       string
	About      string
	Parameters []Parameter

	Fit func(hosts int) string // the sizes of a network of at least so many hosts, as a lab writes them; nil: weft bench makes none

	keys  []string // of the topology section that only kinds with such a size have
	tiers []string // of links
	read  func(s *section, t *Topology)
	hosts func(t *Topology) int
	write func(value func(name string) string) (string, error)
}

// A Parameter describes the size of a topology: Value is the one to start from. Without one the key
// is left out of the lab file, so that its default applies. A list is written with commas.
type Parameter struct {
	Name, Value, About string
}

// topologies registers every shape of network, in the order in which they are listed for people.
// Building it is in package topology.
var topologies = []TopologyKind{
	sized("fat-tree", "a three-tier Clos network of k-port switches", []string{"host", "edge", "core"},
		Parameter{"k", "4", "k pods, (k/2)² cores, k³/4 hosts"}).
		reads(func(s *section, t *Topology) {
			f := s.field("k")
			if t.K = f.integer(2, maxK); t.K%2 != 0 {
				f.problem("%d is odd; expected an even number such as %d", t.K, t.K+1)
				t.K = 0
			}
		}, func(t *Topology) int { return t.K * t.K * t.K / 4 }).
		fit(func(hosts int) string {
			k := 2
			for k*k*k/4 < hosts {
				k += 2
			}
			return fmt.Sprintf("k: %d", k)
		}),
	sized("leaf-spine", "every leaf switch connects to every spine switch", []string{"host", "leaf"},
		Parameter{"leaves", "4", "leaf switches"},
		Parameter{"spines", "2", "spine switches"},
		Parameter{"hosts_per_leaf", "4", "hosts per leaf"},
		Parameter{"oversubscription", "", "host to uplink bandwidth of a leaf; sets the uplink rate unless tiers.leaf.rate does; unwritten, it follows from a written link.rate"}).
		reads(func(s *section, t *Topology) {
			t.Leaves = s.field("leaves").integer(1, maxHosts)
			t.Spines = s.field("spines").integer(1, maxSwitches)
			t.HostsPerLeaf = s.field("hosts_per_leaf").integer(1, maxHosts)
			s.uplinks(t)
		}, func(t *Topology) int { return t.Leaves * t.HostsPerLeaf }).
		fit(func(hosts int) string {
			const perLeaf = 8
			return fmt.Sprintf("leaves: %d, spines: %d, hosts_per_leaf: %d", max(2, (hosts+perLeaf-1)/perLeaf), perLeaf, perLeaf)
		}),
	sized("clos", "four layers of switches in computing and switching racks", []string{"host", "l1", "l2", "l3"},
		Parameter{"racks", "2", "computing racks (hosts, layers 1 and 2)"},
		Parameter{"switching_racks", "2", "switching racks (layers 3 and 4)"},
		Parameter{"leaves", "2", "layer-1 switches per computing rack"},
		Parameter{"spines", "2", "layer-2 switches per computing rack"},
		Parameter{"cores", "2", "layer-4 switches per switching rack"},
		Parameter{"racks_per_pod", "", "computing racks that share layer-3 switches"},
		Parameter{"hosts_per_leaf", "2", "hosts per leaf"}).
		reads(func(s *section, t *Topology) {
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
		}, func(t *Topology) int { return t.Racks * t.Leaves * t.HostsPerLeaf }),
	sized("dragonfly-plus", "groups of leaves and spines, all connected to each other", []string{"host", "leaf", "global"},
		Parameter{"groups", "3", "groups"},
		Parameter{"leaves", "2", "leaves per group"},
		Parameter{"spines", "2", "spines per group"},
		Parameter{"hosts_per_leaf", "2", "hosts per leaf"},
		Parameter{"detours", "", "per-packet routing may detour through a third group when no shortest path is light"}).
		reads(func(s *section, t *Topology) {
			t.Groups = s.field("groups").integer(2, maxSwitches)
			t.Leaves = s.field("leaves").integer(1, maxSwitches)
			t.Spines = s.field("spines").integer(1, maxSwitches)
			t.HostsPerLeaf = s.field("hosts_per_leaf").integer(1, maxHosts)
			t.Detours = s.field("detours").flag()
		}, func(t *Topology) int { return t.Groups * t.Leaves * t.HostsPerLeaf }),
	sized("torus", "a grid of switches that wraps around in every dimension", []string{"host", "switch"},
		Parameter{"dimensions", "4,4", "switches along each dimension"},
		Parameter{"hosts_per_switch", "1", "hosts per switch"}).
		reads(func(s *section, t *Topology) {
			t.Dimensions = s.field("dimensions").dimensions()
			t.HostsPerSwitch = s.field("hosts_per_switch").integer(1, maxHosts)
		}, func(t *Topology) int {
			if len(t.Dimensions) == 0 {
				return 0
			}
			hosts := t.HostsPerSwitch
			for _, n := range t.Dimensions {
				hosts *= n
			}
			return hosts
		}),
	sized("dumbbell", "two switches with hosts, joined by one link", []string{"host", "core"},
		Parameter{"hosts", "4", "hosts per side"}).
		reads(func(s *section, t *Topology) {
			t.Hosts = s.field("hosts").integer(1, maxHosts/2)
		}, func(t *Topology) int { return 2 * t.Hosts }).
		fit(func(hosts int) string { return fmt.Sprintf("hosts: %d", (hosts+1)/2) }),
	sized("star", "one switch with hosts", []string{"host"},
		Parameter{"hosts", "8", "hosts"}).
		reads(func(s *section, t *Topology) {
			t.Hosts = s.field("hosts").integer(2, maxHosts)
		}, func(t *Topology) int { return t.Hosts }).
		fit(func(hosts int) string { return fmt.Sprintf("hosts: %d", hosts) }),
	{
		Name: "custom", About: "nodes and links by name",
		Parameters: []Parameter{
			{"switches", "2", "switches in a row, each linked to the next, to be edited"},
			{"hosts_per_switch", "2", "hosts per switch"},
		},
		keys: []string{"nodes", "links"}, write: writeRow,
		read: func(s *section, t *Topology) {
			t.Nodes = s.nodes()
			t.Links = s.links(t.Link)
		},
		hosts: func(t *Topology) int {
			hosts := 0
			for _, n := range t.Nodes {
				if !n.Switch {
					hosts++
				}
			}
			return hosts
		},
	},
}

// topologyKinds are the names of topologies.
var topologyKinds = choice{built: topologyNames()}

func topologyNames() []string {
	var names []string
	for _, k := range topologies {
		names = append(names, k.Name)
	}
	return names
}

// sized registers a kind whose parameters are keys of the topology section.
func sized(name, about string, tiers []string, sizes ...Parameter) TopologyKind {
	k := TopologyKind{Name: name, About: about, Parameters: sizes, tiers: tiers}
	for _, p := range sizes {
		k.keys = append(k.keys, p.Name)
	}
	k.write = func(value func(string) string) (string, error) {
		var b strings.Builder
		for _, p := range sizes {
			v := value(p.Name)
			if strings.Contains(p.Value, ",") {
				v = "[" + strings.ReplaceAll(strings.Trim(v, "[]"), ",", ", ") + "]"
			}
			if v != "" {
				fmt.Fprintf(&b, "  %s: %s\n", p.Name, v)
			}
		}
		return b.String(), nil
	}
	return k
}

// reads says how the keys of a kind are read, and how many hosts they make; 0 where a size is not known.
func (k TopologyKind) reads(read func(s *section, t *Topology), hosts func(t *Topology) int) TopologyKind {
	k.read, k.hosts = read, hosts
	return k
}

// fit says which sizes a network of a number of hosts has.
func (k TopologyKind) fit(of func(hosts int) string) TopologyKind {
	k.Fit = of
	return k
}

// TopologyKinds returns every registered shape of network.
func TopologyKinds() []TopologyKind { return slices.Clone(topologies) }

// TransportKinds returns the names of every registered transport.
func TransportKinds() []string { return transportKinds().built }

// CollectiveKinds returns the names of every collective that a lab can ask for.
func CollectiveKinds() []string { return slices.Clone(collectives.built) }

// Sketch returns the lines of a lab file's topology section that describe a network of this kind,
// from the values of its parameters. Only Parse says whether the values are right.
func (k TopologyKind) Sketch(value func(parameter string) string) (string, error) {
	return k.write(value)
}

// writeRow writes a custom topology: a row of switches with hosts, every node and link by its name.
func writeRow(value func(string) string) (string, error) {
	var n [2]int
	for i, name := range []string{"switches", "hosts_per_switch"} {
		var err error
		if n[i], err = strconv.Atoi(value(name)); err != nil || n[i] < 1 || n[i] > 64 {
			return "", fmt.Errorf("%s: %q is not a whole number from 1 to 64", name, value(name))
		}
	}
	var nodes, links strings.Builder
	host := 0
	for s := range n[0] {
		fmt.Fprintf(&nodes, "    - {name: s%d, switch: true}\n", s)
		for range n[1] {
			fmt.Fprintf(&nodes, "    - {name: h%d}\n", host)
			fmt.Fprintf(&links, "    - {between: [h%d, s%d]}\n", host, s)
			host++
		}
		if s > 0 {
			fmt.Fprintf(&links, "    - {between: [s%d, s%d]}\n", s-1, s)
		}
	}
	return "  nodes:\n" + nodes.String() + "  links: # each may have a rate, a delay and a loss of its own\n" + links.String(), nil
}

// topologyKind returns the registration of a kind; empty if there is none.
func topologyKind(name string) TopologyKind {
	for _, k := range topologies {
		if k.Name == name {
			return k
		}
	}
	return TopologyKind{}
}

// sizeKeys lists the keys of all kinds once, in the order of registration.
func sizeKeys() []string {
	var all []string
	for _, k := range topologies {
		for _, name := range k.keys {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// describeSize says what a key of the topology section means to the kinds that have it, those to which
// it means the same together. It is empty for a key that is no parameter.
func describeSize(key string) string {
	var meanings []string
	kinds := make(map[string][]string)
	for _, k := range topologies {
		if !slices.Contains(k.keys, key) {
			continue
		}
		for _, p := range k.Parameters {
			if p.Name != key {
				continue
			}
			if kinds[p.About] == nil {
				meanings = append(meanings, p.About)
			}
			kinds[p.About] = append(kinds[p.About], k.Name)
		}
	}
	var sentences []string
	for _, m := range meanings {
		sentences = append(sentences, strings.Join(kinds[m], ", ")+": "+m+".")
	}
	return strings.Join(sentences, " ")
}
