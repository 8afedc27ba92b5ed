package topology_test

import (
	"net/netip"
	"testing"

	"weft/orchestrator/topology"
)

func TestAddresses(t *testing.T) {
	for h, want := range map[topology.NodeID]string{
		0: "10.0.0.1", 253: "10.0.0.254", 254: "10.0.1.1", 254*256 - 1: "10.0.255.254", 254 * 256: "10.1.0.1", 65535: "10.1.2.4",
	} {
		if got := topology.HostAddr(h).String(); got != want {
			t.Errorf("host %d has %s, want %s", h, got, want)
		}
	}
	hosts := map[netip.Addr]topology.NodeID{}
	for h := range topology.NodeID(topology.MaxHosts) {
		a := topology.HostAddr(h)
		if b := a.As4(); b[3] == 0 || b[3] == 255 {
			t.Fatalf("host %d has %s", h, a)
		}
		if other, taken := hosts[a]; taken {
			t.Fatalf("hosts %d and %d both have %s", other, h, a)
		}
		hosts[a] = h
	}
	for _, h := range []topology.NodeID{-1, topology.MaxHosts} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("host %d has an address", h)
				}
			}()
			topology.HostAddr(h)
		}()
	}
}
