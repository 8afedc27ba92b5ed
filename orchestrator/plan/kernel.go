package plan

import (
	"fmt"
	"strings"

	"weft/nodeimg/boot"
	"weft/tc-shaping/qdisc"
)

// planKernel plans a lab whose switches are nodes, with veth pairs between them that tc shapes.
// links has the disciplines of each direction, by port. nil means that the dilation is not known.
func (b *builder) planKernel(links []qdisc.Tree) {
	spec, net := &b.setup.Spec, b.setup.Network
	started, plugged := map[string]int{}, map[string][]int{}
	for i := range spec.Switches {
		name := spec.Switches[i].Name
		started[name] = b.addProcess(StartSwitch, name, "a node that runs nothing,", "its interfaces")
	}
	for i := range spec.Nodes {
		started[spec.Nodes[i].Name] = b.startHost(&spec.Nodes[i])
	}
	for i := range spec.Cables {
		c := &spec.Cables[i]
		b.Resources.Cables++
		step := c.Step()
		id := b.addStep(c.A.Node, &step, started[c.A.Node], started[c.B.Node])
		plugged[c.A.Node], plugged[c.B.Node] = append(plugged[c.A.Node], id), append(plugged[c.B.Node], id)
	}
	ready := map[string]int{}
	addNode := func(name string, steps []boot.Step) {
		b.addSteps(name, steps, plugged[name]...)
		ready[name] = len(b.Ops) // its last step
	}
	for i := range spec.Nodes {
		addNode(spec.Nodes[i].Name, spec.Nodes[i].Steps())
	}
	chosen := len(links) > 0 && links[0].Gate != nil // BPF programs choose among the ports of a switch
	for i := range net.Switches {
		addNode(net.Switches[i].Name, net.Steps(i, chosen))
	}
	var shaped []int
	for i := range spec.Cables {
		shaped = append(shaped, b.addShaping(2*i, links, ready))
	}
	const measure = "read every link back, and measure some of each kind: rate, delay, marks and loss"
	b.add(MeasureLink, "all", measure, "nothing is left", nil, shaped...)
}

// addShaping plans both directions of the link whose ports are p and p+1.
func (b *builder) addShaping(p int, links []qdisc.Tree, ready map[string]int) int {
	there, thereOn := b.portEnd(p)
	back, backOn := b.portEnd(p + 1)
	do := "at the dilation that is measured first, htb, red where it marks, and bfifo at the near end, " +
		"netem behind them, BPF programs at both ends"
	var makes []string
	if links != nil {
		do = fmt.Sprintf("%s from %s, %s from %s%s",
			kindNames(links[p].Near), there, kindNames(links[p+1].Near), back, behind(&links[p]))
		for i, d := range []struct {
			tree               qdisc.Tree
			from, on, to, into string
		}{{links[p], there, thereOn, back, backOn}, {links[p+1], back, backOn, there, thereOn}} {
			for _, q := range d.tree.Near {
				makes = append(makes, property(d.from, fmt.Sprintf("%s out %v", d.on, q)))
			}
			for _, q := range d.tree.Far {
				makes = append(makes, property(d.to, fmt.Sprintf("%s in %v", d.into, q)))
			}
			if d.tree.Gate != nil { // which admits senders, too
				enter, leave := qdisc.GateNames(p + i)
				makes = append(makes, property(d.from, fmt.Sprintf("%s out bpf %s", d.on, enter)),
					property(d.to, fmt.Sprintf("%s in bpf %s", d.into, leave)))
			} else if d.tree.Source != nil {
				makes = append(makes, property(d.to, fmt.Sprintf("%s in %v", d.into, d.tree.Source)))
			}
		}
	}
	do = fmt.Sprintf("shape the link from %s to %s: %s", there, back, do)
	return b.add(ShapeLink, there, do, "goes with the cable", makes, ready[there], ready[back])
}

// behind says what is behind the queue of a direction.
func behind(t *qdisc.Tree) (words string) {
	if len(t.Far) > 0 {
		words = ", netem behind them"
	}
	if t.Gate != nil {
		words += ", BPF programs at both ends"
	}
	return words
}

// portEnd returns the node and the interface that send the packets of a port.
func (b *builder) portEnd(port int) (node, device string) {
	e, net := b.setup.Network.Ends[port], b.setup.Network
	if e.Host >= 0 {
		return net.Hosts[e.Host].Name, e.Interface
	}
	return net.Switches[e.Switch].Name, e.Interface
}

// kindNames returns the kinds of disciplines: "htb, bfifo".
func kindNames(row []qdisc.Qdisc) string {
	all := make([]string, len(row))
	for i, q := range row {
		all[i] = q.Options.Kind()
	}
	return strings.Join(all, ", ")
}
