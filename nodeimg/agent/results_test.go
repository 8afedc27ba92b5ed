package agent

import (
	"encoding/json"
	"reflect"
	"testing"

	clocks "weft/clocksync/node"
	"weft/host"
	"weft/internal/control"
	"weft/results/stats"
	"weft/transport"
	"weft/units"
)

// largeResults returns results whose JSON, in one piece, has more than the limit of a message.
func largeResults() *Results {
	r := &Results{Timer: stats.NewDist(), Reaction: stats.NewDist(), RTT: stats.NewDist(), OneWay: stats.NewDist(),
		Clock: &clocks.Report{Packets: 7}, CPU: 9}
	for i := range 3*maxRows + 1 {
		r.Flows = append(r.Flows, host.Flow{Message: uint32(i), Start: units.Time(i)})
	}
	for i := range maxRows {
		r.Dones = append(r.Dones, host.Done{Repeat: i})
	}
	for i := range 1_000_000 {
		r.Clock.Samples = append(r.Clock.Samples, clocks.Sample{At: units.Time(i) * 10 * units.Microsecond,
			Error: units.Time(i%1000) - 500, Bound: 12345678})
	}
	r.TimedOut = []transport.TimedOut{{Conn: 3}}
	r.Windows, r.Steps = []Window{{Conn: 3}}, []Step{{Conn: 4}}
	return r
}

func TestResultsOfAnyLengthArriveInPieces(t *testing.T) {
	ours, theirs, err := control.Connected()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	whole, err := json.Marshal(largeResults())
	if err != nil || len(whole) <= control.MaxBody {
		t.Fatalf("in one piece they have %d bytes, %v, below the limit of %d", len(whole), err, control.MaxBody)
	}
	sent := make(chan error, 1)
	go func() {
		sent <- largeResults().send(theirs)
		theirs.Close()
	}()
	var got Results
	all := 0
	for {
		m, _, err := ours.Recv()
		if err != nil {
			t.Fatal(err)
		}
		all += len(m.Body)
		if len(m.Body) > control.MaxBody/8 {
			t.Errorf("a message %q of %d bytes", m.Kind, len(m.Body))
		}
		if m.Kind == KindResults {
			var last Results
			if err := m.Decode(&last); err != nil {
				t.Fatal(err)
			}
			if err := got.Complete(&last); err != nil {
				t.Fatal(err)
			}
			break
		}
		var rows Rows
		if err := m.Is(KindRows, &rows); err != nil {
			t.Fatal(err)
		}
		if err := got.Append(&rows); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if want := largeResults(); !reflect.DeepEqual(&got, want) {
		t.Errorf("%d flows, %d samples arrived of %d, %d", len(got.Flows), len(got.Clock.Samples), len(want.Flows),
			len(want.Clock.Samples))
	}
	if all > len(whole)/3 {
		t.Errorf("the pieces have %d bytes, the whole %d", all, len(whole))
	}
}

func TestSamplesNeedAClock(t *testing.T) {
	var r Results
	if err := r.Append(&Rows{Samples: clocks.AppendSamples(nil, []clocks.Sample{{At: 1}})}); err != nil {
		t.Fatal(err)
	}
	if r.Complete(&Results{}) == nil {
		t.Error("accepted samples of a host without a clock")
	}
	if r.Append(&Rows{Samples: []byte{0}}) == nil {
		t.Error("accepted half a sample")
	}
}
