package host

import (
	"weft/collectives/schedule"
	"weft/units"
)

// The connections between two ranks are lanes: see Peer. Messages in parts are cut as NCCL cuts
// them over queue pairs (net_ib): evenly, in multiples of 128 bytes, and the last part is the rest.

// partUnit is the unit of the size of parts, in bytes.
const partUnit units.Bytes = 128

func (it *Item) qps() int { return max(1, it.QPs) }

// lane returns the lane of an op's message, or of its first part if messages are cut.
func (it *Item) lane(op *schedule.Op) int {
	first := int(op.Flow) * it.qps()
	if it.Split {
		return first
	}
	return first + int(op.Tag)%it.qps()
}

// part returns the bytes of a message of n bytes that take a lane. size is 0 if none do.
func (it *Item) part(lane int, n units.Bytes) (off, size units.Bytes) {
	if !it.Split {
		return 0, n
	}
	q := units.Bytes(it.qps())
	each := (n + q - 1) / q
	each = (each + partUnit - 1) / partUnit * partUnit
	off = min(units.Bytes(lane)%q*each, n)
	return off, min(each, n-off)
}

// parts returns the number of parts of a message of n bytes.
func (it *Item) parts(n units.Bytes) int {
	if !it.Split {
		return 1
	}
	_, each := it.part(0, n)
	return int((n + each - 1) / each)
}
