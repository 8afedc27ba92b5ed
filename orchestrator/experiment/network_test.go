package experiment

import (
	"fmt"
	"strings"
	"testing"

	"weft/orchestrator/lab"
	"weft/transport"
	"weft/units"
)

// As many links of each leaf that loses some are down, and another seed draws others.
func TestDrawnLinksAreDown(t *testing.T) {
	const text = `
weft: 1
name: drawn
topology: {kind: leaf-spine, leaves: 8, spines: 4, hosts_per_leaf: 2, down: {random: 6, among: 2 leaves}}
workload: [{collective: permute, size: 1MB}]
sweep: {seed: [1, 2]}
`
	labs, err := lab.Parse("lab.yaml", []byte(text), lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range labs {
		x, err := Build(l)
		if err != nil {
			t.Fatal(err)
		}
		var down []string
		by := map[string]int{}
		for _, k := range x.Graph.Links {
			if k.Down {
				down = append(down, k.Name)
				leaf, _, _ := strings.Cut(k.Name, "-")
				by[leaf]++
			}
		}
		if len(down) != 6 || len(by) != 2 {
			t.Errorf("down: %v; want three uplinks of each of two leaves", down)
		}
		for leaf, n := range by {
			if n != 3 {
				t.Errorf("%s lost %d links, want 3", leaf, n)
			}
		}
		names = append(names, strings.Join(down, " "))
	}
	if names[0] == names[1] {
		t.Errorf("two seeds drew the same links: %s", names[0])
	}
}

// One packet of 4 bytes over two links of 1 us at 100 Gb/s, and its acknowledgement back.
func TestIdealOfOnePacket(t *testing.T) {
	x := build(t, star+"workload: [{collective: incast, ranks: [h1], root: h0, size: 4B}]")
	data, ack := dataWire(4), ackWire
	want := 4*units.Microsecond + units.Time(2*80*(data+ack))
	if got := x.Ideal(0, 4); got != want {
		t.Errorf("ideal of a packet: %d ps, want %d", got, want)
	}
}

func TestBaseRTTOfHostsThatTalk(t *testing.T) {
	x := build(t, strings.Replace(star, "star, hosts: 5", "fat-tree, k: 4", 1)+
		"workload: [{collective: all-to-all, ranks: [h0, h1], size: 64KB}]")
	want := 4*units.Microsecond + units.Time(2*80*(dataWire(4096)+ackWire)) // two links each way, behind one switch
	if x.BaseRTT != want {
		t.Errorf("base RTT %d ps, want %d", x.BaseRTT, want)
	}
}

// The round trip that is reported counts the headers that the endpoints of each transport send.
func TestBaseRTTIsTheEndpoints(t *testing.T) {
	for _, kind := range transport.Kinds() {
		if transport.FactsOf(kind).Module {
			continue // a lab must name its file
		}
		more := "transport: {kind: " + kind + "}\n"
		x := build(t, star+more+"workload: [{collective: incast, ranks: [h1], root: h0, size: 64KB}]")
		spec := x.Conns[0]
		b, err := transport.Begin(x.Plans[spec.Src].Endpoint, spec)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if x.BaseRTT != b.BaseRTT {
			t.Errorf("%s: base RTT %d ps, the endpoint has %d", kind, x.BaseRTT, b.BaseRTT)
		}
	}
}

// Queue limits and marking are those of switches: a NIC neither drops nor marks.
func TestOnlySwitchesHaveQueueSettings(t *testing.T) {
	x := build(t, star+"workload: [{collective: permute, size: 1MB}]")
	for i, p := range x.Fabric.Ports {
		nic := int(p.From) < x.Fabric.Hosts
		if limited := p.Buffer > 0; limited == nic || p.ECN.On == nic {
			t.Errorf("port %d from node %d: buffer %d, ECN %t", i, p.From, p.Buffer, p.ECN.On)
		}
	}
}

// Switches hash with seeds of their own, and a lab's seed changes them all.
func TestSwitchSeedsDiffer(t *testing.T) {
	seen := map[uint64]bool{}
	for _, seed := range []int{1, 2} {
		x := build(t, fmt.Sprintf("weft: 1\nname: seeds\nseed: %d\ntopology: {kind: fat-tree, k: 4}\nworkload: [{collective: permute, size: 1MB}]", seed))
		for _, sw := range x.Fabric.Switches {
			if seen[sw.Seed] {
				t.Errorf("seed %d: switch %s hashes as another does", seed, sw.Name)
			}
			seen[sw.Seed] = true
		}
	}
}
