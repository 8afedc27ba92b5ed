package clocksync

// Queue is a FIFO of messages that wait to be sent. The zero value is empty.
type Queue[T any] struct {
	items []T
	head  int // index of the first
}

// Len returns the number of items.
func (q *Queue[T]) Len() int { return len(q.items) - q.head }

// Push appends an item and returns where it is until the next call.
func (q *Queue[T]) Push(item T) *T {
	if q.head > 0 && len(q.items) == cap(q.items) {
		q.items, q.head = q.items[:copy(q.items, q.items[q.head:])], 0
	}
	q.items = append(q.items, item)
	return &q.items[len(q.items)-1]
}

// Pop removes the first item and returns where it is until the next call; nil if there is none.
func (q *Queue[T]) Pop() *T {
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
		return nil
	}
	q.head++
	return &q.items[q.head-1]
}
