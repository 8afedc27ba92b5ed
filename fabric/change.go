package fabric

import "weft/units"

// Change is a change of the network at an instant of a run. It is plain data that can be written as
// JSON and read back. What a Change leaves out stays as it is.
type Change struct {
	At     units.Time     `json:"at_ps"`            // lab time
	Ports  []int          `json:"ports,omitempty"`  // those that Up, Link and Queue change, by index in Config.Ports
	Up     *bool          `json:"up,omitempty"`     // see Links.SetUp
	Link   *Link          `json:"link,omitempty"`   // see Links.Set
	Queue  *Queue         `json:"queue,omitempty"`  // see Links.SetQueue
	Tables []SwitchConfig `json:"tables,omitempty"` // see Links.Reroute
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
	for _, p := range c.Ports {
		if c.Link != nil {
			if err := n.Links().Set(now, p, *c.Link); err != nil {
				return err
			}
		}
		if c.Queue != nil {
			n.Links().SetQueue(now, p, *c.Queue)
		}
	}
	if c.Tables != nil {
		return n.Links().Reroute(c.Tables)
	}
	return nil
}
