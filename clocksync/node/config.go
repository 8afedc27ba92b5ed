package node

import (
	"fmt"

	"weft/clocksync"
	"weft/clocksync/clock"
	"weft/clocksync/huygens"
	"weft/clocksync/noise"
	"weft/clocksync/ptp"
	"weft/params"
	"weft/units"
)

// Config is the clocks of a host as plain data.
type Config struct {
	Clock clock.Config
	Stamp noise.Stamp // of every packet that is sent or received
	Delay noise.Delay // added to every one-way delay that is measured here (PC4, Fig. 9)

	Sync  Sync
	Setup clocksync.Setup
	Protocols
	Control bool       // messages are served before data, as acknowledgements are
	Outages []Outage   // of the protocol's process, in order
	Lies    []Lie      `json:",omitempty"` // in order: what the node tells others is wrong
	Sample  units.Time // distance of two samples of the error, the first at 0; 0: none are taken
}

// Sync is what keeps clocks together.
type Sync string

// Kinds of Sync.
const (
	Perfect Sync = "perfect" // clocks show lab time
	None    Sync = "none"    // nothing does
	PTP     Sync = "ptp"
	Huygens Sync = "huygens"
)

// Protocols are the parameters of protocols; those of Sync count.
type Protocols struct {
	PTP     ptp.Params     `json:",omitzero"`
	Huygens huygens.Params `json:",omitzero"`
}

// Keys are the sections of a lab that have them, by the names of the protocols. peer says whether switches are peer-to-peer
// transparent clocks.
func (p *Protocols) Keys(sync func() Sync, peer func() bool) (all []params.Key) {
	for _, k := range kinds {
		if k.section == nil {
			continue
		}
		all = append(all, params.Sub(string(k.name), func() params.Section { return k.section(p, peer()) }, k.facts.Title+".").
			Only(func() (bool, string) { return sync() == k.name, "" }))
	}
	return all
}

// Outage is a time in which a node's protocol does not run: its process has crashed, or was never started. It comes
// back knowing nothing.
type Outage struct{ At, For units.Time } // For 0: for ever

// Lie is what a falseticker adds to the time that it tells others, from At until the next one. Its own clock is as good as ever.
type Lie struct{ At, By units.Time }

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
	for i, l := range c.Lies {
		if i > 0 && l.At < c.Lies[i-1].At {
			return fmt.Errorf("node: lie %d at %d ps comes before the last one", i, l.At)
		}
	}
	end := units.Time(-1)
	for i, o := range c.Outages {
		if o.At <= end || o.For < 0 {
			return fmt.Errorf("node: outage %d at %d for %d ps begins before the last one is over", i, o.At, o.For)
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
	Bound units.Time // what the node says that it is within, of the cluster's time
	State clocksync.State
	Down  bool // the protocol's process does not run
}

// Report is what a node knows at the end.
type Report struct {
	Samples  []Sample
	Counters clocksync.Counters
	Packets  int64       // messages sent
	Wire     units.Bytes // that they took on the wire
	Rejected int64       // messages that were refused, or came while the process did not run
}
