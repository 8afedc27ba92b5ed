package lab

import (
	"math"
	"strings"
	"testing"

	"weft/units"
)

const drawn = "weft: 1\nname: x\nseed: 7\ntopology: {kind: star, hosts: 8}\nworkload:\n  - {collective: broadcast, ranks: {random: 2}, size: 4KB, "

// Times between arrivals are exponential: of their mean, and of their standard deviation the same.
func TestPoissonArrivals(t *testing.T) {
	labs, err := Parse("x", []byte(drawn+"start: 1ms, poisson: {every: 1us, for: 5ms}}\n"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	items := labs[0].Workload
	n := float64(len(items))
	if math.Abs(n-5000) > 4*math.Sqrt(5000) {
		t.Errorf("%v arrivals in 5 ms, one every 1 us", n)
	}
	last, sum, squares := units.Millisecond, 0.0, 0.0
	for i, it := range items {
		gap := (it.Start - last).Microseconds()
		if gap <= 0 || it.Start > 6*units.Millisecond || it.Arrival != i || it.Arrivals != len(items) || it.Index != 0 {
			t.Fatalf("item %d: %+v after %v", i, it, last)
		}
		last, sum, squares = it.Start, sum+gap, squares+gap*gap
	}
	mean := sum / n
	if deviation := math.Sqrt(squares/n - mean*mean); math.Abs(mean-1) > 0.06 || math.Abs(deviation-1) > 0.1 {
		t.Errorf("gaps of mean %.3f and deviation %.3f us", mean, deviation)
	}
}

// The seed decides: the same seed gives the same instants, and every item of a workload has its
// own.
func TestPoissonIsDrawnBySeed(t *testing.T) {
	p := poisson{every: units.Microsecond, span: units.Millisecond}
	first := p.arrivals(Item{}, 1)
	for name, other := range map[string][]Item{"seed": p.arrivals(Item{}, 2), "item": p.arrivals(Item{Index: 1}, 1)} {
		if other[0].Start == first[0].Start {
			t.Errorf("another %s has the same arrivals", name)
		}
	}
	if again := p.arrivals(Item{}, 1); again[len(again)-1].Start != first[len(first)-1].Start {
		t.Error("the same seed has other arrivals")
	}
}

// However rare, an item of a workload is there once.
func TestPoissonArrivesOnce(t *testing.T) {
	p := poisson{every: units.Second, span: units.Nanosecond}
	if all := p.arrivals(Item{}, 1); len(all) != 1 || all[0].Start > units.Nanosecond {
		t.Errorf("%d arrivals, the first at %v", len(all), all[0].Start)
	}
}

func TestPoissonRefusals(t *testing.T) {
	for text, want := range map[string]string{
		"poisson: {every: 1us}":                                        "missing",
		"poisson: {every: 1ns, for: 1s}":                               "fewer than 20000",
		"repeat: 2, poisson: {every: 1us, for: 1ms}":                   "given together with repeat",
		"poisson: {every: 1us, for: 1ms, after: 1s}":                   "after",
		"ranks: {groups: 2, size: 2}, poisson: {every: 1us, for: 1ms}": "given together with groups",
	} {
		lab := drawn
		if strings.HasPrefix(text, "ranks") {
			lab = strings.Replace(lab, "ranks: {random: 2}, ", "", 1)
		}
		_, err := Parse("x", []byte(lab+text+"}\n"), Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
