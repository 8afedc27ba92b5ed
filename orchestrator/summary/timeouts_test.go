package summary

import (
	"testing"
	"weft/host"
	"weft/orchestrator/experiment"
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
	o.Flows = append(o.Flows, host.Flow{Conn: 0, Acked: 4 * ms}, host.Flow{Conn: 0, Start: 2 * ms, Acked: 6 * ms})
	got := tail(new(experiment.Experiment), o, 1000)
	if got == nil || got.Timeouts != 3 || got.Messages != 40 || got.WaitedUS != 3000 {
		t.Errorf("%+v, want 3 timeouts that 40 messages wait for, at most 3 ms", got)
	}
}
