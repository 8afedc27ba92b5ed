package fabric

import "weft/units"

// Change is something that becomes of the network at an instant of a run. It is plain data that can be written as JSON and
// read back; what is not there does not change.
type Change struct {
	At     units.Time     `json:"at_ps"`
	Ports  []int          `json:"ports,omitempty"`  // what Up and Line are of, by their index in Config.Ports
	Up     *bool          `json:"up,omitempty"`     // see SetLink
	Line   *Link          `json:"line,omitempty"`   // see Links.SetRate, SetErrors and SetDisorder
	Tables []SwitchConfig `json:"tables,omitempty"` // see Reroute
}

// Link is what a direction of a link is like.
type Link struct {
	Rate      units.Bandwidth `json:"rate_bps"`
	Delay     units.Time      `json:"delay_ps"`
	Loss      float64         `json:"loss,omitempty"`
	BitErrors float64         `json:"bit_errors,omitempty"`

	Disorder *Disorder `json:"disorder,omitempty"` // nil: as it is; see SetDisorder
}

// Make makes the change at now.
func (c *Change) Make(now units.Time, n *Network) error {
	if c.Up != nil {
		n.Links().SetUp(now, *c.Up, c.Ports...)
	}
	if l := c.Line; l != nil {
		for _, p := range c.Ports {
			if err := n.Links().SetRate(now, p, l.Rate, l.Delay); err != nil {
				return err
			}
			if err := n.Links().SetErrors(now, p, l.Loss, l.BitErrors); err != nil {
				return err
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
