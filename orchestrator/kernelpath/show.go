package kernelpath

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"weft/orchestrator/runtime"
	"weft/tc-shaping/tcnl"
)

// Show returns the disciplines, classes, programs and counters of the switch of a host, as the tc
// of this machine prints them in the switch's namespace, in two paragraphs: the interface to the
// host, and all interfaces, with the bridge and the routes. Without tc the second has the
// disciplines and their counters, read by netlink, and the first says so. A command that fails
// leaves its reason in the text.
func Show(ctx context.Context, net *Network, nodes Nodes, host int) string {
	home := net.Hosts[host].Home
	name, device := net.Switches[home].Name, ""
	for _, m := range net.Switches[home].Rack {
		if m.Host == host {
			device = m.Interface
		}
	}
	const whole = "tc -s qdisc show"
	p := nodes.Switch(home)
	var b strings.Builder
	for _, command := range []string{
		"tc -s qdisc show dev " + device, "tc class show dev " + device, "tc -s filter show dev " + device + " egress",
		"tc -s filter show dev " + device + " ingress", whole,
		"bridge fdb show br " + Bridge, "ip rule", "ip route show table all",
	} {
		words := strings.Fields(command)
		out, err := p.Output(ctx, words[0], words[1:]...)
		if errors.Is(err, exec.ErrNotFound) && words[0] == "tc" {
			return "this machine has no tc (Debian package iproute2), so this was read by netlink\n\n" + name + ":\n" +
				readBack(p)
		}
		if command == whole {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s$ %s\n%s", name, command, out)
		if err != nil {
			fmt.Fprintf(&b, "%s: %v\n", words[0], err)
		}
	}
	return b.String()
}

// readBack returns the disciplines of a namespace with their counters, or why they cannot be read.
func readBack(p *runtime.Proc) string {
	text := ""
	err := p.Do(func() error {
		conn, err := tcnl.Open()
		if err != nil {
			return err
		}
		defer conn.Close()
		text, err = conn.Show()
		return err
	})
	if err != nil {
		text += err.Error() + "\n"
	}
	return text
}
