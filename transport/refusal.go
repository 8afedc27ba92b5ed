package transport

import (
	"errors"

	"weft/transport/cc/ccm"
)

// Refusal is why a packet that reached a host was refused.
type Refusal uint8

// Refusals, from what is known least of the packet to most.
const (
	Stranger   Refusal = iota // from an address that nobody of the lab has
	Unreadable                // no packet of the transport, or one that says what none can say
	Foreign                   // of a connection that does not exist, or is not with its sender
	Impossible                // it contradicts what has been sent and received: made up, or far too late
	refusals
)

func (r Refusal) String() string {
	return [refusals]string{"from strangers", "unreadable", "of no connection with their sender", "impossible in their connection"}[min(r, refusals-1)]
}

// RefusalOf returns what an error of Receive means.
func RefusalOf(err error) Refusal {
	switch {
	case errors.Is(err, ErrForeign) || errors.Is(err, ErrUnknownConn):
		return Foreign
	case errors.Is(err, ErrProtocol) || errors.Is(err, ccm.ErrReplay):
		return Impossible
	}
	return Unreadable
}

// Refusals count the packets that one host refused, by why.
type Refusals [refusals]int64

// Total returns all of them.
func (r Refusals) Total() (n int64) {
	for _, k := range r {
		n += k
	}
	return n
}
