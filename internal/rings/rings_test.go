package rings

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"unsafe"

	"weft/internal/fuzztest"
)

// small is a layout for tests, smaller than For returns.
var small = Layout{Slots: 4, Size: MinFrame}

// memory returns n bytes that are aligned as mapped memory is.
func memory(n int) []byte {
	words := make([]uint64, (n+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), n)
}

// ends returns both ends of a direction of a new region.
func ends(t testing.TB, l Layout, direction int) (*Producer, *Consumer, []byte) {
	t.Helper()
	region := memory(l.Bytes())
	p, err := NewProducer(l, region, direction)
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewConsumer(l, region, direction)
	if err != nil {
		t.Fatal(err)
	}
	return p, c, region
}

// A ring behaves as a queue of bounded length, whatever the order of operations.
func TestRingIsAQueue(t *testing.T) {
	type sent struct {
		body        []byte
		at, written int64
	}
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		l := Layout{Slots: 1 << rng.IntN(5), Size: MinFrame + 64*rng.IntN(3)}
		p, c, _ := ends(t, l, int(seed%2))
		var model []sent
		for range 2000 {
			if rng.IntN(2) == 0 {
				memory, err := p.Slot()
				if err != nil || (memory == nil) != (len(model) == l.Slots) {
					t.Fatalf("seed %d: with %d frames of %d: %d bytes, %v", seed, len(model), l.Slots, len(memory), err)
				}
				if memory == nil {
					continue
				}
				s := sent{make([]byte, rng.IntN(l.Size+1)), rng.Int64(), rng.Int64()}
				for i := range s.body {
					s.body[i] = byte(rng.Uint32())
				}
				p.Push(copy(memory, s.body), s.at, s.written)
				model = append(model, s)
				continue
			}
			if c.Ready() != (len(model) > 0) {
				t.Fatalf("seed %d: ready %t with %d frames", seed, c.Ready(), len(model))
			}
			f, ok, err := c.Next()
			if err != nil || ok != (len(model) > 0) {
				t.Fatalf("seed %d: %t, %v with %d frames", seed, ok, err, len(model))
			}
			if !ok {
				continue
			}
			if want := model[0]; !bytes.Equal(f.Bytes, want.body) || f.At != want.at || f.Written != want.written {
				t.Fatalf("seed %d: another frame came", seed)
			}
			c.Release()
			model = model[1:]
		}
	}
}

// The directions of a region do not touch each other.
func TestDirectionsAreApart(t *testing.T) {
	region := memory(small.Bytes())
	var p [2]*Producer
	var c [2]*Consumer
	for d := range p {
		p[d], _ = NewProducer(small, region, d)
		c[d], _ = NewConsumer(small, region, d)
		for i := range small.Slots {
			memory, err := p[d].Slot()
			if err != nil {
				t.Fatal(err)
			}
			memory[0] = byte(10*d + i)
			p[d].Push(1, 0, 0)
		}
	}
	for d := range c {
		for i := range small.Slots {
			if f, ok, err := c[d].Next(); !ok || err != nil || f.Bytes[0] != byte(10*d+i) {
				t.Fatalf("direction %d, frame %d: %v, %t, %v", d, i, f, ok, err)
			}
			c[d].Release()
		}
	}
}

// The slot that was released last is used first.
func TestWarmSlotsFirst(t *testing.T) {
	p, c, _ := ends(t, small, 0)
	for range 10 * small.Slots {
		memory, err := p.Slot()
		if err != nil || &memory[0] != &p.slots[0] {
			t.Fatalf("another slot, %v", err)
		}
		p.Push(1, 0, 0)
		if _, ok, err := c.Next(); !ok || err != nil {
			t.Fatal(ok, err)
		}
		c.Release()
	}
}

// However few frames come at once, the producer gets back every slot, and most of them at once.
func TestSlotsComeBack(t *testing.T) {
	l, err := For(MaxFrame)
	if err != nil {
		t.Fatal(err)
	}
	p, c, _ := ends(t, l, 0)
	for burst := 1; burst <= l.Slots; burst++ {
		for range burst {
			if memory, err := p.Slot(); memory == nil || err != nil {
				t.Fatalf("no room for %d frames: %v", burst, err)
			}
			p.Push(1, 0, 0)
		}
		for left := burst - 1; left >= 0; left-- {
			if _, ok, err := c.Next(); !ok || err != nil {
				t.Fatal(ok, err)
			}
			c.Release()
			if held := int(p.pushed-atomic.LoadUint64(p.tail)) - left; held < 0 || held >= int(c.batch) {
				t.Fatalf("%d released slots of %d are held back", held, burst)
			}
		}
		if c.Ready() {
			t.Error("more frames than were pushed")
		}
	}
}

// A producer and a consumer on different threads pass every frame whole and in order.
func TestConcurrentEnds(t *testing.T) {
	const frames = 20_000
	p, c, _ := ends(t, small, 1)
	failed := make(chan error, 1)
	go func() {
		for n := uint64(0); n < frames; {
			memory, err := p.Slot()
			if err != nil {
				failed <- err
				return
			}
			if memory == nil {
				runtime.Gosched()
				continue
			}
			for i := 0; i < small.Size; i += 8 {
				binary.LittleEndian.PutUint64(memory[i:], n)
			}
			p.Push(small.Size, int64(n), 0)
			n++
		}
		failed <- nil
	}()
	for n := uint64(0); n < frames; {
		f, ok, err := c.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			runtime.Gosched()
			continue
		}
		for i := 0; i < small.Size; i += 8 {
			if got := binary.LittleEndian.Uint64(f.Bytes[i:]); got != n {
				t.Fatalf("frame %d has %d at %d", n, got, i)
			}
		}
		c.Release()
		n++
	}
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
}

// Each lie is noticed.
func TestLies(t *testing.T) {
	for name, lie := range map[string]func(p *Producer, c *Consumer){
		"too many frames":   func(p *Producer, _ *Consumer) { atomic.StoreUint64(p.head, uint64(small.Slots)+1) },
		"frames taken back": func(p *Producer, _ *Consumer) { atomic.StoreUint64(p.head, ^uint64(0)) },
		"a slot beyond": func(p *Producer, _ *Consumer) {
			p.Push(1, 0, 0)
			atomic.StoreUint64(&p.words(0)[0], uint64(small.Slots))
		},
		"a long frame": func(p *Producer, _ *Consumer) { p.Push(small.Size+1, 0, 0) },
		"released too much": func(_ *Producer, c *Consumer) {
			atomic.StoreUint64(c.tail, 1)
		},
		"released backwards": func(_ *Producer, c *Consumer) { atomic.StoreUint64(c.tail, ^uint64(0)) },
	} {
		p, c, _ := ends(t, small, 0)
		lie(p, c)
		_, _, next := c.Next()
		_, slot := p.Slot()
		if err := errors.Join(next, slot); !errors.Is(err, ErrLie) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLayouts(t *testing.T) {
	for _, frame := range []int{1, MinFrame, 1514, 4214, 9014, MaxFrame} {
		l, err := For(frame)
		if err != nil || l.Size < frame || l.check(memory(l.Bytes())) != nil {
			t.Errorf("frames of %d bytes: %+v, %v", frame, l, err)
		}
		if l.Bytes() > 2*slab+1<<20 {
			t.Errorf("frames of %d bytes take %d", frame, l.Bytes())
		}
	}
	for _, frame := range []int{-1, 0, MaxFrame + 1} {
		if l, err := For(frame); err == nil {
			t.Errorf("frames of %d bytes: %+v", frame, l)
		}
	}
	if _, err := NewProducer(small, memory(small.Bytes()-1), 0); err == nil {
		t.Error("a region that is too small")
	}
}

// Whatever the other side writes, an end returns memory of its own direction or an error.
func FuzzRegion(f *testing.F) {
	corpus := fuzztest.New(f)
	corpus.Add([]byte{0, 0, 0, 1, 2, 0, 3, 1, 0xff, 0, 0, 0})
	corpus.Add(bytes.Repeat([]byte{0, 1, 2, 3, 4, 5, 6, 7}, 20))
	corpus.Fuzz(func(t *testing.T, script []byte) {
		region := memory(small.Bytes())
		in, err := NewConsumer(small, region, 0)
		if err != nil {
			t.Fatal(err)
		}
		out, err := NewProducer(small, region, 1)
		if err != nil {
			t.Fatal(err)
		}
		inside := func(b []byte, r *ring) {
			if cap(b) == 0 {
				return
			}
			first, last := uintptr(unsafe.Pointer(&r.slots[0])), uintptr(unsafe.Pointer(&r.slots[len(r.slots)-1]))
			if at := uintptr(unsafe.Pointer(unsafe.SliceData(b))); at < first || at+uintptr(cap(b))-1 > last {
				t.Fatalf("%d bytes outside of the slots", cap(b))
			}
		}
		pending := 0
		for len(script) >= 4 {
			op, where, value := script[0], int(script[1])<<8|int(script[2]), script[3]
			script = script[4:]
			switch op % 5 {
			case 0: // a frame comes
				frame, ok, err := in.Next()
				if err != nil {
					return // it is over for this node
				}
				if inside(frame.Bytes, &in.ring); ok {
					in.Release()
				}
			case 1: // a frame leaves
				memory, err := out.Slot()
				if err != nil {
					return
				}
				if inside(memory, &out.ring); memory != nil {
					memory[0] = value
					out.Push(1, 0, 0)
					pending++
				}
			case 2: // the node writes a byte anywhere
				region[where%len(region)] = value
			case 3: // the node writes an index
				at := []*uint64{in.head, in.tail, out.head, out.tail}[where%4]
				atomic.StoreUint64(at, uint64(int64(int8(value))))
			case 4: // the node writes a descriptor
				w := in.words(uint64(where))
				atomic.StoreUint64(&w[0], uint64(value)|uint64(where)<<32)
			}
			_ = in.Ready()
			if len(out.free) > small.Slots {
				t.Fatalf("%d free slots of %d", len(out.free), small.Slots)
			}
		}
	})
}
