package tcnl

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/cleanup"
	"weft/tc-shaping/qdisc"
	"weft/units"
)

// End is a device at one end of a link, by its number in its network namespace.
type End struct {
	Conn   *Conn
	Device int
}

// End finds a device by its name.
func (c *Conn) End(name string) (End, error) {
	l, err := c.links.LinkByName(name)
	if err != nil {
		return End{}, fmt.Errorf("device %s: %w", name, err)
	}
	return End{Conn: c, Device: l.Attrs().Index}, nil
}

// Way is one direction of a link: what leaves Near arrives at Far.
type Way struct{ Near, Far End }

// Line is the name of the ifb that packets are sent through which arrive at a device.
func Line(device int) string { return fmt.Sprintf("%s%d", linePrefix, device) }

const linePrefix = "wire"

// IsLine says whether a device's name may be that of an ifb.
func IsLine(name string) bool { return strings.HasPrefix(name, linePrefix) }

// Apply makes the disciplines of a direction, in place of those that there were: what waited in them is lost.
// Both devices should be there and down, or idle. An error names the discipline and has the kernel's own words; then the direction is as
// far as it came, for Remove.
func (w Way) Apply(t qdisc.Tree) error {
	if err := w.Remove(); err != nil {
		return err
	}
	if err := w.Far.receive(t); err != nil {
		return fmt.Errorf("far end: %w", err)
	}
	for _, q := range t.Near {
		if err := w.Near.Conn.add(w.Near.Device, q); err != nil {
			return fmt.Errorf("near end: add %w", err)
		}
	}
	return nil
}

// Remove takes away what Apply made. It succeeds where there is nothing.
func (w Way) Remove() error {
	near := w.Near.Conn.clear(w.Near.Device, qdisc.Root)
	if near != nil {
		near = fmt.Errorf("near end: remove the disciplines: %w", near)
	}
	far := w.Far.Conn.clear(w.Far.Device, ingress)
	if far != nil {
		far = fmt.Errorf("far end: remove the ingress: %w", far)
	}
	return cleanup.Join(near, far, w.Far.removeLine())
}

// ingress is the parent of the discipline that arriving packets pass (TC_H_INGRESS), and its handle's major number is the same for all.
const ingress qdisc.Handle = 0xfffffff1

func (e End) removeLine() error {
	l, err := e.Conn.links.LinkByName(Line(e.Device))
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return nil
	}
	if err == nil && l.Type() != "ifb" { // of somebody else's
		return nil
	}
	if err == nil {
		err = e.Conn.links.LinkDel(l)
	}
	if err != nil {
		return fmt.Errorf("far end: remove %s: %w", Line(e.Device), err)
	}
	return nil
}

// receive makes arriving packets pass the disciplines.
func (e End) receive(t qdisc.Tree) error {
	if len(t.Far) == 0 {
		return nil
	}
	line, err := e.AddLine()
	if err != nil {
		return err
	}
	for _, q := range t.Far {
		if err := line.Conn.add(line.Device, q); err != nil {
			return fmt.Errorf("add to %s: %w", Line(e.Device), err)
		}
	}
	return e.Redirect(line, t.Source)
}

// noAddress is IN6_ADDR_GEN_MODE_NONE of linux/if_link.h.
const noAddress = 1

// AddLine makes the ifb of a device. It has no address and sends nothing of its own.
func (e End) AddLine() (End, error) {
	a := netlink.NewLinkAttrs()
	a.Name = Line(e.Device)
	a.TxQLen = 1000
	links := e.Conn.links
	if err := links.LinkAdd(&netlink.Ifb{LinkAttrs: a}); err != nil {
		return End{}, fmt.Errorf("add ifb %s: %w", a.Name, err)
	}
	l, err := links.LinkByName(a.Name)
	if err != nil {
		return End{}, fmt.Errorf("ifb %s: %w", a.Name, err)
	}
	_ = links.LinkSetIP6AddrGenMode(l, noAddress) // an error says that the kernel has no IPv6, and then it is as wanted
	if err := links.LinkSetUp(l); err != nil {
		return End{}, fmt.Errorf("ifb %s: up: %w", a.Name, err)
	}
	return End{Conn: e.Conn, Device: l.Attrs().Index}, nil
}

// ErrRebuild says that two trees differ in what they are made of, so that one cannot become the other while packets wait. Apply does it, and
// loses them.
var ErrRebuild = errors.New("the disciplines have another shape")

// Change makes the direction that was as asked of old as asked of new, discipline by discipline. What waits keeps its place, and what is in
// flight its time. It is ErrRebuild, and nothing is changed, when the trees have different shapes.
func (w Way) Change(old, new qdisc.Tree) error {
	if !sameShape(old.Near, new.Near) || len(old.Far) != 0 && (!sameShape(old.Far, new.Far) || old.Source.String() != new.Source.String()) {
		return fmt.Errorf("%w:\n%vfor\n%v", ErrRebuild, new, old)
	}
	if len(old.Far) == 0 {
		if err := w.Far.receive(new); err != nil {
			return fmt.Errorf("far end: %w", err)
		}
	} else {
		line, err := w.Far.Conn.End(Line(w.Far.Device))
		if err == nil {
			err = line.change(old.Far, new.Far)
		}
		if err != nil {
			return fmt.Errorf("far end: %w", err)
		}
	}
	if err := w.Near.change(old.Near, new.Near); err != nil {
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

// Read returns a direction as it is in the kernel, for qdisc.Compare.
func (w Way) Read() (qdisc.Tree, error) {
	near, far, line, err := w.dump()
	t := qdisc.Tree{Near: disciplines(near), Far: disciplines(far)}
	if err == nil && line != 0 {
		t.Source, err = w.Far.source(line)
	}
	return t, err
}

// Statistics returns the counters of a direction that was made of a tree.
func (w Way) Statistics(t qdisc.Tree) (qdisc.Statistics, error) {
	near, far, line, err := w.dump()
	if err != nil {
		return qdisc.Statistics{}, err
	}
	s := t.Summarise(count(near), count(far))
	if t.Source != nil && line != 0 {
		s.Spoofed, s.NotRouted, err = w.Far.refused()
	}
	return s, err
}

// dump returns the disciplines of both ends, and the number of the ifb at the far one; 0: it has none.
func (w Way) dump() (near, far []message, line int, err error) {
	if near, err = w.Near.Conn.dump(w.Near.Device); err != nil {
		return nil, nil, 0, fmt.Errorf("near end: %w", err)
	}
	ifb, err := w.Far.Conn.links.LinkByName(Line(w.Far.Device))
	switch {
	case errors.As(err, new(netlink.LinkNotFoundError)) || errors.Is(err, unix.ENODEV):
		return near, nil, 0, nil
	case err != nil:
		return nil, nil, 0, fmt.Errorf("far end: %w", err)
	}
	line = ifb.Attrs().Index
	if far, err = w.Far.Conn.dump(line); err != nil {
		return nil, nil, 0, fmt.Errorf("far end: %w", err)
	}
	return near, far, line, nil
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

// Queue is what waits below a device, and what its disciplines have done with packets since they were made.
type Queue struct {
	Backlog units.Bytes
	Marks   uint64 // as qdisc.Statistics has them
	Drops   uint64
}

// Queues returns the queues of the devices of the namespace that have disciplines of somebody's, by the devices' numbers. It asks the
// kernel once, however many devices there are.
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
