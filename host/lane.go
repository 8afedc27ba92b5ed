package host

import (
	"weft/collectives/schedule"
	"weft/units"
)

// The connections between two ranks are lanes: see Peer. Messages that are split are cut as NCCL cuts them over
// queue pairs (net_ib): evenly, in multiples of 128 bytes, and the last part is what is left.

// partUnit is what parts are multiples of.
const partUnit units.Bytes = 128

func (it *Item) qps() int { return max(1, it.QPs) }

// lane returns the lane of an op's message; of a split one, that of its first part.
func (it *Item) lane(op *schedule.Op) int {
	first := int(op.Flow) * it.qps()
	if it.Split {
		return first
	}
	return first + int(op.Tag)%it.qps()
}

// part returns which bytes of a message of n bytes take a lane; size is 0 when none do.
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

// parts returns into how many parts a message of n bytes is cut.
func (it *Item) parts(n units.Bytes) int {
	if !it.Split {
		return 1
	}
	_, each := it.part(0, n)
	return int((n + each - 1) / each)
}
