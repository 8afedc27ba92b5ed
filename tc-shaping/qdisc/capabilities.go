package qdisc

import (
	"fmt"
	"strings"
	"time"
)

// Part is something of the kernel that trees are made of.
type Part string

// The parts, by the names that tc and ip have for them.
const (
	PartTBF      Part = "tbf"
	PartFIFO     Part = "bfifo"
	PartRED      Part = "red"      // with ECN, and `nodrop` for packets that cannot be marked (Linux 5.7)
	PartNetem    Part = "netem"    // with times in nanoseconds (Linux 4.16)
	PartIFB      Part = "ifb"      // a device that arriving packets are sent through
	PartRedirect Part = "redirect" // ingress, matchall and mirred: what sends them
	PartSource   Part = "source"   // u32 and gact: what drops those of a wrong sender
)

// Parts returns all parts in the order they are tried.
func Parts() []Part {
	return []Part{PartTBF, PartFIFO, PartRED, PartNetem, PartIFB, PartRedirect, PartSource}
}

// Capabilities is what a kernel can do, as package probe found by trying.
type Capabilities struct {
	// Missing says of each part that did not work why not; parts that are not in it work.
	Missing map[Part]string
	// Tick is the resolution of the kernel's timers: 1 ns, or that of its tick where it has no high-resolution timers.
	Tick time.Duration
	// Psched is the unit of a burst in tbf: 64 ns on every kernel since 2.6.31.
	Psched time.Duration
}

// Full is a kernel that has everything, for plans that are made before there is a kernel, and for tests.
func Full() Capabilities { return Capabilities{Tick: time.Nanosecond, Psched: 64 * time.Nanosecond} }

// Lacks returns those of the parts that do not work, in the order given, with the reason of each as text.
func (c Capabilities) Lacks(parts ...Part) []string {
	var out []string
	for _, p := range parts {
		if why := c.Missing[p]; why != "" {
			out = append(out, fmt.Sprintf("%s (%s)", p, why))
		}
	}
	return out
}

// Complete returns nil when the kernel can do all that a lab may ask of links, and else an error that lists what is missing.
func (c Capabilities) Complete() error { return c.need(Parts()) }

func (c Capabilities) need(parts []Part) error {
	if lacks := c.Lacks(parts...); len(lacks) > 0 {
		return fmt.Errorf("%w: this kernel lacks %s", ErrRefused, strings.Join(lacks, ", "))
	}
	return nil
}
