package doctor

import (
	"context"
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"weft/orchestrator/runtime/namespace"
)

// What the kernel's own network is for.
const (
	costKernelPath = "no datapath kernel; the modelled fabric does the same labs"
	fixModules     = "a kernel with it built in or as a module (Debian, Ubuntu: package linux-modules-extra)"
)

// network looks at devices and queueing disciplines.
func network() []test {
	tests := []test{
		{name: "TAP", try: inScratch(tap), grade: Degraded,
			cost: "hosts are connected by veth pairs and packet sockets: a little more work for each packet",
			fix:  "modprobe tun; as an ordinary user also: chmod 0666 /dev/net/tun"},
		{name: "veth and AF_PACKET", try: inScratch(veth), grade: Degraded,
			cost: "no emulation where there is no TAP device either",
			fix:  fixModules},
		{name: "bridge", try: inScratch(device(&netlink.Bridge{LinkAttrs: attrs("scratch")})), grade: Missing,
			cost: costKernelPath, fix: fixModules},
		{name: "vxlan", try: inScratch(device(&netlink.Vxlan{LinkAttrs: attrs("scratch"), VxlanId: 1, Port: 4789})), grade: Missing,
			cost: "no links between machines", fix: fixModules},
		{name: "macvlan", try: inScratch(macvlan), grade: Missing,
			cost: "nothing in the labs of today; no nodes on the machine's own network", fix: fixModules},
	}
	for _, q := range disciplines {
		tests = append(tests, test{name: "qdisc " + q.kind, try: inScratch(q.attach), grade: Missing, cost: q.cost, fix: fixModules})
	}
	return tests
}

// inScratch runs try in a network namespace that ends with it.
func inScratch(try func() error) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		return onThread(func() (string, error) {
			if namespace.NeedsUserNS() {
				return "", errors.New("not tried: it takes the privilege to create a network namespace")
			}
			if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
				return "", fmt.Errorf("scratch network namespace: %w", err)
			}
			if err := try(); err != nil {
				return "", err
			}
			return "works", nil
		})
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

// disciplines are what tc-shaping builds queues of.
var disciplines = []discipline{
	{"netem", netem, "no delay, jitter or loss in datapath kernel; the modelled fabric has them"},
	{"red", red, "no ECN marking by thresholds in datapath kernel; the modelled fabric has it"},
	{"htb", htb, "no rates in datapath kernel but by tbf"},
	{"tbf", tbf, "no rates in datapath kernel but by htb"},
	{"prio", prio, "no priorities in datapath kernel"},
	{"fq", generic("fq", netlink.HANDLE_ROOT), "no pacing by the kernel for programs run in nodes"},
	{"ingress", generic("ingress", netlink.HANDLE_INGRESS), "no shaping of arriving packets in datapath kernel"},
	{"clsact", generic("clsact", netlink.HANDLE_CLSACT), "no filters on departing packets in datapath kernel"},
}

type discipline struct {
	kind string
	add  func(link int) error
	cost string
}

// attach puts the discipline on the loopback interface of this namespace, which is always there.
func (d discipline) attach() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	err = d.add(lo.Attrs().Index)
	switch {
	case errors.Is(err, unix.ENOENT): // sch_api.c: no such kind, and no module of that name
		return errors.New("this kernel does not have it")
	case errors.Is(err, unix.EOPNOTSUPP):
		return errors.New("this kernel has no queueing disciplines")
	}
	return err
}

func at(link int) netlink.QdiscAttrs {
	return netlink.QdiscAttrs{LinkIndex: link, Parent: netlink.HANDLE_ROOT, Handle: netlink.MakeHandle(1, 0)}
}

func generic(kind string, parent uint32) func(int) error {
	return func(link int) error {
		a := at(link)
		a.Parent = parent
		if parent != netlink.HANDLE_ROOT {
			a.Handle = netlink.MakeHandle(0xffff, 0)
		}
		return netlink.QdiscAdd(&netlink.GenericQdisc{QdiscAttrs: a, QdiscType: kind})
	}
}

func netem(link int) error {
	return netlink.QdiscAdd(netlink.NewNetem(at(link), netlink.NetemQdiscAttrs{Latency: 1000, Limit: 100}))
}

func htb(link int) error { return netlink.QdiscAdd(netlink.NewHtb(at(link))) }

func tbf(link int) error {
	return netlink.QdiscAdd(&netlink.Tbf{QdiscAttrs: at(link), Rate: 1 << 20, Limit: 1 << 16, Buffer: 1 << 16})
}

func prio(link int) error { return netlink.QdiscAdd(netlink.NewPrio(at(link))) }

// red is written out, as the netlink package does not know it: linux/pkt_sched.h, tc_red_qopt.
func red(link int) error {
	const parms, stab, maxP = 1, 2, 3 // TCA_RED_PARMS, TCA_RED_STAB, TCA_RED_MAX_P
	native := nl.NativeEndian()
	opt := make([]byte, 16)
	native.PutUint32(opt[0:], 1<<20) // limit, bytes
	native.PutUint32(opt[4:], 1<<15) // qth_min
	native.PutUint32(opt[8:], 1<<16) // qth_max
	opt[12], opt[13], opt[14] = 0, 15, 10
	req := nl.NewNetlinkRequest(unix.RTM_NEWQDISC, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK)
	a := at(link)
	req.AddData(&nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(link), Handle: a.Handle, Parent: a.Parent})
	req.AddData(nl.NewRtAttr(nl.TCA_KIND, nl.ZeroTerminated("red")))
	options := nl.NewRtAttr(nl.TCA_OPTIONS, nil)
	options.AddRtAttr(parms, opt)
	options.AddRtAttr(stab, make([]byte, 256))
	options.AddRtAttr(maxP, nl.Uint32Attr(1<<31))
	req.AddData(options)
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	return err
}
