package docker

import (
	"context"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"weft/internal/control"
	"weft/nodeimg/boot"
	"weft/orchestrator/runtime"
	"weft/orchestrator/runtime/runtimetest"
)

// runBridge bridges the interfaces of the calling thread's namespace, as a switch would.
func runBridge() error {
	if _, err := netlink.LinkByName("hub"); err != nil {
		a := netlink.NewLinkAttrs()
		a.Name = "hub"
		if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: a}); err != nil {
			return err
		}
	}
	master, err := netlink.LinkByName("hub")
	if err != nil {
		return err
	}
	links, err := netlink.LinkList()
	if err != nil {
		return err
	}
	for _, l := range links {
		if l.Type() == "veth" {
			if err := netlink.LinkSetMaster(l, master); err != nil {
				return err
			}
			if err := netlink.LinkSetUp(l); err != nil {
				return err
			}
		}
	}
	return netlink.LinkSetUp(master)
}

// In a lab without a fabric, cables join the nodes' containers. A switch has as few privileges as a
// host; a restarted host gets its cable again.
func TestPrivSwitchedLab(t *testing.T) {
	c := launchLab(t, runtimetest.Switched(3))
	if c.Fabric() != nil || c.Switches() != 1 || c.Switch(0).Name != "s0" {
		t.Fatalf("fabric %v, %d switches", c.Fabric(), c.Switches())
	}
	if l := c.Node(1).Link; l.Kind != boot.Wired || l.Index != 1 {
		t.Errorf("cable %+v", l)
	}
	all, err := c.engine.list(t.Context(), c.id)
	if err != nil || len(all) != 4 {
		t.Errorf("%d containers, %v", len(all), err)
	}
	about, err := c.engine.api.ContainerInspect(t.Context(), c.Of(runtime.Switch, 0).container)
	if err != nil {
		t.Fatal(err)
	}
	if h := about.HostConfig; h.Privileged || h.NetworkMode != "none" || len(h.CapAdd) > 0 || strings.Join(h.CapDrop, " ") != "ALL" ||
		!h.ReadonlyRootfs || len(h.Binds)+len(h.Mounts)+len(h.Devices) > 0 || about.Image != c.image {
		t.Errorf("%+v", h)
	}
	if err := c.Switch(0).Do(runBridge); err != nil {
		t.Fatal(err)
	}
	checkReaches(t, c, "h0", "10.0.0.3")
	if err := c.Kill(1); err != nil {
		t.Fatal(err)
	}
	link, err := c.Restart(t.Context(), 1)
	if err != nil || link.Kind != boot.Wired || link.Index != 1 || link.FD != -1 {
		t.Fatalf("%+v, %v", link, err)
	}
	if err := c.Switch(0).Do(runBridge); err != nil {
		t.Fatal(err)
	}
	checkReaches(t, c, "h0", "10.0.0.2")
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if all, err := c.engine.list(context.Background(), c.id); len(all) > 0 {
		t.Errorf("containers %v are left (%v)", all, err)
	}
}

// A malicious switch cannot change its network: that is configured from outside.
func TestPrivBadSwitchIsConfined(t *testing.T) {
	c := launchLab(t, runtimetest.Switched(1))
	p := c.Switch(0)
	got := map[string]string{}
	if err := p.Conn.Send(control.Message{Kind: "try"}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Conn.Expect("tried", &got); err != nil {
		t.Fatal(err)
	}
	for what, want := range map[string]string{
		"write /proc/sys": "read-only file system", "mount": "operation not permitted", "unshare": "operation not permitted",
		"raw socket": "operation not permitted", "route out": "network is unreachable", "engine": "no such file or directory",
		"CapEff": "0000000000000000", "CapBnd": "0000000000000000", "NoNewPrivs": "1", "Seccomp": "2", "interfaces": "lo h0",
	} {
		if !strings.Contains(got[what], want) {
			t.Errorf("%s: %q, expected %q", what, got[what], want)
		}
	}
}

// A cable that cannot be created fails the launch, which leaves nothing.
func TestPrivSwitchedLabFails(t *testing.T) {
	needEngine(t)
	s := runtimetest.Switched(2)
	s.Self, s.Lab = buildNode(t), "unplugged"
	s.Cables[1].A.Interface = "a-name-that-the-kernel-does-not-take"
	if c, err := Launch(t.Context(), s); err == nil || !strings.Contains(err.Error(), "cable from s0 to h1") {
		t.Errorf("got %v, %v", c, err)
	}
	checkNoContainers(t, "unplugged")
}

// checkReaches fails the test if a node does not get an answer within some seconds, which a
// bridge's port may need until it forwards.
func checkReaches(t *testing.T, c *Cluster, node, addr string) {
	t.Helper()
	var out strings.Builder
	if err := c.Exec(t.Context(), node, runtime.Command{Args: []string{"ping", "-c", "1", "-w", "5", addr}, Stdout: &out}); err != nil {
		t.Errorf("%v: %s", err, out.String())
	}
}
