package emulate

import (
	"fmt"
	"net/netip"

	"weft/fabric"
	"weft/host"
	"weft/transport"
	"weft/transport/cc/pc4"
	"weft/transport/wire"
	"weft/units"
)

// The network of the calibration: hosts on one switch, with the rates and packets of the labs. Its
// round trip is that of a fat-tree: two links of 3 us for six links of 1 us.
const (
	benchRate  = 100 * units.Gbps
	benchDelay = 3 * units.Microsecond
	benchMTU   = 4096
)

// star returns n hosts on one switch, without work.
func star(n int, dilation float64) Experiment {
	x := Experiment{
		Lab: "star", Dilation: dilation,
		Fabric: fabric.Config{Hosts: n, Switches: []fabric.SwitchConfig{{Name: "s0"}}},
		Plans:  make([]host.Plan, n), Addrs: make([]netip.Addr, n),
	}
	there := starPath()
	x.BaseRTT = there.Delay(benchMTU+wire.DataSize+wire.Overhead) + there.Delay(wire.AckSize+wire.Overhead)
	line := fabric.PortConfig{Link: fabric.Link{Rate: benchRate, Delay: benchDelay}, Buffer: 4 * units.MB}
	sw := &x.Fabric.Switches[0]
	for h := range n {
		x.Addrs[h] = netip.AddrFrom4([4]byte{10, 0, byte(h / 254), byte(h%254 + 1)})
		up, down := line, line
		up.From, up.To = fabric.NodeID(h), fabric.NodeID(n)
		down.From, down.To = fabric.NodeID(n), fabric.NodeID(h)
		x.Fabric.Ports = append(x.Fabric.Ports, up, down)
		sw.Groups = append(sw.Groups, []int32{int32(2*h + 1)})
		sw.Route = append(sw.Route, int32(h))
		x.Plans[h] = host.Plan{
			Host: transport.HostID(h), Name: fmt.Sprintf("h%d", h),
			Endpoint: transport.Config{Host: transport.HostID(h), MTU: benchMTU, LineRate: benchRate},
		}
	}
	return x
}

func starPath() transport.Path {
	return transport.Path{Propagation: 2 * benchDelay, Rates: []units.Bandwidth{benchRate, benchRate}}
}

// work adds an item to a star, in which every host is the rank of its number. sends reports whether
// one rank sends to another. Each sender assumes that among senders share the receiver's link.
func (x *Experiment) work(it host.Item, sends func(src, dst int) bool, among int) {
	n := len(x.Plans)
	it.Ranks = make([]transport.HostID, n)
	for h := range n {
		it.Ranks[h] = transport.HostID(h)
	}
	for h := range n {
		p := &x.Plans[h]
		mine := it
		mine.Rank = h
		for peer := range n {
			if peer != h && sends(h, peer) {
				s := spec(n, h, peer, it.Collective, among)
				p.Conns = append(p.Conns, s)
				mine.Conns = append(mine.Conns, host.Peer{Rank: peer, Conn: s.ID})
			}
			if peer != h && sends(peer, h) {
				s := spec(n, peer, h, it.Collective, among)
				p.Conns = append(p.Conns, s)
				mine.Expect = append(mine.Expect, host.Peer{Rank: peer, Conn: s.ID})
			}
		}
		p.Items = append(p.Items, mine)
	}
}

// spec returns the connection from one host of a star to another.
func spec(n, src, dst int, collective string, among int) transport.Spec {
	const firstDynamicPort = 49152 // RFC 6335, section 6
	return transport.Spec{
		ID: transport.ConnID(src*n + dst), Src: transport.HostID(src), Dst: transport.HostID(dst),
		SrcPort: uint16(firstDynamicPort + src*n + dst), Forward: starPath(), Reverse: starPath(),
		Kind: "pc4", CC: pc4.Defaults(), Collective: collective, Initial: benchRate / units.Bandwidth(among),
	}
}

// allToAll returns a star in which every host sends full packets to each other host, repeat times.
// Its load is that of any lab with all hosts busy.
func allToAll(n, packets, repeat int, dilation float64) Experiment {
	x := star(n, dilation)
	x.work(host.Item{
		Collective: "all-to-all", Algorithm: "direct", Size: units.Bytes(n*packets) * benchMTU, Repeat: repeat,
	}, func(int, int) bool { return true }, n-1)
	return x
}
