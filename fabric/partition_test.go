package fabric

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"weft/eventqueue"
	"weft/units"
)

// leafSpine returns a leaf-spine network with the given number of hosts on each leaf and a link
// from each leaf to each spine.
func leafSpine(hosts, leaves, spines int) Config {
	cfg := Config{Seed: 1, Hosts: hosts * leaves, Switches: make([]SwitchConfig, leaves+spines)}
	link := func(a, b int) {
		p := PortConfig{Link: Link{Rate: 100 * units.Gbps, Delay: units.Microsecond}, Buffer: units.MB}
		p.From, p.To = NodeID(a), NodeID(b)
		cfg.Ports = append(cfg.Ports, p)
		p.From, p.To = p.To, p.From
		cfg.Ports = append(cfg.Ports, p)
	}
	for h := range cfg.Hosts {
		link(h, cfg.Hosts+h/hosts)
	}
	for l := range leaves {
		for s := range spines {
			link(cfg.Hosts+l, cfg.Hosts+leaves+s)
		}
	}
	for s := range cfg.Switches {
		cfg.Switches[s].Route = slices.Repeat([]int32{-1}, cfg.Hosts)
	}
	return cfg
}

// Racks stay together and spines are apart from them. A network that is small, disorderly or has
// short links stays in one piece.
func TestPartition(t *testing.T) {
	cfg := leafSpine(16, 16, 8)
	part, parts := cfg.Partition()
	if parts < 4 || parts > 16 {
		t.Fatalf("%d parts", parts)
	}
	for h := range cfg.Hosts {
		if part[h] != part[cfg.Hosts+h/16] {
			t.Errorf("host %d is in part %d, its leaf in part %d", h, part[h], part[cfg.Hosts+h/16])
		}
	}
	seen := map[int32]int{}
	for _, k := range part {
		seen[k]++
	}
	if len(seen) != parts {
		t.Errorf("%d parts, named %d: %v", parts, len(seen), part)
	}
	if err := cfg.checkSplit(part, parts); err != nil {
		t.Error(err)
	}
	whole := func(name string, cfg Config) {
		if part, parts := cfg.Partition(); parts != 1 || slices.Max(part) != 0 || cfg.checkSplit(part, parts) != nil {
			t.Errorf("%s: %d parts: %v", name, parts, part)
		}
	}
	whole("small", leafSpine(4, 4, 4))
	whole("a star", leafSpine(300, 1, 0))
	short := leafSpine(16, 16, 8)
	for i := range short.Ports {
		short.Ports[i].Delay = units.Nanosecond
	}
	whole("short lines", short)
	late := leafSpine(16, 16, 8)
	late.Ports[0].Duplicate = 0.1
	whole("a line that makes copies", late)
}

// A ring of switches with hosts on each has no tiers: neighbours go together.
func TestPartitionWithoutTiers(t *testing.T) {
	cfg := leafSpine(16, 16, 0)
	for s := range 16 {
		for _, to := range []int{(s + 1) % 16, (s + 15) % 16} {
			cfg.Ports = append(cfg.Ports, PortConfig{
				From: NodeID(cfg.Hosts + s), To: NodeID(cfg.Hosts + to), Link: Link{Rate: units.Gbps, Delay: units.Microsecond}, Buffer: units.MB,
			})
		}
	}
	part, parts := cfg.Partition()
	if parts < 2 || !slices.IsSorted(part[cfg.Hosts:]) || cfg.checkSplit(part, parts) != nil {
		t.Errorf("%d parts: %v", parts, part[cfg.Hosts:])
	}
}

// Split rejects what it cannot do.
func TestSplitRefuses(t *testing.T) {
	cfg := leafSpine(16, 16, 8)
	part, parts := cfg.Partition()
	queues, sinks := make([]*eventqueue.Queue, parts), make([]Sink, parts)
	split := func(cfg Config, part []int32) error {
		for k := range queues {
			queues[k] = eventqueue.New(0)
		}
		_, err := Split(cfg, part, queues, sinks)
		return err
	}
	if err := split(cfg, part); err != nil {
		t.Fatal(err)
	}
	torn := slices.Clone(part)
	torn[0] = (torn[0] + 1) % int32(parts)
	beyond := slices.Clone(part)
	beyond[len(beyond)-1] = int32(parts)
	still := leafSpine(16, 16, 8)
	for i := range still.Ports {
		still.Ports[i].Delay = 0
	}
	late := leafSpine(16, 16, 8)
	late.Ports[0].Duplicate = 0.1
	for name, err := range map[string]error{
		"a host reserved from its switch": split(cfg, torn), "a part too many": split(cfg, beyond),
		"a node too few": split(cfg, part[1:]), "lines without a delay": split(still, part), "disorder": split(late, part),
	} {
		if err == nil {
			t.Errorf("%s was not refused", name)
		}
	}
}

// Parts of a cut have whole racks, as many hosts as others, and spines in turn.
func TestCut(t *testing.T) {
	for _, c := range []struct{ hosts, leaves, spines, parts int }{{4, 4, 2, 2}, {4, 4, 2, 4}, {2, 7, 3, 3}, {1, 5, 1, 4}} {
		cfg := leafSpine(c.hosts, c.leaves, c.spines)
		part, err := cfg.Cut(c.parts)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		hosts := make([]int, c.parts)
		for h := range cfg.Hosts {
			hosts[part[h]]++
			if part[h] != part[cfg.Hosts+h/c.hosts] {
				t.Errorf("%+v: host %d is apart from its leaf", c, h)
			}
		}
		if least, most := slices.Min(hosts), slices.Max(hosts); least == 0 || most-least > c.hosts {
			t.Errorf("%+v: hosts %v", c, hosts)
		}
		for s := range c.spines {
			if part[cfg.Hosts+c.leaves+s] != int32(s%c.parts) {
				t.Errorf("%+v: spine %d in part %d", c, s, part[cfg.Hosts+c.leaves+s])
			}
		}
	}
	cfg := leafSpine(4, 3, 1)
	if _, err := cfg.Cut(4); err == nil {
		t.Error("three racks in four parts")
	}
	cfg.Ports[len(cfg.Ports)-1].Delay = 0
	if _, err := cfg.Cut(3); err == nil {
		t.Error("a link without a delay was cut")
	}
}

// A counter that is new and not added up would be missing from networks in partitions.
func TestAllCountersAreAddedUp(t *testing.T) {
	var one, sum Counters
	numbers(reflect.ValueOf(&one).Elem(), "", func(_ string, v reflect.Value) { v.SetInt(3) })
	sum.Add(&one)
	sum.Add(&one)
	numbers(reflect.ValueOf(&sum).Elem(), "", func(name string, v reflect.Value) {
		want := int64(6)
		switch name {
		case ".MaxQueue", ".CCM.MostFlows":
			want = 3 // the largest
		}
		if v.Int() != want {
			t.Errorf("%s: %d, want %d", name, v.Int(), want)
		}
	})
}

// The same for the counters of a port.
func TestAllCountersOfAPortAreAddedUp(t *testing.T) {
	one, sum := PortCounters{CutBy: []int64{3}}, PortCounters{CutBy: []int64{0}}
	fill := func(c *PortCounters, f func(string, reflect.Value)) {
		v := reflect.ValueOf(c).Elem()
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; name != "CutBy" {
				numbers(v.Field(i), name, f)
			}
		}
	}
	fill(&one, func(_ string, v reflect.Value) { v.SetInt(3) })
	sum.Add(&one)
	sum.Add(&one)
	if sum.CutBy[0] != 6 {
		t.Errorf("CutBy: %d", sum.CutBy[0])
	}
	fill(&sum, func(name string, v reflect.Value) {
		if want := map[bool]int64{true: 3, false: 6}[strings.HasPrefix(name, "Max")]; v.Int() != want {
			t.Errorf("%s: %d, want %d", name, v.Int(), want)
		}
	})
}

// numbers calls f for each number in v.
func numbers(v reflect.Value, name string, f func(string, reflect.Value)) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			numbers(v.Field(i), name+"."+v.Type().Field(i).Name, f)
		}
	case reflect.Array:
		for i := range v.Len() {
			numbers(v.Index(i), name, f)
		}
	default:
		f(name, v)
	}
}
