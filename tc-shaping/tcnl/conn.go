package tcnl

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"weft/tc-shaping/qdisc"
)

// Conn manages the devices of one network namespace: that of the thread that opened it. Afterwards
// any thread may use it, one goroutine at a time.
type Conn struct {
	links   *netlink.Handle
	sockets map[int]*nl.SocketHandle
}

// Open returns a connection to the network namespace of the calling thread.
func Open() (*Conn, error) {
	socket, err := nl.Subscribe(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("rtnetlink socket: %w", err)
	}
	patience := unix.Timeval{Sec: 60}
	if err := errors.Join(socket.SetSendTimeout(&patience), socket.SetReceiveTimeout(&patience),
		socket.SetExtAck(true)); err != nil {
		socket.Close()
		return nil, fmt.Errorf("rtnetlink socket: %w", err)
	}
	links, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		socket.Close()
		return nil, fmt.Errorf("rtnetlink socket: %w", err)
	}
	return &Conn{links: links, sockets: map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: {Socket: socket}}}, nil
}

// Close closes the connection. The disciplines stay.
func (c *Conn) Close() {
	c.links.Close()
	for _, s := range c.sockets {
		s.Close()
	}
}

// request returns a netlink message about one discipline.
func (c *Conn) request(kind, flags int, device int, q qdisc.Qdisc) *nl.NetlinkRequest {
	r := nl.NewNetlinkRequest(kind, flags)
	r.Sockets = c.sockets
	r.AddData(&nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(device), Handle: uint32(q.Handle),
		Parent: uint32(q.Parent)})
	return r
}

// set creates or changes one discipline of a device, with its classes.
func (c *Conn) set(device int, q qdisc.Qdisc, flags int) error {
	var err error
	if htb, ok := q.Options.(qdisc.HTB); ok {
		err = c.setHTB(device, q, htb, flags)
	} else {
		var o *nl.RtAttr
		if o, err = options(q.Options); err != nil {
			return err
		}
		err = c.put(unix.RTM_NEWQDISC, flags, device, q, o)
	}
	if err != nil {
		return fmt.Errorf("%v: %w", q, err)
	}
	return nil
}

// put sends the settings of a discipline or of one of its classes.
func (c *Conn) put(kind, flags, device int, q qdisc.Qdisc, settings *nl.RtAttr) error {
	r := c.request(kind, flags|unix.NLM_F_ACK, device, q)
	r.AddData(nl.NewRtAttr(nl.TCA_KIND, nl.ZeroTerminated(q.Options.Kind())))
	r.AddData(settings)
	_, err := r.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

func (c *Conn) add(device int, q qdisc.Qdisc) error {
	return c.set(device, q, unix.NLM_F_CREATE|unix.NLM_F_EXCL)
}

// clear removes the disciplines at a device's root or ingress. It succeeds if there are none.
func (c *Conn) clear(device int, parent qdisc.Handle) error {
	r := c.request(unix.RTM_DELQDISC, unix.NLM_F_ACK, device, qdisc.Qdisc{Parent: parent})
	_, err := r.Execute(unix.NETLINK_ROUTE, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINVAL) { // EINVAL: the device has no ingress
		return nil
	}
	return err
}

// dump returns the disciplines that were added to a device, parents before children, and children
// by the classes of their parents. Those of an htb are not read: see addClasses.
func (c *Conn) dump(device int) ([]message, error) {
	var all []message
	err := c.each(func(m message) {
		if m.device == device {
			all = append(all, m)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("read the disciplines of device %d: %w", device, err)
	}
	return inOrder(all), nil
}

// each calls f for every discipline that was added to a device of the namespace.
func (c *Conn) each(f func(message)) error {
	var bad error
	r := c.request(unix.RTM_GETQDISC, unix.NLM_F_DUMP, 0, qdisc.Qdisc{})
	err := r.ExecuteIter(unix.NETLINK_ROUTE, unix.RTM_NEWQDISC, func(b []byte) bool {
		m, err := parse(b)
		switch {
		case err != nil:
			bad = errors.Join(bad, err)
		case m.qdisc.Handle != 0: // the kernel's default disciplines have no handle
			f(m)
		}
		return true
	})
	return errors.Join(err, bad)
}

// inOrder sorts a device's disciplines: each is followed by its first child and what is below that,
// then by its second child. It leaves out others, such as the ingress.
func inOrder(all []message) []message {
	slices.SortFunc(all, func(a, b message) int { return cmp.Compare(a.qdisc.Parent, b.qdisc.Parent) })
	var row []message
	var below func(parent qdisc.Handle)
	below = func(parent qdisc.Handle) {
		for _, m := range all {
			if len(row) == len(all) { // also if they form a loop
				return
			}
			if m.qdisc.Parent == parent || parent != qdisc.Root && m.qdisc.Parent>>16 == parent>>16 {
				row = append(row, m)
				below(m.qdisc.Handle)
			}
		}
	}
	below(qdisc.Root)
	return row
}

// Dropped returns the number of packets that the namespace's devices dropped outside their
// disciplines since they were created: between devices, and in the kernel's receive backlog.
func (c *Conn) Dropped() (n int64, err error) {
	links, err := c.links.LinkList()
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return 0, fmt.Errorf("read the counters of devices: %w", err)
	}
	for _, l := range links {
		if s := l.Attrs().Statistics; s != nil {
			n += int64(s.RxDropped + s.TxDropped)
		}
	}
	return n, nil
}
