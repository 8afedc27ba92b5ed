package agent

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/quiettest"
	"weft/params"
	"weft/transport"
	"weft/transport/cc/ccm"
	"weft/transport/cc/dcqcn"
	"weft/transport/wire"
	"weft/units"
)

// attackedHost is a scripted machine that receives notifications of switches. An endpoint with a
// flow from host 0 to host 1 judges them.
type attackedHost struct {
	*script
	endpoint *transport.Endpoint
}

func (b *attackedHost) Receive(now units.Time, in *transport.Incoming) (transport.Placement, error) {
	if t, _ := wire.Peek(in.Header); t == wire.TypeData {
		return b.script.Receive(now, in)
	}
	return b.endpoint.Receive(now, in)
}

// newJudge returns the endpoint of host 0 of four, with a flow from its port 50000 to host 1. Nodes
// from 4 on are switches.
func newJudge(t *testing.T) *transport.Endpoint {
	t.Helper()
	d := params.Defaults[dcqcn.Params]()
	e, err := transport.New(transport.Config{Host: 0, MTU: 1000, LineRate: units.Gbps, Switches: 4})
	if err == nil {
		path := transport.Path{Propagation: units.Microsecond, Rates: []units.Bandwidth{units.Gbps}}
		err = e.Open(transport.Spec{
			ID: 1, Dst: 1, Kind: "ccm", SrcPort: 50000, NetRTT: units.Millisecond, Forward: path, Reverse: path,
			CC: ccm.Params{DCQCN: &d, Timeout: units.Second, Paths: 4, LastResort: ccm.Untagged},
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// sendForged sends one genuine notification, then forged ones of each kind over the loopback
// interface until stop, and returns the number of forged ones.
func sendForged(t *testing.T, every time.Duration, stop <-chan struct{}) (forged int64) {
	to := &unix.SockaddrInet4{Addr: loopback, Port: wire.Port}
	from := func(last byte) int {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, last}})
		}
		if err != nil {
			t.Errorf("127.0.0.%d: %v", last, err)
		}
		return fd
	}
	theSwitch, host, nobody := from(2), from(3), from(9)
	defer unix.Close(theSwitch)
	defer unix.Close(host)
	defer unix.Close(nobody)
	notice := func(change func(*wire.Notice)) []byte {
		n := wire.Notice{Kind: wire.Released, Src: 0, Dst: 1, SrcPort: 50000, Switch: 4, At: 1}
		change(&n)
		b := make([]byte, wire.NoticeSize)
		n.Encode(b)
		return b
	}
	same := notice(func(*wire.Notice) {})
	needs := notice(func(n *wire.Notice) { n.Kind, n.At = wire.NeedsCC, 2 })
	damaged := notice(func(n *wire.Notice) { n.Kind, n.At = wire.NeedsPath, 2 })
	damaged[30] ^= 0xff
	kinds := []struct {
		fd   int
		data []byte
	}{
		{theSwitch, same}, // again
		{host, needs},     // not from the switch
		{nobody, needs},
		{theSwitch, notice(func(n *wire.Notice) { n.Kind, n.SrcPort, n.At = wire.NeedsPath, 1, 2 })}, // no such flow
		{theSwitch, notice(func(n *wire.Notice) { n.Kind, n.At = wire.NeedsCC, 1000*units.Second })}, // yet to come
		{theSwitch, damaged},
		{theSwitch, same[:20]},
	}
	if err := unix.Sendto(theSwitch, same, 0, to); err != nil {
		t.Error(err)
	}
	for tick := time.NewTicker(every); ; forged++ {
		select {
		case <-stop:
			tick.Stop()
			return forged
		case <-tick.C:
		}
		k := kinds[forged%int64(len(kinds))]
		if err := unix.Sendto(k.fd, k.data, 0, to); err != nil {
			t.Error(err)
		}
	}
}

// A node counts what it refuses by sender, of a bounded number of them.
func TestRefusedBySender(t *testing.T) {
	var l loop
	for src := range transport.HostID(maxSenders + 4) {
		l.refuse(src, transport.Foreign)
		l.refuse(0, transport.Unreadable)
	}
	of := l.results.RefusedFrom
	if len(of) != maxSenders || of[0][transport.Unreadable] != maxSenders+4 || of[0][transport.Foreign] != 1 ||
		of[maxSenders-1].Total() != 1 || l.results.Refused[transport.Foreign] != maxSenders+4 {
		t.Errorf("of all %v, by sender %v", l.results.Refused, of)
	}
}

// Sixteen forged notifications for each packet that a node sends, over real sockets, are refused
// and counted, and delay none of the packets: the last leaves at most 5 % later.
func TestFloodOfForgedNotices(t *testing.T) {
	const packets, dilation = 50, 2000 // a packet's 8 us are 16 ms
	const longest = time.Minute        // of a run, which takes one or two seconds
	run := func(every time.Duration) (last units.Time, c transport.Counters, bad, forged int64, received int) {
		t.Run("", func(t *testing.T) {
			m := &attackedHost{script: &script{t: t, at: make([]units.Time, packets)}, endpoint: newJudge(t)}
			over := time.Now().Add(longest) // a socket that is read too late drops packets, which nobody repeats
			m.finished = func() bool { return m.received == packets || time.Now().After(over) }
			stop, done := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				if every > 0 {
					forged = sendForged(t, every, stop)
				}
			}()
			halt := sync.OnceFunc(func() { close(stop); <-done })
			defer halt()
			l := runLoopOf(t, m, map[uint32]transport.HostID{0x7f000001: 0, 0x7f000002: 4, 0x7f000003: 2}, dilation,
				2*units.Microsecond)
			halt()
			received, c, bad = m.received, m.endpoint.Counters(), l.results.Refused.Total()
			if len(m.departed) == packets {
				last = m.departed[packets-1]
			}
		})
		return last, c, bad, forged, received
	}
	quiettest.Check(t, 3, func() error {
		alone, _, _, _, received := run(0)
		if alone == 0 && received == 0 {
			t.Skip("the port is taken") // and what has it is not to be flooded
		}
		flooded, c, bad, forged, more := run(time.Millisecond)
		slower := float64(flooded)/float64(alone) - 1
		t.Logf("alone %v, with %d forged notices %v: %+.2f %%; %d refused by the endpoint, %d in all", alone, forged,
			flooded, 100*slower, c.Refused, bad)
		if received < packets || more < packets {
			return fmt.Errorf("of %d packets %d arrived alone and %d in the flood", packets, received, more)
		}
		if c.Notices > 1 || c.Repaths != 0 {
			t.Errorf("%d forged, %d handled", forged, c.Notices)
		}
		if c.Refused < forged/2 || bad < forged*9/10 { // a reader that is late loses some
			return fmt.Errorf("%d forged, %d refused in all, %d of them by the endpoint", forged, bad, c.Refused)
		}
		if slower > 0.05 {
			return fmt.Errorf("%.1f %% slower", 100*slower)
		}
		return nil
	})
}
