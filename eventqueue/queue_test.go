package eventqueue

import (
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"testing"

	"weft/units"

	"pgregory.net/rapid"
)

// oracle is the dumb second version: every pending instant in a map, sorted when asked.
type oracle map[ID]units.Time

func (o oracle) next() (id ID, at units.Time, ok bool) {
	var all []entry
	for id, at := range o {
		all = append(all, entry{at, (&Queue{}).tie(at, int32(id)), int32(id)})
	}
	if len(all) == 0 {
		return 0, 0, false
	}
	sort.Slice(all, func(i, j int) bool { return all[i].before(all[j]) })
	return ID(all[0].id), all[0].at, true
}

// ahead draws how far in the future an entity is set: ties, neighbours in a slot, and every wheel.
func ahead(t *rapid.T) units.Time {
	switch rapid.IntRange(0, 5).Draw(t, "range") {
	case 0:
		return 0
	case 1:
		return units.Time(rapid.IntRange(0, 3).Draw(t, "ps"))
	case 2:
		return units.Time(rapid.IntRange(0, 4000).Draw(t, "ps"))
	case 3:
		return units.Time(rapid.IntRange(0, 10e6).Draw(t, "ps"))
	case 4:
		return units.Time(rapid.Int64Range(0, 1e12).Draw(t, "ps"))
	default:
		return units.Time(1) << rapid.IntRange(0, 61).Draw(t, "bit")
	}
}

func TestQueueAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "entities")
		q, o := New(n), oracle{}
		var last units.Time
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			id := ID(rapid.IntRange(0, n-1).Draw(t, "id"))
			switch rapid.IntRange(0, 9).Draw(t, "op") {
			case 0, 1, 2, 3:
				at := last + ahead(t)
				if at < last {
					at = units.Never
				}
				q.Set(id, at)
				o[id] = at
			case 4:
				q.Clear(id)
				delete(o, id)
			case 5, 6:
				gotID, gotAt, gotOK := q.Pop()
				wantID, wantAt, wantOK := o.next()
				if gotID != wantID || gotAt != wantAt || gotOK != wantOK {
					t.Fatalf("Pop() = %d, %d, %t; want %d, %d, %t", gotID, gotAt, gotOK, wantID, wantAt, wantOK)
				}
				if gotOK {
					last = gotAt
					delete(o, gotID)
				}
			case 8:
				end := max(last, last+ahead(t))
				gotID, gotAt, gotOK := q.PopUntil(end)
				wantID, wantAt, wantOK := o.next()
				if wantAt > end || !wantOK {
					wantID, wantAt, wantOK = 0, 0, false
				}
				if gotID != wantID || gotAt != wantAt || gotOK != wantOK {
					t.Fatalf("PopUntil(%d) = %d, %d, %t; want %d, %d, %t", end, gotID, gotAt, gotOK, wantID, wantAt, wantOK)
				}
				if gotOK {
					last = gotAt
					delete(o, gotID)
				}
			case 9:
				_, first, ok := o.next()
				if got := q.Bound(); ok && (got > first || got < last) || !ok && got != units.Never {
					t.Fatalf("Bound() = %d after %d; the first is at %d, %t", got, last, first, ok)
				}
			case 7:
				gotID, gotAt, gotOK := q.Next()
				if wantID, wantAt, wantOK := o.next(); gotID != wantID || gotAt != wantAt || gotOK != wantOK {
					t.Fatalf("Next() = %d, %d, %t; want %d, %d, %t", gotID, gotAt, gotOK, wantID, wantAt, wantOK)
				}
			}
			at, ok := q.At(id)
			if wantAt, want := o[id]; ok != want || ok && at != wantAt {
				t.Fatalf("At(%d) = %d, %t; want %d, %t", id, at, ok, wantAt, want)
			}
			if q.Len() != len(o) || q.Last() != last {
				t.Fatalf("%d pending after %d, want %d after %d", q.Len(), q.Last(), len(o), last)
			}
		}
	})
}

// Queues that each hold some of the entities of a larger one give them in the order that they have
// there.
func TestKeysOrderAsNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "entities")
		whole := New(n)
		var keys [2][]int32
		for id := range n {
			part := rapid.IntRange(0, 1).Draw(t, "part")
			keys[part] = append(keys[part], int32(id))
		}
		var parts [2]*Queue
		for p := range parts {
			parts[p] = New(0)
			parts[p].GrowAs(keys[p])
			for i, key := range keys[p] {
				at := units.Time(rapid.IntRange(0, 3).Draw(t, "at")) * 300
				whole.Set(ID(key), at)
				parts[p].Set(ID(i), at)
			}
		}
		for id, at, ok := whole.Pop(); ok; id, at, ok = whole.Pop() {
			p := 0
			if _, in := slices.BinarySearch(keys[1], int32(id)); in {
				p = 1
			}
			if i, got, ok := parts[p].Pop(); !ok || parts[p].Key(i) != int32(id) || got != at {
				t.Fatalf("key %d at %d, %t; want %d at %d", parts[p].Key(i), got, ok, id, at)
			}
		}
	})
}

// Many entities in one slot, many at one instant: the front is long.
func TestQueueManyAtOnce(t *testing.T) {
	const n = 5000
	rng := rand.New(rand.NewPCG(1, 2))
	q := New(n)
	want := make([]entry, n)
	for i := range want {
		at := units.Time(rng.IntN(40)) + 7_000_000
		q.Set(ID(i), at)
		want[i] = entry{at, (&Queue{}).tie(at, int32(i)), int32(i)}
	}
	sort.Slice(want, func(i, j int) bool { return want[i].before(want[j]) })
	for i, w := range want {
		if id, at, ok := q.Pop(); !ok || id != ID(w.id) || at != w.at {
			t.Fatalf("pop %d: %d at %d, want %d at %d", i, id, at, w.id, w.at)
		}
	}
	if _, _, ok := q.Pop(); ok {
		t.Fatal("popped more than was set")
	}
}

// An entity that is peeked at, then overtaken: what is set before it comes first.
func TestQueueNextDoesNotMoveTime(t *testing.T) {
	q := New(3)
	q.Set(0, units.Second)
	if id, at, _ := q.Next(); id != 0 || at != units.Second {
		t.Fatalf("next is %d at %d", id, at)
	}
	q.Set(1, units.Microsecond)
	q.Set(2, units.Millisecond)
	for _, want := range []ID{1, 2, 0} {
		if id, _, _ := q.Pop(); id != want {
			t.Fatalf("popped %d, want %d", id, want)
		}
	}
}

// Entities moved over and over within the slot at hand leave stale entries; their number stays
// bounded.
func TestQueueStaleEntriesAreBounded(t *testing.T) {
	q := New(3)
	for i := range 100_000 {
		q.Set(0, units.Time(i%2))
		q.Set(1, units.Time(i%3+50))
	}
	if len(q.front) > 200 {
		t.Fatalf("%d entries for 2 entities", len(q.front))
	}
	q.Clear(0)
	if id, at, ok := q.Pop(); id != 1 || at != 50 || !ok {
		t.Fatalf("popped %d at %d, %t", id, at, ok)
	}
	if _, _, ok := q.Pop(); ok {
		t.Fatal("a cleared entity was popped")
	}
}

func TestQueueRefusesThePast(t *testing.T) {
	q := New(2)
	q.Set(0, 100)
	q.Pop()
	q.Set(0, 100) // the same instant is still the present
	defer func() {
		want := "eventqueue: entity 1 set at 99 ps, before 100 ps which has passed"
		if got := recover(); got != want {
			t.Fatalf("panic %v, want %q", got, want)
		}
	}()
	q.Set(1, 99)
}

func TestQueueGrow(t *testing.T) {
	q := New(2)
	q.Set(1, 5)
	if first := q.Grow(3); first != 2 {
		t.Fatalf("first new entity is %d, want 2", first)
	}
	q.Set(4, 4)
	if _, ok := q.At(3); ok {
		t.Fatal("a new entity is pending")
	}
	for _, want := range []ID{4, 1} {
		if id, _, _ := q.Pop(); id != want {
			t.Fatalf("popped %d, want %d", id, want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Fatal("growing by -1 did not panic")
		}
	}()
	q.Grow(-1)
}

// Nobody wins every tie: of 16 entities due together at 8,000 instants in steady pace, each comes
// first about as often as any other, and each pair is about as often in one order as in the other.
func TestTiesAreFair(t *testing.T) {
	const n, instants = 16, 8000
	q := New(n)
	var wins [n]int
	var ahead [n][n]int
	for i := range instants {
		for id := range n {
			q.Set(ID(id), units.Time(i)*80*units.Nanosecond)
		}
		var order []ID
		for range n {
			id, _, _ := q.Pop()
			order = append(order, id)
		}
		wins[order[0]]++
		for a := range order {
			for b := a + 1; b < n; b++ {
				ahead[order[a]][order[b]]++
			}
		}
	}
	for id, w := range wins {
		if w < instants/n*8/10 || w > instants/n*12/10 { // 500 ± 100: over 4.5 standard deviations
			t.Errorf("entity %d came first %d times of %d", id, w, instants)
		}
		for other := range n {
			if c := ahead[id][other]; id != other && (c < instants*46/100 || c > instants*54/100) {
				t.Errorf("entity %d came before %d %d times of %d", id, other, c, instants)
			}
		}
	}
}

func TestQueueDoesNotAllocate(t *testing.T) {
	const n = 1000
	q, step := holdModel(n)
	for range 20 * n {
		step()
	}
	if a := testing.AllocsPerRun(1000, step); a != 0 {
		t.Fatalf("%v allocations per pop and set", a)
	}
	if q.Len() != n {
		t.Fatalf("%d pending, want %d", q.Len(), n)
	}
}

// holdModel returns a queue with n pending and a step that pops one and sets it some time ahead:
// mostly what links do (80 ns to 1.3 µs), some waits in queues and some timers.
func holdModel(n int) (*Queue, func()) {
	rng := rand.New(rand.NewPCG(1, 2))
	var ahead [1 << 12]units.Time
	for i := range ahead {
		switch r := rng.IntN(100); {
		case r < 80:
			ahead[i] = 80*units.Nanosecond + units.Time(rng.Int64N(int64(1300*units.Nanosecond)))
		case r < 97:
			ahead[i] = units.Time(rng.Int64N(int64(10 * units.Microsecond)))
		default:
			ahead[i] = units.Time(rng.Int64N(int64(units.Millisecond)))
		}
	}
	q := New(n)
	for id := range n {
		q.Set(ID(id), ahead[id%len(ahead)])
	}
	i := 0
	return q, func() {
		id, at, _ := q.Pop()
		i++
		q.Set(id, at+ahead[i%len(ahead)])
	}
}

func BenchmarkHold(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000, 100_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			_, step := holdModel(n)
			for range 10 * n {
				step()
			}
			b.ReportAllocs()
			for b.Loop() {
				step()
			}
		})
	}
}
