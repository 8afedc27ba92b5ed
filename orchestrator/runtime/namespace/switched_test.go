package namespace

import (
	"net"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"weft/nodeimg/boot"
	"weft/orchestrator/runtime/runtimetest"
)

// In a lab without a fabric, cables join the nodes, with offloads turned off; a restarted node gets
// its cable again.
func TestPrivSwitchedLab(t *testing.T) {
	c := launchLab(t, runtimetest.Switched(3))
	if c.Fabric() != nil || c.Switches() != 1 || c.Switch(0).Name != "s0" {
		t.Fatalf("fabric %v, %d switches", c.Fabric(), c.Switches())
	}
	if l := c.Node(1).Link; l.Kind != boot.Wired {
		t.Errorf("cable %+v", l)
	}
	hub := func() error { // a bridge, as the switch would have
		bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "hub", TxQLen: -1}}
		if _, err := netlink.LinkByName("hub"); err != nil {
			if err := netlink.LinkAdd(bridge); err != nil {
				return err
			}
		}
		master, err := netlink.LinkByName("hub")
		if err != nil {
			return err
		}
		for _, name := range []string{"h0", "h1", "h2"} {
			l, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			if err := netlink.LinkSetMaster(l, master); err != nil {
				return err
			}
			if err := netlink.LinkSetUp(l); err != nil {
				return err
			}
		}
		return netlink.LinkSetUp(master)
	}
	if err := c.Switch(0).Do(hub); err != nil {
		t.Fatal(err)
	}
	for _, where := range []string{"h0", "s0"} {
		out, err := runIn(t, c, where, "ip", "-br", "link")
		if err != nil || !strings.Contains(out, map[string]string{"h0": "eth0", "s0": "h2"}[where]) {
			t.Errorf("%s: %v: %s", where, err, out)
		}
	}
	// A port of the bridge forwards when the kernel has noticed its carrier, which may be a second
	// later: ping asks until it is answered.
	if out, err := runIn(t, c, "h0", "ping", "-c", "1", "-w", "5", "10.0.0.3"); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if err := c.Kill(1); err != nil {
		t.Fatal(err)
	}
	link, err := c.Restart(t.Context(), 1)
	if err != nil || link.Kind != boot.Wired || link.Index != 1 {
		t.Fatalf("%+v, %v", link, err)
	}
	if err := c.Switch(0).Do(hub); err != nil {
		t.Fatal(err)
	}
	if out, err := runIn(t, c, "h0", "ping", "-c", "1", "-w", "5", "10.0.0.2"); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if ifs, err := net.Interfaces(); err != nil {
		t.Error(err)
	} else {
		for _, i := range ifs {
			if i.Name == "h1" || i.Name == "hub" {
				t.Errorf("the machine has an interface %s", i.Name)
			}
		}
	}
}

func TestCablesLeadToNodes(t *testing.T) {
	for _, bad := range []string{"h7", "fabric", ""} {
		s := runtimetest.Switched(2)
		s.Cables[1].B.Node = bad
		if _, _, err := s.Prepare(defaultGrace); err == nil || !strings.Contains(err.Error(), "which is not a node") {
			t.Errorf("a cable to %q: %v", bad, err)
		}
	}
	s := runtimetest.Switched(2)
	s.Switches[0].Name = "h1"
	if _, _, err := s.Prepare(defaultGrace); err == nil || !strings.Contains(err.Error(), "two processes") {
		t.Error(err)
	}
	if got := s.CablesOf("h1"); len(got) != 1 || got[0].B.Node != "h1" {
		t.Errorf("%+v", got)
	}
}
