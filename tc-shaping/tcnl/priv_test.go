package tcnl_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/quiettest"
	"weft/internal/testenv"
	"weft/orchestrator/uml/umltest"
	"weft/tc-shaping/probe"
	"weft/tc-shaping/qdisc"
	"weft/tc-shaping/tcnl"
	"weft/units"
)

// capable returns what this kernel can do. It skips the test if one of the parts is missing.
func capable(t *testing.T, parts ...qdisc.Part) qdisc.Capabilities {
	t.Helper()
	testenv.NeedNamespaces(t)
	c, err := probe.Probe()
	if err != nil {
		t.Skip(err)
	}
	if lacks := c.Lacks(parts...); len(lacks) > 0 {
		t.Skipf("this kernel lacks %v", lacks)
	}
	return c
}

// scratch moves the test into a new network namespace that holds both ends of a veth pair.
func scratch(t *testing.T) (*tcnl.Conn, tcnl.Direction) {
	t.Helper()
	runtime.LockOSThread() // never unlocked: the thread and its namespace end with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skip(err)
	}
	a := netlink.NewLinkAttrs()
	a.Name = "near"
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: a, PeerName: "far"}); err != nil {
		t.Skip(err)
	}
	c, err := tcnl.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	near, err := c.End("near")
	if err != nil {
		t.Fatal(err)
	}
	far, err := c.End("far")
	if err != nil {
		t.Fatal(err)
	}
	return c, tcnl.Direction{Near: near, Far: far}
}

func TestMain(m *testing.M) { umltest.Main(m) }

// TestPrivRoundTrip covers what the machine's kernel supports.
func TestPrivRoundTrip(t *testing.T) { roundTrip(t) }

// TestUMLRoundTrip covers everything.
func TestUMLRoundTrip(t *testing.T) {
	if umltest.Outside(t) {
		return
	}
	if err := capable(t).Complete(); err != nil {
		t.Error(err)
	}
	roundTrip(t)
}

func roundTrip(t *testing.T) {
	mark := &qdisc.RED{Min: 20_000, Max: 80_000, Pmax: 0.2, ECN: true}
	both := &qdisc.RED{Min: 20_000, Max: 80_000, Pmax: 1, ECN: true}
	rate := qdisc.Direction{Rate: 100 * units.Mbps, Limit: 150_000}
	fast := qdisc.Direction{Rate: 400 * units.Gbps, Limit: 1 << 30, Overhead: 24, MTU: 9000}
	marking, twice, far := rate, rate, fast
	marking.RED, twice.RED = mark, both
	far.Delay, far.Loss, far.Duplicate, far.Corrupt = 12345678*time.Nanosecond, 0.001, 1, 1e-6
	for name, d := range map[string]qdisc.Direction{
		"nothing": {}, "rate": rate, "rate above 34 Gb/s": fast, "marks": marking, "two stages": twice,
		"delay": {Delay: time.Millisecond}, "all of a line": far,
		"jitter":     {Delay: time.Millisecond, Jitter: 300 * time.Microsecond, Rate: units.Gbps, Limit: units.MB},
		"reorder":    {Delay: time.Millisecond, Reorder: 0.01, ReorderBy: time.Millisecond},
		"a day":      {Delay: 24 * time.Hour},
		"one sender": {Source: &qdisc.Source{MAC: [6]byte{2, 0, 10, 0, 0, 1}, Addr: netip.MustParseAddr("10.0.0.1")}},
	} {
		t.Run(name, func(t *testing.T) {
			asked, err := qdisc.Plan(d, capable(t))
			if err != nil {
				t.Skip(err)
			}
			_, dir := scratch(t)
			for range 2 { // Apply replaces an existing tree
				if err := dir.Apply(asked); err != nil {
					t.Fatal(err)
				}
				wantTree(t, dir, asked)
			}
			if l, err := netlink.LinkByName("near"); err != nil || len(asked.Near) > 0 && l.Attrs().GSOMaxSegs != 1 {
				t.Errorf("super-packets of up to %d packets, %v", l.Attrs().GSOMaxSegs, err)
			}
			s, err := dir.Statistics(asked)
			if err != nil || s.Backlog != 0 || s.Drops != 0 {
				t.Errorf("statistics of an idle direction: %+v, %v", s, err)
			}
			for range 2 { // Remove succeeds if there is nothing
				if err := dir.Remove(); err != nil {
					t.Fatal(err)
				}
			}
			wantTree(t, dir, qdisc.Tree{})
		})
	}
}

func wantTree(t *testing.T, dir tcnl.Direction, asked qdisc.Tree) {
	t.Helper()
	got, err := dir.Read(asked)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range qdisc.Compare(asked, got) {
		t.Error(d)
	}
	if t.Failed() {
		t.Fatalf("asked for\n%vgot\n%v", asked, got)
	}
}

// Show has the disciplines that were added, with their counters, and none of the kernel's own.
func TestPrivShow(t *testing.T) {
	asked, err := qdisc.Plan(qdisc.Direction{Rate: 100 * units.Mbps, Limit: 150_000}, capable(t))
	if err != nil {
		t.Skip(err)
	}
	c, dir := scratch(t)
	if text, err := c.Show(); err != nil || text != "" {
		t.Errorf("of devices with the kernel's own disciplines: %q, %v", text, err)
	}
	if err := dir.Apply(asked); err != nil {
		t.Fatal(err)
	}
	text, err := c.Show()
	for _, want := range []string{"qdisc dev near root htb handle 1: rate 12500000 B/s", "bfifo handle 3: limit 150000\n",
		" Sent 0 bytes 0 pkt (dropped 0, overlimits 0, marked 0)\n backlog 0b 0p\n"} {
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("%q, %v does not have %q", text, err, want)
		}
	}
}

// A change of settings happens in place, in both directions, and is read back. A change of shape is
// rejected and changes nothing.
func TestPrivChange(t *testing.T) {
	kernel := capable(t, qdisc.PartHTB, qdisc.PartFIFO)
	plan := func(d qdisc.Direction) qdisc.Tree {
		tree, err := qdisc.Plan(d, kernel)
		if err != nil {
			t.Fatal(err)
		}
		return tree
	}
	slow, fast := plan(qdisc.Direction{Rate: units.Mbps, Limit: 10_000}),
		plan(qdisc.Direction{Rate: 100 * units.Gbps, Limit: units.MB, Overhead: 20})
	_, dir := scratch(t)
	if err := dir.Apply(slow); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := dir.Change(slow, fast); err != nil {
			t.Fatal(err)
		}
		wantTree(t, dir, fast)
		if err := dir.Change(fast, slow); err != nil {
			t.Fatal(err)
		}
		wantTree(t, dir, slow)
	}
	if err := dir.Change(slow, qdisc.Tree{}); !errors.Is(err, tcnl.ErrRebuild) {
		t.Errorf("a change to nothing: %v, want %v", err, tcnl.ErrRebuild)
	}
	wantTree(t, dir, slow)
}

// A device of another type that only has an ifb's name stays.
func TestPrivRemovesNoOthersDevice(t *testing.T) {
	capable(t)
	c, dir := scratch(t)
	a := netlink.NewLinkAttrs()
	a.Name = tcnl.IFBName(dir.Far.Device)
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: a, PeerName: "other"}); err != nil {
		t.Skip(err)
	}
	if err := dir.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := c.End(a.Name); err != nil {
		t.Error(err)
	}
}

// tc shows the tree that was asked for.
func TestUMLTcAgrees(t *testing.T) {
	if umltest.Outside(t) {
		return
	}
	testenv.NeedProgram(t, "tc")
	tree, err := qdisc.Plan(qdisc.Direction{
		Rate: 100 * units.Mbps, Limit: 150_000, Delay: 5 * time.Millisecond, Loss: 0.25, RED: &qdisc.RED{Min: 20_000,
			Max: 79_999, Pmax: 1, ECN: true},
	}, capable(t))
	if err != nil {
		t.Fatal(err)
	}
	_, dir := scratch(t)
	if err := dir.Apply(tree); err != nil {
		t.Fatal(err)
	}
	type said struct {
		Kind, Handle string
		Options      struct {
			Rate, Limit, Min, Max any
			ECN, NoDrop           bool
			Delay                 struct{ Delay float64 }
			Loss                  struct{ Loss float64 } `json:"loss-random"`
		}
	}
	show := func(device string) []said {
		out, err := exec.Command("tc", "-j", "-s", "qdisc", "show", "dev", device).Output()
		if err != nil {
			t.Fatal(err)
		}
		var all []said
		if err := json.Unmarshal(out, &all); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		t.Logf("%s", out)
		return all
	}
	var got []string
	for _, q := range append(show("near"), show(tcnl.IFBName(dir.Far.Device))...) {
		o := q.Options
		got = append(got, fmt.Sprint(q.Kind, q.Handle, " ", o.Rate, o.Limit, o.Min, o.Max, o.ECN, o.NoDrop,
			o.Delay.Delay, o.Loss.Loss))
	}
	slices.Sort(got)
	want := []string{
		"bfifo2: <nil> 150000 <nil> <nil> false false 0 0",
		"bfifo5: <nil> 150000 <nil> <nil> false false 0 0",
		"htb1: <nil> <nil> <nil> <nil> false false 0 0",
		"netem1: map[celloverhead:0 cellsize:0 packetoverhead:0 rate:1.25e+07] 3174 <nil> <nil> false false 0.005 0.25",
		"red3: <nil> 0 20000 80000 true true 0 0",
		"red4: <nil> 0 58969 80000 true true 0 0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("tc says\n%q\nwant\n%q", got, want)
	}
}

// Frames with the source's addresses arrive. All others are dropped and counted.
func TestUMLOneSender(t *testing.T) {
	if umltest.Outside(t) {
		return
	}
	source := &qdisc.Source{MAC: [6]byte{2, 0, 10, 0, 0, 1}, Addr: netip.MustParseAddr("10.0.0.1")}
	mac, addr := source.MAC[:], []byte{10, 0, 0, 1}
	otherMAC, other := []byte{2, 0, 10, 0, 0, 2}, []byte{10, 0, 0, 2}
	frame := func(src []byte, ether string, body ...[]byte) []byte {
		return slices.Concat(append([][]byte{{2, 0, 10, 0, 0, 9}, src, []byte(ether)},
			append(body, make([]byte, 60))...)...)
	}
	ip := func(src, from []byte) []byte {
		return frame(src, "\x08\x00", []byte{0x45, 0, 0, 40, 0, 0, 0, 0, 64, 17, 0, 0}, from, []byte{10, 0, 0, 9})
	}
	arp := func(src, sender, from []byte) []byte {
		return frame(src, "\x08\x06", []byte{0, 1, 8, 0, 6, 4, 0, 2}, sender, from)
	}
	tagged := func(b []byte) []byte { return slices.Concat(b[:12], []byte("\x81\x00\x00\x00"), b[12:]) }
	tree, err := qdisc.Plan(qdisc.Direction{Source: source}, capable(t))
	if err != nil {
		t.Fatal(err)
	}
	_, dir := scratch(t)
	// The kernel's own IPv6 frames (neighbour and router solicitations) would be counted, too.
	err = os.WriteFile("/proc/sys/net/ipv6/conf/near/disable_ipv6", []byte("1"), 0)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	up(t, "near", "far")
	if err := dir.Apply(tree); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: dir.Near.Device}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		frame []byte
		want  qdisc.Statistics // added by this frame
	}{
		{"own addresses", ip(mac, addr), qdisc.Statistics{Arrived: 1}},
		{"own ARP", arp(mac, mac, addr), qdisc.Statistics{Arrived: 1}},
		{"another's IP", ip(mac, other), qdisc.Statistics{Spoofed: 1}},
		{"another's MAC", ip(otherMAC, addr), qdisc.Statistics{Spoofed: 1}},
		{"MAC that ends otherwise", ip([]byte{2, 0, 10, 0, 0, 0x81}, addr), qdisc.Statistics{Spoofed: 1}},
		{"ARP for another's IP", arp(mac, mac, other), qdisc.Statistics{Spoofed: 1}},
		{"ARP with another's MAC", arp(mac, otherMAC, addr), qdisc.Statistics{Spoofed: 1}},
		{"ARP in another's frame", arp(otherMAC, mac, addr), qdisc.Statistics{Spoofed: 1}},
		{"IPv6", frame(mac, "\x86\xdd"), qdisc.Statistics{NotRouted: 1}},
		{"spanning tree", frame(mac, "\x00\x26\x42\x42\x03"), qdisc.Statistics{NotRouted: 1}},
		{"own, with a tag", tagged(ip(mac, addr)), qdisc.Statistics{NotRouted: 1}},
		{"another's IP, with a tag", tagged(ip(mac, other)), qdisc.Statistics{NotRouted: 1}},
		{"another's IP, with two", tagged(tagged(ip(mac, other))), qdisc.Statistics{NotRouted: 1}},
		{"too short for an address", ip(mac, addr)[:20], qdisc.Statistics{Spoofed: 1}},
	} {
		before, err := dir.Statistics(tree)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := unix.Write(fd, c.frame); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var got qdisc.Statistics
		quiettest.Await(t, func() error {
			if got, err = dir.Statistics(tree); err == nil && got == before {
				err = fmt.Errorf("%s: no counter changed: %+v", c.name, got)
			}
			return err
		})
		if got.Arrived-before.Arrived != c.want.Arrived || got.Spoofed-before.Spoofed != c.want.Spoofed ||
			got.NotRouted-before.NotRouted != c.want.NotRouted {
			t.Errorf("%s: %+v became %+v", c.name, before, got)
		}
	}
	// A change of the filters by another program is detected.
	if out, err := exec.Command("tc", "filter", "del", "dev", "far", "ingress", "prio", "3").CombinedOutput(); err != nil {
		t.Skipf("%v: %s", err, out)
	}
	if got, err := dir.Read(tree); err != nil || len(qdisc.Compare(tree, got)) != 1 {
		t.Errorf("without a filter: %v, %v", qdisc.Compare(tree, got), err)
	}
}

// up sets interfaces up and waits until they are.
func up(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		l, err := netlink.LinkByName(name)
		if err == nil {
			err = netlink.LinkSetUp(l)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range names {
		quiettest.Await(t, func() error {
			l, err := netlink.LinkByName(name)
			if err == nil && l.Attrs().OperState != netlink.OperUp {
				err = fmt.Errorf("%s is not up", name)
			}
			return err
		})
	}
}
