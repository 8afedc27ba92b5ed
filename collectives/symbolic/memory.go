package symbolic

import (
	"fmt"
	"sync"

	"weft/collectives/schedule"
	"weft/internal/splitmix"
	"weft/units"
)

// Exchange holds what the hosts of a simulation share: the content of the messages in flight.
type Exchange struct {
	seed    uint64
	shelves [shelves]shelf // shards of the messages, by a hash of their key

	summing sync.Mutex
	sums    map[sumKey]linear
}

// shelves is the number of shards of the messages, so that hosts that are simulated concurrently
// rarely wait for each other.
const shelves = 64

// shelf is a shard of the messages.
type shelf struct {
	mutex    sync.Mutex
	messages map[uint64]message // by key
	_        [48]byte           // pads it to a cache line
}

// shelf returns the shard of a message.
func (x *Exchange) shelf(key uint64) *shelf { return &x.shelves[splitmix.Mix(key)%shelves] }

// put keeps a message until it is taken.
func (x *Exchange) put(key uint64, m message) {
	s := x.shelf(key)
	s.mutex.Lock()
	s.messages[key] = m
	s.mutex.Unlock()
}

// take removes and returns a message.
func (x *Exchange) take(key uint64) (m message, ok bool) {
	s := x.shelf(key)
	s.mutex.Lock()
	if m, ok = s.messages[key]; ok {
		delete(s.messages, key)
	}
	s.mutex.Unlock()
	return m, ok
}

// message is the content of a message, nearly always a single extent.
type message struct {
	first extent
	rest  content // the extents after it
}

// sumKey identifies the reduction of one repetition of an item.
type sumKey struct{ item, repeat, ranks int }

// New returns an exchange for the hosts of one simulation.
func New(seed uint64) *Exchange {
	x := &Exchange{seed: seed, sums: map[sumKey]linear{}}
	for i := range x.shelves {
		x.shelves[i].messages = map[uint64]message{}
	}
	return x
}

// Memory returns the memory of a host.
func (x *Exchange) Memory() *Memory { return &Memory{exchange: x} }

// Memory holds the buffers of one host, for each running item. It implements host.Memory.
type Memory struct {
	exchange *Exchange
	items    []*item // few at a time
	scratch  content
}

// item holds the buffers of one repetition of an item.
type item struct {
	index, repeat, rank int
	spec                schedule.Spec
	buffers             [2]content
}

// item returns a running item, or nil.
func (m *Memory) item(index int) *item {
	for _, it := range m.items {
		if it.index == index {
			return it
		}
	}
	return nil
}

// Begin initializes the buffers of an item for a repetition: the rank's input, and an output with
// the local copies of the layout.
func (m *Memory) Begin(index, repeat, rank int, s schedule.Spec) error {
	l, err := schedule.Shape(s, rank)
	if err != nil {
		return err
	}
	it := m.item(index)
	if it == nil {
		it = &item{index: index}
		m.items = append(m.items, it)
	}
	it.repeat, it.rank, it.spec = repeat, rank, s
	own := m.exchange.input(index, repeat, rank)
	in, out := blank(it.buffers[schedule.In], l.In), blank(it.buffers[schedule.Out], l.Out)
	if l.In > 0 {
		in[0].linear = own
	}
	for _, c := range l.Local {
		out = out.put(c.Off, content{{c.Len, own.shift(-c.From)}}, false)
	}
	it.buffers = [2]content{schedule.In: in, schedule.Out: out}
	return nil
}

// Send records the content of the region of op when it is handed to the transport as message key.
// The bytes of a credit mean nothing and are not recorded.
func (m *Memory) Send(index int, op *schedule.Op, key uint64) {
	if op.Credit {
		return
	}
	m.scratch = m.item(index).buffers[op.Buf].region(m.scratch[:0], op.Off, op.Len)
	msg := message{first: m.scratch[0]}
	if len(m.scratch) > 1 {
		msg.rest = append(content(nil), m.scratch[1:]...)
	}
	m.exchange.put(key, msg)
}

// Apply writes the content of a message that has arrived completely to the region of op, or adds
// it.
func (m *Memory) Apply(index int, op *schedule.Op, key uint64, from, to units.Bytes, _ []byte) error {
	if op.Credit {
		return nil
	}
	msg, ok := m.exchange.take(key)
	if !ok {
		return fmt.Errorf("message %#x was received, but not sent or received before", key)
	}
	m.scratch = append(append(m.scratch[:0], msg.first), msg.rest...)
	if size := m.scratch[len(m.scratch)-1].end; from != 0 || to != op.Len || size != op.Len {
		return fmt.Errorf("message %#x of %d bytes is applied as [%d,%d) of %d", key, size, from, to, op.Len)
	}
	b := &m.item(index).buffers[op.Buf]
	*b = b.put(op.Off, m.scratch, op.Reduce)
	return nil
}

// End returns the number of elements of the result, and the number of those that are not the sum of
// exactly the expected contributions.
func (m *Memory) End(index int) (wrong, checked int64) {
	it := m.item(index)
	l, err := schedule.Shape(it.spec, it.rank)
	if err != nil {
		panic("symbolic: a spec that was good at Begin: " + err.Error())
	}
	var bad, all units.Bytes
	for _, w := range l.Result {
		want := m.exchange.want(it, w.Rank).shift(w.Off - w.From)
		bad += it.buffers[schedule.Out].differ(w.Off, w.Len, want)
		all += w.Len
	}
	element := it.spec.Type.Size()
	return int64((bad + element - 1) / element), int64(all / element)
}

// Wrong returns the first byte of the output that is not as expected. It returns false if there is
// none.
func (m *Memory) Wrong(index int) (off units.Bytes, ok bool) {
	it := m.item(index)
	l, err := schedule.Shape(it.spec, it.rank)
	if err != nil {
		panic("symbolic: a spec that was good at Begin: " + err.Error())
	}
	for _, w := range l.Result {
		want := m.exchange.want(it, w.Rank).shift(w.Off - w.From)
		if off, ok := it.buffers[schedule.Out].first(w.Off, w.Len, want); ok {
			return off, true
		}
	}
	return 0, false
}

// Spoil corrupts a byte that op has received.
func (m *Memory) Spoil(index int, op *schedule.Op, off units.Bytes) {
	b := &m.item(index).buffers[op.Buf]
	*b = b.put(op.Off+off, content{{1, linear{splitmix.Mix(uint64(off)), 0}}}, true)
}

// Close frees the buffers of an item whose last repetition has ended.
func (m *Memory) Close(index int) {
	for i, it := range m.items {
		if it.index == index {
			m.items = append(m.items[:i], m.items[i+1:]...)
			return
		}
	}
}

// input returns the function of a rank's input.
func (x *Exchange) input(item, repeat, rank int) linear {
	k := splitmix.Mix(splitmix.Mix(splitmix.Mix(splitmix.Mix(x.seed)+uint64(item))+uint64(repeat)) + uint64(rank))
	return linear{splitmix.Mix(k + 1), splitmix.Mix(k+2) | 1} // an odd slope distinguishes all offsets
}

// want returns the function of the input of a rank, or of the reduction of all.
func (x *Exchange) want(it *item, rank int) linear {
	if rank != schedule.All {
		return x.input(it.index, it.repeat, rank)
	}
	k := sumKey{it.index, it.repeat, it.spec.Ranks}
	x.summing.Lock()
	defer x.summing.Unlock()
	sum, ok := x.sums[k]
	if !ok {
		for r := range k.ranks {
			sum = sum.plus(x.input(it.index, it.repeat, r))
		}
		x.sums[k] = sum
	}
	return sum
}
