package tcnl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"weft/tc-shaping/qdisc"
)

// The two hooks of a device for filters, as parents of filters (linux/pkt_sched.h).
const (
	arriving = netlink.HANDLE_MIN_INGRESS
	leaving  = netlink.HANDLE_MIN_EGRESS
)

// hooks adds clsact to a device, which has both hooks, if it is not there.
func (e End) hooks() error {
	err := e.Conn.links.QdiscAdd(&netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: e.Device, Parent: netlink.HANDLE_CLSACT, Handle: netlink.MakeHandle(0xffff, 0),
	}})
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("add clsact: %w", err)
	}
	return nil
}

// clearFilters removes the filters of a hook. It succeeds if there are none.
func (e End) clearFilters(hook uint32) error {
	r := e.Conn.request(unix.RTM_DELTFILTER, unix.NLM_F_ACK, e.Device, qdisc.Qdisc{Parent: qdisc.Handle(hook)})
	_, err := r.Execute(unix.NETLINK_ROUTE, 0)
	if err == nil || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINVAL) { // EINVAL: it has no clsact
		return nil
	}
	return fmt.Errorf("remove the filters of device %d: %w", e.Device, err)
}

// rule is an ingress filter: what happens to frames of a protocol that match all keys. The first
// matching rule applies.
type rule struct {
	protocol uint16        // ETH_P_...
	keys     []nl.TcU32Key // nil matches any frame
	action   netlink.TcAct // TC_ACT_SHOT drops, TC_ACT_STOLEN redirects to the ifb
}

// Offsets in bytes from the header behind Ethernet's (linux/if_ether.h, linux/if_arp.h, RFC 791).
const (
	ethernetSource = -8
	ipSource       = 12
	arpSender      = 8
)

// rules returns the filters that admit only frames of a source; nil admits everybody. A frame with
// a VLAN tag has neither protocol and is dropped.
func rules(s *qdisc.Source) []rule {
	if s == nil {
		return []rule{{protocol: unix.ETH_P_ALL, action: netlink.TC_ACT_STOLEN}}
	}
	mac, addr := s.MAC[:], s.Addr.As4()
	ip := append(match(ethernetSource, mac), match(ipSource, addr[:])...)
	arp := append(match(ethernetSource, mac), match(arpSender, append(slices.Clone(mac), addr[:]...))...)
	return []rule{
		{protocol: unix.ETH_P_IP, keys: ip, action: netlink.TC_ACT_STOLEN},
		{protocol: unix.ETH_P_ARP, keys: arp, action: netlink.TC_ACT_STOLEN},
		{protocol: unix.ETH_P_IP, action: netlink.TC_ACT_SHOT},
		{protocol: unix.ETH_P_ARP, action: netlink.TC_ACT_SHOT},
		{protocol: unix.ETH_P_ALL, action: netlink.TC_ACT_SHOT},
	}
}

// match returns keys that require the bytes b at offset at, four bytes per key.
func match(at int32, b []byte) (keys []nl.TcU32Key) {
	for ; len(b) > 0; at += 4 {
		var value, mask [4]byte
		n := copy(value[:], b)
		for i := range n {
			mask[i] = 0xff
		}
		keys = append(keys, nl.TcU32Key{Off: at, Val: binary.BigEndian.Uint32(value[:]),
			Mask: binary.BigEndian.Uint32(mask[:])})
		b = b[n:]
	}
	return keys
}

// firstRule is the priority of the first filter of Redirect: behind that of a BPF program.
const firstRule = gatePriority + 1

// Redirect sends the frames of a source (nil: all frames) that arrive at a device through an ifb of
// the same namespace, which passes them back. It drops all other frames.
func (e End) Redirect(to End, s *qdisc.Source) error {
	if err := e.hooks(); err != nil {
		return err
	}
	for i, r := range rules(s) {
		f := r.filter(netlink.FilterAttrs{LinkIndex: e.Device, Parent: arriving, Priority: uint16(i) + firstRule},
			to.Device)
		if err := e.Conn.links.FilterAdd(f); err != nil {
			return fmt.Errorf("add filter %s of protocol %#x: %w", f.Type(), r.protocol, err)
		}
	}
	return nil
}

// filter returns the rule as a filter; ifb is the number of the device to redirect to.
func (r *rule) filter(attrs netlink.FilterAttrs, ifb int) netlink.Filter {
	attrs.Protocol = r.protocol
	action := []netlink.Action{&netlink.GenericAction{ActionAttrs: netlink.ActionAttrs{Action: r.action}}}
	if r.action == netlink.TC_ACT_STOLEN {
		action = []netlink.Action{netlink.NewMirredAction(ifb)}
	}
	if r.keys == nil {
		return &netlink.MatchAll{FilterAttrs: attrs, Actions: action}
	}
	// netlink sends the whole capacity of Keys, not only its length.
	return &netlink.U32{FilterAttrs: attrs, Sel: &netlink.TcU32Sel{Flags: nl.TC_U32_TERMINAL,
		Keys: slices.Clip(r.keys)}, Actions: action}
}

// source reads back which senders are redirected to the ifb with this number.
func (e End) source(ifb int) (*qdisc.Source, error) {
	filters, err := e.filters(arriving)
	if err != nil {
		return nil, err
	}
	return sourceOfAll(filters, ifb), nil
}

// sourceOfAll returns the senders that filters redirect to the ifb with a number.
func sourceOfAll(filters []netlink.Filter, ifb int) *qdisc.Source {
	var found []rule
	for _, f := range filters {
		r, why := ruleOf(f, ifb)
		if why != "" {
			return &qdisc.Source{Foreign: fmt.Sprintf("filter %s of priority %d: %s", f.Type(), f.Attrs().Priority,
				why)}
		}
		found = append(found, r)
	}
	s := sourceOf(found)
	if !reflect.DeepEqual(rules(s), found) {
		return &qdisc.Source{Foreign: fmt.Sprintf("%d filters that no plan asks for", len(found))}
	}
	return s
}

// sourceOf returns the source that the first rule admits, or nil.
func sourceOf(found []rule) *qdisc.Source {
	if len(found) == 0 || len(found[0].keys) != 3 {
		return nil
	}
	var b []byte
	for _, k := range found[0].keys {
		b = binary.BigEndian.AppendUint32(b, k.Val)
	}
	return &qdisc.Source{MAC: [6]byte(b), Addr: netip.AddrFrom4([4]byte(b[8:]))}
}

// ruleOf converts a filter to a rule, or returns the reason why it is none of ours.
func ruleOf(f netlink.Filter, ifb int) (r rule, why string) {
	r.protocol = f.Attrs().Protocol
	var actions []netlink.Action
	switch f := f.(type) {
	case *netlink.MatchAll:
		actions = f.Actions
	case *netlink.U32:
		actions, r.keys = f.Actions, f.Sel.Keys
	}
	if len(actions) != 1 {
		return r, fmt.Sprintf("%d actions", len(actions))
	}
	if a, ok := actions[0].(*netlink.MirredAction); ok && (a.MirredAction != netlink.TCA_EGRESS_REDIR ||
		a.Ifindex != ifb) {
		return r, fmt.Sprintf("it redirects to device %d", a.Ifindex)
	}
	r.action = actions[0].Attrs().Action
	return r, ""
}

// refused returns the number of dropped frames by reason.
func (e End) refused() (spoofed, notRouted uint64, err error) {
	filters, err := e.filters(arriving)
	for _, f := range filters {
		m, ok := f.(*netlink.MatchAll)
		if !ok || len(m.Actions) != 1 {
			continue
		}
		a := m.Actions[0].Attrs()
		switch {
		case a.Action != netlink.TC_ACT_SHOT || a.Statistics == nil || a.Statistics.Basic == nil:
		case m.Protocol == unix.ETH_P_ALL:
			notRouted += uint64(a.Statistics.Basic.Packets)
		default:
			spoofed += uint64(a.Statistics.Basic.Packets)
		}
	}
	return spoofed, notRouted, err
}

// filters returns the filters of a hook in the order in which the kernel applies them.
func (e End) filters(hook uint32) ([]netlink.Filter, error) {
	device := &netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: e.Device}}
	all, err := e.Conn.links.FilterList(device, hook)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return nil, fmt.Errorf("read the filters of device %d: %w", e.Device, err)
	}
	slices.SortStableFunc(all, func(a, b netlink.Filter) int {
		return int(a.Attrs().Priority) - int(b.Attrs().Priority)
	})
	return all, nil
}
