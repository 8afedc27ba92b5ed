package experiment

import (
	"slices"

	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
)

// Unused returns the paths of the defaults of topology.link that no link has, because the lab gives
// every link a value of its own.
func Unused(l *lab.Lab) (paths []string, err error) {
	g, err := NetworkOf(l)
	if err != nil {
		return nil, err
	}
	all := &l.Topology.Link
	for path, has := range map[string]func(topology.Link) bool{
		"topology.link.rate":  func(k topology.Link) bool { return k.Rate == all.Rate },
		"topology.link.delay": func(k topology.Link) bool { return k.Delay == all.Delay },
	} {
		if !l.Written(path) && !slices.ContainsFunc(g.Links, has) {
			paths = append(paths, path)
		}
	}
	return paths, nil
}
