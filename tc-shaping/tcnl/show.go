package tcnl

import (
	"errors"
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"
)

// Show returns the disciplines that were added to the devices of the namespace and their counters,
// for people: three lines for each discipline, in the words of tc.
func (c *Conn) Show() (string, error) {
	links, err := c.links.LinkList()
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return "", fmt.Errorf("list devices: %w", err)
	}
	var b strings.Builder
	for _, l := range links {
		row, err := c.dump(l.Attrs().Index)
		if err == nil {
			err = c.addClasses(row)
		}
		if err != nil {
			return b.String(), err
		}
		counters := count(row)
		for i, q := range disciplines(row) {
			n := &counters[i]
			fmt.Fprintf(&b, "qdisc dev %s %v\n", l.Attrs().Name, q)
			fmt.Fprintf(&b, " Sent %d bytes %d pkt (dropped %d, overlimits %d, marked %d)\n", int64(n.Bytes), n.Packets,
				n.Drops, n.Over, n.Marks)
			fmt.Fprintf(&b, " backlog %db %dp\n", int64(n.Backlog), n.Waiting)
		}
	}
	return b.String(), nil
}
