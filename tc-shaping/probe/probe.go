// Package probe finds out which link features the running kernel has. It tries each queueing
// discipline on a device in a network namespace that it removes afterwards. It reads no
// configuration files or module lists: a part may be built in, loaded on first use, or denied to
// this user.
package probe

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/containernetworking/plugins/pkg/ns"
	"golang.org/x/sys/unix"

	"weft/tc-shaping/bpf"
	"weft/tc-shaping/qdisc"
	"weft/tc-shaping/tcnl"
)

// Probe tries every part. An error means that nothing could be tried, for example without the
// privilege to create a network namespace.
func Probe() (qdisc.Capabilities, error) {
	c := qdisc.Full()
	c.Missing = map[qdisc.Part]string{}
	for _, p := range qdisc.Parts() {
		err := Try(p)
		if errors.Is(err, errNoNamespace) {
			return qdisc.Capabilities{}, err
		}
		if err != nil {
			c.Missing[p] = err.Error()
		}
	}
	var err error
	c.Tick, err = tick()
	return c, err
}

// ErrAbsent is wrapped by errors of Try about a part that the kernel does not have.
var ErrAbsent = errors.New("neither built in nor a module")

var errNoNamespace = errors.New("no network namespace to try it in")

// Try returns nil if the kernel has part p, and an error with the reason if not.
func Try(p qdisc.Part) error {
	scratch, err := ns.TempNetNS()
	if err != nil {
		return fmt.Errorf("%w: %w", errNoNamespace, err)
	}
	defer scratch.Close()
	return scratch.Do(func(ns.NetNS) error { return tryHere(p) })
}

// tryHere tries a part in the network namespace of the calling thread.
func tryHere(p qdisc.Part) error {
	conn, err := tcnl.Open()
	if err != nil {
		return err
	}
	defer conn.Close()
	lo, err := conn.End("lo") // exists in every namespace
	if err != nil {
		return err
	}
	switch p {
	case qdisc.PartIFB:
		_, err = lo.AddIFB()
	case qdisc.PartRedirect:
		err = lo.Redirect(lo, nil)
	case qdisc.PartBPF:
		err = tryGate(lo)
	case qdisc.PartSource:
		err = lo.Redirect(lo, &qdisc.Source{Addr: netip.IPv4Unspecified()})
	default:
		err = attach(lo, p)
	}
	switch {
	case errors.Is(err, unix.ENOENT): // sch_api.c: unknown kind, and no module of that name
		return ErrAbsent
	case errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("%w: %w", ErrAbsent, err)
	}
	return err
}

// tryGate attaches the programs of a Gate, and reads them back.
func tryGate(e tcnl.End) error {
	table, err := bpf.NewTable(1)
	if err != nil {
		return err
	}
	defer table.Close()
	asked := qdisc.Tree{
		Gate:   &qdisc.Gate{Limit: 1 << 16, RED: &qdisc.RED{Max: 1 << 15, Pmax: 1, ECN: true, Leaving: true}},
		Source: &qdisc.Source{Addr: netip.IPv4Unspecified()},
	}
	return applied(tcnl.Direction{Near: e, Far: e, Gate: table.Port(0)}, asked)
}

// attach adds one discipline to a device and reads it back, because a kernel may silently ignore a
// setting it does not know.
func attach(e tcnl.End, p qdisc.Part) error {
	var o qdisc.Options
	switch p {
	case qdisc.PartHTB:
		o = qdisc.HTB{Rate: 1 << 20, Bucket: time.Second / 16, Overhead: 4}
	case qdisc.PartFIFO:
		o = qdisc.FIFO{Limit: 1 << 16}
	case qdisc.PartRED:
		o = qdisc.REDStage{Min: 1 << 15, Max: 1 << 16, MaxP: 1 << 31}
	case qdisc.PartNetem:
		o = qdisc.Netem{Latency: time.Millisecond + 1, Limit: 100, Rate: 1 << 20}
	default:
		return fmt.Errorf("cannot try %q", p)
	}
	asked := qdisc.Tree{Near: []qdisc.Qdisc{{Parent: qdisc.Root, Handle: qdisc.MakeHandle(1, 0), Options: o}}}
	return applied(tcnl.Direction{Near: e, Far: e}, asked)
}

// applied applies a tree and reads it back.
func applied(dir tcnl.Direction, asked qdisc.Tree) error {
	if err := dir.Apply(asked); err != nil {
		return err
	}
	got, err := dir.Read(asked)
	if err != nil {
		return err
	}
	for _, d := range qdisc.Compare(asked, got) {
		return errors.New(d.String())
	}
	return nil
}

// tick returns the resolution of the timers that disciplines use. Without high-resolution timers,
// clock_getres returns the kernel's tick (hrtimer_get_res).
func tick() (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGetres(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0, fmt.Errorf("resolution of the kernel's timers: %w", err)
	}
	return time.Duration(t.Nano()), nil
}
