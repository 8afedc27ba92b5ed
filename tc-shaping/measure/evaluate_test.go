package measure_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"weft/tc-shaping/measure"
	"weft/units"
)

// idealTrain returns the packets of a link of 8 Mb/s and 5 ms, computed: packets of 1,000 bytes,
// all sent at once, every third marked, one copied twice, the last lost.
func idealTrain() []measure.Packet {
	p := make([]measure.Packet, 100)
	for i := range p {
		p[i] = measure.Packet{Sent: 1e9, Arrived: 1e9 + 5e6 + int64(i+1)*1e6, Marked: i%3 == 0}
	}
	p[99].Arrived, p[99].Marked = 0, false
	p[7].Copies = 2
	return p
}

func TestEvaluationOfAPerfectLink(t *testing.T) {
	p := idealTrain()
	if got := measure.Rate(p, 10, 1000); got != 8*units.Mbps {
		t.Errorf("rate %v, want 8Mbps", got)
	}
	if got := measure.Delay(p, 0); got != 6*time.Millisecond {
		t.Errorf("least delay %v, want 6ms", got)
	}
	if got := measure.Delay(p, 0.5); got != 55*time.Millisecond {
		t.Errorf("median delay %v, want 55ms", got)
	}
	if lost, copies, marks := measure.Lost(p), countCopies(p), countMarks(p); lost != 1 || copies != 2 || marks != 33 {
		t.Errorf("%d lost, %d copies, %d marks; want 1, 2, 33", lost, copies, marks)
	}
	for i, s := range measure.Queues(p, 6*time.Millisecond, 1000) {
		if want := units.Bytes(1000 * max(0, i-1)); s.Queue != want || s.Marked != p[i].Marked {
			t.Errorf("packet %d found %+v, want %v waiting", i, s, want)
		}
	}
}

func TestQueuesPassOverWhatWasLost(t *testing.T) {
	// sent 1 ms apart, 2 ms each on the link, so the queue grows by one packet for every two
	p := make([]measure.Packet, 8)
	for i := range p {
		p[i] = measure.Packet{Sent: 1e9 + int64(i)*1e6, Arrived: 1e9 + 5e6 + int64(i+1)*2e6}
	}
	p[2].Arrived = 0 // and its time on the link stays empty
	var got []units.Bytes
	for _, s := range measure.Queues(p, 7*time.Millisecond, 1) {
		got = append(got, s.Queue)
	}
	// At 0 1 3 4 5 6 ms the number of started packets is 0 2 - 6 8 10.
	if want := []units.Bytes{0, 0, 0, 1, 2, 2}; !slices.Equal(got[:6], want) {
		t.Errorf("queues %v, want %v", got, want)
	}
}

func TestEvaluationOfNothing(t *testing.T) {
	lost := make([]measure.Packet, 5)
	if r, d := measure.Rate(lost, 0, 1000), measure.Delay(lost, 0.5); r != 0 || d != 0 ||
		len(measure.Queues(lost, 0, 1)) != 0 {
		t.Errorf("packets that never came have a rate of %v and a delay of %v", r, d)
	}
	if r := measure.Rate(idealTrain(), 1000, 1000); r != 0 {
		t.Errorf("no packets have a rate of %v", r)
	}
	same := []measure.Packet{{Arrived: 1}, {Arrived: 1}, {Arrived: 1}}
	if r := measure.Rate(same, 0, 1000); r != 0 {
		t.Errorf("packets at one instant have a rate of %v", r)
	}
	if m, w := markedShare(nil, nil); m != 0 || w != 0 {
		t.Error("no samples have a share")
	}
}

func TestOnsetSeparates(t *testing.T) {
	var s []measure.Sample
	for q := range units.Bytes(50) {
		s = append(s, measure.Sample{Queue: 1000 * q, Marked: q >= 20})
	}
	s[3].Marked, s[40].Marked = true, false // two outliers
	if got := onset(s); got != 20_000 {
		t.Errorf("onset at %v, want 20KB", got)
	}
	if got := onset(s[4:20]); got != never {
		t.Errorf("onset of none that is marked at %v", got)
	}
	if got := onset(s[20:30]); got != 20_000 {
		t.Errorf("onset where all are marked at %v, want the shortest queue seen", got)
	}
	marked, want := markedShare(s[20:30], func(q units.Bytes) float64 { return float64(q) / 100_000 })
	if marked != 1 || math.Abs(want-0.245) > 1e-9 {
		t.Errorf("share %g, expected %g; want 1 and 0.245", marked, want)
	}
}
