// Package probe finds out what the running kernel can do for links, by trying each discipline on a device of a network namespace
// that ends with the trial. Nothing is read from configuration files or lists of modules: a kernel may have a part built in,
// load it when it is first asked for, or refuse it to whoever asks.
package probe

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/containernetworking/plugins/pkg/ns"
	"golang.org/x/sys/unix"

	"weft/tc-shaping/qdisc"
	"weft/tc-shaping/tcnl"
)

// Probe tries everything. Its error says that nothing could be tried, as without the privilege to make a network namespace.
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

var errNoNamespace = errors.New("no network namespace to try it in")

// Try returns nil when the kernel has a part, and else why not, in words.
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
	lo, err := conn.End("lo") // every namespace has it
	if err != nil {
		return err
	}
	switch p {
	case qdisc.PartIFB:
		_, err = lo.AddLine()
	case qdisc.PartRedirect:
		err = lo.Redirect(lo, nil)
	case qdisc.PartSource:
		err = lo.Redirect(lo, &qdisc.Source{Addr: netip.IPv4Unspecified()})
	default:
		err = attach(lo, p)
	}
	switch {
	case errors.Is(err, unix.ENOENT): // sch_api.c: no such kind, and no module of that name
		return errors.New("this kernel does not have it")
	case errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("this kernel was built without: %w", err)
	}
	return err
}

// attach puts one discipline on a device and reads it back: a kernel that does not know a setting may ignore it.
func attach(e tcnl.End, p qdisc.Part) error {
	var o qdisc.Options
	switch p {
	case qdisc.PartTBF:
		o = qdisc.TBF{Rate: 1 << 20, Burst: 1 << 16, Bucket: time.Second / 16, Limit: 1 << 16}
	case qdisc.PartFIFO:
		o = qdisc.FIFO{Limit: 1 << 16}
	case qdisc.PartRED:
		o = qdisc.REDStage{Min: 1 << 15, Max: 1 << 16, MaxP: 1 << 31}
	case qdisc.PartNetem:
		o = qdisc.Netem{Latency: time.Millisecond + 1, Limit: 100, Rate: 1 << 20}
	default:
		return fmt.Errorf("no way to try %q", p)
	}
	asked := qdisc.Tree{Near: []qdisc.Qdisc{{Parent: qdisc.Root, Handle: qdisc.MakeHandle(1, 0), Options: o}}}
	way := tcnl.Way{Near: e, Far: e}
	if err := way.Apply(asked); err != nil {
		return err
	}
	got, err := way.Read()
	if err != nil {
		return err
	}
	for _, d := range qdisc.Compare(asked, got) {
		return errors.New(d.String())
	}
	return nil
}

// tick returns the resolution of the timers that disciplines wait with. Without high-resolution timers the clock has that of the
// kernel's tick (hrtimer_get_res).
func tick() (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGetres(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0, fmt.Errorf("resolution of the kernel's timers: %w", err)
	}
	return time.Duration(t.Nano()), nil
}
