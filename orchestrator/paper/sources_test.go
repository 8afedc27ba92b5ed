package paper

import "testing"

func TestSources(t *testing.T) {
	p := &Paper{Sources: map[string]string{"topology": "ours", "topology.link.rate": "section IV",
		"workload.*.size": "a size", "workload": "the figure's"}}
	f := &Figure{Sources: map[string]string{"workload.0.size": "5 MB", "topology.mtu": "Bolt's"}}
	for path, want := range map[string]string{
		"topology.link.rate": "section IV", "topology.link.delay": "ours", "topology.mtu": "Bolt's",
		"workload.0.size": "5 MB", "workload.1.size": "a size", "workload.1.start": "the figure's",
		"transport.kind": "", "top": "",
	} {
		if got := p.Source(f, path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
