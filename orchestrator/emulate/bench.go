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

// The network that measures the machine: hosts on one switch, with the rates, delays and packets of the labs.
const (
	benchRate  = 100 * units.Gbps
	benchDelay = units.Microsecond
	benchMTU   = 4096
)

// star returns an all-to-all of n hosts on one switch, in which every host sends so many full packets to each
// other. Its load is that of any lab whose hosts are all busy.
func star(n, packets int, dilation float64) Experiment {
	x := Experiment{
		Lab: "calibration", Dilation: dilation,
		Fabric: fabric.Config{Hosts: n, Switches: []fabric.SwitchConfig{{Name: "s0"}}},
		Plans:  make([]host.Plan, n), Addrs: make([]netip.Addr, n),
	}
	path := transport.Path{Propagation: 2 * benchDelay, Rates: []units.Bandwidth{benchRate, benchRate}}
	x.BaseRTT = path.Delay(benchMTU+wire.DataSize+wire.Overhead) + path.Delay(wire.AckSize+wire.Overhead)
	line := fabric.PortConfig{Rate: benchRate, Delay: benchDelay, Buffer: 4 * units.MB}
	sw := &x.Fabric.Switches[0]
	ranks := make([]transport.HostID, n)
	for h := range n {
		ranks[h] = transport.HostID(h)
		x.Addrs[h] = netip.AddrFrom4([4]byte{10, 0, byte(h >> 8), byte(h%254 + 1)})
		up, down := line, line
		up.From, up.To = fabric.NodeID(h), fabric.NodeID(n)
		down.From, down.To = fabric.NodeID(n), fabric.NodeID(h)
		x.Fabric.Ports = append(x.Fabric.Ports, up, down)
		sw.Groups = append(sw.Groups, []int32{int32(2*h + 1)})
		sw.Route = append(sw.Route, int32(h))
	}
	for h := range n {
		p := &x.Plans[h]
		*p = host.Plan{
			Host: transport.HostID(h), Name: fmt.Sprintf("h%d", h),
			Endpoint: transport.Config{Host: transport.HostID(h), MTU: benchMTU, LineRate: benchRate},
		}
		it := host.Item{
			Collective: "all-to-all", Algorithm: "direct", Ranks: ranks, Rank: h, Repeat: 1,
			Size: units.Bytes(n*packets) * benchMTU,
		}
		for peer := range n {
			if peer == h {
				continue
			}
			there, back := spec(n, h, peer, path), spec(n, peer, h, path)
			p.Conns = append(p.Conns, there, back)
			it.Conns = append(it.Conns, host.Peer{Rank: peer, Conn: there.ID})
			it.Expect = append(it.Expect, host.Peer{Rank: peer, Conn: back.ID})
		}
		p.Items = []host.Item{it}
	}
	return x
}

// spec is the connection from one host of a star to another.
func spec(n, src, dst int, path transport.Path) transport.Spec {
	const firstDynamicPort = 49152 // RFC 6335, section 6
	return transport.Spec{
		ID: transport.ConnID(src*n + dst), Src: transport.HostID(src), Dst: transport.HostID(dst),
		SrcPort: uint16(firstDynamicPort + src*n + dst), Forward: path, Reverse: path,
		Kind: "pc4", PC4: pc4.Defaults(), Collective: "all-to-all",
		Initial: benchRate / units.Bandwidth(n-1),
	}
}
