package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"weft/internal/plural"
	"weft/orchestrator/topology/render"
	"weft/units"
)

// indent precedes the rows of a table.
const indent = "  "

// maxListed is the maximum number of operations of a kind that Text lists one by one. If there are
// more, it lists the first.
const maxListed = 4

// JSON returns the whole plan, indented, with a line feed at the end.
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
	if p.Command != "" {
		fmt.Fprintf(&b, "weft %s: ", p.Command)
	}
	fmt.Fprintf(&b, "engine %s", p.Engine)
	if p.Runtime != "" {
		fmt.Fprintf(&b, ", runtime %s, datapath %s, subnet %s", p.Runtime, p.Datapath, p.Subnet)
		if p.NIC != "" {
			fmt.Fprintf(&b, ", nic %s", p.NIC)
		}
	}
	if p.Dilation != 0 {
		fmt.Fprintf(&b, ", dilation %.15g", p.Dilation)
	}
	b.WriteByte('\n')
	if p.Note != "" {
		fmt.Fprintf(&b, "%s\n", p.Note)
	}
	for _, m := range p.Machines {
		fmt.Fprintf(&b, "%s: %s\n", m.Name, strings.Join(slices.Concat(m.Switches, m.Hosts), ", "))
	}
	if len(p.Ops) == 0 {
		return b.String()
	}
	b.WriteByte('\n')
	render.Table(&b, indent, p.writeResources)
	fmt.Fprintf(&b, "\n%s, undone in reverse order:\n", plural.Count(len(p.Ops), "operation"))
	render.Table(&b, indent, p.writeCounts)
	b.WriteByte('\n')
	left := 0
	render.Table(&b, indent, func(row func(...any)) { left = p.writeOps(row) })
	if left > 0 {
		fmt.Fprintf(&b, "... and %s like these for other nodes and links; --json has all\n",
			plural.Count(left, "operation"))
	}
	return b.String()
}

func (p Plan) writeResources(row func(...any)) {
	r := p.Resources
	row("uses", "", "")
	mtu := fmt.Sprintf("MTU %d: the lab's with all headers, and at least 1500", p.NICMTU)
	row("processes", r.Processes, "of the lab, and those that own it")
	row("namespaces", r.Namespaces, "network, mount, PID, UTS and IPC of each process of the lab")
	if r.Cables > 0 {
		row("veth pairs", r.Cables, mtu)
	} else {
		row("TAP devices", r.TAPs, mtu)
	}
	row("neighbours", r.Neighbours, "permanent, in the nodes")
	row("memory", mebibytes(r.Memory), "estimate: processes, and the buffers of the collectives")
}

func (p Plan) writeCounts(row func(...any)) {
	for _, c := range p.Counts {
		row(c.Kind, c.Ops)
	}
}

// writeOps fills the table of operations, and returns how many are not in it.
func (p Plan) writeOps(row func(...any)) (left int) {
	count := map[Kind]int{}
	for _, c := range p.Counts {
		count[c.Kind] = c.Ops
	}
	row("op", "after", "node", "do", "undo")
	seen := map[Kind]bool{}
	for i, op := range p.Ops {
		if seen[op.Kind] && count[op.Kind] > maxListed {
			left++
			continue
		}
		seen[op.Kind] = true
		after := make([]string, len(p.Ops[i].After))
		for j, id := range op.After {
			after[j] = fmt.Sprint(id)
		}
		row(op.ID, strings.Join(after, ","), op.Node, op.Do, op.Undo)
	}
	return left
}

// mebibytes rounds an estimate up to maxListed MiB.
func mebibytes(n units.Bytes) string { return fmt.Sprintf("%d MiB", (n+units.MiB-1)/units.MiB) }
