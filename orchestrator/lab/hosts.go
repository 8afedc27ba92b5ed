package lab

import (
	"fmt"
	"strconv"
	"strings"

	"weft/internal/clip"
	"weft/orchestrator/topology"
	"weft/params"
)

// hosts has the facts about the topology's hosts that other sections need. Without a list of
// names they are h0, h1, ...
type hosts struct {
	count int             // 0: the topology was not understood, so nothing is known
	names []string        // in order; nil: h0, h1, ...
	known map[string]bool // the set of names
}

// hostsOf returns the hosts of a topology.
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

// at returns the name of host i.
func (h hosts) at(i int) string {
	if h.names != nil {
		return h.names[i]
	}
	return "h" + strconv.Itoa(i)
}

// has reports whether a host has the name.
func (h hosts) has(name string) bool {
	if h.names != nil {
		return h.known[name]
	}
	number, ok := strings.CutPrefix(name, "h")
	i, err := strconv.Atoi(number)
	return ok && err == nil && i >= 0 && i < h.count && number == strconv.Itoa(i)
}

// hint returns the part of a message that says which hosts there are and which is most like name.
// It is empty if the message would not be shown.
func (h hosts) hint(d *decoder, name string) string {
	if d.report.more {
		return ""
	}
	const enough = 1024
	all := make([]string, min(h.count, enough))
	for i := range all {
		all[i] = h.at(i)
	}
	return fmt.Sprintf("%s; the hosts are %s to %s", d.nearest(name, all), h.at(0), h.at(h.count-1))
}

// most returns the maximum number of hosts that a lab may ask for: those of the topology, if it was
// understood.
func (h hosts) most() int {
	if h.count == 0 {
		return topology.MaxHosts
	}
	return h.count
}

// name is the name of a host that passes all checks in fits. d gives hints at unknown names.
func (h hosts) name(to *string, d *decoder, fits ...func(name string) error) params.Value {
	return params.Custom(to, func(text string) (string, error) {
		if h.count > 0 && !h.has(text) {
			return "", fmt.Errorf("no host is named %q%s", clip.Text(text), h.hint(d, text))
		}
		for _, fit := range fits {
			if err := fit(text); err != nil {
				return "", err
			}
		}
		return text, nil
	}, func(name string) string { return name }, "the name of a host", params.Name(nil).Form)
}
