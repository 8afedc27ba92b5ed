package deploy

import (
	"weft/internal/control"
	"weft/orchestrator/topology"
	"weft/realtime"
)

// checkKernelLinks measures each direction of links that the machine's kernel carries, with probes
// from one end of the link to the other, and sends each result to the client.
func (s *supervisor) checkKernelLinks(conn *control.Conn, links []topology.LinkID, look *realtime.State) error {
	g := s.x.Graph
	for _, id := range links {
		k := &g.Links[id]
		for port := 2 * int(id); port < 2*int(id)+2; port++ {
			from, to := k.A, k.B
			if port%2 == 1 {
				from, to = to, from
			}
			found, err := s.lab.Measure(port)
			if err != nil {
				return err
			}
			asked := look.Ports[port]
			m := Measured{
				Link: k.Name, From: g.Nodes[from].Name, To: g.Nodes[to].Name, Hops: 1, Why: found.Error,
				Tried: found.Error == "", Tries: found.Tries,
				AskedRateBPS: float64(asked.Link.Rate), RateBPS: float64(found.Rate),
				AskedDelayUS: found.Asked.Microseconds(), DelayUS: found.Delay.Microseconds(),
				AskedLoss: asked.Link.Loss, Probes: int64(found.Sent),
			}
			if found.Sent > 0 {
				m.Loss = float64(found.Lost) / float64(found.Sent)
			}
			if m.Tried {
				open := ""
				if m.AskedLoss > 0 && !found.LossTold {
					open = "loss"
				}
				m.conclude(found.Missed, open)
			}
			s.compare(id, &m, &asked)
			if err := conn.SendValue(kindMeasured, m); err != nil {
				return err
			}
		}
	}
	return conn.SendValue(kindChecked, Checked{Links: len(s.sample(0))})
}
