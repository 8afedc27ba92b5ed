package realtime

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"weft/fabric"
	"weft/internal/control"
	"weft/internal/poller"
	"weft/results/stats"
	"weft/units"
)

// A network may be in parts, each in a process of its own with the hosts of its switches. A frame
// that crosses from one part to another is sent with its modelled arrival and delivered then, so
// the time that the crossing takes does not count while it is shorter than the slack: transmission
// and propagation, times dilation. What arrives too late is counted, and the verdict judges it.
//
// Two processes share a stream socket, or a TCP connection between machines (seal.go). All that has
// left is written once per turn. Nothing that comes from it is trusted: records are bounded and
// checked (fabric.Part.Import), and so is each frame (crossed).

// Part says which part of the network a process carries. The descriptors of the streams to the
// other parts, in their order, come in a message of KindPeers. The process has the ports of its own
// hosts only, in order.
type Part struct {
	Me int     // from 0
	Of []int32 // by node: its part
}

// hosts returns the hosts whose ports the process has.
func (c *Config) hosts() (all []int) {
	for h := range c.Hosts {
		if c.Part == nil || int(c.Part.Of[h]) == c.Part.Me {
			all = append(all, h)
		}
	}
	return all
}

// Crossings counts what crossed from other parts of the network to this one.
type Crossings struct {
	In, Out  fabric.Crossed
	Late     int64       // packets and pauses that arrived after their instant
	Lateness *stats.Dist // of all: by how much, in lab time; 0 if in time
	Slack    *stats.Dist // of all: the lab time from their receipt to their instant; 0 if late
}

// Add adds the crossings of another part.
func (c *Crossings) Add(o *Crossings) {
	c.In.Packets += o.In.Packets
	c.In.Bytes += o.In.Bytes
	c.Out.Packets += o.Out.Packets
	c.Out.Bytes += o.Out.Bytes
	c.Late += o.Late
	c.Lateness.Merge(o.Lateness)
	c.Slack.Merge(o.Slack)
}

// part is this process's part of a network, nil if the network is in one piece: then every method
// does nothing.
type part struct {
	*fabric.Part
	peers []peer
	first int32      // poller's token of peers[0]; those of the others precede it
	next  units.Time // when a packet leaves that waits for a link to another part
	count Crossings
	// stuck is set while a peer does not take all that is written to it.
	stuck bool
}

// peer is another part.
type peer struct {
	number int
	fd     int
	gone   bool   // the stream has ended
	seal   *seal  // nil: the stream does not leave this machine
	in     []byte // the beginning of a record
	out    []byte // not sent yet
}

// maxUnsent is the most that waits for a peer that does not read, in bytes. Our own choice: a
// second of a busy link.
const maxUnsent = 64 << 20

// stuckFor is the real time between two attempts to write to a peer that has no room.
const stuckFor = time.Millisecond

// readSize is the size of the buffer for a read from a peer, in bytes.
const readSize = 256 << 10

// buildPart makes this process's part of the network.
func (l *loop) buildPart() error {
	c := l.cfg.Part
	p, err := fabric.NewPart(l.cfg.Network, c.Of, c.Me, l.events, l)
	if err != nil {
		return err
	}
	l.net = p.Network()
	l.part = &part{Part: p, first: bellToken, next: units.Never,
		count: Crossings{Lateness: stats.NewDist(), Slack: stats.NewDist()}}
	for k := range int(slices.Max(c.Of)) + 1 {
		if k != c.Me {
			l.part.peers = append(l.part.peers, peer{number: k, fd: -1})
		}
	}
	for i := range l.cfg.Changes {
		if err := l.part.refuse(l, &l.cfg.Changes[i]); err != nil {
			return err
		}
	}
	return nil
}

// refuse returns an error for a change that parts cannot make together.
func (p *part) refuse(l *loop, c *fabric.Change) error {
	if _, pauses := l.net.PauseEntity(0); p != nil && pauses && p.Cross(c) {
		return errors.New("the link leads from one part of the network to another, and with PFC such a link cannot " +
			"go down or up: the far end would not know what is paused; expected a link within a part, or " +
			"engine.machines 1")
	}
	return nil
}

// others returns the number of other parts.
func (p *part) others() int {
	if p == nil {
		return 0
	}
	return len(p.peers)
}

// openPeers receives the streams to the other parts.
func (l *loop) openPeers(conn *control.Conn) error {
	for i := 0; i < l.part.others(); {
		var keys []Keys
		fds, err := conn.Expect(KindPeers, &keys)
		if err != nil {
			return err
		}
		for k, fd := range fds {
			q := &l.part.peers[i]
			q.fd = fd
			err := unix.SetNonblock(fd, true)
			if err == nil {
				q.seal, err = newSeal(keys[k])
			}
			if err == nil {
				err = l.poll.Add(fd, l.part.first-int32(i))
			}
			if err != nil {
				return fmt.Errorf("stream to part %d: %w", q.number, err)
			}
			i++
		}
	}
	return nil
}

// close closes the streams.
func (p *part) close() {
	for i := range p.others() {
		unix.Close(p.peers[i].fd)
	}
}

// peer returns the peer of a token of the poller; nil: it is not one.
func (p *part) peer(token int32) *peer {
	if p == nil || token > p.first {
		return nil
	}
	return &p.peers[p.first-token]
}

// leaves returns an instant before which no packet that waits leaves for another part; units.Never:
// none waits.
func (p *part) leaves() units.Time {
	if p == nil {
		return units.Never
	}
	return p.next
}

// crossings returns what crossed; nil: the network is in one piece.
func (p *part) crossings() *Crossings {
	if p == nil {
		return nil
	}
	p.count.In, p.count.Out = p.Crossed()
	return &p.count
}

// takeDue reads from all peers if something is due, or waits for a link to another part: what they
// have sent may come first.
func (p *part) takeDue(l *loop, now units.Time) error {
	if p == nil {
		return nil
	}
	if _, next, ok := l.events.Next(); (!ok || next > now) && !p.Waits() {
		return nil
	}
	for i := range p.peers {
		if err := p.peers[i].take(l); err != nil {
			return err
		}
	}
	return nil
}

// take imports all that a peer has sent so far.
func (q *peer) take(l *loop) error {
	for !q.gone {
		came := &q.in
		if q.seal != nil {
			came = &q.seal.raw
		}
		*came = slices.Grow(*came, readSize) // kept, whether something comes or not
		b := *came
		n, again, err := poller.Read(q.fd, b[len(b):cap(b)])
		if again {
			return nil
		}
		if n == 0 || err != nil { // the orchestrator knows why it ended
			q.gone = true
			return l.poll.Remove(q.fd)
		}
		if *came = b[:len(b)+n]; q.seal != nil {
			if q.in, err = q.seal.open(q.in); err != nil {
				return fmt.Errorf("from part %d: %w", q.number, err)
			}
		}
		now := l.labNow()
		left, err := l.part.Import(q.number, q.in, l.cfg.MaxFrame, func(p *fabric.Packet, at units.Time) error {
			return l.crossed(now, p, at)
		})
		if err != nil {
			return fmt.Errorf("from part %d: %w", q.number, err)
		}
		q.in = q.in[:copy(q.in, left)]
		l.rest.frames++
	}
	return nil
}

// errCrossed refuses a packet that no other part sends.
var errCrossed = errors.New("a packet does not agree with its frame")

// crossed checks a packet that has come from another part, nil for a pause, and counts it.
func (l *loop) crossed(now units.Time, p *fabric.Packet, at units.Time) error {
	if p != nil && !l.credible(p) {
		return errCrossed
	}
	c := &l.part.count
	late := units.Time(0)
	if looked := l.part.Looked(); at <= looked {
		late = max(looked-at, 1)
		c.Late++
	}
	c.Lateness.Record(late)
	c.Slack.Record(max(0, at-now))
	return nil
}

// credible reports whether what is said about a packet agrees with its frame, so that nothing that
// is done with the frame later reads or writes where it should not.
func (l *loop) credible(p *fabric.Packet) bool {
	if _, note := l.net.NoteOf(p); note {
		return p.Context == 0 && !p.INT && !p.Tag.On && p.Keep == 0 && len(p.Header) == 0
	}
	d, ok := parseIPv4(p.Header)
	if !ok || etherType(p.Header) != typeIPv4 {
		return false
	}
	want, ok := read(p.Header, &d)
	got := contentsOf(p)
	data := want.shape.Data()
	want.leaves = got.leaves
	port, size := uint16(0), units.Bytes(len(p.Header)+fcsLen)
	if d.udp != 0 {
		port = d.dport
	}
	cut, _ := p.Trimmed()
	tag := data && l.cfg.Network.CCM != nil && want.shape.Tag(want.message(p.Header)).On
	return ok && p.Context == want.pack() && (got.leaves == anytime || got.leaves == onTime && data) &&
		p.Port == port &&
		p.INT == (data && want.shape.Asks()) && p.Tag.On == tag && (p.Size == size || cut && p.Size < size) &&
		(!data && p.Keep == 0 || data && p.Keep == want.shape.Keep())
}

// leave prepares a packet for its way to another part. If a pause has held the frame back, it gets
// its timestamp here, since the far part does not know when it left its NIC.
func (l *loop) leave(p *fabric.Packet) {
	c := contentsOf(p)
	if c.leaves == heldBack {
		l.restamp(c, p.Header, p.SentAt)
		c.leaves = onTime
		p.Context = c.pack()
	}
}

// send sends what has left for other parts until now, when all that is due until then has been
// fired.
func (p *part) send(l *loop, now units.Time) error {
	if p == nil {
		return nil
	}
	p.next = p.Flush(max(0, now))
	if !p.Exports() && !p.stuck {
		return nil
	}
	p.stuck = false
	for i := range p.peers {
		q := &p.peers[i]
		if q.seal == nil {
			q.out = p.Export(q.number, q.out, l.leave)
		} else {
			q.seal.clear = p.Export(q.number, q.seal.clear[:0], l.leave)
			q.out = q.seal.close(q.out)
		}
		if err := q.write(); err != nil {
			return err
		}
		p.stuck = p.stuck || len(q.out) > 0
	}
	if p.stuck {
		p.next = min(p.next, l.scale.Lab(l.clock.Now()+int64(stuckFor)))
	}
	return nil
}

// write writes what waits for a peer until it would block.
func (q *peer) write() error {
	for len(q.out) > 0 && !q.gone {
		n, again, err := poller.Write(q.fd, q.out)
		if err != nil {
			break // the orchestrator knows why it ended; what is sent to it is lost
		}
		if again {
			if len(q.out) > maxUnsent {
				return fmt.Errorf("part %d does not take what is sent to it: %d MiB wait", q.number, len(q.out)>>20)
			}
			return nil
		}
		q.out = q.out[:copy(q.out, q.out[n:])]
	}
	q.out = q.out[:0]
	return nil
}
