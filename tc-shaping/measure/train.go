package measure

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"weft/units"
)

// Train is a sequence of packets.
type Train struct {
	Count int
	Size  units.Bytes   // of each packet with IPv4 and UDP headers, without Ethernet's: 44 bytes to the MTU
	Burst int           // packets that are sent at once at the start
	Gap   time.Duration // between packets after the burst; 0: as fast as possible
	Wait  time.Duration // for the last packets, after the last departure
}

// Packet is the fate of one packet of a train.
type Packet struct {
	Sent    int64 // nanoseconds of the machine's clock
	Arrived int64 // 0 if it was lost
	Copies  int   // arrivals beyond the first
	Marked  bool  // congestion experienced
	Unseen  bool  // lost behind a queue; Arrived is interpolated
}

// number identifies a train, so that late packets of one train do not count in the next.
type number uint32

// Run sends a train and returns its packets in the order they were sent.
func Run(ctx context.Context, s *Sender, r *Receiver, t Train) ([]Packet, error) {
	if t.Count <= 0 || t.Size < minSize || t.Burst < 0 || t.Gap < 0 {
		return nil, fmt.Errorf("train of %d packets of %d bytes, %v apart: one packet at least, of %d bytes at least",
			t.Count, t.Size, t.Gap, minSize)
	}
	id := number(now(unix.CLOCK_MONOTONIC) >> 10)
	packets := make([]Packet, t.Count)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	sent := make(chan error, 1)
	departures := make([]int64, t.Count)
	go func() { sent <- s.run(ctx, t, id, departures) }()
	missing := t.Count
	var deadline int64
	payload, control := make([]byte, 1<<16), make([]byte, 256)
	var failure error
	for departing := true; departing || failure == nil && missing > 0 && now(unix.CLOCK_MONOTONIC) < deadline; {
		a, ok, err := r.receive(payload, control)
		if err != nil {
			failure = err
			stop()
		}
		if ok && number(a.train) == id && int(a.seq) < t.Count {
			p := &packets[a.seq]
			if p.Arrived != 0 {
				p.Copies++
				continue
			}
			missing--
			p.Arrived, p.Marked = a.at, a.ce
			continue
		}
		select {
		case err := <-sent:
			departing = false
			failure = errors.Join(failure, err)
			deadline = now(unix.CLOCK_MONOTONIC) + t.Wait.Nanoseconds()
		default:
		}
	}
	for i := range packets {
		packets[i].Sent = departures[i]
	}
	return packets, failure
}

// run sends the packets at their times. It locks its thread, which sleeps on the kernel's clock.
func (s *Sender) run(ctx context.Context, t Train, id number, departures []int64) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	payload := make([]byte, t.Size-headers)
	due := now(unix.CLOCK_MONOTONIC)
	for i := range departures {
		if i > t.Burst && t.Gap > 0 {
			due += t.Gap.Nanoseconds()
			sleep(due)
		} else if i == t.Burst {
			due = now(unix.CLOCK_MONOTONIC)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		at, err := s.send(payload, uint32(id), uint32(i))
		if err != nil {
			return fmt.Errorf("send probe %d of %d bytes: %w", i, t.Size, err)
		}
		departures[i] = at
	}
	return nil
}

// sleep returns at an instant of the monotonic clock, or at once if that is past.
func sleep(until int64) {
	t := unix.NsecToTimespec(until)
	for errors.Is(unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &t, nil), unix.EINTR) {
	}
}
