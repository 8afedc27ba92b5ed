package emulate

import (
	"net"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weft/orchestrator/runtime"
	"weft/results/record"
)

// Connections to other hosts count, with the congestion control that each has; those of a host to
// itself do not.
func TestConnections(t *testing.T) {
	self := openConnections(&runtime.Proc{PID: os.Getpid()})
	defer self.close()
	if self.fd == 0 {
		t.Skip("this kernel does not list connections, or this user may not enter a network namespace")
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	self.look()
	for _, c := range self.controls {
		t.Logf("a connection of this machine has %s", c)
	}
	if self.fd == 0 {
		t.Error("the kernel's answer was not understood")
	}
	message := func(to byte, name string) []byte {
		m := make([]byte, tellSize)
		m[0] = unix.AF_INET
		copy(m[8:], []byte{10, 0, 0, 1})
		copy(m[24:], []byte{10, 0, 0, to})
		if name == "" {
			return m
		}
		m = append(m, byte(unix.SizeofRtAttr+len(name)+1), 0, diagCong, 0)
		return append(append(m, name...), 0, 0, 0, 0)
	}
	var c connections
	c.add(message(1, "cubic")) // to itself
	c.add(message(1, "")[:20])
	if got := carriedBy([]connections{c, {}}); got != record.Programs {
		t.Error(got)
	}
	c.add(message(2, "")) // TIME_WAIT has none
	if got := carriedBy([]connections{c}); got != "tcp" {
		t.Error(got)
	}
	c.add(message(2, "reno"))
	c.add(message(3, "cubic"))
	c.add(message(3, strings.Repeat("x", 15))[:tellSize+6]) // cut off
	var other connections
	other.add(message(2, "cubic"))
	if got := carriedBy([]connections{c, {}, other}); got != "tcp cubic, reno" {
		t.Error(got)
	}
}
