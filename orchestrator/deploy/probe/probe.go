// Package probe measures the path between two nodes of a deployed lab from inside them, with real
// packets: a sender in one node and a receiver in the other, each a process of its own. Packets
// carry their send time; the kernel timestamps their arrival. Both are CLOCK_REALTIME of one
// machine, so one-way delays are exact up to the latency of wake-ups.
//
// Times are real nanoseconds; sizes are UDP payloads in bytes.
package probe

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/sockbuf"
)

// Phase is a sequence of equal packets.
type Phase struct {
	Count int   `json:"count"`
	Size  int   `json:"size"`   // bytes of each packet, at least MinSize
	GapNS int64 `json:"gap_ns"` // between two packets; 0: as fast as possible
}

// Plan is a sender's traffic and its destination.
type Plan struct {
	To     netip.AddrPort `json:"to"`
	Source uint16         `json:"source"` // UDP port
	Phases []Phase        `json:"phases"`
}

// Result is a receiver's count of a phase.
type Result struct {
	Received int64 `json:"received"` // packets, duplicates not counted
	Bytes    int64 `json:"bytes"`    // UDP payload without the first packet
	FirstNS  int64 `json:"first_ns"` // arrival of the first and the last packet
	LastNS   int64 `json:"last_ns"`
	MinNS    int64 `json:"least_ns"` // shortest one-way delay; 0 without packets
}

// Layout of a probe packet: magic, phase, sequence number, send time.
const (
	magic    = 0x57656674 // Weft
	phaseAt  = 4
	numberAt = 6
	sentAt   = 10
	MinSize  = 18

	endPhase   = 1<<16 - 1 // phase of the packets that end the measurement
	endRepeats = 5         // number of those packets
)

// Limits of a plan.
const (
	maxPhases = 8
	maxCount  = 100_000
	maxSize   = 65_000
)

func (p *Plan) check() error {
	if !p.To.IsValid() || !p.To.Addr().Is4() || len(p.Phases) == 0 || len(p.Phases) > maxPhases {
		return fmt.Errorf("probe: %d phases to %v", len(p.Phases), p.To)
	}
	for _, f := range p.Phases {
		if f.Count < 1 || f.Count > maxCount || f.Size < MinSize || f.Size > maxSize || f.GapNS < 0 {
			return fmt.Errorf("probe: a phase of %d packets of %d bytes every %d ns", f.Count, f.Size, f.GapNS)
		}
	}
	return nil
}

// Run runs one end of a measurement by its arguments: "send PLAN", or "receive PORT PHASES", whose
// results go to out.
func Run(out io.Writer, args []string) error {
	switch {
	case len(args) == 2 && args[0] == "send":
		p, err := ReadPlan(args[1])
		if err != nil {
			return err
		}
		return Send(p)
	case len(args) == 3 && args[0] == "receive":
		port, err := strconv.ParseUint(args[1], 10, 16)
		if err != nil {
			return fmt.Errorf("probe: port: %w", err)
		}
		phases, err := strconv.Atoi(args[2])
		if err != nil {
			return fmt.Errorf("probe: phases: %w", err)
		}
		return Receive(out, uint16(port), phases)
	}
	return errors.New("probe: expected send PLAN, or receive PORT PHASES")
}

// ReadPlan parses and checks a plan in JSON.
func ReadPlan(text string) (*Plan, error) {
	p := new(Plan)
	if err := json.Unmarshal([]byte(text), p); err != nil {
		return nil, fmt.Errorf("probe: %w", err)
	}
	return p, p.check()
}

// socket returns a UDP socket bound to a port.
func socket(port uint16) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("probe: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: int(port)}); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("probe: port %d: %w", port, err)
	}
	return fd, nil
}

// now returns CLOCK_REALTIME in nanoseconds.
func now() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_REALTIME, &t) // cannot fail
	return t.Nano()
}

// Send sends the packets of a plan.
func Send(p *Plan) error {
	fd, err := socket(p.Source)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	// without it, the kernel says nothing of packets that it drops
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_RECVERR, 1); err != nil {
		return fmt.Errorf("probe: errors: %w", err)
	}
	to := &unix.SockaddrInet4{Port: int(p.To.Port()), Addr: p.To.Addr().As4()}
	send := func(phase, number, size int) error {
		b := make([]byte, size)
		binary.BigEndian.PutUint32(b, magic)
		binary.BigEndian.PutUint16(b[phaseAt:], uint16(phase))
		binary.BigEndian.PutUint32(b[numberAt:], uint32(number))
		binary.BigEndian.PutUint64(b[sentAt:], uint64(now()))
		for try := 1; ; try++ {
			err := unix.Sendto(fd, b, 0, to)
			if err == nil {
				return nil
			}
			// its interface's queue is full, which is no loss of the link, or the receiver of an
			// earlier one was not there
			if !errors.Is(err, unix.ENOBUFS) && !errors.Is(err, unix.ECONNREFUSED) || try == maxTries {
				return fmt.Errorf("probe: send to %v: %w", p.To, err)
			}
			time.Sleep(retryAfter)
		}
	}
	for i, f := range p.Phases {
		next := time.Now()
		for n := range f.Count {
			time.Sleep(time.Until(next))
			if err := send(i, n, f.Size); err != nil {
				return err
			}
			next = next.Add(time.Duration(f.GapNS))
		}
		time.Sleep(settle)
	}
	for range endRepeats {
		if err := send(endPhase, 0, MinSize); err != nil {
			return err
		}
		time.Sleep(settle / 10)
	}
	return nil
}

// A packet that cannot be sent is sent again for a while: that of a stopped network, and more.
const (
	retryAfter = time.Millisecond
	maxTries   = 2000
)

// settle is the pause between two phases, in which the network delivers queued packets.
const settle = 50 * time.Millisecond

// Time limits of a receiver: for the first packet, and from one packet to the next.
const (
	firstWait = 10 * time.Second
	nextWait  = 2 * time.Second
)

// Receive receives packets on a port until the sender ends the measurement or none arrive any more.
// It writes "ready" on a line of its own once the port is open, and at the end the results of the
// phases as JSON.
func Receive(out io.Writer, port uint16, phases int) error {
	if phases < 1 || phases > maxPhases {
		return fmt.Errorf("probe: %d phases", phases)
	}
	fd, err := socket(port)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return fmt.Errorf("probe: timestamps: %w", err)
	}
	_ = sockbuf.Receive(fd, 8<<20) // what the system allows
	if _, err := fmt.Fprintln(out, "ready"); err != nil {
		return err
	}
	r := receiver{results: make([]Result, phases), seen: make([]map[uint32]bool, phases)}
	if err := r.run(fd); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(r.results)
}

// receiver counts the packets of a measurement.
type receiver struct {
	results []Result
	seen    []map[uint32]bool // sequence numbers by phase
	over    bool              // the sender has ended the measurement
}

func (r *receiver) run(fd int) error {
	packet, control := make([]byte, 1<<16), make([]byte, 256)
	wait := firstWait
	for !r.over {
		limit := unix.NsecToTimeval(int64(wait))
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
			return fmt.Errorf("probe: %w", err)
		}
		n, oob, _, _, err := unix.Recvmsg(fd, packet, control, 0)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return nil
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("probe: receive: %w", err)
		}
		wait = nextWait
		r.count(packet[:n], arrival(control[:oob]))
	}
	return nil
}

// arrival returns when the kernel received a packet.
func arrival(control []byte) int64 {
	return cmp.Or(sockbuf.StampOf(control), now())
}

// count counts a packet. Packets that are not probes are ignored.
func (r *receiver) count(b []byte, at int64) {
	if len(b) < MinSize || binary.BigEndian.Uint32(b) != magic {
		return
	}
	phase, number := int(binary.BigEndian.Uint16(b[phaseAt:])), binary.BigEndian.Uint32(b[numberAt:])
	if phase == endPhase {
		r.over = true
		return
	}
	if phase >= len(r.results) || r.seen[phase][number] || number >= maxCount {
		return
	}
	if r.seen[phase] == nil {
		r.seen[phase] = map[uint32]bool{}
	}
	r.seen[phase][number] = true
	k := &r.results[phase]
	delay := max(1, at-int64(binary.BigEndian.Uint64(b[sentAt:])))
	if k.Received == 0 {
		k.FirstNS, k.MinNS = at, delay
	} else {
		k.Bytes += int64(len(b))
	}
	k.Received++
	k.LastNS = max(k.LastNS, at)
	k.MinNS = min(k.MinNS, delay)
}
