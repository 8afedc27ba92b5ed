package experiment

import (
	"fmt"

	"weft/internal/clip"
)

// Sockets returns which hosts send through sockets although the others have bypass NICs, by host;
// nil: none. An error names what is no host.
func (x *Experiment) Sockets() ([]bool, error) {
	names := x.Lab.Engine.Sockets
	if len(names) == 0 {
		return nil, nil
	}
	all := make([]bool, x.Fabric.Hosts)
	for i, name := range names {
		n, ok := x.Graph.NodeNamed(name)
		if !ok || int(n) >= x.Fabric.Hosts {
			return nil, x.Lab.Errorf(fmt.Sprintf("engine.sockets.%d", i),
				"%q is no host of this network; weft graph lists them", clip.Text(name))
		}
		all[n] = true
	}
	return all, nil
}
