package kernelpath

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"weft/clocksync/labtime"
	"weft/fabric"
	"weft/internal/cleanup"
	"weft/internal/clock"
	"weft/internal/poller"
	"weft/internal/sockbuf"
	"weft/realtime"
	"weft/results/stats"
	"weft/tc-shaping/bpf"
	"weft/transport/wire"
	"weft/units"
)

// Coordinated congestion management (CCM). The switches' programs choose the port of each packet,
// write its tag and tell of it (bpf.Event). What is slow in lab time is done here, by
// fabric.Coordinator: who causes incast, and notifications, which are datagrams between the
// addresses of switches and hosts.

// coordination runs CCM, in one goroutine. Others share with it what the mutex guards.
type coordination struct {
	c       *carrier
	scale   labtime.Scale
	events  *bpf.Events
	sockets []int // by switch, in its namespace
	quit    int   // eventfd: readable when CCM is over
	byAddr  map[[4]byte]fabric.NodeID
	ended   chan struct{}
	waiting []waiting // what is not due yet
	behind  int64     // when the notifications that core sends now are due: waiting.due; 0: at once

	mutex sync.Mutex
	core  *fabric.Coordinator
	at    units.Time               // the latest time that core has seen
	given map[flowAt]fabric.Advice // that programs have, if any
	steps []fabric.Step            // not sent yet
	total int                      // number of steps so far
	late  *stats.Dist              // by how much after its packet each event was handled
	err   error                    // the first error
}

// flowAt is a flow at a switch.
type flowAt struct {
	at   int
	flow uint32
	to   fabric.HostID
}

// waiting is what happens once it is due: a notification leaves a switch or has arrived at one,
// before it would have, since no link delays anything.
type waiting struct {
	due int64 // CLOCK_MONOTONIC in ns
	do  func() error
}

// coordinate starts CCM, if the network has it.
func (c *carrier) coordinate() error {
	if c.cfg.Network.CCM == nil {
		return nil
	}
	k := &coordination{c: c, scale: c.scale, quit: -1, ended: make(chan struct{}), byAddr: map[[4]byte]fabric.NodeID{},
		given: map[flowAt]fabric.Advice{}, late: stats.NewDist()}
	for to := range len(c.net.Hosts) + len(c.net.Switches) {
		k.byAddr[c.net.AddrOf(to).As4()] = fabric.NodeID(to)
	}
	var err error
	k.core, err = fabric.NewCoordinator(c.cfg.Network, k.queue, k.notify)
	if err != nil {
		return err
	}
	k.core.Follow(func(s fabric.Step) {
		if k.total++; k.total <= realtime.MaxSteps {
			k.steps = append(k.steps, s)
		}
	})
	if err := k.open(); err != nil {
		return errors.Join(err, k.release())
	}
	c.ccm = k
	go func() {
		defer close(k.ended)
		err := k.run()
		k.mutex.Lock()
		defer k.mutex.Unlock()
		k.fail(err)
	}()
	return nil
}

// open opens the sockets of switches and the events of their programs.
func (k *coordination) open() (err error) {
	for s := range k.c.net.Switches {
		addr := k.c.net.Switches[s].Addr
		err := k.c.nodes.Switch(s).Do(func() error {
			fd, err := noticeSocket(addr)
			if err == nil {
				k.sockets = append(k.sockets, fd)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: socket for notifications: %w", k.c.net.Switches[s].Name, err)
		}
	}
	if k.quit, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
		return fmt.Errorf("eventfd: %w", err)
	}
	k.events, err = k.c.flows.Events()
	return err
}

// noticeSocket returns the socket of a switch with an address, in the namespace of the thread.
func noticeSocket(addr netip.Addr) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TOS, wire.TOSControl),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
		unix.Bind(fd, &unix.SockaddrInet4{Port: wire.Port, Addr: addr.As4()}))
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// close ends CCM.
func (k *coordination) close() error {
	one := make([]byte, 8)
	binary.NativeEndian.PutUint64(one, 1)
	if _, err := unix.Write(k.quit, one); err != nil {
		return fmt.Errorf("eventfd: %w", err)
	}
	<-k.ended
	return k.release()
}

// release closes what open has opened.
func (k *coordination) release() error {
	var errs []error
	if k.events != nil {
		errs = append(errs, k.events.Close())
	}
	for _, fd := range append(k.sockets, k.quit) {
		if fd >= 0 {
			errs = append(errs, unix.Close(fd))
		}
	}
	return cleanup.Join(errs...)
}

// fail records the first error. The caller holds the mutex.
func (k *coordination) fail(err error) {
	if k.err == nil {
		k.err = err
	}
}

// queue returns the bytes of data that wait in a port.
func (k *coordination) queue(port int) units.Bytes {
	return k.c.lines[port].dir.Gate.Counters().Data
}

// now returns the lab time, which does not decrease for core. The caller holds the mutex.
func (k *coordination) now(mono int64) units.Time {
	k.at = max(k.at, k.scale.Lab(mono), 0)
	return k.at
}

// run handles what happens until close.
func (k *coordination) run() error {
	// a switch's decisions are as urgent as its packets
	runtime.LockOSThread() // the thread ends with the goroutine
	// A thread that returns from a system call waits for one of GOMAXPROCS slots of the Go
	// scheduler, for up to 10 ms if busy goroutines have them all. So there are more slots than
	// those.
	slots := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(2 * slots)
	defer runtime.GOMAXPROCS(slots)
	poller.Hurry()
	watched := []unix.PollFd{{Fd: int32(k.quit), Events: unix.POLLIN}, {Fd: int32(k.events.FD()), Events: unix.POLLIN}}
	for _, fd := range k.sockets {
		watched = append(watched, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	for {
		if err := k.wait(watched); err != nil {
			return err
		}
		if watched[0].Revents != 0 {
			return nil
		}
		if err := k.handle(watched[2:]); err != nil {
			return err
		}
	}
}

// wait waits for input, or until something is due.
func (k *coordination) wait(watched []unix.PollFd) error {
	var timeout *unix.Timespec
	if due := k.due(); due != math.MaxInt64 {
		ts := unix.NsecToTimespec(max(0, due-clock.Monotonic()))
		timeout = &ts
	}
	if _, err := unix.Ppoll(watched, timeout, nil); err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("ppoll: %w", err)
	}
	return nil
}

// due returns when something has to be done, on CLOCK_MONOTONIC, or math.MaxInt64.
func (k *coordination) due() int64 {
	k.mutex.Lock()
	next := k.core.Next()
	k.mutex.Unlock()
	due := int64(math.MaxInt64)
	if next != units.Never {
		due = k.scale.Mono(next)
	}
	for i := range k.waiting {
		due = min(due, k.waiting[i].due)
	}
	return due
}

// handle handles events, what has come to sockets, and what is due.
func (k *coordination) handle(sockets []unix.PollFd) error {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	var e bpf.Event
	for {
		told, err := k.events.Next(&e)
		if err != nil {
			return err
		}
		if !told {
			break
		}
		k.late.Record(max(0, k.scale.LabSpan(clock.Monotonic()-e.At)))
		if e.Taken > 0 {
			k.behind = e.At + int64(e.Taken)<<k.c.lines[e.From].dir.Gate.Unit
		}
		_, advice := k.core.Arrived(k.now(e.At), &e.Arrival)
		k.behind = 0
		if err := k.advise(flowAt{e.Switch, e.Flow, e.Dst}, advice); err != nil {
			return err
		}
	}
	for s := range sockets {
		if sockets[s].Revents != 0 {
			k.receive(s)
		}
	}
	for i := 0; i < len(k.waiting); {
		w := k.waiting[i]
		if w.due > clock.Monotonic() {
			i++
			continue
		}
		k.waiting = slices.Delete(k.waiting, i, i+1)
		if err := w.do(); err != nil {
			return err
		}
	}
	k.core.Advance(k.now(clock.Monotonic()))
	return k.err
}

// hear takes a notification that has come to a switch. The caller holds the mutex.
func (k *coordination) hear(at int, note fabric.Note) error {
	flow, advice, ok := k.core.Heard(k.now(clock.Monotonic()), at, note)
	if !ok {
		return nil
	}
	return k.advise(flowAt{at, flow, note.Dst}, advice)
}

// advise hands the advice for a flow to a switch's programs. The caller holds the mutex.
func (k *coordination) advise(f flowAt, a fabric.Advice) error {
	nothing := fabric.Advice{Away: -1, Resort: units.Never}
	if a.Away < 0 {
		a.Until = 0
	}
	was, known := k.given[f]
	if !known {
		was = nothing
	}
	if a == was {
		return nil
	}
	if k.given[f] = a; a == nothing {
		delete(k.given, f)
	}
	if err := k.c.flows.Advise(f.at, f.flow, f.to, a, k.scale.Mono); err != nil {
		return fmt.Errorf("advice for %s: %w", k.c.net.Switches[f.at].Name, err)
	}
	return nil
}

// notify sends a notification. One about a packet that no link has delayed leaves when the packet
// would have come: the switch would answer half a round trip early otherwise. The caller holds the
// mutex.
func (k *coordination) notify(to fabric.NodeID, n fabric.Note) {
	if k.behind == 0 {
		k.send(to, &n)
		return
	}
	k.waiting = append(k.waiting, waiting{k.behind, func() error {
		k.send(to, &n)
		return nil
	}})
}

// send sends a notification. The caller holds the mutex.
func (k *coordination) send(to fabric.NodeID, n *fabric.Note) {
	message := realtime.EncodeNote(n)
	s := int(n.Switch) - len(k.c.net.Hosts)
	addr := k.c.net.AddrOf(int(to))
	err := unix.Sendto(k.sockets[s], message[:], 0, &unix.SockaddrInet4{Port: wire.Port, Addr: addr.As4()})
	if err != nil && !lostOnTheWay(err) {
		k.fail(fmt.Errorf("notification from %s to %v: %w", k.c.net.Switches[s].Name, addr, err))
	}
}

// lostOnTheWay reports whether a datagram was lost, as any may be: in a full queue, or because no
// path is left.
func lostOnTheWay(err error) bool {
	return errors.Is(err, unix.ENOBUFS) || errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH) ||
		errors.Is(err, unix.ENETDOWN)
}

// maxNotices is how many datagrams a switch reads before others have their turn: a host may send
// any number.
const maxNotices = 16

// receive takes the notifications that have come to a switch. The caller holds the mutex.
func (k *coordination) receive(s int) {
	payload, control := make([]byte, wire.NoticeSize+1), make([]byte, 128)
	for range maxNotices {
		n, cn, _, from, err := unix.Recvmsg(k.sockets[s], payload, control, 0)
		if err != nil {
			return // there are no more
		}
		note, ok := k.noteOf(payload[:n], from)
		if !ok {
			continue // not of a switch
		}
		w := waiting{do: func() error { return k.hear(s, note) }}
		if due := sockbuf.StampOf(control[:cn]); due != 0 {
			w.due = clock.Monotonic() + due - time.Now().UnixNano()
		}
		k.waiting = append(k.waiting, w)
	}
}

// noteOf decodes a notification. ok is false if it does not come from the switch that it names.
func (k *coordination) noteOf(message []byte, from unix.Sockaddr) (note fabric.Note, ok bool) {
	var w wire.Notice
	sender, isIP := from.(*unix.SockaddrInet4)
	if !isIP || len(message) != int(wire.NoticeSize) || w.Decode(message) != nil {
		return note, false
	}
	node, known := k.byAddr[sender.Addr]
	hosts := uint32(len(k.c.net.Hosts))
	if !known || uint32(node) != w.Switch || w.Switch < hosts || w.Src >= hosts || w.Dst >= hosts {
		return note, false
	}
	return fabric.Note{Type: fabric.NoteType(w.Kind), Last: w.Last, SrcPort: w.SrcPort, Switch: node, At: w.At,
		Src: fabric.HostID(w.Src), Dst: fabric.HostID(w.Dst)}, true
}

// make applies a change of the network.
func (k *coordination) make(change *fabric.Change) error {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.core.Make(k.now(clock.Monotonic()), change)
}

// takeSteps returns the steps that were not taken yet, and the first error.
func (k *coordination) takeSteps() ([]fabric.Step, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	all := k.steps
	k.steps = nil
	return all, k.err
}

// counters returns the counters of CCM, and how often flows have moved to another port.
func (k *coordination) counters() (fabric.CCMCounters, int64) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.core.Counters()
}

// lateness returns by how much after its packet each event was handled so far.
func (k *coordination) lateness() *stats.Dist {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	late := stats.NewDist()
	late.Merge(k.late)
	return late
}

// sendSteps sends the steps that were not sent yet.
func (c *carrier) sendSteps() error {
	if c.ccm == nil {
		return nil
	}
	steps, err := c.ccm.takeSteps()
	if err == nil && len(steps) > 0 {
		err = c.conn.SendValue(realtime.KindSteps, steps)
	}
	return err
}
