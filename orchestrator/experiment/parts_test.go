package experiment

import (
	"strings"
	"testing"
)

// A lab says which hosts keep sockets beside bypass NICs.
func TestSockets(t *testing.T) {
	lab := "weft: 1\nname: mixed\ntopology: " + leaves + "\nworkload: [{collective: all-to-all, size: 1MB}]\n" +
		"engine: {nic: bypass, sockets: [h1, h3]}\n"
	sockets, err := build(t, lab).Sockets()
	if err != nil {
		t.Fatal(err)
	}
	for h, own := range sockets {
		if own != (h == 1 || h == 3) {
			t.Errorf("h%d: sockets %t", h, own)
		}
	}
	err = build(t, strings.Replace(lab, "h3", "leaf0", 1)).Emulable()
	if err == nil || !strings.Contains(err.Error(), `engine.sockets.1: "leaf0" is no host of this network`) {
		t.Errorf("got %v", err)
	}
}

// A lab says which switches belong to which part; hosts are with their switch, and what does not
// add up is refused where it is written.
func TestCut(t *testing.T) {
	lab := "weft: 1\nname: cut\ntopology: " + leaves + "\nworkload: [{collective: all-to-all, size: 1MB}]\n" +
		"engine: {machines: 2, cut: [CUT]}\n"
	with := func(cut string) string { return strings.Replace(lab, "CUT", cut, 1) }
	x := build(t, with("leaf1 spine0 spine1, leaf0 leaf2"))
	parts, err := x.Parts()
	if err != nil {
		t.Fatal(err)
	}
	for n, k := range parts {
		name := x.Graph.Nodes[n].Name
		want := int32(1)
		switch name {
		case "h3", "h4", "h5", "leaf1", "spine0", "spine1":
			want = 0
		}
		if k != want {
			t.Errorf("%s is in part %d", name, k)
		}
	}
	for cut, says := range map[string]string{
		"leaf0 leaf1 leaf2 spine0 spine1":     "engine.cut: 1 part; expected one for each of engine.machines 2",
		"leaf0 leaf1 leaf2, spine0 spine1":    "engine.cut: part 2 has no host",
		"leaf0 leaf1 leaf2 spine0, spine9":    `engine.cut.1: "spine9" is no switch`,
		"leaf0 h3, leaf1 leaf2 spine0 spine1": `engine.cut.0: "h3" is no switch`,
		"leaf0 leaf1, leaf2 leaf0":            "engine.cut.1: leaf0 is in part 1 already",
		"leaf0 leaf1 spine0, leaf2":           "engine.cut: switch spine1 is in no part",
	} {
		if _, err := build(t, with(cut)).Parts(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, expected %s", cut, err, says)
		}
	}
}
