package emulate

import (
	"testing"

	"weft/host"
	"weft/internal/stalls"
	"weft/nodeimg/agent"
	"weft/results/stats"
	"weft/transport"
)

// What a node says at the end is looked up in the lab's tables, so it is held against the node's
// plan first.
func TestResultsAreHeldAgainstThePlan(t *testing.T) {
	x := allToAll(3, 1, 2, 1)
	plan := &x.Plans[1]
	conn := plan.Conns[0].ID
	good := func() *agent.Results {
		return &agent.Results{
			RTT: stats.NewDist(), OneWay: stats.NewDist(), Timer: stats.NewDist(), Reaction: stats.NewDist(),
			Stalls: new(stalls.Log),
			Flows:  []host.Flow{{Conn: conn}}, Windows: []agent.Window{{Conn: conn}}, Steps: []agent.Step{{Conn: conn}},
			Dones: []host.Done{{Item: plan.Items[0].Index, Repeat: 1, Rank: 1, Blame: &host.Blame{Peer: 2}}},
		}
	}
	if err := checkResults(plan, 3, good()); err != nil {
		t.Error(err)
	}
	const nobodys transport.ConnID = 99
	for name, spoil := range map[string]func(*agent.Results){
		"no distribution":     func(n *agent.Results) { n.Timer = nil },
		"another's flow":      func(n *agent.Results) { n.Flows[0].Conn = nobodys },
		"another's window":    func(n *agent.Results) { n.Windows[0].Conn = nobodys },
		"another's step":      func(n *agent.Results) { n.Steps[0].Conn = nobodys },
		"an item beyond":      func(n *agent.Results) { n.Dones[0].Item = 7 },
		"an item before":      func(n *agent.Results) { n.Dones[0].Item = -1 },
		"another's rank":      func(n *agent.Results) { n.Dones[0].Rank = 2 },
		"a repetition beyond": func(n *agent.Results) { n.Dones[0].Repeat = 2 },
		"a reader beyond":     func(n *agent.Results) { n.Printed = []agent.Printed{{To: 3}} },
		"a reader before":     func(n *agent.Results) { n.Printed = []agent.Printed{{To: -1}} },
		"too many lines": func(n *agent.Results) {
			n.Printed = []agent.Printed{{First: make([]string, agent.MaxPrinted+1)}}
		},
		"a peer beyond": func(n *agent.Results) { n.Dones[0].Blame.Peer = 3 },
	} {
		n := good()
		spoil(n)
		if checkResults(plan, 3, n) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
