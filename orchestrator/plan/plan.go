package plan

import (
	"fmt"

	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
	"weft/units"
)

// Options override the engine section of the lab. Empty fields leave it as it is.
type Options struct {
	Engine string // sim, emu, both; auto counts as emu, since that is what a deployment is
}

// Plan is what a deployment would do.
type Plan struct {
	Lab       string      `json:"lab"`
	Topology  string      `json:"topology"` // "fat-tree, k=4"
	Engine    string      `json:"engine"`   // sim, emu
	Runtime   string      `json:"runtime,omitempty"`
	Datapath  string      `json:"datapath,omitempty"`
	Note      string      `json:"note,omitempty"`
	NICMTU    units.Bytes `json:"nic_mtu_bytes,omitempty"`
	Resources Resources   `json:"resources"`
	Counts    []Count     `json:"counts"` // operations by kind, in the order of their first
	Ops       []Op        `json:"ops"`    // an operation comes after all that it waits for; undo in reverse
}

// Resources is what the deployed lab uses.
type Resources struct {
	Processes  int         `json:"processes"`
	Namespaces int         `json:"namespaces"`
	TAPs       int         `json:"taps"`
	Cables     int         `json:"cables,omitempty"` // veth pairs between nodes
	Neighbours int         `json:"neighbours"`       // permanent entries in neighbour tables
	Memory     units.Bytes `json:"memory_bytes"`     // estimate: see memory
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
	StartFabric   Kind = "start-fabric"
	StartNode     Kind = "start-node"
	CreateTAP     Kind = "create-tap"
	SetMTU        Kind = "set-mtu"
	SetMAC        Kind = "set-mac"
	AddAddress    Kind = "add-address"
	SetUp         Kind = "set-up"
	AddNeighbours Kind = "add-neighbours"
	Connect       Kind = "connect"
)

// Op is one operation.
type Op struct {
	ID    int    `json:"id"` // from 1, in order
	Kind  Kind   `json:"kind"`
	Node  string `json:"node"` // host, or "fabric"
	Do    string `json:"do"`
	Undo  string `json:"undo"`
	After []int  `json:"after,omitempty"` // operations that must be done before
}

// What a host's interface carries beyond the lab's MTU, which counts payload: the largest header of Weft's
// transports, and the headers of UDP (RFC 768) and IPv4 (RFC 791). The Ethernet header and the frame check
// sequence are not part of an interface's MTU.
const (
	headers   = 160 // transport.MaxHeader, as a test holds; a plan knows no transport
	udpHeader = 8
	ipHeader  = 20
)

// NICMTU is the MTU of every host's interface in a lab of the given MTU.
func NICMTU(mtu units.Bytes) units.Bytes { return mtu + headers + udpHeader + ipHeader }

// Build plans the deployment of lab l, whose graph is g, in its runtime (the built-in one if it leaves that open) with the fabric
// datapath, or with that of the kernel if it asks for it. In the simulator nothing is created, and the plan has no operations.
func Build(g *topology.Graph, l *lab.Lab, o Options) Plan {
	p := Plan{Lab: l.Name, Topology: g.Title, Engine: "emu", Runtime: "namespace", Datapath: "fabric", Counts: []Count{}, Ops: []Op{}}
	engine := o.Engine
	if engine == "" {
		engine = l.Engine.Kind
	}
	switch engine {
	case "sim":
		p.Engine, p.Runtime, p.Datapath = "sim", "", ""
		p.Note = "the simulator runs in the process of weft itself: nothing is created"
		return p
	case "both":
		p.Note = "of the two runs, the one in the simulator creates nothing"
	}
	p.NICMTU = NICMTU(l.Topology.MTU)
	if l.Engine.Runtime == "docker" {
		p.Runtime = "docker"
	}
	if l.Engine.Datapath == "kernel" {
		p.Datapath = "kernel"
		p.kernel(g, l)
		p.count()
		return p
	}
	start, end := p.words()
	fabric := p.add(StartFabric, "fabric", "start the fabric process "+start, end+" and its ends of the cables go with it")
	for h := range g.Hosts {
		p.host(g, topology.NodeID(h), fabric)
	}
	p.count()
	p.Resources = Resources{
		Processes:  1 + g.Hosts,
		Namespaces: (1 + g.Hosts) * namespaces,
		TAPs:       g.Hosts,
		Neighbours: g.Hosts * (g.Hosts - 1),
		Memory:     memory(g, l),
	}
	return p
}

// namespaces is how many every process gets: network, mount, PID, UTS and IPC.
const namespaces = 5

// words say how the runtime starts and ends a process.
func (p *Plan) words() (start, end string) {
	if p.Runtime == "docker" {
		return "in a container of its own", "end the process; the engine removes its container,"
	}
	return "in namespaces of its own", "end the process; its namespaces"
}

// device is the name of a host's interface.
const device = "eth0"

// host plans one host: its process, its interface, and the cable to the fabric.
func (p *Plan) host(g *topology.Graph, h topology.NodeID, fabric int) {
	name, addr := g.Nodes[h].Name, g.Nodes[h].Addr
	const gone = "goes with " + device
	start, end := p.words()
	node := p.add(StartNode, name, "start a node "+start+", with a read-only root and no network", end+" and "+device+" go with it")
	tap := p.add(CreateTAP, name, "create the TAP device "+device+" (a veth pair where /dev/net/tun cannot be opened)",
		"close its descriptor", node)
	mtu := p.add(SetMTU, name, fmt.Sprintf("set the MTU of %s to %d", device, p.NICMTU), gone, tap)
	mac := p.add(SetMAC, name, fmt.Sprintf("set the hardware address of %s to %v", device, topology.HostMAC(h)), gone, tap)
	ip := p.add(AddAddress, name, fmt.Sprintf("add %s/%d to %s", addr, topology.PrefixLen, device), gone, tap)
	up := p.add(SetUp, name, "set "+device+" and lo up", gone, mtu, mac, ip)
	p.add(AddNeighbours, name, fmt.Sprintf("add %s, permanent", plural(g.Hosts-1, "neighbour")), gone, up)
	p.add(Connect, name, fmt.Sprintf("hand the fabric the other end of %s as the NIC of %s", device, name),
		"close the fabric's descriptor", fabric, up)
}

// add appends an operation and returns its number.
func (p *Plan) add(kind Kind, node, do, undo string, after ...int) int {
	id := len(p.Ops) + 1
	p.Ops = append(p.Ops, Op{ID: id, Kind: kind, Node: node, Do: do, Undo: undo, After: after})
	return id
}

// count fills Counts.
func (p *Plan) count() {
	index := make(map[Kind]int)
	for _, op := range p.Ops {
		i, ok := index[op.Kind]
		if !ok {
			i = len(p.Counts)
			index[op.Kind] = i
			p.Counts = append(p.Counts, Count{Kind: op.Kind})
		}
		p.Counts[i].Ops++
	}
}

// Memory of the processes before they hold any data. Ours, rounded up: resident pages of a small Go program.
// Most are the text of the one binary, which the processes share.
const (
	nodeMemory   = 12 * units.MiB
	fabricMemory = 32 * units.MiB
)

// memory estimates what the processes hold: themselves, and for every rank of every collective its input and
// its output. Packets on their way are left out: windows keep them to a fraction of that.
func memory(g *topology.Graph, l *lab.Lab) units.Bytes {
	m := fabricMemory + units.Bytes(g.Hosts)*nodeMemory
	for i := range l.Workload {
		it := &l.Workload[i]
		m += 2 * units.Bytes(ranks(g, it)) * it.Size
	}
	return m
}

// ranks is how many ranks an item has besides a root apart from them.
func ranks(g *topology.Graph, it *lab.Item) int {
	switch r := it.Ranks; {
	case r.First > 0:
		return r.First
	case r.Random > 0:
		return r.Random
	case len(r.Names) > 0:
		return len(r.Names)
	}
	if it.RootApart() { // all but the root
		return g.Hosts - 1
	}
	return g.Hosts
}
