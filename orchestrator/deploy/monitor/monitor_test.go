package monitor

import (
	"fmt"
	"testing"
	"time"

	"weft/orchestrator/deploy"
	"weft/results/record"
)

// What is seen of a deployed lab becomes frames that count from the first look, and faults that
// begin and end.
func TestLooksBecomeFrames(t *testing.T) {
	look := func(us float64, bytes int64, link, node string) *deploy.State {
		return &deploy.State{
			Lab: "small", Runtime: "namespace", NowUS: us,
			Nodes: []deploy.NodeState{{Name: "h0", Tier: "host", State: node}, {Name: "h1", Tier: "host", State: "running"}, {Name: "switch0", Tier: "switch"}},
			Links: []deploy.LinkState{
				{Name: "h0-switch0", A: "h0", B: "switch0", State: link, RateBPS: 1e9, Ports: []deploy.PortState{{Name: "h0->switch0", Bytes: bytes}, {Name: "switch0->h0", QueuedBytes: 7, Drops: bytes / 1000}}},
				{Name: "h1-switch0", A: "h1", B: "switch0", State: "up", RateBPS: 1e9, Ports: []deploy.PortState{{Name: "h1->switch0"}, {Name: "switch0->h1"}}},
			},
		}
	}
	w := New(look(1000, 5000, "up", "running"), 300*time.Millisecond)
	for _, s := range []*deploy.State{
		look(1000, 5000, "up", "running"), look(301000, 9000, "down", "running"), look(601000, 9000, "up", "paused"),
	} {
		w.Add(s)
	}
	all := w.recorder.Frames()
	if len(all) != 3 {
		t.Fatalf("%d frames", len(all))
	}
	if p := all[1].Ports; p[0].Sent != 4000 || p[1].Queued != 7 || p[1].Drops != 4 {
		t.Errorf("the second frame has %+v", p)
	}
	want := []record.Fault{{Link: "h0-switch0", What: "down", FromUS: 301000, UntilUS: 601000}, {Host: "h0", What: "paused", FromUS: 601000}}
	if fmt.Sprint(w.faults) != fmt.Sprint(want) {
		t.Errorf("faults %v, want %v", w.faults, want)
	}
	m := w.Model(look(901000, 9000, "up", "paused"))
	if len(m.Network.Nodes) != 3 || len(m.Network.Ports) != 4 || m.Network.Ports[1].From != 2 || m.Network.Ports[1].To != 0 || len(m.Links) != 2 || m.Network.Width <= 0 {
		t.Errorf("the page shows %+v", m.Network)
	}
}
