package summary

import (
	"testing"
	"weft/host"
	"weft/results/record"
	"weft/transport"
	"weft/units"
)

// Messages that wait on one connection at once wait for the same timeouts, which count once.
func TestTimeoutsCountOnceHoweverManyMessagesWait(t *testing.T) {
	const ms = units.Millisecond
	o := &Outcome{TimedOut: []transport.TimedOut{{Conn: 1, At: 3 * ms, Waited: 2 * ms}, {Conn: 0, At: ms, Waited: ms}, {Conn: 1, At: ms, Waited: ms}}}
	for i := range 39 {
		o.Flows = append(o.Flows, host.Flow{Conn: 1, Start: units.Time(i), Acked: 4 * ms})
	}
	o.Flows = append(o.Flows, host.Flow{Conn: 0, Acked: 4 * ms}, host.Flow{Conn: 0, Start: 2 * ms, Acked: 5 * ms})
	got := tail(o, record.Quantiles{P99: 3999, Max: 4000})
	if got == nil || got.Timeouts != 3 || got.Messages != 40 || got.WaitedUS != 3000 || got.Decide != record.DecideP99 {
		t.Errorf("%+v, want 3 timeouts that 40 messages wait for, at most 3 ms", got)
	}
}

// Packets of a message with timers of their own wait at the same time. One slow message in a
// thousand decides the maximum, and not the percentile.
func TestTimeoutsOfPacketsThatWaitAtOnce(t *testing.T) {
	const us = units.Microsecond
	o := new(Outcome)
	for i := range units.Time(64) {
		o.TimedOut = append(o.TimedOut, transport.TimedOut{Conn: 1, At: (1100 + i) * us, Waited: 1000 * us})
	}
	o.Flows = []host.Flow{{Conn: 1, Start: 50 * us, Acked: 1200 * us}}
	for range 999 {
		o.Flows = append(o.Flows, host.Flow{Conn: 2, Acked: 100 * us})
	}
	got := tail(o, record.Quantiles{P99: 100, Max: 1150})
	if got == nil || got.Timeouts != 64 || got.WaitedUS != 1063 || got.Decide != record.DecideMax {
		t.Errorf("%+v, want 64 timeouts, for which a message waits 1063 us, and which decide the maximum", got)
	}
	for i := range 20 {
		o.Flows[i+1].Acked = 1200 * us
	}
	if got := tail(o, record.Quantiles{P99: 1150, Max: 1200}); got != nil {
		t.Errorf("%+v, but others are as slow without timeouts", got)
	}
}
