package tcnl

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/cleanup"
	"weft/tc-shaping/bpf"
	"weft/tc-shaping/qdisc"
	"weft/units"
)

// End is a device at one end of a link, by its interface index.
type End struct {
	Conn   *Conn
	Device int
}

// End returns the device with this name.
func (c *Conn) End(name string) (End, error) {
	l, err := c.links.LinkByName(name)
	if err != nil {
		return End{}, fmt.Errorf("device %s: %w", name, err)
	}
	return End{Conn: c, Device: l.Attrs().Index}, nil
}

// Direction is one direction of a link: packets leave through Near and arrive at Far.
type Direction struct {
	Near, Far End
	// Gate has the memory of the direction's BPF programs, for a tree with a qdisc.Gate.
	Gate *bpf.Port
}

// IFBName returns the name of the ifb for packets that arrive at a device.
func IFBName(device int) string { return fmt.Sprintf("%s%d", ifbPrefix, device) }

const ifbPrefix = "wire"

// IsIFBName reports whether a device's name has the form that IFBName returns.
func IsIFBName(name string) bool { return strings.HasPrefix(name, ifbPrefix) }

// Apply replaces the disciplines of a direction. Packets queued in the old ones are lost. Both
// devices must exist and be down or idle. An error names the discipline and includes the kernel's
// message; the direction is then incomplete, and Remove cleans it up.
func (d Direction) Apply(t qdisc.Tree) error {
	if err := d.Remove(); err != nil {
		return err
	}
	if err := d.receive(t); err != nil {
		return fmt.Errorf("far end: %w", err)
	}
	if err := d.enter(t); err != nil {
		return fmt.Errorf("near end: %w", err)
	}
	if len(t.Near) > 0 {
		if err := d.Near.separate(); err != nil {
			return fmt.Errorf("near end: %w", err)
		}
	}
	for _, q := range t.Near {
		if err := d.Near.Conn.add(d.Near.Device, q); err != nil {
			return fmt.Errorf("near end: add %w", err)
		}
	}
	return nil
}

// separate makes the kernel send every packet of a device by itself: a super-packet (GSO) would
// queue, be marked and be sent as one.
func (e End) separate() error {
	device := &netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: e.Device}}
	if err := e.Conn.links.LinkSetGSOMaxSegs(device, 1); err != nil {
		return fmt.Errorf("no super-packets: %w", err)
	}
	return nil
}

// Remove deletes what Apply created. It succeeds if there is nothing.
func (d Direction) Remove() error {
	near := d.Near.Conn.clear(d.Near.Device, qdisc.Root)
	if near != nil {
		near = fmt.Errorf("near end: remove the disciplines: %w", near)
	}
	return cleanup.Join(near, d.Near.clearFilters(leaving), d.Far.clearFilters(arriving), d.Far.removeIFB())
}

func (e End) removeIFB() error {
	l, err := e.Conn.links.LinkByName(IFBName(e.Device))
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return nil
	}
	if err == nil && l.Type() != "ifb" { // not created by us
		return nil
	}
	if err == nil {
		err = e.Conn.links.LinkDel(l)
	}
	if err != nil {
		return fmt.Errorf("far end: remove %s: %w", IFBName(e.Device), err)
	}
	return nil
}

// receive creates the far end's disciplines and programs, and redirects arriving packets to them.
func (d Direction) receive(t qdisc.Tree) error {
	e, ifb := d.Far, End{}
	if len(t.Far) > 0 {
		var err error
		if ifb, err = e.AddIFB(); err != nil {
			return err
		}
	}
	for _, q := range t.Far {
		if err := ifb.Conn.add(ifb.Device, q); err != nil {
			return fmt.Errorf("add to %s: %w", IFBName(e.Device), err)
		}
	}
	from := t.Source
	if t.Gate != nil { // whose program admits senders
		from = nil
		if err := d.leave(t); err != nil {
			return err
		}
	}
	if len(t.Far) == 0 {
		return nil
	}
	return e.Redirect(ifb, from)
}

// noAddress is IN6_ADDR_GEN_MODE_NONE of linux/if_link.h.
const noAddress = 1

// AddIFB creates the ifb of a device. It has no address and sends nothing of its own.
func (e End) AddIFB() (End, error) {
	a := netlink.NewLinkAttrs()
	a.Name = IFBName(e.Device)
	a.TxQLen = 1000
	links := e.Conn.links
	if err := links.LinkAdd(&netlink.Ifb{LinkAttrs: a}); err != nil {
		return End{}, fmt.Errorf("add ifb %s: %w", a.Name, err)
	}
	l, err := links.LinkByName(a.Name)
	if err != nil {
		return End{}, fmt.Errorf("ifb %s: %w", a.Name, err)
	}
	_ = links.LinkSetIP6AddrGenMode(l, noAddress) // an error means that the kernel has no IPv6, which is fine
	if err := links.LinkSetUp(l); err != nil {
		return End{}, fmt.Errorf("ifb %s: up: %w", a.Name, err)
	}
	return End{Conn: e.Conn, Device: l.Attrs().Index}, nil
}

// ErrRebuild means that two trees have different shapes, so that one cannot become the other while
// packets are queued. Apply can rebuild them, but loses those packets.
var ErrRebuild = errors.New("the disciplines have another shape")

// Change turns a direction with tree old into one with tree new, discipline by discipline. Queued
// packets stay queued, and packets in flight arrive on time. If the trees have different shapes, it
// returns ErrRebuild and changes nothing.
func (d Direction) Change(old, new qdisc.Tree) error {
	bare := len(old.Far) == 0 && old.Gate == nil
	if !sameShape(old.Near, new.Near) || (old.Gate == nil) != (new.Gate == nil) || !bare && (!sameShape(old.Far,
		new.Far) || old.Source.String() != new.Source.String()) {
		return fmt.Errorf("%w:\n%vfor\n%v", ErrRebuild, new, old)
	}
	if new.Gate != nil {
		if err := d.Gate.Set(new.Gate); err != nil {
			return err
		}
	}
	if bare {
		if err := d.receive(new); err != nil {
			return fmt.Errorf("far end: %w", err)
		}
	} else if len(old.Far) > 0 {
		ifb, err := d.Far.Conn.End(IFBName(d.Far.Device))
		if err == nil {
			err = ifb.change(old.Far, new.Far)
		}
		if err != nil {
			return fmt.Errorf("far end: %w", err)
		}
	}
	if err := d.Near.change(old.Near, new.Near); err != nil {
		return fmt.Errorf("near end: %w", err)
	}
	return nil
}

func (e End) change(old, new []qdisc.Qdisc) error {
	for i, q := range new {
		if reflect.DeepEqual(old[i], q) {
			continue
		}
		if err := e.Conn.set(e.Device, q, 0); err != nil {
			return fmt.Errorf("change %w", err)
		}
	}
	return nil
}

func sameShape(a, b []qdisc.Qdisc) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Handle != b[i].Handle || a[i].Parent != b[i].Parent || a[i].Options.Kind() != b[i].Options.Kind() {
			return false
		}
	}
	return true
}

// Read returns the kernel's tree of a direction, for qdisc.Compare with the tree asked.
func (d Direction) Read(asked qdisc.Tree) (qdisc.Tree, error) {
	near, far, ifb, err := d.dump()
	if err == nil {
		err = d.Near.Conn.addClasses(near)
	}
	t := qdisc.Tree{Near: disciplines(near), Far: disciplines(far)}
	switch {
	case err != nil:
	case asked.Gate != nil:
		err = d.readGate(asked, &t, ifb)
	case ifb != 0:
		t.Source, err = d.Far.source(ifb)
	}
	return t, err
}

// Statistics returns the counters of a direction with tree t.
func (d Direction) Statistics(t qdisc.Tree) (qdisc.Statistics, error) {
	near, far, ifb, err := d.dump()
	if err != nil {
		return qdisc.Statistics{}, err
	}
	if t.Gate != nil {
		now := d.Gate.Counters()
		return t.Summarise(count(near), count(far), &now), nil
	}
	s := t.Summarise(count(near), count(far), nil)
	if t.Source != nil && ifb != 0 {
		s.Spoofed, s.NotRouted, err = d.Far.refused()
	}
	return s, err
}

// dump returns the disciplines of both ends, and the number of the far end's ifb, or 0 if it has
// none.
func (d Direction) dump() (near, far []message, ifb int, err error) {
	if near, err = d.Near.Conn.dump(d.Near.Device); err != nil {
		return nil, nil, 0, fmt.Errorf("near end: %w", err)
	}
	dev, err := d.Far.Conn.links.LinkByName(IFBName(d.Far.Device))
	switch {
	case errors.As(err, new(netlink.LinkNotFoundError)) || errors.Is(err, unix.ENODEV):
		return near, nil, 0, nil
	case err != nil:
		return nil, nil, 0, fmt.Errorf("far end: %w", err)
	}
	ifb = dev.Attrs().Index
	if far, err = d.Far.Conn.dump(ifb); err != nil {
		return nil, nil, 0, fmt.Errorf("far end: %w", err)
	}
	return near, far, ifb, nil
}

func disciplines(all []message) []qdisc.Qdisc {
	var out []qdisc.Qdisc
	for _, m := range all {
		if m.unknown != "" {
			m.qdisc.Options = qdisc.Foreign{Name: m.kind, Why: m.unknown}
		}
		out = append(out, m.qdisc)
	}
	return out
}

func count(all []message) []qdisc.Counters {
	var out []qdisc.Counters
	for _, m := range all {
		out = append(out, m.counters)
	}
	return out
}

// Queue is the state of a device's queue, and its counters since the disciplines were created.
type Queue struct {
	Backlog units.Bytes
	Marks   uint64 // as in qdisc.Statistics
	Drops   uint64
}

// Queues returns the queue of each device of the namespace with added disciplines, by interface
// index. It sends one request for all devices.
func (c *Conn) Queues() (map[int]Queue, error) {
	all := map[int]Queue{}
	err := c.each(func(m message) {
		q := all[m.device]
		if m.qdisc.Parent == qdisc.Root {
			q.Backlog = m.counters.Backlog
		}
		switch m.kind {
		case "red":
			q.Marks = max(q.Marks, m.counters.Marks)
		case "bfifo":
			q.Drops += m.counters.Drops
		}
		all[m.device] = q
	})
	return all, err
}
