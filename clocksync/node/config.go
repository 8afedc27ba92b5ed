package node

import (
	"errors"
	"fmt"
	"slices"

	"weft/clocksync"
	"weft/clocksync/clock"
	"weft/clocksync/huygens"
	"weft/clocksync/noise"
	"weft/clocksync/ptp"
	"weft/params"
	"weft/units"
)

// Config configures the clocks of a host.
type Config struct {
	Clock clock.Config
	Stamp noise.Stamp // errors of the stamps of packets sent and received
	Delay noise.Delay // added to one-way delays measured here (PC4, Fig. 9)

	Sync      Sync            // which protocol, if any
	Setup     clocksync.Setup // the node's place among the others
	Protocols                 // parameters of Sync
	Control   bool            // messages are served before data, like acknowledgements
	Outages   []Outage        // of the protocol's process, in order
	Lies      []Lie           `json:",omitempty"` // falsified time in the node's messages, in order
	Sample    units.Time      // interval of the samples of the error, the first at 0; 0: none
	Also      []units.Time    `json:",omitempty"` // instants of further samples, in order; none without Sample
}

// Sync is a kind of synchronization.
type Sync string

// Kinds of Sync.
const (
	Perfect Sync = "perfect" // clocks show lab time
	None    Sync = "none"    // clocks are imperfect and not synchronized
	PTP     Sync = "ptp"
	Huygens Sync = "huygens"
)

// Protocols are the parameters of protocols. Only those of the chosen Sync apply.
type Protocols struct {
	PTP     ptp.Params     `json:",omitzero"`
	Huygens huygens.Params `json:",omitzero"`
}

// Keys returns a subsection per protocol. sync returns the chosen one; peer reports whether
// switches are peer-to-peer transparent clocks.
func (p *Protocols) Keys(sync func() Sync, peer func() bool) (all []params.Key) {
	for _, k := range kinds {
		if k.section == nil {
			continue
		}
		all = append(all, params.Sub(string(k.name), func() params.Section { return k.section(p, peer()) },
			k.facts.Title+".").
			Only(func() (bool, string) { return sync() == k.name, "" }))
	}
	return all
}

// Outage is a period without a node's protocol: its process has crashed, or was never started. It
// comes back without any state. For is its length; 0 means for ever.
type Outage struct{ At, For units.Time }

// Lie is the amount that a falseticker adds to the time in its messages, from At until the next
// Lie. Its own clock is not affected.
type Lie struct{ At, By units.Time }

// check returns the first thing wrong with c, except for the parameters of the protocol.
func (c *Config) check() error {
	if err := c.Stamp.Check(); err != nil {
		return err
	}
	if err := c.Delay.Check(); err != nil {
		return err
	}
	if c.Sample < 0 {
		return fmt.Errorf("node: a sample every %d ps", c.Sample)
	}
	if !slices.IsSorted(c.Also) {
		return errors.New("node: the instants of samples are not in order")
	}
	for i, l := range c.Lies {
		if i > 0 && l.At < c.Lies[i-1].At {
			return fmt.Errorf("node: lie %d at %d ps comes before the last one", i, l.At)
		}
	}
	end := units.Time(-1)
	for i, o := range c.Outages {
		if o.At <= end || o.For < 0 {
			return fmt.Errorf("node: outage %d at %d for %d ps begins before the last one ends", i, o.At, o.For)
		}
		end = o.At + o.For
		if o.For == 0 {
			end = units.Never
		}
	}
	return nil
}

// Sample is the truth about a node's synchronized clock at an instant of true time.
type Sample struct {
	At    units.Time
	Error units.Time // synchronized time less true time
	Bound units.Time // published bound of the difference from the cluster's time
	State clocksync.State
	Down  bool // the protocol's process does not run
}

// Report is the result of a node.
type Report struct {
	Samples  []Sample
	Counters clocksync.Counters
	Packets  int64       // messages sent
	Wire     units.Bytes // size of Packets on the wire
	Rejected int64       // messages that the protocol rejected, or that came while it did not run
}
