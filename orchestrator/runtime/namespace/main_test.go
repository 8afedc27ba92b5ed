package namespace

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"testing"

	"weft/nodeimg/boot"
	"weft/nodeimg/control"
)

// The test program stands in for weft: it is run again as every process of a lab.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "node", "fabric":
			os.Exit(process(os.Args[1]))
		}
	}
	os.Exit(m.Run())
}

// process is the simplest thing that can live in a namespace: it boots and sends every message back.
func process(kind string) int {
	conn, err := control.Open(control.FD)
	if err == nil {
		if kind == "node" {
			_, err = boot.Node(conn)
		} else {
			_, err = boot.Fabric(conn)
		}
	}
	for err == nil {
		var m control.Message
		if m, _, err = conn.Recv(); err == nil {
			err = conn.Send(m)
		}
	}
	if errors.Is(err, io.EOF) {
		return 0
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// lab returns n nodes that know each other.
func lab(n int) Spec {
	s := Spec{Lab: "test", Nodes: make([]boot.NodeSpec, n)}
	addr := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i + 1)}) }
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
