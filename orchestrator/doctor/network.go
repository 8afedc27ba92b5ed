package doctor

import (
	"context"
	"errors"
	"fmt"

	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/privilege"
	"weft/tc-shaping/probe"
	"weft/tc-shaping/qdisc"
)

// Costs of features that only the kernel datapath needs.
const (
	costKernelPath = "no datapath kernel; the modelled fabric runs the same labs"
	fixModules     = "a kernel with it built in or as a module (Debian, Ubuntu: package linux-modules-extra), or " +
		"--kernel uml"
)

// network returns the tests of devices and queueing disciplines.
func network(o Options) []test {
	tests := []test{
		otherKernel(o),
		{name: "TAP", try: inScratch(tap), grade: Degraded,
			cost: "hosts are connected by veth pairs and packet sockets: slightly more work per packet",
			fix:  "modprobe tun; as an ordinary user also: chmod 0666 /dev/net/tun"},
		{name: "veth and AF_PACKET", try: inScratch(veth), grade: Degraded,
			cost: "no emulation without TAP devices",
			fix:  fixModules},
		{name: "bridge", try: inScratch(device(&netlink.Bridge{LinkAttrs: attrs("scratch")})), grade: Missing,
			cost: costKernelPath, fix: fixModules},
		{name: "vxlan", try: inScratch(device(&netlink.Vxlan{LinkAttrs: attrs("scratch"), VxlanId: 1, Port: 4789})),
			grade: Missing,
			cost:  "no links between machines", fix: fixModules},
		{name: "macvlan", try: inScratch(macvlan), grade: Missing,
			cost: "nothing for current labs; no nodes on the machine's own network", fix: fixModules},
	}
	for _, p := range qdisc.Parts() {
		tests = append(tests, part(p))
	}
	return tests
}

// part returns the test of one part of the kernel datapath, as package probe tries it.
func part(p qdisc.Part) test {
	names := map[qdisc.Part]string{qdisc.PartIFB: "ifb", qdisc.PartRedirect: "ingress redirect (tc mirred)",
		qdisc.PartSource: "source address check", qdisc.PartBPF: "BPF programs of tc"}
	name := names[p]
	if name == "" {
		name = "qdisc " + string(p)
	}
	try := func(context.Context) (string, error) {
		if privilege.NeedsUserNS() {
			return "", errUntried
		}
		if err := probe.Try(p); err != nil {
			return "", err
		}
		return "works", nil
	}
	return test{name: name, try: try, grade: Missing, cost: costs[p], fix: fixModules}
}

// costs has what a lab lacks if the kernel lacks a part.
var costs = map[qdisc.Part]string{
	qdisc.PartHTB:  "no rates in datapath kernel",
	qdisc.PartFIFO: "no queues with a limit in bytes in datapath kernel",
	qdisc.PartRED:  "marks of datapath kernel come from BPF programs, or there is no datapath kernel without those",
	qdisc.PartNetem: "receivers delay packets in datapath kernel, and links duplicate none and " +
		"cannot be deployed; without BPF programs there is no datapath kernel",
	qdisc.PartIFB: "the same as without netem",
	qdisc.PartRedirect: "redirection by BPF programs in datapath kernel in place of clsact, matchall and mirred, or " +
		"there is no datapath kernel without those",
	qdisc.PartSource: "checks of source addresses by BPF programs in datapath kernel in place of u32, matchall and " +
		"gact, or there is no datapath kernel without those",
	qdisc.PartBPF: "datapath kernel needs every other part, marks packets on arrival alone, has a whole buffer for " +
		"each of control packets and data, and chooses among equal paths by the kernel's hash",
}

var errUntried = errors.New("not tested: creating a network namespace needs privileges")

// inScratch returns a test that runs try in a temporary network namespace.
func inScratch(try func() error) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		if privilege.NeedsUserNS() {
			return "", errUntried
		}
		scratch, err := ns.TempNetNS()
		if err != nil {
			return "", fmt.Errorf("scratch network namespace: %w", err)
		}
		defer scratch.Close()
		if err := scratch.Do(func(ns.NetNS) error { return try() }); err != nil {
			return "", err
		}
		return "works", nil
	}
}

func attrs(name string) netlink.LinkAttrs {
	a := netlink.NewLinkAttrs()
	a.Name = name
	return a
}

func tap() error {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open /dev/net/tun: %w", err)
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq("scratch")
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, r); err != nil {
		return fmt.Errorf("create TAP device: %w", err)
	}
	return nil
}

// device returns a test that creates a link.
func device(l netlink.Link) func() error {
	return func() error { return netlink.LinkAdd(l) }
}

func veth() error {
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs("scratch"), PeerName: "peer"}); err != nil {
		return err
	}
	l, err := netlink.LinkByName("peer")
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("packet socket: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1); err != nil { // Linux 4.20
		return fmt.Errorf("packet socket: ignore outgoing: %w", err)
	}
	return unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: l.Attrs().Index})
}

func macvlan() error {
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs("below"), PeerName: "peer"}); err != nil {
		return fmt.Errorf("no device to put it on: %w", err)
	}
	l, err := netlink.LinkByName("below")
	if err != nil {
		return err
	}
	a := attrs("scratch")
	a.ParentIndex = l.Attrs().Index
	return netlink.LinkAdd(&netlink.Macvlan{LinkAttrs: a, Mode: netlink.MACVLAN_MODE_BRIDGE})
}
