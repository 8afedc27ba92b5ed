package path

import (
	"testing"

	"weft/units"
)

// The path changes after three rounds in a row with at least half of the acknowledgements marked,
// and not before.
func TestPLBRepathsAfterCongestedRounds(t *testing.T) {
	const round = 10 * units.Microsecond
	for _, c := range []struct {
		marked []int // of four acknowledgements, by round
		want   uint16
	}{
		{[]int{2, 2, 2}, 1},
		{[]int{4, 4}, 0},
		{[]int{4, 4, 1, 4, 4}, 0},
		{[]int{4, 4, 1, 4, 4, 3}, 1},
		{[]int{4, 4, 4, 4, 4, 4}, 2},
		{[]int{4, 4, 4, 4, 4, 4, 4, 4, 4}, 0}, // of three paths
	} {
		p := NewPLB(3, 3, round)
		now := units.Time(1)
		path := p.Choose(now)
		for _, marked := range c.marked {
			for k := range 4 {
				p.OnFeedback(now, Feedback{Path: path, Marked: k < marked})
				p.OnFeedback(now, Feedback{Path: path + 1, Marked: k >= marked}) // of before
			}
			now += round
			path = p.Choose(now)
		}
		if path != c.want {
			t.Errorf("%v: path %d, want %d", c.marked, path, c.want)
		}
	}
}

// Rounds without acknowledgements neither count as congested nor as uncongested.
func TestPLBSilentRounds(t *testing.T) {
	p := NewPLB(2, 2, 10)
	p.Choose(0)
	p.OnFeedback(1, Feedback{Marked: true})
	for now := units.Time(10); now < 100; now += 10 {
		if p.Choose(now) != 0 {
			t.Fatal("left a path that nothing was heard of")
		}
	}
	p.OnFeedback(100, Feedback{Marked: true})
	if p.Choose(200) != 1 {
		t.Error("stayed")
	}
}
