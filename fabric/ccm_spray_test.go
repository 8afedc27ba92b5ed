package fabric

import (
	"slices"
	"testing"

	"weft/units"
)

func sprayed(c *Config) { c.CCM.Spray = true }

// departed returns how many packets left switch 0 of a diamond by each of its two ports to other
// switches.
func departed(n *world) [2]int64 {
	return [2]int64{n.net.PortCounters(2).Packets, n.net.PortCounters(6).Packets}
}

// Every packet takes a light port at random, and its AR indicator names the switch that had a
// choice. CC traffic stays on a port.
func TestSprayTakesEachLightPort(t *testing.T) {
	n, lines := coordinated(t, diamond(), sprayed)
	for i := range 100 {
		n.run(units.Time(i) * us)
		n.send(units.Time(i)*us, 0, 1, 1000, i, withTag(Tag{On: true}, 1))
	}
	n.run(units.Second)
	if w := departed(n); w[0] < 30 || w[1] < 30 || w[0]+w[1] != 100 {
		t.Errorf("%d packets by each port", w)
	}
	if slices.ContainsFunc(n.arrivals, func(a arrival) bool { return a.packet.Tag.AR != 1 }) || len(*lines) != 0 {
		t.Errorf("an AR indicator does not name switch 0, or steps: %q", *lines)
	}
	before := departed(n)
	for i := range 100 {
		at := units.Second + units.Time(i)*us
		n.run(at)
		n.send(at, 0, 1, 1000, 100+i, withTag(Tag{On: true, CC: true}, 1))
	}
	n.run(2 * units.Second)
	if w := departed(n); w[0]-before[0] != 100 && w[1]-before[1] != 100 {
		t.Errorf("%d packets of CC traffic by each port", [2]int64{w[0] - before[0], w[1] - before[1]})
	}
}

// Switch 1, whose only output port is full, asks switch 0 again and again, which sprays over the
// other port alone for a round trip each time. Flows that switch 1 does not ask about stay.
func TestSprayAvoidsWhatIsAskedAbout(t *testing.T) {
	n, lines := coordinated(t, diamond(), sprayed)
	jam(n, 4) // from switch 1 on
	for i := range 400 {
		n.run(units.Time(i) * us)
		n.send(units.Time(i)*us, 0, 1, 1000, i, withTag(Tag{On: true}, 1))
	}
	n.run(400 * us)
	asked := count(*lines, "switch 1 asks for another path: 0 to 1")
	if w := departed(n); asked < 10 || asked > 40 || w[0] > 120 {
		t.Errorf("asked %d times, %d packets by each port: %q", asked, w, *lines)
	}
	if f := count(*lines, "switch 0 follows: 0 to 1"); f != asked {
		t.Errorf("followed %d of %d", f, asked)
	}
	before := departed(n)
	for i := range 20 {
		n.send(400*us, 0, 1, 1000, 400+i, withTag(Tag{On: true}, 2))
	}
	n.run(402 * us)
	if w := departed(n); w[0] == before[0] || w[1] == before[1] {
		t.Errorf("another flow: %d packets by each port, after %d", w, before)
	}
}

// Switch 3 asks switch 0, both of whose ports lead to it. Switch 0 has nobody to ask, and after a
// round trip the flow needs congestion control.
func TestSprayWithoutALightPath(t *testing.T) {
	w := diamond()
	n, lines := coordinated(t, w, sprayed)
	for i := range 40 {
		at := units.Time(i) * us
		n.run(at)
		if i%5 == 0 && i > 0 {
			n.net.ccm.hear(n.net, at, 0, Note{Type: NeedsPath, Src: 0, Dst: 1, SrcPort: 1, Switch: 5, At: at})
		}
		n.send(at, 0, 1, 1000, i, withTag(Tag{On: true}, 1))
	}
	n.run(units.Second)
	if c := n.net.Counters(); c.CCM.LastResort == 0 || count(*lines, "switch 0 tells CC: 0 to 1") != 1 {
		t.Errorf("%+v %q", c.CCM, *lines)
	}
}
