package emulate

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"weft/orchestrator/runtime"
	"weft/results/record"
)

// connections finds which congestion controls the TCP connections of a host have: that of the
// kernel, of the route (engine.tcp), or what the program asked for. It looks from time to time, so
// it misses connections that live shorter than lookEvery.
type connections struct {
	fd       int // a socket of the host's network namespace for sock_diag(7); 0: there is none
	seen     bool
	controls []string // in no order
}

// openConnections returns the connections of a host. Of one on another machine, or if the kernel
// does not tell, nothing is found.
func openConnections(p *runtime.Proc) (c connections) {
	if p.PID == 0 {
		return c
	}
	_ = p.Do(func() error { // without the socket nothing is known, as on another machine
		fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
		if err != nil {
			return err
		}
		c.fd = fd
		return unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1})
	})
	return c
}

func (c *connections) close() {
	if c.fd > 0 {
		unix.Close(c.fd)
	}
	c.fd = 0
}

// look asks the kernel for the connections that there are now.
func (c *connections) look() {
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		if c.fd > 0 && c.ask(family) != nil {
			c.close()
		}
	}
}

// Of linux/inet_diag.h.
const (
	askSize   = unix.NLMSG_HDRLEN + 56 // nlmsghdr, inet_diag_req_v2
	tellSize  = 72                     // inet_diag_msg
	diagCong  = 4                      // INET_DIAG_CONG
	listening = 1 << 10                // TCP_LISTEN
)

// errDiag says that the kernel refused.
var errDiag = errors.New("sock_diag")

// ask asks for the connections of an address family.
func (c *connections) ask(family byte) error {
	order := binary.NativeEndian
	m := make([]byte, askSize)
	order.PutUint32(m, askSize)
	order.PutUint16(m[4:], unix.SOCK_DIAG_BY_FAMILY)
	order.PutUint16(m[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	m[16], m[17], m[18] = family, unix.IPPROTO_TCP, 1<<(diagCong-1)
	order.PutUint32(m[20:], ^uint32(listening))
	if err := unix.Sendto(c.fd, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	for b := make([]byte, 32<<10); ; {
		n, _, err := unix.Recvfrom(c.fd, b, 0)
		if err != nil {
			return err
		}
		for rest := b[:n]; len(rest) >= unix.NLMSG_HDRLEN; {
			size := int(order.Uint32(rest))
			if size < unix.NLMSG_HDRLEN || size > len(rest) {
				return errDiag
			}
			switch order.Uint16(rest[4:]) {
			case unix.NLMSG_DONE:
				return nil
			case unix.SOCK_DIAG_BY_FAMILY:
				c.add(rest[unix.NLMSG_HDRLEN:size])
			default:
				return errDiag
			}
			rest = rest[min(len(rest), (size+3)&^3):]
		}
	}
}

// add takes in a connection, an inet_diag_msg with attributes, unless it stays in the host.
func (c *connections) add(m []byte) {
	if len(m) < tellSize {
		return
	}
	address := func(at int) netip.Addr {
		if m[0] == unix.AF_INET {
			return netip.AddrFrom4([4]byte(m[at:]))
		}
		return netip.AddrFrom16([16]byte(m[at:])).Unmap()
	}
	if from, to := address(8), address(24); from == to || to.IsLoopback() || to.IsUnspecified() {
		return
	}
	c.seen = true
	for rest := m[tellSize:]; len(rest) >= unix.SizeofRtAttr; {
		size := int(binary.NativeEndian.Uint16(rest))
		if size < unix.SizeofRtAttr || size > len(rest) {
			return
		}
		if binary.NativeEndian.Uint16(rest[2:]) == diagCong {
			name := string(bytes.TrimRight(rest[unix.SizeofRtAttr:size], "\x00"))
			if !slices.Contains(c.controls, name) {
				c.controls = append(c.controls, name)
			}
		}
		rest = rest[min(len(rest), (size+3)&^3):]
	}
}

// carriedBy returns what carried the packets of programs, as record.Summary has it.
func carriedBy(all []connections) string {
	var controls []string
	seen := false
	for i := range all {
		seen = seen || all[i].seen
		controls = append(controls, all[i].controls...)
	}
	if !seen {
		return record.Programs
	}
	slices.Sort(controls)
	return strings.TrimSpace("tcp " + strings.Join(slices.Compact(controls), ", "))
}
