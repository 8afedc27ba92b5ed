package run

import (
	"weft/orchestrator/lab"
	"weft/transport"
	"weft/units"
)

// setTransport hands the lab's parameters to a connection whose sender has a line of the given rate.
func setTransport(s *transport.Spec, t *lab.Transport, line units.Bandwidth) {
	c := t.Section.Connection(line)
	s.Kind, s.CC, s.Recovery, s.Selective = t.Kind, c.Params, c.Recovery, transport.Selective(c.Selective)
	s.RTOMin, s.Tries = c.RTOMin, c.Tries
}
