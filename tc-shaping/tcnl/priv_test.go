package tcnl_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/tc-shaping/probe"
	"weft/tc-shaping/qdisc"
	"weft/tc-shaping/tcnl"
	"weft/units"
)

// capable returns what this kernel can do; the test is skipped, with what is missing, when it lacks one of the parts.
func capable(t *testing.T, parts ...qdisc.Part) qdisc.Capabilities {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not root: no network namespace to try it in")
	}
	c, err := probe.Probe()
	if err != nil {
		t.Skip(err)
	}
	if lacks := c.Lacks(parts...); len(lacks) > 0 {
		t.Skipf("this kernel lacks %v", lacks)
	}
	return c
}

// scratch puts the test into a network namespace of its own, with the two ends of a veth pair in it.
func scratch(t *testing.T) (*tcnl.Conn, tcnl.Way) {
	t.Helper()
	runtime.LockOSThread() // and never unlocked: the thread, and with it the namespace, ends with the test
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
	return c, tcnl.Way{Near: near, Far: far}
}

func TestPrivRoundTrip(t *testing.T) {
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
		"jitter":  {Delay: time.Millisecond, Jitter: 300 * time.Microsecond, Rate: units.Gbps, Limit: units.MB},
		"reorder": {Delay: time.Millisecond, Reorder: 0.01, ReorderBy: time.Millisecond},
		"a day":   {Delay: 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			asked, err := qdisc.Plan(d, capable(t))
			if err != nil {
				t.Skip(err)
			}
			_, way := scratch(t)
			for range 2 { // Apply replaces what it made before
				if err := way.Apply(asked); err != nil {
					t.Fatal(err)
				}
				wantTree(t, way, asked)
			}
			s, err := way.Statistics(asked)
			if err != nil || s.Backlog != 0 || s.Drops != 0 {
				t.Errorf("statistics of an idle direction: %+v, %v", s, err)
			}
			for range 2 { // Remove succeeds where there is nothing
				if err := way.Remove(); err != nil {
					t.Fatal(err)
				}
			}
			wantTree(t, way, qdisc.Tree{})
		})
	}
}

func wantTree(t *testing.T, way tcnl.Way, asked qdisc.Tree) {
	t.Helper()
	got, err := way.Read()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range qdisc.Compare(asked, got) {
		t.Error(d)
	}
	if t.Failed() {
		t.Fatal(fmt.Sprintf("asked for\n%vgot\n%v", asked, got))
	}
}
