// Package probe is what measures the way between two nodes of a deployed lab, from inside them, with real packets: a
// sender in one and a receiver in the other, each a process of its own. Packets carry when they were sent; the kernel
// notes when they came. Both are CLOCK_REALTIME of one machine, so one-way delays are exact but for what wake-ups take.
//
// Times are real nanoseconds; sizes are of UDP payloads in bytes.
package probe

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// Phase is a row of packets.
type Phase struct {
	Count int   `json:"count"`
	Size  int   `json:"size"`   // of each, at least MinSize
	GapNS int64 `json:"gap_ns"` // from one to the next; 0: as fast as the kernel takes them
}

// Plan is what is sent, and where.
type Plan struct {
	To     netip.AddrPort `json:"to"`
	Source uint16         `json:"source"` // port
	Phases []Phase        `json:"phases"`
}

// Result is what came of a phase.
type Result struct {
	Received int64 `json:"received"` // packets, each once
	Bytes    int64 `json:"bytes"`    // of UDP payload, without the first packet's
	FirstNS  int64 `json:"first_ns"` // when the first and the last packet came
	LastNS   int64 `json:"last_ns"`
	LeastNS  int64 `json:"least_ns"` // the shortest one-way delay; 0: none came
}

// A probe packet: magic, phase, sequence number, when it was sent.
const (
	magic    = 0x57656674 // Weft
	phaseAt  = 4
	numberAt = 6
	sentAt   = 10
	MinSize  = 18

	endPhase = 1<<16 - 1 // the phase of packets that say that no more will come
	endings  = 5         // how often that is said
)

// Limits of what a plan may ask for.
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

// ReadPlan reads a plan as JSON.
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

func realtime() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_REALTIME, &t) // it is there
	return t.Nano()
}

// Send sends what the plan says.
func Send(p *Plan) error {
	fd, err := socket(p.Source)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	to := &unix.SockaddrInet4{Port: int(p.To.Port()), Addr: p.To.Addr().As4()}
	send := func(phase, number, size int) error {
		b := make([]byte, size)
		binary.BigEndian.PutUint32(b, magic)
		binary.BigEndian.PutUint16(b[phaseAt:], uint16(phase))
		binary.BigEndian.PutUint32(b[numberAt:], uint32(number))
		binary.BigEndian.PutUint64(b[sentAt:], uint64(realtime()))
		if err := unix.Sendto(fd, b, 0, to); err != nil && !errors.Is(err, unix.ENOBUFS) && !errors.Is(err, unix.ECONNREFUSED) {
			return fmt.Errorf("probe: send to %v: %w", p.To, err)
		}
		return nil
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
	for range endings {
		if err := send(endPhase, 0, MinSize); err != nil {
			return err
		}
		time.Sleep(settle / 10)
	}
	return nil
}

// settle is how long the network has between two phases to deliver what it holds.
const settle = 50 * time.Millisecond

// How long a receiver waits: for the first packet, and after one for the next.
const (
	firstWait = 10 * time.Second
	nextWait  = 2 * time.Second
)

// Receive takes what comes to a port until the sender has said that no more will, or nothing comes, and writes the
// results of so many phases as JSON. It says "ready" on a line of its own when it can be sent to.
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
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 8<<20) // what the system allows
	}
	if _, err := fmt.Fprintln(out, "ready"); err != nil {
		return err
	}
	r := receiver{results: make([]Result, phases), seen: make([]map[uint32]bool, phases)}
	if err := r.run(fd); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(r.results)
}

type receiver struct {
	results []Result
	seen    []map[uint32]bool
	over    bool
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
		r.take(packet[:n], arrival(control[:oob]))
	}
	return nil
}

// arrival is when the kernel got a packet.
func arrival(control []byte) int64 {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return realtime()
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPNS && len(m.Data) >= 16 {
			return int64(binary.NativeEndian.Uint64(m.Data))*1e9 + int64(binary.NativeEndian.Uint64(m.Data[8:]))
		}
	}
	return realtime()
}

// take counts a packet. What is no probe's is none of ours.
func (r *receiver) take(b []byte, at int64) {
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
		k.FirstNS, k.LeastNS = at, delay
	} else {
		k.Bytes += int64(len(b))
	}
	k.Received++
	k.LastNS = max(k.LastNS, at)
	k.LeastNS = min(k.LeastNS, delay)
}
