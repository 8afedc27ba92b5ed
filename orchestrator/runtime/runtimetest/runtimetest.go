// Package runtimetest has the labs that the tests of all runtimes start, and a fabric for them.
package runtimetest

import (
	"fmt"
	"net/netip"
	"os"

	"weft/nodeimg/boot"
	"weft/orchestrator/runtime"
)

// Lab returns n nodes that know each other's names.
func Lab(n int) runtime.Spec {
	s := runtime.Spec{Lab: "test", Nodes: make([]boot.NodeSpec, n)}
	addr := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}) }
	for i := range s.Nodes {
		s.Nodes[i] = boot.NodeSpec{
			Name: fmt.Sprint("h", i), Addr: netip.PrefixFrom(addr(i), 16), MAC: boot.MACOf(addr(i)), MTU: 4200,
		}
		for j := range s.Nodes {
			if i != j {
				s.Nodes[i].Peers = append(s.Nodes[i].Peers, boot.Peer{Addr: addr(j), MAC: boot.MACOf(addr(j))})
			}
		}
	}
	return s
}

// Switched returns n nodes on one switch, which is a node as well.
func Switched(n int) runtime.Spec {
	s := Lab(n)
	s.Switches = []boot.NodeSpec{{Name: "s0", Switch: true}}
	gateway := netip.AddrFrom4([4]byte{10, 128, 0, 1})
	for i := range s.Nodes {
		h := &s.Nodes[i]
		h.Wired, h.Addr = true, netip.PrefixFrom(h.Addr.Addr(), 32)
		h.Gateway = &boot.Gateway{Addr: gateway, MAC: boot.MACOf(gateway), Net: netip.MustParsePrefix("10.0.0.0/8")}
		s.Cables = append(s.Cables, boot.Cable{
			A: boot.CableEnd{Node: "s0", Interface: h.Name, MAC: boot.MACOf(gateway), Queue: 100, Index: 1000 + i},
			B: boot.CableEnd{Node: h.Name, Interface: boot.Interface, MAC: h.MAC, Queue: 100}, MTU: h.MTU,
		})
	}
	return s
}

// Hub forwards frames, on goroutines, as a hub that knows every node of a Lab: octet 5 of a
// hardware address is the node's number plus one.
func Hub(links []boot.Link) {
	files := make([]*os.File, len(links))
	for i, l := range links {
		files[i] = os.NewFile(uintptr(l.FD), l.Node)
	}
	for _, f := range files {
		go func() {
			frame := make([]byte, 1<<16)
			for {
				n, err := f.Read(frame)
				if err != nil {
					return
				}
				if to := int(frame[5]) - 1; n > 14 && to >= 0 && to < len(files) && frame[0] == 2 {
					files[to].Write(frame[:n])
				}
			}
		}()
	}
}
