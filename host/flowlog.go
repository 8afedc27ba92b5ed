package host

// flowLog stores the records of messages in parts; all but the last are full. A growing
// slice would have room for half as many records again, and would be copied each time.
type flowLog [][]Flow

// Sizes of parts, in records. The last part of each of thousands of hosts is half empty on average.
// Our own choice.
const (
	minPart = 16
	maxPart = 256
)

func (l *flowLog) add(f Flow) {
	last := len(*l) - 1
	if last < 0 || len((*l)[last]) == cap((*l)[last]) {
		size := minPart
		if last >= 0 {
			size = min(2*cap((*l)[last]), maxPart)
		}
		*l = append(*l, make([]Flow, 0, size))
		last++
	}
	(*l)[last] = append((*l)[last], f)
}

func (l flowLog) count() (n int) {
	for _, part := range l {
		n += len(part)
	}
	return n
}

// from returns a copy of the records from the n-th on.
func (l flowLog) from(n int) (rest []Flow) {
	for _, part := range l {
		if n < len(part) {
			rest = append(rest, part[max(n, 0):]...)
		}
		n -= len(part)
	}
	return rest
}
