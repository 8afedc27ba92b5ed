package measure_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/testenv"
	"weft/orchestrator/uml/umltest"
	"weft/tc-shaping/bpf"
	"weft/tc-shaping/measure"
	"weft/tc-shaping/probe"
	"weft/tc-shaping/qdisc"
	"weft/tc-shaping/tcnl"
)

func TestMain(m *testing.M) { umltest.Main(m) }

// link is a veth pair between two namespaces, with a prober across it.
type link struct {
	tcnl.Direction
	t        *testing.T
	asked    qdisc.Direction
	tree     qdisc.Tree
	sender   *measure.Sender
	receiver *measure.Receiver
	near     int // a UDP socket of the sender's namespace
}

// newLink returns a link shaped as d, or skips the test where this kernel lacks what d needs.
func newLink(t *testing.T, d qdisc.Direction) *link {
	t.Helper()
	l := newBareLink(t)
	l.asked = d
	kernel, err := probe.Probe()
	if err != nil {
		t.Skip(err)
	}
	if l.tree, err = qdisc.Plan(d, kernel); errors.Is(err, qdisc.ErrRefused) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	if l.tree.Gate != nil {
		table, err := bpf.NewTable(1)
		l.noError(err)
		t.Cleanup(func() { _ = table.Close() })
		l.Gate = table.Port(0)
		if d.AtEnds {
			l.Gate.Unit = bpf.UnitFor(time.Second)
		}
	}
	if err := l.Apply(l.tree); err != nil {
		t.Fatal(err)
	}
	got, err := l.Read(l.tree)
	if err != nil {
		t.Fatal(err)
	}
	for _, diff := range qdisc.Compare(l.tree, got) {
		t.Error(diff)
	}
	return l
}

// newBareLink returns a link without shaping.
func newBareLink(t *testing.T) *link {
	t.Helper()
	testenv.NeedNamespaces(t)
	// never unlocked: the thread and its namespaces end with the test
	runtime.LockOSThread()
	l := &link{t: t}
	var far int
	l.noError(unix.Unshare(unix.CLONE_NEWNET))
	far, err := unix.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	l.noError(err)
	t.Cleanup(func() { _ = unix.Close(far) })
	l.noError(unix.Unshare(unix.CLONE_NEWNET))

	a := netlink.NewLinkAttrs()
	a.Name, a.HardwareAddr = "near", net.HardwareAddr{2, 0, 0, 0, 0, 1}
	l.noError(netlink.LinkAdd(&netlink.Veth{
		LinkAttrs: a, PeerName: "far", PeerHardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 2},
		PeerNamespace: netlink.NsFd(far),
	}))
	l.Near = l.setUpEnd("near", 1, 2)
	l.sender, err = measure.NewSender(netip.MustParseAddrPort("10.9.0.2:7"))
	l.noError(err)
	t.Cleanup(func() { _ = l.sender.Close() })
	l.near, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	l.noError(err)
	t.Cleanup(func() { _ = unix.Close(l.near) })

	l.noError(unix.Setns(far, unix.CLONE_NEWNET))
	l.Far = l.setUpEnd("far", 2, 1)
	l.receiver, err = measure.NewReceiver(netip.MustParseAddrPort("10.9.0.2:7"))
	l.noError(err)
	t.Cleanup(func() { _ = l.receiver.Close() })
	return l
}

// noError ends the test on an error.
func (l *link) noError(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// setUpEnd gives a device of this namespace an address, and adds the other end as a permanent
// neighbour, so that no ARP is sent.
func (l *link) setUpEnd(name string, own, other byte) tcnl.End {
	l.t.Helper()
	dev, err := netlink.LinkByName(name)
	l.noError(err)
	// no router solicitations among probes
	_ = os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("1"), 0)
	l.noError(netlink.AddrAdd(dev, &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(10, 9, 0, own),
		Mask: net.CIDRMask(24, 32)}}))
	l.noError(netlink.LinkSetUp(dev))
	l.noError(netlink.NeighAdd(&netlink.Neigh{
		LinkIndex: dev.Attrs().Index, State: netlink.NUD_PERMANENT, IP: net.IPv4(10, 9, 0, other),
		HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, other},
	}))
	conn, err := tcnl.Open()
	l.noError(err)
	l.t.Cleanup(conn.Close)
	e, err := conn.End(name)
	l.noError(err)
	return e
}

// send sends a train of packets and returns what became of them.
func (l *link) send(t measure.Train) []measure.Packet {
	l.t.Helper()
	if t.Wait == 0 {
		t.Wait = 2 * time.Second
	}
	packets, err := measure.Run(l.t.Context(), l.sender, l.receiver, t)
	l.noError(err)
	return packets
}

// statistics reads the counters of the link's qdiscs.
func (l *link) statistics() qdisc.Statistics {
	l.t.Helper()
	s, err := l.Statistics(l.tree)
	l.noError(err)
	return s
}
