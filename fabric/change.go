package fabric

import "weft/units"

// Change is a change of the network at an instant of a run. It is plain data that can be written as
// JSON and read back. What a Change leaves out stays as it is.
type Change struct {
	At     units.Time     `json:"at_ps"`            // lab time
	Ports  []int          `json:"ports,omitempty"`  // the ports that Up and Link change, by index in Config.Ports
	Up     *bool          `json:"up,omitempty"`     // see Links.SetUp
	Link   *Link          `json:"link,omitempty"`   // see Links.SetRate, SetErrors and SetDisorder
	Tables []SwitchConfig `json:"tables,omitempty"` // see Links.Reroute
}

// Link is the properties of one direction of a link.
type Link struct {
	Rate      units.Bandwidth `json:"rate_bps"`
	Delay     units.Time      `json:"delay_ps"`
	Loss      float64         `json:"loss,omitempty"`       // probability that a packet is lost, in [0, 1]
	BitErrors float64         `json:"bit_errors,omitempty"` // probability that a bit is corrupted, in [0, 1]

	Disorder *Disorder `json:"disorder,omitempty"` // nil: unchanged; see Links.SetDisorder
	Queue    *Queue    `json:"queue,omitempty"`    // nil: unchanged; see Links.SetQueue
}

// Queue is the room and the marking thresholds of a switch's port.
type Queue struct {
	Buffer units.Bytes `json:"buffer"`
	Kmin   units.Bytes `json:"kmin"`
	Kmax   units.Bytes `json:"kmax"`
}

// Make applies the change at now. It returns the first error of a link or of the tables; the ports
// before it have changed.
func (c *Change) Make(now units.Time, n *Network) error {
	if c.Up != nil {
		n.Links().SetUp(now, *c.Up, c.Ports...)
	}
	if l := c.Link; l != nil {
		for _, p := range c.Ports {
			if err := n.Links().SetRate(now, p, l.Rate, l.Delay); err != nil {
				return err
			}
			if err := n.Links().SetErrors(now, p, l.Loss, l.BitErrors); err != nil {
				return err
			}
			if l.Queue != nil {
				n.Links().SetQueue(now, p, *l.Queue)
			}
			if l.Disorder != nil {
				if err := n.Links().SetDisorder(now, p, *l.Disorder); err != nil {
					return err
				}
			}
		}
	}
	if c.Tables != nil {
		return n.Links().Reroute(c.Tables)
	}
	return nil
}
