package transport

// round is the queue of senders that may send, linked through sender.next. Each sends one packet
// per turn.
type round struct {
	head, tail int32 // indices of senders; -1: empty
	n          int   // number of senders
}

func newRound() round { return round{head: -1, tail: -1} }

// push appends sender i, which must not be in the round.
func (r *round) push(all []sender, i int32) {
	all[i].ready, all[i].next = true, -1
	r.n++
	if r.tail < 0 {
		r.head = i
	} else {
		all[r.tail].next = i
	}
	r.tail = i
}

// pop removes and returns the first sender; ok is false if there is none.
func (r *round) pop(all []sender) (i int32, ok bool) {
	i = r.head
	if i < 0 {
		return 0, false
	}
	r.head = all[i].next
	if r.head < 0 {
		r.tail = -1
	}
	all[i].ready = false
	r.n--
	return i, true
}
