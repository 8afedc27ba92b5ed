package qdisc

import (
	"fmt"
	"strings"
	"time"
)

// Part is a kernel feature that trees use.
type Part string

// The parts, by the names that tc and ip use.
const (
	PartHTB      Part = "htb"
	PartFIFO     Part = "bfifo"
	PartRED      Part = "red"      // with ECN, and `nodrop` for packets that are not ECN-capable (Linux 5.7)
	PartNetem    Part = "netem"    // with times in nanoseconds (Linux 4.16)
	PartIFB      Part = "ifb"      // the device that received packets are redirected through
	PartRedirect Part = "redirect" // clsact, matchall and mirred, which redirect to the ifb
	PartSource   Part = "source"   // u32 and gact, which drop frames of other senders; u32 also classifies packets
	PartBPF      Part = "bpf"      // programs on clsact, and the right to load them
)

// Parts returns all parts in the order in which they are tried.
func Parts() []Part {
	return []Part{PartHTB, PartFIFO, PartRED, PartNetem, PartIFB, PartRedirect, PartSource, PartBPF}
}

// Capabilities describes a kernel, as found by package probe.
type Capabilities struct {
	// Missing has the reason for each part that does not work. Parts that are not in it work.
	Missing map[Part]string
	// Tick is the resolution of the kernel's timers: 1 ns with high-resolution timers, otherwise
	// the period of its tick.
	Tick time.Duration
	// Psched is the unit of a bucket in htb: 64 ns on every kernel since 2.6.31.
	Psched time.Duration
}

// Full returns the capabilities of a kernel that has every part. It serves tests, and plans made
// before the kernel is known.
func Full() Capabilities { return Capabilities{Tick: time.Nanosecond, Psched: 64 * time.Nanosecond} }

// Lacks returns those of the given parts that do not work, in order, each with its reason.
func (c Capabilities) Lacks(parts ...Part) []string {
	var out []string
	for _, p := range parts {
		if why := c.Missing[p]; why != "" {
			out = append(out, fmt.Sprintf("%s (%s)", p, why))
		}
	}
	return out
}

// Complete returns nil if the kernel has what every lab needs, and otherwise an error that lists
// what is missing. A part that another one can replace is missing only if both are.
func (c Capabilities) Complete() error {
	parts := []Part{PartHTB, PartFIFO}
	others := []Part{PartRED, PartNetem, PartIFB, PartRedirect, PartSource}
	if c.Lacks(others...) != nil && c.Lacks(PartBPF) != nil {
		parts = append(append(parts, others...), PartBPF)
	}
	return c.need(parts)
}

// delaying are the parts that delay packets together.
var delaying = []Part{PartNetem, PartIFB, PartRedirect}

// Delays reports whether links of this kernel can delay packets. Otherwise their receivers must:
// see Direction.AtEnds.
func (c Capabilities) Delays() bool { return c.LacksDelays() == nil }

// LacksDelays returns what is missing for delays, like Lacks.
func (c Capabilities) LacksDelays() []string { return c.Lacks(delaying...) }

func (c Capabilities) need(parts []Part) error {
	if lacks := c.Lacks(parts...); len(lacks) > 0 {
		return fmt.Errorf("%w: this kernel lacks %s", ErrRefused, strings.Join(lacks, ", "))
	}
	return nil
}
