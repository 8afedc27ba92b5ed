package hpcc

// Utilization returns U, the estimated utilization of the busiest link.
func (s *Sender) Utilization() float64 { return s.u }
