package realtime

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"weft/fabric"
	"weft/internal/bypass"
	"weft/internal/control"
	"weft/internal/poller"
	"weft/internal/rings"
	"weft/units"
)

// A host of a run may have a bypass NIC besides its interface: rings in memory that the host's
// agent and this process share (package rings). What the agent sends comes through them, and what
// is for the agent, which is everything to Weft's own ports, leaves through them. Programs of the
// host use the interface.
//
// Nothing that a node writes there is believed. A descriptor is copied before it is checked, and a
// frame before it is parsed. A node that breaks the rules of its rings is gone from then on, as if
// its process had ended, and the orchestrator learns why.

// NICs says which hosts have bypass NICs. The descriptors follow in messages of KindNICs: a region
// for each of them, then three of each bell.
type NICs struct {
	Bells int
	Bell  []int // by host: the bell of the process that drives it; -1: it has no bypass NIC
}

// bells returns the number of bells.
func (n *NICs) bells() int {
	if n == nil {
		return 0
	}
	return n.Bells
}

// nic is the fabric process's end of a host's bypass NIC. It is a cable.
type nic struct {
	in     *rings.Consumer
	out    *rings.Producer
	bell   *bypass.Bell
	region []byte

	clock clocked
	at    units.Time // when the next frame to write arrives at its host, in the model

	written int64 // when the last frame was written, CLOCK_MONOTONIC in ns

	pushed units.Time // departure of the last frame that was read, as its agent says
}

// Read implements cable.
func (n *nic) Read(frame []byte) (size int, again bool, err error) {
	f, ok, err := n.in.Next()
	if err != nil || !ok {
		return 0, true, err
	}
	if len(f.Bytes) > len(frame) {
		return 0, false, fmt.Errorf("%w: a frame of %d bytes; the lab's have up to %d", rings.ErrLie, len(f.Bytes),
			len(frame))
	}
	size, n.pushed = copy(frame, f.Bytes), units.Time(f.At)
	n.in.Release()
	return size, false, nil
}

// Write implements cable.
func (n *nic) Write(frame []byte) (size int, again bool, err error) {
	slot, err := n.out.Slot()
	if err != nil || slot == nil || len(frame) > len(slot) {
		return 0, true, err
	}
	size = copy(slot, frame)
	n.written = n.clock.Now()
	n.out.Push(size, int64(n.at), n.written)
	n.bell.Ring(0)
	return size, false, nil
}

// bells is the loop's state of the bypass NICs of its hosts. The zero value is that of a
// network without any.
type bells struct {
	all   []*bypass.Bell
	hosts []fabric.HostID // hosts with a bypass NIC
}

// bellToken is the poller's token of the first bell. Those of the others precede it.
const bellToken = controlToken - 1

// openNICs receives and opens the bypass NICs of the configuration, if there are any.
func (l *loop) openNICs(conn *control.Conn) (err error) {
	n := l.cfg.NICs
	if n == nil {
		return nil
	}
	for h, k := range n.Bell {
		if k >= 0 {
			l.bells.hosts = append(l.bells.hosts, fabric.HostID(h))
		}
	}
	all := len(l.bells.hosts) + 3*n.Bells
	var fds []int
	defer func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}()
	for len(fds) < all {
		some, err := conn.Expect(KindNICs, nil)
		if err != nil {
			return err
		}
		fds = append(fds, some...)
	}
	take := func(k int) (some []int) {
		some, fds = fds[:k:k], fds[k:]
		return some
	}
	layout, err := rings.For(l.cfg.MaxFrame)
	if err != nil {
		return err
	}
	for _, h := range l.bells.hosts {
		region, err := bypass.Map(take(1)[0], layout.Bytes())
		if err != nil {
			return err
		}
		port := &l.ports[h]
		port.nic = &nic{region: region, clock: l.clock}
		if port.nic.in, err = rings.NewConsumer(layout, region, 0); err != nil {
			return err
		}
		if port.nic.out, err = rings.NewProducer(layout, region, 1); err != nil {
			return err
		}
	}
	for k := range n.Bells {
		bell, err := bypass.OpenBell(take(3), bypass.Fabric)
		if err != nil {
			return err
		}
		l.bells.all = append(l.bells.all, bell)
		if err := l.poll.Add(bell.FD, int32(bellToken-k)); err != nil {
			return err
		}
	}
	for _, h := range l.bells.hosts {
		l.ports[h].nic.bell = l.bells.all[n.Bell[h]]
	}
	return nil
}

// closeNICs closes the bypass NICs.
func (l *loop) closeNICs() {
	for _, b := range l.bells.all {
		b.Close()
	}
	for h := range l.ports {
		if n := l.ports[h].nic; n != nil {
			bypass.Unmap(n.region)
		}
	}
}

// readNICs reads the frames that agents have pushed.
func (l *loop) readNICs() error {
	for _, h := range l.bells.hosts {
		port := &l.ports[h]
		if port.gone || !port.nic.in.Ready() {
			continue
		}
		if err := l.readNIC(h, port); err != nil {
			return err
		}
	}
	return nil
}

// readNIC reads the frames that the agent of h has pushed, at most a burst, and none while the
// host's NIC is full.
func (l *loop) readNIC(h fabric.HostID, port *port) error {
	for got := 1; got <= maxBurst && !l.isFull(h, port); got++ {
		p := l.packet()
		n, again, err := port.nic.Read(p.Header[:l.cfg.MaxFrame])
		if err != nil || again {
			l.net.Put(p)
			return l.unlessLie(h, err)
		}
		l.rest.frames++
		l.report.Backlog = max(l.report.Backlog, got)
		p.Header = p.Header[:n]
		l.behind.pushed = port.nic.pushed
		l.take(h, p)
		l.behind.pushed = 0
	}
	return nil
}

// isFull reports whether the modelled NIC of h holds so much that nothing more is read from the
// host.
func (l *loop) isFull(h fabric.HostID, port *port) bool {
	queued := l.net.NICs.Queued(h)
	l.report.MaxNIC = max(l.report.MaxNIC, queued)
	return queued+port.heldBytes > maxNICQueue
}

// unlessLie returns err, unless the agent of h broke the rules of its rings. Then its host is gone.
func (l *loop) unlessLie(h fabric.HostID, err error) error {
	if err == nil || !errors.Is(err, rings.ErrLie) {
		return err
	}
	port := &l.ports[h]
	if port.gone {
		return nil
	}
	port.gone = true
	if l.conn != nil { // nil in tests
		// losing the orchestrator ends the loop elsewhere
		_ = l.conn.SendValue(KindGone, Gone{Host: int(h), Why: err.Error()})
	}
	if port.full {
		return nil // it is not in the poller
	}
	return l.poll.Remove(port.fd)
}

// sleep waits until a descriptor is ready, an agent rings, or timeout has passed.
func (l *loop) sleep(timeout time.Duration) error {
	if len(l.bells.all) == 0 || timeout <= 0 {
		return l.poll.Wait(timeout)
	}
	until := int64(bypass.Forever)
	if timeout != poller.Forever {
		until = l.clock.Now() + int64(timeout)
	}
	for _, b := range l.bells.all {
		b.Sleep(until)
	}
	for _, h := range l.bells.hosts {
		if port := &l.ports[h]; !port.gone && port.nic.in.Ready() && !l.isFull(h, port) {
			timeout = 0 // pushed before the agent could know that it should ring
			break
		}
	}
	err := l.poll.Wait(timeout)
	for _, b := range l.bells.all {
		b.Awake()
	}
	return err
}
