package experiment

import (
	"fmt"
	"strings"
	"testing"

	"weft/clocksync"
	"weft/orchestrator/lab"
)

// planned builds a lab whose clocks are kept by PTP with such parameters.
func planned(t *testing.T, topology, clocks string) (*Experiment, error) {
	t.Helper()
	text := "weft: 1\nname: boundary\ntopology: " + topology + "\nclocks:\n  sync: ptp\n  for: 10ms\n" + clocks
	labs, err := lab.Parse("boundary.yaml", []byte(text), lab.Options{})
	if err != nil {
		return nil, err
	}
	return Build(labs[0])
}

// tree returns the host that each host follows.
func tree(x *Experiment) string {
	var masters []string
	for h := range x.Plans {
		masters = append(masters, fmt.Sprint(x.Plans[h].Clock.Setup.Place.Master))
	}
	return strings.Join(masters, " ")
}

func TestHostsFollowTheNearestBoundaryClock(t *testing.T) {
	for _, c := range []struct{ topology, clocks, want string }{
		{leaves, "  ptp: {boundary: edge}\n", "0 0 0 0 3 3 0 6 6"},
		{leaves, "  ptp: {boundary: [h5, h7]}\n", "0 0 0 5 5 0 7 0 7"},
		{leaves, "  reference: h4\n  ptp: {boundary: [h0]}\n", "4 0 0 4 4 4 4 4 4"},
		// In a fat tree of 4 h4 is one for its pod, h6 for its edge switch: it follows h4.
		{"{kind: fat-tree, k: 4}", "  ptp: {boundary: [h4, h6]}\n", "0 0 0 0 0 4 4 6 0 0 0 0 0 0 0 0"},
	} {
		x, err := planned(t, c.topology, c.clocks)
		if err != nil {
			t.Errorf("%s: %v", c.clocks, err)
		} else if got := tree(x); got != c.want {
			t.Errorf("%s: masters %s, want %s", c.clocks, got, c.want)
		}
	}
	x, err := planned(t, leaves, "  ptp: {boundary: off}\n")
	if err != nil || x.Plans[0].Clock.Setup.Place != nil {
		t.Errorf("without boundary clocks there is a tree: %v", err)
	}
}

func TestBoundaryClocksThatCannotBe(t *testing.T) {
	const star = "{kind: star, hosts: 4}"
	for _, c := range []struct{ topology, clocks, want string }{
		{leaves, "  ptp: {boundary: [h9]}\n", `boundary.yaml:7:20: clocks.ptp.boundary.0: no host is named "h9"`},
		{leaves, "  ptp: {boundary: [leaf0]}\n", `no host is named "leaf0"`},
		{leaves, "  ptp: {boundary: [h0]}\n", "h0 is the reference"},
		{leaves, "  ptp: {boundary: [h3, h3]}\n", "h3 is listed twice"},
		{leaves, "  ptp: {boundary: [h3, h4]}\n", "no host is nearer to h4"},
		{star, "  ptp: {boundary: [h1]}\n", "no host is nearer to h1"},
		{star, "  ptp: {boundary: edge}\n", "all hosts are behind the reference's switch"},
		{leaves, "  ptp: {boundary: edge, backups: 1}\n", "boundary clocks have no backups"},
		{leaves, "  ptp: {boundary: edge, servers: 3}\n", "boundary clocks follow one reference"},
		{leaves, "  ptp: {boundary: all}\n", "expected one of off, edge"},
		{leaves, "  ptp: {ki: 0}\n", `boundary.yaml:7:13: clocks.ptp.ki: "0" is out of range; expected 0.000001 to 4`},
		{leaves, "  ptp: {kp: 1.9, ki: 0.5}\n", "a loop with kp 1.9 is not stable"},
	} {
		if _, err := planned(t, c.topology, c.clocks); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s%s: %v, want %q", c.topology, c.clocks, err, c.want)
		}
	}
}

// Switches that measure their links listen for events, and each host asks the one that it is
// attached to.
func TestSwitchesThatMeasureTheirLinks(t *testing.T) {
	x, err := planned(t, leaves, "  transparent: peer\n  ptp: {boundary: edge}\n")
	if err != nil {
		t.Fatal(err)
	}
	if x.Fabric.Stations != clocksync.EventPort {
		t.Errorf("stations at port %d", x.Fabric.Stations)
	}
	for h, want := range []clocksync.Node{9, 9, 9, 10, 10, 10, 11, 11, 11} {
		if c := x.Plans[h].Clock; c.Setup.Bridge != want || !c.PTP.PeerDelay {
			t.Errorf("host %d measures the link to %d", h, c.Setup.Bridge)
		}
	}
}
