package measure_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weft/internal/umltest"
	"weft/tc-shaping/measure"
	"weft/tc-shaping/qdisc"
	"weft/units"
)

func TestTableSaysWhatIsOutOfBounds(t *testing.T) {
	rows := []measure.Row{{What: "rate", Asked: "2Mbps", Measured: "1Mbps", Bound: "+-2%"}, {What: "lost of 9", Asked: "0", Measured: "0", Bound: "+-0", OK: true}}
	want := "what       asked  measured  bound  \nrate       2Mbps  1Mbps     +-2%   out of bounds\nlost of 9  0      0         +-0    \n"
	if got := measure.Table(rows); got != want {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	if measure.Kept(rows) || !measure.Kept(rows[1:]) {
		t.Error("a contract is kept when all of its rows are")
	}
}

// A link that is as asked keeps the contract; one that is not breaks it, with a row for what is wrong.
func TestUMLContract(t *testing.T) {
	if umltest.Outside(t) {
		return
	}
	d := qdisc.Direction{Rate: 4 * units.Mbps, Delay: 20 * time.Millisecond, Limit: 400_000, Lateness: slow,
		RED: &qdisc.RED{Min: 60_000, Max: 150_000, Pmax: 0.2, ECN: true}}
	l := newLink(t, d)
	verify := func(d qdisc.Direction) []measure.Row {
		rows, err := measure.Verify(t.Context(), l.sender, l.receiver, d)
		l.must(err)
		t.Logf("\n%s", measure.Table(rows))
		return rows
	}
	l.eventually(func() error {
		if rows := verify(d); !measure.Kept(rows) {
			return fmt.Errorf("broken:\n%s", measure.Table(rows))
		}
		return nil
	})
	other := d
	other.Rate, other.Delay, other.Loss = 5*units.Mbps, 10*time.Millisecond, 0.5
	broken := map[string]bool{}
	for _, r := range verify(other) {
		what, _, _ := strings.Cut(r.What, " ")
		broken[what] = broken[what] || !r.OK
	}
	for _, what := range []string{"one-way", "lost"} {
		if !broken[what] {
			t.Errorf("%s is not as asked, and the contract does not say so", what)
		}
	}
}

// A kernel without netem keeps the part of a contract that is about rate.
func TestPrivContract(t *testing.T) {
	d := qdisc.Direction{Rate: 50 * units.Mbps, Limit: units.MB, Lateness: 2 * time.Millisecond}
	l := newLink(t, d)
	l.eventually(func() error {
		rows, err := measure.Verify(t.Context(), l.sender, l.receiver, d)
		l.must(err)
		t.Logf("\n%s", measure.Table(rows))
		if !measure.Kept(rows) {
			return fmt.Errorf("broken:\n%s", measure.Table(rows))
		}
		return nil
	})
}
