package transport

import (
	"errors"

	"weft/transport/cc/ccm"
)

// Refusal is why a host rejected a packet.
type Refusal uint8

// Reasons, in the order of the checks.
const (
	Stranger   Refusal = iota // the source address is not in the lab
	Unreadable                // it is not a packet of the transport, or a field is out of range
	Foreign                   // its connection does not exist, or has another peer
	Impossible                // it contradicts the connection's state: forged, replayed or far too late
	refusals                  // number of reasons
)

// String returns the reason as in tables of results.
func (r Refusal) String() string {
	return [refusals]string{"from strangers", "unreadable", "of no connection with their sender",
		"impossible in their connection"}[min(r, refusals-1)]
}

// RefusalOf returns the reason in an error of Receive.
func RefusalOf(err error) Refusal {
	switch {
	case errors.Is(err, ErrForeign) || errors.Is(err, ErrUnknownConn):
		return Foreign
	case errors.Is(err, ErrProtocol) || errors.Is(err, ccm.ErrReplay):
		return Impossible
	}
	return Unreadable
}

// Refusals count the packets that a host rejected, by reason.
type Refusals [refusals]int64

// Total returns the sum over all reasons.
func (r Refusals) Total() (n int64) {
	for _, k := range r {
		n += k
	}
	return n
}
