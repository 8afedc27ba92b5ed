package emulate

import (
	"weft/internal/control"
	"weft/nodeimg/agent"
	"weft/nodeimg/boot"
	"weft/realtime"
)

// NodeProcess is the body of a node's process: it becomes a host or a switch, as the first message
// on the connection says. It returns when the lab ends, for a host with the error of its agent.
func NodeProcess(conn *control.Conn) error {
	env, err := boot.Node(conn)
	if err != nil {
		return err
	}
	if env.Switch {
		return boot.Hold(conn)
	}
	return agent.Run(conn, env.Sockets)
}

// FabricProcess is the body of the fabric's process: it carries the packets of a lab until the lab
// ends.
func FabricProcess(conn *control.Conn) error {
	links, err := boot.Fabric(conn)
	if err != nil {
		return err
	}
	ports := make([]realtime.Port, len(links))
	for _, l := range links {
		ports[l.Index] = realtime.Port{FD: l.FD, Kind: portKind(l)}
	}
	return realtime.Run(conn, ports)
}
