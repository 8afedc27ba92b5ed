package lab

import (
	"fmt"
	"strconv"
	"strings"

	"weft/orchestrator/topology"
)

// hosts is what the workload needs to know of the topology. Without a list of names they are h0, h1, ...
type hosts struct {
	count int // 0: the topology was not understood, so nothing is known
	names []string
	known map[string]bool // of names
}

func hostsOf(t *topology.Spec) hosts {
	h := hosts{count: t.HostCount()}
	nodes, _ := t.Drawn()
	if nodes == nil {
		return h
	}
	h.known = make(map[string]bool)
	for _, n := range nodes {
		if !n.Switch {
			h.names = append(h.names, n.Name)
			h.known[n.Name] = true
		}
	}
	return h
}

func (h hosts) name(i int) string {
	if h.names != nil {
		return h.names[i]
	}
	return "h" + strconv.Itoa(i)
}

func (h hosts) has(name string) bool {
	if h.names != nil {
		return h.known[name]
	}
	number, ok := strings.CutPrefix(name, "h")
	i, err := strconv.Atoi(number)
	return ok && err == nil && i >= 0 && i < h.count && number == strconv.Itoa(i)
}

// hint says which hosts there are, and which is most like name.
func (h hosts) hint(d *decoder, name string) string {
	const enough = 1024
	all := make([]string, min(h.count, enough))
	for i := range all {
		all[i] = h.name(i)
	}
	return fmt.Sprintf("%s; the hosts are %s to %s", d.nearest(name, all), h.name(0), h.name(h.count-1))
}
