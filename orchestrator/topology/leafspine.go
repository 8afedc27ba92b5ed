package topology

import (
	"fmt"
	"math"
	"strconv"

	"weft/internal/plural"
	"weft/params"
	"weft/units"
)

// LeafSpine has the sizes of a leaf-spine.
type LeafSpine struct {
	Leaves, Spines, HostsPerLeaf int
	Oversubscription             float64 // host bandwidth : actual uplink bandwidth, per leaf

	net *Spec // its links decide whether rates or Oversubscription follow; nil: none
}

// Keys implements Shape.
func (t *LeafSpine) Keys() []params.Key {
	return []params.Key{
		params.New("leaves", params.Integer(&t.Leaves, 1, MaxHosts), "leaf switches"),
		params.New("spines", params.Integer(&t.Spines, 1, maxTierSwitches), "spine switches"),
		params.New("hosts_per_leaf", params.Integer(&t.HostsPerLeaf, 1, MaxHosts), "hosts per leaf"),
		params.New("oversubscription", params.Decimal(&t.Oversubscription, 0.01, 1000),
			"host to uplink bandwidth of a leaf; sets the uplink rate unless tiers.leaf.rate does; unwritten, it "+
				"follows from a written link.rate").
			Default("1", "STrack paper, section 4.1: full bisection").MayBe("1").Follows(t.follows),
	}
}

func (t *LeafSpine) within(s *Spec) { t.net = s }
func (t *LeafSpine) rated() string  { return "leaf" }

func (t *LeafSpine) uplinks() (leaves, each int) { return t.Leaves, t.Spines }

// Hosts implements Shape.
func (t *LeafSpine) Hosts() int { return t.Leaves * t.HostsPerLeaf }

// Fit sets the sizes to leaves of eight hosts and eight spines.
func (t *LeafSpine) Fit(hosts int) {
	const perLeaf = 8
	t.Leaves, t.Spines, t.HostsPerLeaf = max(2, (hosts+perLeaf-1)/perLeaf), perLeaf, perLeaf
}

// uplinkRate returns the rate of uplinks that the lab writes, and its path. It returns 0 if the
// rate follows from the oversubscription.
func (t *LeafSpine) uplinkRate() (rate units.Bandwidth, from string) {
	switch {
	case t.net == nil || t.HostsPerLeaf == 0 || t.Spines == 0 || t.hostRate() == 0 || t.net.Link.Rate == 0: // reported
		return 0, ""
	case t.net.Tiers["leaf"].Rate != 0:
		return t.net.Tiers["leaf"].Rate, "topology.tiers.leaf.rate"
	case t.net.linkRate:
		return t.net.Link.Rate, "topology.link.rate"
	}
	return 0, ""
}

// hostRate returns the rate of host links.
func (t *LeafSpine) hostRate() units.Bandwidth {
	if tier, ok := t.net.Tiers["host"]; ok {
		return tier.Rate
	}
	return t.net.Link.Rate
}

// ratio returns the oversubscription with uplinks of a rate.
func (t *LeafSpine) ratio(uplink units.Bandwidth) float64 {
	return float64(t.HostsPerLeaf) * float64(t.hostRate()) / (float64(t.Spines) * float64(uplink))
}

// follows returns the oversubscription of a lab that writes the rate of uplinks instead.
func (t *LeafSpine) follows() (text, source string) {
	rate, from := t.uplinkRate()
	if rate == 0 {
		return "", ""
	}
	return showRatio(t.ratio(rate)), "follows from " + from
}

// Rules settles the rate of a leaf's uplinks and the oversubscription, each of which follows from
// the other. A written key decides, the more specific first: tiers.leaf.rate, then
// oversubscription, then link.rate. If none is written, there is full bisection.
func (t *LeafSpine) Rules(r params.Rules) {
	const key = "oversubscription"
	rate, from := t.uplinkRate()
	if rate == 0 {
		return
	}
	leaf, own := t.net.Tiers["leaf"]
	if leaf.Rate == 0 && r.Written(key) {
		if host, link := t.hostRate(), t.net.Link.Rate; r.Good(key) && host != link &&
			!near(t.Oversubscription, t.ratio(link)) {
			r.Refuse(key, "%s sets the uplinks, and tiers.host.rate the links of hosts, so that topology.link.rate, "+
				"%v, would be the rate of no link; expected %s, or leave one of the three out",
				params.ShowDecimal(t.Oversubscription), link, showRatio(t.ratio(link)))
		}
		return
	}
	if !own {
		leaf = t.net.Link
	}
	if leaf.Rate = rate; t.net.Tiers == nil {
		t.net.Tiers = make(map[string]LinkSpec)
	}
	t.net.Tiers["leaf"] = leaf
	written := t.Oversubscription
	t.Oversubscription = t.ratio(rate)
	if r.Written(key) && r.Good(key) && !near(written, t.Oversubscription) {
		r.Refuse(key, "%s contradicts %s, %v: with %d hosts of %v and %d uplinks a leaf is oversubscribed %s times; "+
			"expected that, or leave one of the two out",
			params.ShowDecimal(written), from, rate, t.HostsPerLeaf, t.hostRate(), t.Spines,
			showRatio(t.Oversubscription))
	}
}

// near reports whether two ratios are the same but for omitted digits.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-3*math.Max(a, b) }

// showRatio formats a ratio that was computed.
func showRatio(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// build joins every leaf to every spine. Unless the tier "leaf" gives a rate, an uplink has
//
//	hosts per leaf * host rate / (spines * oversubscription)
//
// so that the hosts of a leaf can offer oversubscription times what its uplinks carry.
func (t *LeafSpine) build(b *builder) error {
	b.g.Title = fmt.Sprintf("leaf-spine, %d leaves of %s, %s", t.Leaves, plural.Count(t.HostsPerLeaf, "host"),
		plural.Count(t.Spines, "spine"))
	n := int64(t.Leaves) * int64(t.HostsPerLeaf)
	if err := checkSize(n, int64(t.Leaves+t.Spines), n+int64(t.Leaves)*int64(t.Spines)); err != nil {
		return err
	}
	host := b.tier("host")
	leaf, err := t.uplink(b, host.Rate)
	if err != nil {
		return err
	}
	hosts := b.many(int(n), "h", Host, "host")
	leaves := b.many(t.Leaves, "leaf", Switch, "leaf")
	spines := b.many(t.Spines, "spine", Switch, "spine")
	for h := range int(n) {
		b.link(hosts+NodeID(h), leaves+NodeID(h/t.HostsPerLeaf), "host", host)
	}
	for l := range t.Leaves {
		for s := range t.Spines {
			b.link(leaves+NodeID(l), spines+NodeID(s), "leaf", leaf)
		}
	}
	return nil
}

// uplink returns the settings of a leaf's uplinks, whose hosts have the given rate.
func (t *LeafSpine) uplink(b *builder, host units.Bandwidth) (LinkSpec, error) {
	s, ok := b.t.Tiers["leaf"]
	if !ok {
		s = b.t.Link
		s.Rate = 0
	}
	if s.Rate != 0 {
		return s, nil
	}
	if host <= 0 {
		return s, fmt.Errorf("the rate of host links is %v: want more than 0", host)
	}
	over := t.Oversubscription
	s.Rate = rateOver(t.HostsPerLeaf, host, t.Spines, over)
	if s.Rate < 1 || float64(s.Rate) > float64(units.Tbps)*1e5 {
		return s, fmt.Errorf("oversubscription is %v: the uplinks would have %v", over, s.Rate)
	}
	return s, nil
}
