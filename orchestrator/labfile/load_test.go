package labfile

import (
	"errors"
	"testing"

	"weft/orchestrator/lab"
)

// A retry runs the same point of the sweep at another dilation, whatever else sets a dilation.
func TestSlower(t *testing.T) {
	for _, sweep := range []string{"seed: [1, 2]", "engine.dilation: [2, 4]", "seed: [1, 2], engine.dilation: [2, 4]"} {
		text := "weft: 1\nname: slow\ntopology: {kind: star, hosts: 4}\nworkload: [{collective: incast, size: " +
			"1MB}]\nsweep: {" + sweep + "}\n"
		f, err := Load(Source{Name: "slow.yaml", Text: []byte(text)}, lab.Options{Set: []string{"topology.mtu=2000"}})
		if err != nil {
			t.Fatal(err)
		}
		for i, l := range f.Labs {
			again, err := f.Slower(i, 12.5)
			if err != nil {
				t.Fatal(err)
			}
			if again.Engine.Dilation != 12.5 || again.Seed != l.Seed || again.Topology.MTU != 2000 ||
				len(again.Sources) != len(l.Sources) {
				t.Errorf("{%s}: point %v became %v, at dilation %g", sweep, l.Point, again.Point, again.Engine.Dilation)
			}
			for k, s := range again.Sources {
				want := l.Sources[k]
				if want.Path == "engine.dilation" {
					want.Value, want.From = "12.5", "command line: --retry-dilation"
				}
				if s.Path != want.Path || s.Value != want.Value || s.From != want.From {
					t.Errorf("{%s}: %+v; want %+v", sweep, s, want)
				}
			}
		}
	}
	f, err := Load(Source{Name: "slow.yaml", Text: []byte("weft: 1\nname: slow\ntopology: {kind: star, hosts: 4}\n")},
		lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if l, err := f.Slower(0, 1e10); err == nil {
		t.Errorf("dilation %g was accepted", l.Engine.Dilation)
	}
}

// An expectation about a step that the network cannot have is an error at its place.
func TestStepsThatNoNetworkHas(t *testing.T) {
	text := "weft: 1\nname: x\ntopology: {kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2}\ntransport: {kind: ccm}\nworkload: [{collective: permute, " +
		"size: 1MB}]\nexpect:\n  - steps(\"leaf0 moves h1 *\") == 0\n  - drops == steps(\"leaf9 moves h0 *\")\n"
	_, err := Load(Source{Name: "x.yaml", Text: []byte(text)}, lab.Options{})
	var all lab.Problems
	if !errors.As(err, &all) || len(all) != 1 || all[0].Line != 8 || all[0].Column != 14 || all[0].Path != "expect.1" {
		t.Errorf("%+v", err)
	}
}
