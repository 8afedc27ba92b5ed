package emulate

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"
	"time"

	clocks "weft/clocksync/node"
	"weft/fabric"
	"weft/host"
	"weft/internal/poller"
	"weft/nodeimg/agent"
	"weft/nodeimg/boot"
	"weft/orchestrator/kernelpath"
	"weft/orchestrator/runtime"
	"weft/realtime"
	"weft/results/frames"
	"weft/tc-shaping/ports"
	"weft/tc-shaping/qdisc"
	"weft/transport"
	"weft/transport/wire"
	"weft/units"
)

// receiveBuffer is the receive buffer of a node's socket in bytes. It holds arrivals while the node
// does not run.
const receiveBuffer = 8 * units.MiB

// syncBuffer is the receive buffer of a socket for synchronization messages: some thousand of them.
const syncBuffer = units.MiB

// nodeNice is the nice value that nodes ask for, so that other programs delay them less.
const nodeNice = -19

// Setup is everything that an emulation creates on the machine, as data. Run and Deploy launch it,
// and package plan prints it.
type Setup struct {
	Spec runtime.Spec
	// what each machine starts of Spec if the network is in parts; nil: there is one machine
	Machines []runtime.Spec
	// configuration of the kernel if it carries packets; nil: the modelled fabric carries them
	Network *kernelpath.Network
	Buffers units.Bytes // of collectives, in all nodes
	NICs    units.Bytes // shared memory of bypass NICs, at most
}

// ToRun returns the setup of Run.
func (x *Experiment) ToRun() (*Setup, error) {
	s := runtime.Spec{
		Lab:    x.Lab,
		Nodes:  make([]boot.NodeSpec, len(x.Plans)),
		Self:   x.Processes.Self,
		Env:    append([]string{poller.Preemption}, x.Processes.Env...),
		Stderr: x.Processes.Stderr,
		Step:   x.Processes.Step,
		Images: x.images(),
		Memory: x.memory(),
		Agents: x.agents(),
	}
	routes, err := x.TCP.Real(x.Dilation)
	if err != nil {
		return nil, err
	}
	prefix := x.prefix()
	for i := range x.Plans {
		s.Nodes[i] = boot.NodeSpec{
			Name:    x.Plans[i].Name,
			Addr:    netip.PrefixFrom(x.Addrs[i], prefix),
			MAC:     boot.MACOf(x.Addrs[i]),
			MTU:     x.ipMTU(),
			Peers:   x.neighbours(i),
			Sockets: x.sockets(i),
			Veth:    x.Processes.Veth,
			Nice:    nodeNice,
			TCP:     routes,
		}
	}
	setup := &Setup{Spec: s}
	if len(x.Groups) > 0 {
		x.name(&setup.Spec)
	}
	setup.Machines = x.machines(setup.Spec)
	for i := range x.Plans {
		setup.Buffers += agent.Buffers(&x.Plans[i])
	}
	if setup.NICs, err = x.nicMemory(); err != nil || x.Kernel == nil {
		return setup, err
	}
	if setup.Network, err = x.network(); err != nil {
		return nil, err
	}
	x.switched(&setup.Spec, setup.Network)
	return setup, nil
}

// ToDeploy returns the setup of Deploy: nodes whose programs know each other by name, and no
// processes that drive them, since there is no workload.
func (x *Experiment) ToDeploy() (*Setup, error) {
	s, err := x.ToRun()
	if err != nil {
		return nil, err
	}
	x.name(&s.Spec)
	for _, nodes := range [][]boot.NodeSpec{s.Spec.Nodes, s.Spec.Switches} {
		for i := range nodes {
			nodes[i].Hidden = x.Processes.Hidden
		}
	}
	s.Spec.Ahead, s.Spec.Agents, s.Spec.Standing, s.NICs = x.Processes.Ahead, 0, true, 0
	s.Machines = x.machines(s.Spec)
	return s, nil
}

// name makes all hosts known by name in all nodes.
func (x *Experiment) name(s *runtime.Spec) {
	names := make([]boot.HostName, len(x.Plans))
	for i := range x.Plans {
		names[i] = boot.HostName{Name: x.Plans[i].Name, Addr: x.Addrs[i]}
	}
	for _, nodes := range [][]boot.NodeSpec{s.Nodes, s.Switches} {
		for i := range nodes {
			nodes[i].Hosts = names
		}
	}
}

// Shape returns the qdisc tree of each direction of the links, by port of the fabric.
func (x *Experiment) Shape(kernel qdisc.Capabilities) ([]qdisc.Tree, error) {
	trees, _, err := ports.Shape(&x.Fabric, ports.Sources(x.Addrs), x.Dilation, x.ipMTU(), kernel)
	return trees, err
}

// agents returns the number of processes that drive nodes. It is 0 if the machine's kernel carries
// packets or the runtime has no such processes. Then each node's process drives itself.
func (x *Experiment) agents() int {
	if x.Kernel != nil || x.Processes.NoAgents {
		return 0
	}
	return Agents(len(x.Plans))
}

// sockets returns the sockets of host i's node, with the transport's first.
func (x *Experiment) sockets(i int) []boot.Socket {
	s := []boot.Socket{{Port: wire.Port, ReadBuffer: receiveBuffer}}
	if c := x.Plans[i].Clock; c != nil {
		for _, port := range clocks.Ports(c.Sync) {
			s = append(s, boot.Socket{Port: port, ReadBuffer: syncBuffer})
		}
	}
	return s
}

// departs reports whether packets must carry their departure time, because some host's clock is not
// lab time.
func (x *Experiment) departs() bool {
	return slices.ContainsFunc(x.Plans, func(p host.Plan) bool { return p.Clock != nil })
}

// memory returns a bound above the memory of any healthy process of the run.
func (x *Experiment) memory() units.Bytes {
	// for the fabric: packets in flight
	limit := 2 * units.GiB
	for i := range x.Plans {
		limit = max(limit, 2*units.Bytes(agent.MemoryRoom(&x.Plans[i])))
	}
	return limit
}

// neighbours returns the peers of host i's connections and clock, so that none of their packets
// waits for ARP.
func (x *Experiment) neighbours(i int) (peers []boot.Peer) {
	seen := map[transport.HostID]bool{x.Plans[i].Host: true}
	add := func(h transport.HostID) {
		if !seen[h] {
			seen[h] = true
			peers = append(peers, boot.Peer{Addr: x.Addrs[h], MAC: boot.MACOf(x.Addrs[h])})
		}
	}
	if c := x.Plans[i].Clock; c != nil && len(clocks.Ports(c.Sync)) > 0 {
		for h := range x.Plans {
			add(transport.HostID(h))
		}
		if s := int(c.Setup.Bridge) - len(x.Plans); s >= 0 {
			peers = append(peers, boot.Peer{Addr: x.Switches[s], MAC: boot.MACOf(x.Switches[s])})
		}
	}
	for _, c := range x.Plans[i].Conns {
		add(c.Src)
		add(c.Dst)
	}
	return peers
}

// minSampleInterval is the smallest real time between queue samples. At a dilation of 1 the fabric,
// which has priority over the rest of the machine, would spend a whole processor on a sample every
// 10 us.
const minSampleInterval = 200 * time.Microsecond

// sampleEvery returns the interval of queue samples in lab time; 0: none are taken.
func (x *Experiment) sampleEvery() units.Time {
	if x.SampleQueues == 0 {
		return 0
	}
	return max(x.SampleQueues, units.Time(float64(units.FromDuration(minSampleInterval))/x.Dilation))
}

// slower returns the further dilations that the kernel may try.
func (x *Experiment) slower() []float64 {
	if x.Kernel == nil {
		return nil
	}
	return x.Kernel.Slower
}

// fabricConfig returns the configuration of the fabric process.
func (x *Experiment) fabricConfig() realtime.Config {
	c := realtime.Config{
		Network:     x.Fabric,
		Changes:     x.Changes,
		Dilation:    x.Dilation,
		Slower:      x.slower(),
		Hosts:       make([]realtime.Address, len(x.Addrs)),
		Sample:      x.sampleEvery(),
		Frames:      x.FrameSchedule,
		MaxFrame:    x.maxFrame(),
		Switch:      x.switchAddr(),
		Switches:    x.switches(),
		Transparent: x.Transparent,
		PeerDelay:   x.PeerDelay,
		Control:     x.Control,
		// tolerates the node's own rounding
		Ahead:   2 * x.ahead(),
		Pause:   x.pause(),
		Departs: x.departs(),
		More:    x.more,
		Stall:   x.minStall(), Programs: len(x.Groups)+len(x.Programs) > 0,
	}
	if x.Parts != nil {
		c.Part = &realtime.Part{Of: x.Parts}
	}
	for i, a := range x.Addrs {
		c.Hosts[i] = realtime.Address{Name: x.Plans[i].Name, IP: a.As4(), MAC: realtime.MAC(boot.MACOf(a))}
	}
	return c
}

// switchAddr returns the source address of pause notices to nodes: the last but one of the subnet,
// since the last is its broadcast address. It is zero if a host has that address; nodes then get no
// notices.
func (x *Experiment) switchAddr() [4]byte {
	a := x.Addrs[0].As4()
	all := uint32(1)<<(32-x.prefix()) - 1
	binary.BigEndian.PutUint32(a[:], (binary.BigEndian.Uint32(a[:])|all)-1)
	if slices.Contains(x.Addrs, netip.AddrFrom4(a)) {
		return [4]byte{}
	}
	return a
}

// prefix returns the length of the subnet's prefix.
func (x *Experiment) prefix() int { return cmp.Or(x.Prefix, 8) }

// peers returns the addresses of all hosts.
func (x *Experiment) peers() [][4]byte {
	all := make([][4]byte, len(x.Addrs))
	for i, a := range x.Addrs {
		all[i] = a.As4()
	}
	return all
}

// nodeConfig returns the configuration of host i's node.
func (x *Experiment) nodeConfig(i int, peers [][4]byte) agent.Config {
	var schedule frames.Schedule
	if x.Conns != nil && x.Kernel == nil {
		schedule = x.FrameSchedule
	}
	return agent.Config{
		Frames: schedule,
		Plan:   x.Plans[i].Alone(), Dilation: x.Dilation, Peers: peers, Switch: x.switchAddr(), Ahead: x.ahead(),
		Windows: x.Windows,
		Departs: x.Kernel == nil && x.departs(), Switches: x.switches(), Switched: x.Kernel != nil, More: x.more,
		Steers: x.steers(i), Stall: x.minStall(),
		Holds: x.Kernel != nil && x.Kernel.transit != nil, Sprayed: x.sprayed(),
	}
}

// sprayed reports whether packets of a flow that are in order may be due in another one: switches
// take a path at random for each packet or take detours, or links delay packets at random. Where
// flows keep their path but for moves, the order in which packets come shows those.
func (x *Experiment) sprayed() bool {
	return x.Fabric.HasLink(x.Changes, (*fabric.Link).Shuffles) ||
		slices.ContainsFunc(x.Fabric.Switches, func(s fabric.SwitchConfig) bool {
			return s.Balance.Random() || s.Aside != nil
		})
}

// steers reports whether programs of host i read a clock that may be corrected.
func (x *Experiment) steers(i int) bool {
	if x.Plans[i].Clock == nil {
		return false
	}
	return slices.ContainsFunc(x.Groups, func(g Group) bool { return g.LabTime && slices.Contains(g.Hosts, i) }) ||
		slices.ContainsFunc(x.Programs, func(p Program) bool { return p.LabTime && p.Host == i })
}

// switches returns the addresses of switches that send notifications.
func (x *Experiment) switches() (all [][4]byte) {
	for _, a := range x.Switches {
		all = append(all, a.As4())
	}
	return all
}
