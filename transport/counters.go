package transport

// Add adds the counts of another endpoint.
func (c *Counters) Add(o Counters) {
	c.DataPackets += o.DataPackets
	c.DataBytes += o.DataBytes
	c.Retransmits += o.Retransmits
	c.Timeouts += o.Timeouts
	c.Recoveries += o.Recoveries
	c.Probes += o.Probes
	c.Acks += o.Acks
	c.Naks += o.Naks
	c.Notices += o.Notices
	c.Refused += o.Refused
	c.Repaths += o.Repaths
	c.CNPs += o.CNPs
	c.Received += o.Received
	c.Delivered += o.Delivered
	c.OutOfOrder += o.OutOfOrder
	c.Reordered += o.Reordered
	c.Duplicates += o.Duplicates
	c.AcksIn += o.AcksIn
	c.CNPsIn += o.CNPsIn
	c.ProbesIn += o.ProbesIn
	c.BadPackets += o.BadPackets
	c.AckDrops += o.AckDrops
	c.Failed += o.Failed
}
