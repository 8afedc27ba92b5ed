package experiment

import (
	"strings"
	"testing"

	"weft/orchestrator/lab"
	"weft/units"
)

// The rate of a leaf's uplinks is the one that is written, by the most specific key; only what
// nobody wrote is derived.
func TestUplinksAreAsWritten(t *testing.T) {
	const head = "weft: 1\nname: uplinks\ntopology:\n  kind: leaf-spine\n  leaves: 2\n  spines: 2\n  hosts_per_leaf: 1\n"
	for _, c := range []struct {
		name, text   string
		host, uplink units.Bandwidth
		over         string // as explain shows it
		problem      string // in place of the rest
	}{
		{name: "nothing", host: 100 * units.Gbps, uplink: 50 * units.Gbps, over: "1"},
		{name: "link", text: "  link: {rate: 400Gbps}\n", host: 400 * units.Gbps, uplink: 400 * units.Gbps, over: "0.5"},
		{name: "link and hosts", text: "  link: {rate: 400Gbps}\n  tiers: {host: {rate: 100Gbps}}\n",
			host: 100 * units.Gbps, uplink: 400 * units.Gbps, over: "0.125"},
		{name: "hosts", text: "  tiers: {host: {rate: 200Gbps}}\n", host: 200 * units.Gbps, uplink: 100 * units.Gbps, over: "1"},
		{name: "oversubscription", text: "  link: {rate: 100Gbps}\n  oversubscription: 2\n",
			host: 100 * units.Gbps, uplink: 25 * units.Gbps, over: "2"},
		{name: "leaf", text: "  link: {rate: 100Gbps}\n  tiers: {leaf: {rate: 10Gbps}}\n",
			host: 100 * units.Gbps, uplink: 10 * units.Gbps, over: "5"},
		{name: "delay of leaf", text: "  link: {rate: 100Gbps}\n  tiers: {leaf: {delay: 2us}}\n",
			host: 100 * units.Gbps, uplink: 100 * units.Gbps, over: "0.5"},
		{name: "both agree", text: "  link: {rate: 100Gbps}\n  oversubscription: 5\n  tiers: {leaf: {rate: 10Gbps}}\n",
			host: 100 * units.Gbps, uplink: 10 * units.Gbps, over: "5"},
		{name: "all three agree", text: "  link: {rate: 400Gbps}\n  oversubscription: 0.125\n  tiers: {host: {rate: 100Gbps}}\n",
			host: 100 * units.Gbps, uplink: 400 * units.Gbps, over: "0.125"},
		{name: "leaf contradicts", text: "  oversubscription: 1\n  tiers: {leaf: {rate: 10Gbps}}\n",
			problem: "uplinks.yaml:8:21: topology.oversubscription: 1 contradicts topology.tiers.leaf.rate, 10Gbps: with 1 hosts of 100Gbps and 2 uplinks a leaf is oversubscribed 5 times; " +
				"expected that, or leave one of the two out"},
		{name: "link is of no link", text: "  link: {rate: 400Gbps}\n  oversubscription: 1\n  tiers: {host: {rate: 100Gbps}}\n",
			problem: "uplinks.yaml:9:21: topology.oversubscription: 1 sets the uplinks, and tiers.host.rate the links of hosts, so that topology.link.rate, 400Gbps, " +
				"would be the rate of no link; expected 0.125, or leave one of the three out"},
	} {
		t.Run(c.name, func(t *testing.T) {
			labs, err := lab.Parse("uplinks.yaml", []byte(head+c.text), lab.Options{})
			if c.problem != "" {
				if err == nil || err.Error() != c.problem {
					t.Fatalf("got  %v\nwant %s", err, c.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			g, err := NetworkOf(labs[0])
			if err != nil {
				t.Fatal(err)
			}
			for i := range g.Links {
				want := c.uplink
				if strings.HasPrefix(g.Links[i].Name, "h") {
					want = c.host
				}
				if g.Links[i].Rate != want {
					t.Errorf("link %s has %v, want %v", g.Links[i].Name, g.Links[i].Rate, want)
				}
			}
			for _, s := range labs[0].Sources {
				if s.Path == "topology.oversubscription" && s.Value != c.over {
					t.Errorf("oversubscription is shown as %s (%s), want %s", s.Value, s.From, c.over)
				}
			}
		})
	}
}
