package run

import (
	"strings"
	"testing"

	"weft/units"

	"pgregory.net/rapid"
)

// The required headroom covers the greatest rate and delay that a fault gives a link. With it
// nothing is lost. Less is rejected with the number that suffices.
func TestHeadroomForDeclaredFaults(t *testing.T) {
	network := strings.Replace(star, "hosts: 5", "hosts: 3", 1)
	work := "\ntransport: {kind: roce}\nworkload: [{collective: incast, ranks: 2, size: 2MB}]\nmeasure: {queues: off}"
	fault := "faults: [{at: 20us, link: h1-switch0, delay: 20us, for: 100us}]\n"
	wantProblem(t, network+fault+"queues: {ecn: off, pfc: {headroom: 40KB}}"+work,
		"queues.pfc.headroom", "which can be 508.396KB while the faults of this lab last", "100Gbps carries in 20us there", "at least 508.396KB")
	build(t, network+strings.Replace(fault, "h1-switch0", "h1-switch0, toward: h1", 1)+"queues: {ecn: off, pfc: {headroom: 40KB}}"+work)

	rapid.Check(t, func(rt *rapid.T) {
		text := network + "queues: {ecn: off, shared: {total: 20MB}, pfc: {xoff: " + rapid.SampledFrom([]string{"20KB", "60KB"}).Draw(rt, "xoff") + "}}\nfaults:\n"
		for _, h := range []string{"h1", "h2"} {
			at := rapid.IntRange(0, 100).Draw(rt, "at")
			text += "  - {at: " + (units.Time(at) * units.Microsecond).String() + ", link: " + h + "-switch0, for: 60us, delay: " +
				(units.Time(rapid.IntRange(0, 30).Draw(rt, "delay")) * units.Microsecond).String() +
				", rate: " + (units.Bandwidth(rapid.IntRange(10, 400).Draw(rt, "rate")) * units.Gbps).String() + "}\n"
		}
		s, err := simulateLab(t, text+work)
		if err != nil || s.Network.Drops != 0 || s.Network.Pauses == 0 {
			rt.Fatalf("%s%s: %v, %+v", text, work, err, s)
		}
	})
}
