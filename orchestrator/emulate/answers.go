package emulate

import (
	"errors"
	"fmt"

	"weft/host"
	"weft/nodeimg/agent"
	"weft/transport"
)

// checkResults returns an error if a host's results cannot belong to its plan. They come from a
// process in the node, beside whatever else runs there, and the code from here on uses their values
// as indices.
func checkResults(p *host.Plan, hosts int, n *agent.Results) error {
	if n.RTT == nil || n.OneWay == nil || n.Timer == nil || n.Reaction == nil || n.Stalls == nil {
		return errors.New("results without a distribution")
	}
	if err := n.Stalls.Check(); err != nil {
		return fmt.Errorf("results with %w", err)
	}
	type part struct{ item, rank int }
	items := make(map[part]*host.Item, len(p.Items))
	for i := range p.Items {
		items[part{p.Items[i].Index, p.Items[i].Rank}] = &p.Items[i]
	}
	for _, d := range n.Dones {
		it, ok := items[part{d.Item, d.Rank}]
		if !ok || d.Repeat < 0 || d.Repeat >= it.Repeat || d.Blame != nil &&
			(d.Blame.Peer < 0 || d.Blame.Peer >= len(it.Ranks)) {
			return fmt.Errorf("results of repetition %d of item %d by rank %d, which the host has no part in",
				d.Repeat, d.Item, d.Rank)
		}
	}
	conns := make(map[transport.ConnID]bool, len(p.Conns))
	for i := range p.Conns {
		conns[p.Conns[i].ID] = true
	}
	known := func(c transport.ConnID) error {
		if !conns[c] {
			return fmt.Errorf("results of connection %d, which is not the host's", c)
		}
		return nil
	}
	for i := range n.Flows {
		if err := known(n.Flows[i].Conn); err != nil {
			return err
		}
	}
	for i := range n.Windows {
		if err := known(n.Windows[i].Conn); err != nil {
			return err
		}
	}
	for i := range n.Steps {
		if err := known(n.Steps[i].Conn); err != nil {
			return err
		}
	}
	lines := 0
	for i := range n.Printed {
		pr := &n.Printed[i]
		lines += len(pr.First)
		if pr.To < 0 || int(pr.To) >= hosts || pr.More < 0 || lines > agent.MaxPrinted {
			return fmt.Errorf("results with %d printed lines, to host %d", lines, pr.To)
		}
	}
	return nil
}
