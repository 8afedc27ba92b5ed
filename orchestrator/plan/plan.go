package plan

import (
	"fmt"

	"weft/nodeimg/boot"
	"weft/orchestrator/emulate"
	"weft/orchestrator/runtime"
	"weft/tc-shaping/qdisc"
	"weft/units"
)

// Plan is what a command would do.
type Plan struct {
	Lab       string      `json:"lab"`
	Topology  string      `json:"topology"`          // "fat-tree, k=4"
	Command   string      `json:"command,omitempty"` // deploy, run
	Engine    string      `json:"engine"`            // sim, emu
	Runtime   string      `json:"runtime,omitempty"`
	Datapath  string      `json:"datapath,omitempty"`
	Subnet    string      `json:"subnet,omitempty"`
	Dilation  float64     `json:"dilation,omitempty"` // 0: the command measures the machine first
	Note      string      `json:"note,omitempty"`
	NICMTU    units.Bytes `json:"nic_mtu_bytes,omitempty"`
	Resources Resources   `json:"resources"`
	Counts    []Count     `json:"counts"` // operations by kind, in the order of their first
	Ops       []Op        `json:"ops"`    // an operation comes after all that it waits for; undo in reverse
}

// Resources is what the lab uses.
type Resources struct {
	Processes  int         `json:"processes"`
	Namespaces int         `json:"namespaces"`
	TAPs       int         `json:"taps"`
	Cables     int         `json:"cables,omitempty"` // veth pairs between nodes
	Neighbours int         `json:"neighbours"`       // permanent entries in neighbour tables
	Memory     units.Bytes `json:"memory_bytes"`     // estimate: processes, and the buffers of the collectives
}

// Count is how many operations of a kind there are.
type Count struct {
	Kind Kind `json:"kind"`
	Ops  int  `json:"ops"`
}

// Kind names an operation.
type Kind string

// Kinds of operation.
const (
	StartSupervisor Kind = "start-supervisor"
	StartReaper     Kind = "start-reaper"
	StartFabric     Kind = "start-fabric"
	StartNode       Kind = "start-node"
	StartAgents     Kind = "start-agents"
	CreateTAP       Kind = "create-tap"
	SetMTU          Kind = "set-mtu"
	SetMAC          Kind = "set-mac"
	AddAddress      Kind = "add-address"
	SetUp           Kind = "set-up"
	AddNeighbours   Kind = "add-neighbours"
	Connect         Kind = "connect"
)

// Op is one operation.
type Op struct {
	ID    int      `json:"id"` // from 1, in order
	Kind  Kind     `json:"kind"`
	Node  string   `json:"node"` // host, switch, or another process
	Do    string   `json:"do"`
	Undo  string   `json:"undo"`
	Makes []string `json:"makes,omitempty"` // what is there from then on: "h0: eth0 mtu 1500"
	After []int    `json:"after,omitempty"` // operations that must be done before
}

// Simulated is the plan of a lab that is simulated.
func Simulated(lab, topology string) Plan {
	return Plan{
		Lab: lab, Topology: topology, Engine: "sim", Note: "the simulator runs in the process of weft itself: nothing is created",
		Counts: []Count{}, Ops: []Op{},
	}
}

// Runtime says how a lab's processes are started.
type Runtime struct {
	Containers bool // each in a container of its own; a reaper removes those that whoever launched them leaves
	Supervised bool // a process that stays owns the lab
}

// A builder adds operations to a plan.
type builder struct {
	Plan
	setup *emulate.Setup
	in    Runtime
}

// Of completes a plan, of which what describes the lab is filled in, by what a setup makes in a runtime. The links are what the kernel makes
// of each direction, by port, where it carries packets and the dilation is known.
func Of(p Plan, s *emulate.Setup, in Runtime, links []qdisc.Tree) Plan {
	p.Engine, p.NICMTU, p.Counts = "emu", s.Spec.Nodes[0].MTU, []Count{}
	p.Resources.Memory = s.Buffers
	b := &builder{p, s, in}
	b.owners()
	if s.Network != nil {
		b.switched(links)
	} else {
		b.modelled()
	}
	b.count()
	return b.Plan
}

// Memory of the processes before they hold any data. Ours, rounded up: resident pages of a small Go program.
// Most are the text of the one binary, which the processes share.
const (
	processMemory = 12 * units.MiB
	fabricMemory  = 32 * units.MiB
)

// namespaces is how many every process of a lab gets: network, mount, PID, UTS and IPC.
const namespaces = 5

// add appends an operation and returns its number.
func (b *builder) add(kind Kind, node, do, undo string, makes []string, after ...int) int {
	id := len(b.Ops) + 1
	b.Ops = append(b.Ops, Op{ID: id, Kind: kind, Node: node, Do: do, Undo: undo, Makes: makes, After: after})
	return id
}

// line is one property of a node.
func line(node, format string, args ...any) string { return node + ": " + fmt.Sprintf(format, args...) }

// owners plans the processes that own the lab, which live in no namespaces of their own.
func (b *builder) owners() {
	if b.in.Supervised {
		b.owner(StartSupervisor, "supervisor", "start the process that owns the lab", "weft destroy has it end the lab, and itself")
	}
	if b.in.Containers {
		b.owner(StartReaper, "reaper", "start the process that removes containers should their owner be killed", "it ends once they are gone")
	}
}

func (b *builder) owner(kind Kind, name, do, undo string) {
	b.Resources.Processes++
	b.Resources.Memory += processMemory
	b.add(kind, name, do, undo, []string{line(name, "process")})
}

// start plans a process of the lab.
func (b *builder) start(kind Kind, name, what, takes string) int {
	b.Resources.Processes++
	b.Resources.Namespaces += namespaces
	b.Resources.Memory += processMemory
	if kind == StartFabric {
		b.Resources.Memory += fabricMemory - processMemory
	}
	makes := []string{line(name, "process")}
	if kind == StartFabric || kind == StartAgents {
		makes = append(makes, line(name, "lo up"))
	}
	if b.in.Containers {
		return b.add(kind, name, "start "+what+" in a container of its own", "end the process; the engine removes its container"+takes, append(makes, line(name, "container")))
	}
	return b.add(kind, name, "start "+what+" in namespaces of its own", "end the process; its namespaces"+takes, makes)
}

// What goes with the process of a host, and with its interface.
const (
	withHost = ", and eth0 goes with it"
	gone     = "goes with eth0"
)

// modelled plans a lab whose packets the modelled fabric carries.
func (b *builder) modelled() {
	spec := &b.setup.Spec
	fabric := b.start(StartFabric, runtime.Fabric, "the fabric process", ", and its ends of the cables go with it")
	for i := range spec.Nodes {
		b.host(&spec.Nodes[i], fabric)
	}
	for i := range spec.Agents {
		b.start(StartAgents, runtime.AgentsName(i), "a process that drives several nodes", " go with it")
	}
}

// host plans one host: its process, its interface, and the cable to the fabric.
func (b *builder) host(n *boot.NodeSpec, fabric int) {
	const eth = boot.Interface
	b.Resources.TAPs++
	node := b.start(StartNode, n.Name, "a node, with a read-only root and no network,", withHost)
	tap := b.add(CreateTAP, n.Name, "create the TAP device "+eth+" (a veth pair where /dev/net/tun cannot be opened)", "close its descriptor",
		[]string{line(n.Name, eth+" tap"), line(n.Name, eth+" txqueuelen %d", n.QueueLength())}, node)
	mtu := b.add(SetMTU, n.Name, fmt.Sprintf("set the MTU of %s to %d", eth, n.MTU), gone, []string{line(n.Name, eth+" mtu %d", n.MTU)}, tap)
	mac := b.add(SetMAC, n.Name, fmt.Sprintf("set the hardware address of %s to %v", eth, n.MAC), gone, []string{line(n.Name, eth+" link/ether %v", n.MAC)}, tap)
	ip := b.add(AddAddress, n.Name, fmt.Sprintf("add %v to %s", n.Addr, eth), gone,
		[]string{line(n.Name, eth+" inet %v", n.Addr), line(n.Name, eth+" route %v", n.Addr.Masked())}, tap)
	up := b.add(SetUp, n.Name, "set "+eth+" and lo up", gone,
		[]string{line(n.Name, "lo up"), line(n.Name, eth+" up"), line(n.Name, eth+" out root pfifo handle 1:")}, mtu, mac, ip)
	if peers := n.Neighbours(); len(peers) > 0 {
		b.add(AddNeighbours, n.Name, fmt.Sprintf("add %s, permanent", plural(len(peers), "neighbour")), gone, b.neighbours(n.Name, eth, peers...), up)
	}
	b.add(Connect, n.Name, fmt.Sprintf("hand the fabric the other end of %s as the NIC of %s", eth, n.Name), "close the fabric's descriptor", nil, fabric, up)
}

// neighbours are the permanent entries of an interface.
func (b *builder) neighbours(node, device string, peers ...boot.Peer) (makes []string) {
	b.Resources.Neighbours += len(peers)
	for _, p := range peers {
		makes = append(makes, line(node, "%s neigh %v lladdr %v", device, p.Addr, p.MAC))
	}
	return makes
}

// count fills Counts.
func (b *builder) count() {
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
