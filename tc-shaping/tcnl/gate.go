package tcnl

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/tc-shaping/qdisc"
)

// errNoGate means that a tree has a Gate and the direction no memory for it.
var errNoGate = errors.New("no memory for its BPF programs")

// enter attaches the program of the near end, if the tree has one.
func (d Direction) enter(t qdisc.Tree) error {
	if t.Gate == nil {
		return nil
	}
	p, err := d.Gate.Enter()
	if err != nil {
		return err
	}
	defer p.Close()
	name, _ := d.Gate.Names()
	return d.Near.attach(leaving, p, name)
}

// leave sets up the memory of a tree's programs and attaches the one of the far end.
func (d Direction) leave(t qdisc.Tree) error {
	if d.Gate == nil {
		return errNoGate
	}
	if err := d.Gate.Set(t.Gate); err != nil {
		return err
	}
	d.Gate.Reset()
	p, err := d.Gate.Leave(t.Source)
	if err != nil {
		return err
	}
	defer p.Close()
	_, name := d.Gate.Names()
	return d.Far.attach(arriving, p, name)
}

// gatePriority is the priority of the filter with a program: before all others.
const gatePriority = 1

// attach adds a program to a hook, which keeps it.
func (e End) attach(hook uint32, p *ebpf.Program, name string) error {
	if err := e.hooks(); err != nil {
		return err
	}
	err := e.Conn.links.FilterAdd(&netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: e.Device, Parent: hook, Handle: 1, Priority: gatePriority,
			Protocol: unix.ETH_P_ALL},
		Fd: p.FD(), Name: name, DirectAction: true,
	})
	if err != nil {
		return fmt.Errorf("add filter %s: %w", name, err)
	}
	return nil
}

// readGate sets the Gate and the sender of a tree that is read back, whose packets go on to an ifb
// (0: to none). The sender that a program admits is part of it: it is the one that this process
// loaded it with.
func (d Direction) readGate(asked qdisc.Tree, t *qdisc.Tree, ifb int) error {
	if d.Gate == nil {
		return errNoGate
	}
	near, err := d.Near.filters(leaving)
	if err != nil {
		return err
	}
	far, err := d.Far.filters(arriving)
	if err != nil {
		return err
	}
	enter, leave := d.Gate.Names()
	if len(near) != 1 || len(far) == 0 || !isProgram(near[0], enter) || !isProgram(far[0], leave) {
		return nil
	}
	t.Gate, t.Source = d.Gate.Gate(asked.Gate), asked.Source
	if ifb == 0 && len(far) > 1 {
		t.Source = &qdisc.Source{Foreign: fmt.Sprintf("%d filters that no plan asks for", len(far)-1)}
	} else if ifb != 0 {
		if others := sourceOfAll(far[1:], ifb); others != nil {
			t.Source = others
		}
	}
	return nil
}

// isProgram reports whether a filter is the program with a name.
func isProgram(f netlink.Filter, name string) bool {
	p, ok := f.(*netlink.BpfFilter)
	return ok && p.Name == name && p.DirectAction
}

// Programs returns the names of the BPF programs for packets that arrive at a device and for those
// that leave.
func (e End) Programs() (arrive, leave []string, err error) {
	for _, at := range []struct {
		hook uint32
		to   *[]string
	}{{arriving, &arrive}, {leaving, &leave}} {
		filters, err := e.filters(at.hook)
		if err != nil {
			return nil, nil, err
		}
		for _, f := range filters {
			if p, ok := f.(*netlink.BpfFilter); ok {
				*at.to = append(*at.to, p.Name)
			}
		}
	}
	return arrive, leave, nil
}
