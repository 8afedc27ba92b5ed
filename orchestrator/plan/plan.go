package plan

import (
	"fmt"

	"weft/nodeimg/boot"
	"weft/orchestrator/emulate"
	"weft/orchestrator/runtime"
	"weft/tc-shaping/qdisc"
	"weft/units"
)

// Plan is the plan of a command.
type Plan struct {
	Lab       string      `json:"lab"`
	Topology  string      `json:"topology"`          // "fat-tree, k=4"
	Command   string      `json:"command,omitempty"` // deploy or run
	Engine    string      `json:"engine"`            // sim or emu
	Runtime   string      `json:"runtime,omitempty"`
	Datapath  string      `json:"datapath,omitempty"`
	NIC       string      `json:"nic,omitempty"` // bypass, for all hosts or some; empty: sockets, or no workload
	Subnet    string      `json:"subnet,omitempty"`
	Dilation  float64     `json:"dilation,omitempty"` // 0: the command measures the machine first
	Note      string      `json:"note,omitempty"`
	NICMTU    units.Bytes `json:"nic_mtu_bytes,omitempty"`
	Machines  []Machine   `json:"machines,omitempty"` // with a network in parts
	Resources Resources   `json:"resources"`
	Counts    []Count     `json:"counts"` // operations by kind, in order of the first of each
	Ops       []Op        `json:"ops"`    // an operation comes after all that it waits for; undo in reverse
}

// Machine is one machine's share of a network in parts.
type Machine struct {
	Name     string   `json:"name"`
	Hosts    []string `json:"hosts"`
	Switches []string `json:"switches"`
}

// Resources are the resources of a lab.
type Resources struct {
	Processes  int         `json:"processes"`
	Namespaces int         `json:"namespaces"`
	TAPs       int         `json:"taps"`
	Cables     int         `json:"cables,omitempty"` // veth pairs between nodes
	Neighbours int         `json:"neighbours"`       // permanent entries in neighbour tables
	Memory     units.Bytes `json:"memory_bytes"`     // estimate: processes, buffers of the collectives, bypass NICs
}

// Count is the number of operations of a kind.
type Count struct {
	Kind Kind `json:"kind"`
	Ops  int  `json:"ops"`
}

// Kind names an operation.
type Kind = boot.StepKind

// Kinds of operation, besides the steps of nodes.
const (
	StartSupervisor Kind = "start-supervisor"
	StartReaper     Kind = "start-reaper"
	StartFabric     Kind = "start-fabric"
	StartNode       Kind = "start-node"
	StartAgents     Kind = "start-agents"
	StartSwitch     Kind = "start-switch"
	Connect         Kind = "connect"
	ShapeLink       Kind = "shape-link"
	MeasureLink     Kind = "measure-links"
)

// Op is one operation.
type Op struct {
	ID    int      `json:"id"` // from 1, in order
	Kind  Kind     `json:"kind"`
	Node  string   `json:"node"` // host, switch, or another process
	Do    string   `json:"do"`
	Undo  string   `json:"undo"`
	Makes []string `json:"makes,omitempty"` // properties that exist afterwards: "h0: eth0 mtu 1500"
	After []int    `json:"after,omitempty"` // operations that must be done before
}

// Simulated returns the plan of a lab that is simulated.
func Simulated(lab, topology string) Plan {
	return Plan{
		Lab: lab, Topology: topology, Engine: "sim", Counts: []Count{}, Ops: []Op{},
		Note: "the simulator runs in the process of weft itself: nothing is created",
	}
}

// Runtime says how the processes of a lab start.
type Runtime struct {
	Containers bool // each process has a container; a reaper removes those that their owner leaves
	Supervised bool // a supervisor owns the lab
}

// builder adds operations to a plan.
type builder struct {
	Plan
	setup *emulate.Setup
	in    Runtime
}

// Emulated completes p, which describes the lab, with all that a setup creates in a runtime. links
// has the disciplines of each direction of a link, by port, on the kernel datapath with a known
// dilation; otherwise it is nil.
func Emulated(p Plan, s *emulate.Setup, in Runtime, links []qdisc.Tree) Plan {
	p.Engine, p.NICMTU, p.Counts = "emu", s.Spec.Nodes[0].MTU, []Count{}
	p.Resources.Memory = s.Buffers + s.NICs
	b := &builder{p, s, in}
	b.addOwners()
	if s.Network != nil {
		b.planKernel(links)
	} else {
		b.planFabric()
	}
	b.fillCounts()
	return b.Plan
}

// Memory of the processes before they hold any data: resident pages of a small Go program, rounded
// up, our own measurement. Most are the text of the one binary, which the processes share.
const (
	processMemory = 12 * units.MiB
	fabricMemory  = 32 * units.MiB
)

// namespaces is the number of namespaces of each process of a lab: network, mount, PID, UTS and
// IPC.
const namespaces = 5

// add appends an operation and returns its number.
func (b *builder) add(kind Kind, node, do, undo string, makes []string, after ...int) int {
	id := len(b.Ops) + 1
	b.Ops = append(b.Ops, Op{ID: id, Kind: kind, Node: node, Do: do, Undo: undo, Makes: makes, After: after})
	return id
}

// property returns the line of Op.Makes for a property of a process.
func property(name, what string) string { return name + ": " + what }

// addStep appends a step of a node and returns its number.
func (b *builder) addStep(node string, step *boot.Step, after ...int) int {
	var makes []string
	for i := range step.Settings {
		set := &step.Settings[i]
		if set.Neighbour {
			b.Resources.Neighbours++
		}
		if set.Listed() {
			makes = append(makes, set.String())
		}
	}
	return b.add(step.Kind, node, step.Do, step.Undo, makes, after...)
}

// addSteps appends the steps of a node, the first after others, and returns the number of each
// kind.
func (b *builder) addSteps(node string, steps []boot.Step, after ...int) map[Kind]int {
	done := map[Kind]int{}
	for i := range steps {
		ids := after
		if steps[i].After != nil {
			ids = nil
			for _, kind := range steps[i].After {
				ids = append(ids, done[kind])
			}
		}
		done[steps[i].Kind] = b.addStep(node, &steps[i], ids...)
	}
	return done
}

// addOwners plans the processes that own the lab, which have no namespaces of their own.
func (b *builder) addOwners() {
	if b.in.Supervised {
		b.addOwner(StartSupervisor, "supervisor", "start the process that owns the lab",
			"weft destroy ends it with its lab")
	}
	if b.in.Containers {
		b.addOwner(StartReaper, "reaper", "start the process that removes the containers if their owner is killed",
			"it ends when they are gone")
	}
}

func (b *builder) addOwner(kind Kind, name, do, undo string) {
	b.Resources.Processes++
	b.Resources.Memory += processMemory
	b.add(kind, name, do, undo, []string{property(name, "process")})
}

// addProcess plans a process of the lab. vanishes, which may be empty, is what its undo text says
// to vanish with its namespaces.
func (b *builder) addProcess(kind Kind, name, what, vanishes string) int {
	b.Resources.Processes++
	b.Resources.Namespaces += namespaces
	b.Resources.Memory += processMemory
	if kind == StartFabric {
		b.Resources.Memory += fabricMemory - processMemory
	}
	makes := []string{property(name, "process")}
	if kind == StartFabric || kind == StartAgents {
		lo := boot.Lo(name)
		makes = append(makes, lo.String())
	}
	if b.in.Containers {
		return b.add(kind, name, "start "+what+" in a container of its own",
			"end the process; the engine removes its container, with "+vanishes,
			append(makes, property(name, "container")))
	}
	if vanishes != "" {
		vanishes = " and " + vanishes
	}
	return b.add(kind, name, "start "+what+" in namespaces of its own",
		"end the process; its namespaces"+vanishes+" go with it", makes)
}

// planFabric plans a lab on the modelled fabric.
func (b *builder) planFabric() {
	for k := range b.setup.Machines {
		b.planMachine(&b.setup.Machines[k], " of "+emulate.MachineName(k))
	}
	if b.setup.Machines == nil {
		b.planMachine(&b.setup.Spec, "")
	}
}

// planMachine plans what a machine starts; of, which may be empty, ends the names of the processes
// that each machine has.
func (b *builder) planMachine(spec *runtime.Spec, of string) {
	fabric := b.addProcess(StartFabric, runtime.Fabric+of, "the fabric process", "its ends of the cables")
	for i := range spec.Nodes {
		b.addHost(&spec.Nodes[i], fabric)
	}
	for i := range spec.Agents {
		b.addProcess(StartAgents, runtime.AgentsName(i)+of, "a process that drives several nodes", "")
	}
}

// addHost plans one host: its process, the steps of its network, and the connection to the fabric.
func (b *builder) addHost(n *boot.NodeSpec, fabric int) {
	b.Resources.TAPs++
	done := b.addSteps(n.Name, n.Steps(), b.startHost(n))
	b.add(Connect, n.Name, fmt.Sprintf("pass the fabric the other end of %s as the NIC of %s", boot.Interface, n.Name),
		"close the fabric's descriptor", nil, fabric, done[boot.SetUp])
}

// startHost plans the process of a host.
func (b *builder) startHost(n *boot.NodeSpec) int {
	return b.addProcess(StartNode, n.Name, "a node, with a read-only root and no network,", boot.Interface)
}

// fillCounts fills Counts.
func (b *builder) fillCounts() {
	index := make(map[Kind]int)
	for _, op := range b.Ops {
		i, ok := index[op.Kind]
		if !ok {
			i = len(b.Counts)
			index[op.Kind] = i
			b.Counts = append(b.Counts, Count{Kind: op.Kind})
		}
		b.Counts[i].Ops++
	}
}
