package host

// flowLog keeps the records of messages in parts that are full, but for the last: a slice that grows has room for half as
// many again as there are, and is copied each time.
type flowLog [][]Flow

// Sizes of parts, in records. The last part of each of thousands of hosts is half empty. Ours.
const (
	firstPart = 16
	mostPart  = 256
)

func (l *flowLog) add(f Flow) {
	last := len(*l) - 1
	if last < 0 || len((*l)[last]) == cap((*l)[last]) {
		size := firstPart
		if last >= 0 {
			size = min(2*cap((*l)[last]), mostPart)
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
