package topology_test

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"weft/orchestrator/topology"
)

// Subnets are disjoint, and hold their hosts and switches, each once.
func TestSubnets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := topology.Subnet(rapid.IntRange(1, topology.MaxSubnets).Draw(t, "a"))
		b := topology.Subnet(rapid.IntRange(1, topology.MaxSubnets).Draw(t, "b"))
		h := rapid.IntRange(0, topology.SubnetHosts-1).Draw(t, "host")
		if a != b && a.Prefix().Overlaps(b.Prefix()) {
			t.Fatalf("%v and %v overlap", a.Prefix(), b.Prefix())
		}
		host, other := a.HostAddr(topology.NodeID(h)), a.SwitchAddr(h)
		if !a.Prefix().Contains(host) || !a.Prefix().Contains(other) || host == other || host.As4()[2] >= 128 || other.As4()[2] < 128 {
			t.Fatalf("host %v, switch %v of %v", host, other, a.Prefix())
		}
		if last := host.As4()[3]; last == 0 || last == 255 {
			t.Fatalf("host %v", host)
		}
	})
	if a := topology.Subnet(3).HostAddr(254); a != netip.MustParseAddr("10.3.1.1") {
		t.Errorf("h254 of subnet 3 is %v", a)
	}
	if s := topology.Subnet(0); s.HostAddr(5) != topology.HostAddr(5) || s.SwitchAddr(5) != topology.SwitchAddr(5) || s.Prefix().String() != "10.0.0.0/8" {
		t.Errorf("a lab by itself: %v, %v, %v", s.Prefix(), s.HostAddr(5), s.SwitchAddr(5))
	}
}
