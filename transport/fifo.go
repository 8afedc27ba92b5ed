package transport

// fifo is a queue that keeps its storage: it allocates only to grow.
type fifo[T any] struct {
	buf  []T // length 0 or a power of two
	head int
	n    int
}

func (f *fifo[T]) len() int { return f.n }

// at returns the i-th element from the front.
func (f *fifo[T]) at(i int) *T { return &f.buf[(f.head+i)&(len(f.buf)-1)] }

func (f *fifo[T]) push(v T) { *f.add() = v }

// add appends an element and returns it. The caller must set every field: it holds an old element.
func (f *fifo[T]) add() *T {
	if f.n == len(f.buf) {
		f.grow()
	}
	f.n++
	return f.at(f.n - 1)
}

// pop removes and returns the front element. The queue must not be empty.
func (f *fifo[T]) pop() T {
	v := f.buf[f.head]
	f.head = (f.head + 1) & (len(f.buf) - 1)
	if f.n--; f.n == 0 {
		f.head = 0 // the start of the storage is in the cache
	}
	return v
}

func (f *fifo[T]) grow() {
	buf := make([]T, max(4, 2*len(f.buf)))
	for i := range f.n {
		buf[i] = *f.at(i)
	}
	f.buf, f.head = buf, 0
}

// drop empties the queue and frees its storage.
func (f *fifo[T]) drop() { *f = fifo[T]{} }
