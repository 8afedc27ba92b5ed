package fabric

import "weft/units"

// Packet trimming (Ultra Ethernet Specification 1.0, section 4.1, "packet trimming"; NDP, SIGCOMM
// 2017, section 3.1). A data packet that does not fit into the queue of a port is cut to its
// headers and joins the control class, which is served first. So its receiver soon knows which
// packet is missing, and that it was congestion.
//
// The sender says which packets may be trimmed (Packet.Keep); the others are dropped. Data and
// control packets have room of their own. What the driver has to do with the header of a trimmed
// packet it does when the packet arrives: see Packet.Trimmed.

// controlRoom returns the bytes of control packets that may wait where data has a buffer of the
// given size: twice as many, as in htsim (compositequeue.cpp, receivePacket).
func controlRoom(buffer units.Bytes) units.Bytes { return 2 * buffer }

// fit makes room for e in the queue of o, which trims, or trims e. It returns the packet to put
// into the queue, or nil if e was dropped.
func (n *Network) fit(now units.Time, o *port, e *Packet) *Packet {
	if e.Class != 0 {
		if o.classes[e.Class].bytes+e.Size <= o.buffer {
			return e
		}
		// The last one that waits is trimmed as often as the new one: otherwise senders in step
		// with the port would always lose, or never (NDP, section 3.1, "phase effects").
		if o.is(trimsFair) && draw(&o.random) < 0.5 {
			if last := o.removeLast(now, e); last != nil {
				if o.is(marksSoon) {
					o.mark(n, e)
				}
				o.wait(now, e)
				e = last
			}
		}
		if e.Keep == 0 {
			n.refuse(o, e)
			return nil
		}
		n.cutPayload(o, e)
	}
	if o.classes[0].bytes+e.Size > controlRoom(o.buffer) {
		n.refuse(o, e)
		return nil
	}
	return e
}

// cutPayload cuts e to its headers.
func (n *Network) cutPayload(o *port, e *Packet) {
	t := &n.cold[o.index]
	keep := units.Bytes(e.Keep)
	if t.trimSize > 0 {
		keep = t.trimSize
	}
	keep = min(keep, e.Size)
	t.trims++
	n.total.Trimmed++
	n.total.TrimmedBytes += e.Size - keep
	e.Size, e.Class = keep, 0
	e.flags |= trimmed
	if int(o.to) < n.hosts() {
		e.flags |= trimmedLast
	}
}

// removeLast takes the packet that joined the class of e last out of the queue, if it may be
// trimmed and e fits in its place. Otherwise it returns nil.
func (o *port) removeLast(now units.Time, e *Packet) *Packet {
	c := &o.classes[e.Class]
	if c.empty() || c.last.Keep == 0 || c.last.Size < e.Size {
		return nil
	}
	last := c.popLast()
	c.bytes -= last.Size
	o.waiting--
	last.Queued += now - last.at
	return last
}
