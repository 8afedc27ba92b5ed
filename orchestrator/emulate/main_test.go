package emulate

import (
	"fmt"
	"os"
	"testing"

	"weft/internal/control"
	"weft/internal/umltest"
	"weft/nodeimg/agent"
	"weft/nodeimg/boot"
	"weft/realtime"
)

// TestMain is also the processes of the labs that the tests start: they run this program again.
func TestMain(m *testing.M) {
	var process func(*control.Conn) error
	if len(os.Args) == 2 {
		process = map[string]func(*control.Conn) error{"node": serveNode, "fabric": serveFabric}[os.Args[1]]
	}
	if process == nil {
		umltest.Main(m)
	}
	conn, err := control.Open(control.FD)
	if err == nil {
		err = process(conn)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serveNode is the process of a node.
func serveNode(conn *control.Conn) error {
	env, err := boot.Node(conn)
	if err != nil {
		return err
	}
	if env.Switch {
		return boot.Hold(conn)
	}
	return agent.Run(conn, env.Sockets)
}

// serveFabric is the fabric process.
func serveFabric(conn *control.Conn) error {
	env, err := boot.Fabric(conn)
	if err != nil {
		return err
	}
	ports := make([]realtime.Port, len(env.Links))
	for _, l := range env.Links {
		ports[l.Index] = realtime.Port{FD: l.FD, Kind: string(l.Kind)}
	}
	return realtime.Run(conn, ports)
}
