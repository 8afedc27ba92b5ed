package plan

import (
	"encoding/json"
	"fmt"
	"strings"

	"weft/orchestrator/topology/render"
	"weft/units"
)

// indent is what stands before the rows of a table.
const indent = "  "

// wholeHosts is the most hosts whose operations Text lists one by one; of more it lists the first host's.
const wholeHosts = 4

// JSON writes the whole plan, indented, with a line feed at the end.
func (p Plan) JSON() ([]byte, error) {
	b, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("plan of %s: %w", p.Lab, err)
	}
	return append(b, '\n'), nil
}

// Text describes the plan for a terminal.
func (p Plan) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", p.Lab, p.Topology)
	fmt.Fprintf(&b, "engine %s", p.Engine)
	if p.Runtime != "" {
		fmt.Fprintf(&b, ", runtime %s, datapath %s", p.Runtime, p.Datapath)
	}
	b.WriteByte('\n')
	if p.Note != "" {
		fmt.Fprintf(&b, "%s\n", p.Note)
	}
	if len(p.Ops) == 0 {
		return b.String()
	}
	b.WriteByte('\n')
	render.Table(&b, indent, p.resources)
	fmt.Fprintf(&b, "\n%s, undone in reverse order:\n", plural(len(p.Ops), "operation"))
	render.Table(&b, indent, p.counts)
	b.WriteByte('\n')
	render.Table(&b, indent, p.ops)
	if left := p.Resources.TAPs - 1; left+1 > wholeHosts {
		fmt.Fprintf(&b, "... and the same for %s\n", plural(left, "other host"))
	}
	return b.String()
}

func (p Plan) resources(row func(...any)) {
	r := p.Resources
	row("uses", "", "")
	mtu := fmt.Sprintf("MTU %d: the lab's, %d for headers of the transport, %d for UDP and IP", p.NICMTU, headers, udpHeader+ipHeader)
	if r.Cables > 0 {
		row("processes", r.Processes, "hosts and switches")
		row("namespaces", r.Namespaces, "network, mount, PID, UTS and IPC of each process")
		row("veth pairs", r.Cables, mtu)
	} else {
		row("processes", r.Processes, fmt.Sprintf("the fabric and %s", plural(r.Processes-1, "node")))
		row("namespaces", r.Namespaces, "network, mount, PID, UTS and IPC of each process")
		row("TAP devices", r.TAPs, mtu)
	}
	row("neighbours", r.Neighbours, "in the nodes")
	row("memory", mebibytes(r.Memory), "estimate: processes, and the buffers of the collectives")
}

func (p Plan) counts(row func(...any)) {
	for _, c := range p.Counts {
		row(c.Kind, c.Ops)
	}
}

func (p Plan) ops(row func(...any)) {
	row("op", "after", "node", "do", "undo")
	hosts := 0
	for i, op := range p.Ops {
		if op.Kind == StartNode {
			if hosts++; hosts > 1 && p.Resources.TAPs > wholeHosts {
				return
			}
		}
		after := make([]string, len(p.Ops[i].After))
		for j, id := range op.After {
			after[j] = fmt.Sprint(id)
		}
		row(op.ID, strings.Join(after, ","), op.Node, op.Do, op.Undo)
	}
}

// mebibytes rounds an estimate up to whole MiB.
func mebibytes(n units.Bytes) string { return fmt.Sprintf("%d MiB", (n+units.MiB-1)/units.MiB) }

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
