package eventqueue

import (
	"testing"

	"pgregory.net/rapid"

	"weft/units"
)

// What is pending when an epoch begins comes in the order that it has in any epoch that begins as
// long before it, whatever the queue did before.
func TestOrderFollowsFromTheEpoch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 30
		used, fresh := New(n), New(n)
		for range rapid.IntRange(0, 50).Draw(t, "before") {
			used.Set(ID(rapid.IntRange(0, n-1).Draw(t, "id")), used.Last()+ahead(t)%units.Second)
			if rapid.Bool().Draw(t, "pop") {
				used.Pop()
			}
		}
		for id := range ID(n) {
			used.Clear(id)
		}
		epoch := used.Last() + ahead(t)%units.Second
		by := ahead(t) % units.Second
		fresh.Begin(0, 0)
		for id := range ID(n) {
			in := units.Time(rapid.IntRange(0, 3).Draw(t, "in")) * 700
			used.Set(id, epoch+in)
			fresh.Set(id, in)
		}
		used.Begin(epoch+by, by)
		for range n {
			a, at, ok := used.Pop()
			b, in, ok2 := fresh.Pop()
			if a != b || at != epoch+by+in || !ok || !ok2 {
				t.Fatalf("entity %d at %d, want %d at %d", a, at-epoch-by, b, in)
			}
		}
	})
}
