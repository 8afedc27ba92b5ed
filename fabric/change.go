package fabric

import "weft/units"

// Change is something that becomes of the network at an instant of a run. It is plain data that can be written as JSON and
// read back; what is not there does not change.
type Change struct {
	At     units.Time     `json:"at_ps"`
	Ports  []int          `json:"ports,omitempty"`  // what Up and Line are of, by their index in Config.Ports
	Up     *bool          `json:"up,omitempty"`     // see SetLink
	Line   *Line          `json:"line,omitempty"`   // see SetLine, SetErrors and SetDisorder
	Tables []SwitchConfig `json:"tables,omitempty"` // see Reroute
}

// Line is what a line is made of.
type Line struct {
	Rate      units.Bandwidth `json:"rate_bps"`
	Delay     units.Time      `json:"delay_ps"`
	Loss      float64         `json:"loss,omitempty"`
	BitErrors float64         `json:"bit_errors,omitempty"`

	Disorder *Disorder `json:"disorder,omitempty"` // nil: as it is; see SetDisorder
}

// Make makes the change at now.
func (c *Change) Make(now units.Time, n *Network) error {
	if c.Up != nil {
		n.SetLink(now, *c.Up, c.Ports...)
	}
	if l := c.Line; l != nil {
		for _, p := range c.Ports {
			if err := n.SetLine(now, p, l.Rate, l.Delay); err != nil {
				return err
			}
			if err := n.SetErrors(now, p, l.Loss, l.BitErrors); err != nil {
				return err
			}
			if l.Disorder != nil {
				if err := n.SetDisorder(now, p, *l.Disorder); err != nil {
					return err
				}
			}
		}
	}
	if c.Tables != nil {
		return n.Reroute(c.Tables)
	}
	return nil
}
